"""One call beside the session. This is the firewall between a language model and the session: whatever happens in the
call, the session goes on without its answer and says why."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

Start = Callable[[Callable[[], None]], None]
"""Has some work done, now or later."""


def in_a_thread(work: Callable[[], None]) -> None:
    """Beside the caller. A process that ends does not wait for it."""
    threading.Thread(target=work, name="model", daemon=True).start()


def at_once(work: Callable[[], None]) -> None:
    """Before it returns: for tests, and for worlds in which time is not real."""
    work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Came(Generic[T]):
    """What a call gave: exactly one of the two is set."""

    value: T | None = None
    fault: str | None = None
    """Why it broke off, for the record: a mistake of ours, or of an adapter."""


class Call(Generic[T]):
    """Begins when it is made; is asked now and then whether it is done, and never waited for."""

    def __init__(self, work: Callable[[], T], start: Start = in_a_thread) -> None:
        self._work = work
        self._came: Came[T] | None = None
        start(self._run)

    @property
    def came(self) -> Came[T] | None:
        """None: it is not done."""
        return self._came

    def _run(self) -> None:
        try:
            self._came = Came(value=self._work())
        except Exception as fault:  # noqa: BLE001 - the firewall: the session goes on without the model
            self._came = Came(fault=f"{type(fault).__name__}: {fault}")
