"""Source files looked at by a Python in a process of its own, which may crash or be ended without harm. See `look`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from . import look

_WITHIN_S = 2.0 * look.CPU_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a Python said of one file; by itself: nothing."""

    told: tuple[tuple[str, int], ...] = ()
    """Errors and warnings, with their lines."""
    imports: tuple[tuple[str, int], ...] = ()
    """Top names of modules that have to be there, with the line of the first import."""


def readings(files: Sequence[tuple[str, bytes]], python: str | None) -> list[Reading]:
    """What a Python says of (path, content), in this order.

    Args:
        python: the jobs' Python; None, or one that does not start: our own.
    """
    if not files:
        return []
    given = json.dumps([(path, content.decode("latin-1")) for path, content in files]).encode()
    answer, is_late = _asked(python or sys.executable, given)
    if answer is None or (not answer.stdout and answer.returncode > 0):
        answer, is_late = _asked(sys.executable, given)
    lines = [] if answer is None else answer.stdout.splitlines()
    found = [_read(line) for line in lines[: len(files)]]
    if len(found) < len(files):
        why = "it takes Python too long to read it" if is_late else "reading it makes Python crash"
        found.append(Reading(told=((f"{why}; write it in simpler statements", 1),)))
    return [*found, *(Reading() for _ in files[len(found) :])]


def _asked(python: str, given: bytes) -> tuple[subprocess.CompletedProcess[bytes] | None, bool]:
    """Its answer, and whether its time was over; None: it did not start."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        answer = subprocess.run(
            [python, "-I", "-S", look.__file__],
            input=given,
            capture_output=True,
            cwd="/",
            env=environment,
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, -9, late.stdout or b"", b""), True
    except OSError:
        return None, False
    return answer, answer.returncode in (-9, -24)


def _read(line: bytes) -> Reading:
    said = json.loads(line)
    return Reading(
        told=tuple((str(text), int(number)) for text, number in said["told"]),
        imports=tuple((str(name), int(number)) for name, number in said["imports"].items()),
    )
