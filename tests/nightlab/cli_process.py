"""Running the command as a person does, and waiting for what it brings about."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    exit_code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Of the envelope on standard output, which is all there is."""
        envelope = json.loads(self.out)
        assert envelope["v"] == 1
        assert "error" not in envelope, envelope
        return envelope["data"]

    @property
    def error(self) -> Any:
        envelope = json.loads(self.out)
        assert envelope["v"] == 1
        assert "data" not in envelope, envelope
        return envelope["error"]


def nightlab(
    *arguments: str, home: Path | None = None, cwd: Path | None = None, timeout_s: float = 60.0, **environment: str
) -> Ended:
    """Run `nightlab ARGUMENTS`; the home folder reaches it by NIGHTLAB_HOME."""
    done = subprocess.run(
        [sys.executable, "-m", "nightlab", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=cwd,
        check=False,
        env={**_clean(), **({} if home is None else {"NIGHTLAB_HOME": str(home)}), **environment},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(exit_code=done.returncode, out=done.stdout, err=done.stderr)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NIGHTLAB_")}


def eventually(ask: Callable[[], T | None], *, within_s: float = 20.0) -> T:
    """The first answer of `ask` that is neither None nor False.

    Raises:
        AssertionError: there was none in time.
    """
    deadline = time.monotonic() + within_s
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.05)
