"""Asking again while the runtime is away for a moment: its supervisor starts it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from runtime_client.errors import RuntimeClientError

from .output import note

PATIENCE_S = 120.0
PAUSE_S = 1.0

T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """What `ask` returns, asked again after errors that may pass.

    Raises:
        RuntimeClientError: final, or the runtime stayed away for two minutes.
    """
    deadline = time.monotonic() + PATIENCE_S
    has_noted = False
    while True:
        try:
            return ask()
        except RuntimeClientError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise
            if not has_noted:
                note("the runtime is away; waiting for it")
                has_noted = True
            time.sleep(PAUSE_S)
