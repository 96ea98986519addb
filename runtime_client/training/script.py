"""What a script calls: save, restore, leave. One set of checkpoints per process, in nightlab's folder."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from . import metrics, stopping
from .checkpoints import Checkpoints, Saved
from .process_context import context

EXIT_REQUEUE = 75
"""Exit code: checkpointed, run me again (EX_TEMPFAIL of sysexits.h)."""
LAST_WORDS_S = 3.0
"""How long leaving waits for the gateway; what it did not take is in the checkpoint."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


@cache
def _checkpoints(keep: int) -> Checkpoints:
    return Checkpoints(keep=keep)


def checkpoint(step: int, value: Any = None, *, write: Callable[[Path], object] | None = None, keep: int = 2) -> Path:
    """Save `value`, or what `write` puts into a folder, as the checkpoint of a step: whole and durable, or not at all.

    The newest `keep` stay. See `Checkpoints.save`.
    """
    return _checkpoints(keep).save(step, value, write=write)


def restore(*, read: Callable[[Path], Any] | None = None) -> Saved | None:
    """The newest checkpoint of this job; None: begin from nothing. Also begins to listen for the notice.

    Outside nightlab there is one only if NIGHTLAB_RESUME_FROM names it. See `Checkpoints.restore`.
    """
    stopping.notice()
    return _checkpoints(2).restore(read=read)


def finish_as_preempted() -> NoReturn:
    """Leave with exit code 75: nightlab runs the job again, from its newest checkpoint. Raises SystemExit."""
    metrics.flush_metrics(LAST_WORDS_S)
    metrics.do_not_wait_at_exit()
    found = context()
    if not found.is_job and found.is_first_rank:
        newest = Checkpoints(of=found).latest_saved()
        if newest is not None:
            print(f"nightlab: go on with NIGHTLAB_RESUME_FROM={newest}", file=sys.stderr, flush=True)
    sys.exit(EXIT_REQUEUE)


def end_step(
    step: int,
    value: Any = None,
    *,
    write: Callable[[Path], object] | None = None,
    every: int | None = None,
    keep: int = 2,
) -> None:
    """At the end of a step: save when it is time, and when asked to leave, save and leave.

    A disk without room does not end the training: the older checkpoints are there still, and standard error says so.

    Args:
        every: steps between two checkpoints; None: only when asked to leave.

    Raises:
        SystemExit: 75, when asked to leave.
    """
    is_leaving = stopping.should_stop(step)
    if is_leaving or (every is not None and step % every == 0):
        try:
            checkpoint(step, value() if callable(value) else value, write=write, keep=keep)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            print(f"nightlab: no room for the checkpoint of step {step} ({error})", file=sys.stderr, flush=True)
    if is_leaving:
        finish_as_preempted()
