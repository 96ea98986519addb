"""What the runtime asks of a process: to leave (the notice file, SIGTERM), the same answer on all ranks; its stacks."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TextIO

from . import ranks
from .process_context import Context, context

PATIENCE_S = 10.0
"""How long a rank without collectives waits for the others to say where they are."""


class StopNotice:
    """What was heard so far."""

    def __init__(self, found: Context) -> None:
        self._context = found
        self._file = None if found.preempt_file is None else str(found.preempt_file)
        self._was_asked = False
        self._stop_at: int | None = None

    def listen(self) -> None:
        """Catch SIGTERM from now on; a handler that the script has set is called too. Main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        earlier = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda number, frame: self._hear(earlier, number, frame))

    def _hear(self, earlier: Callable[..., object] | int | None, number: int, frame: FrameType | None) -> None:
        self._was_asked = True
        if callable(earlier):
            earlier(number, frame)

    def is_there(self) -> bool:
        """What this process alone knows."""
        if not self._was_asked and self._file is not None:
            self._was_asked = os.path.exists(self._file)
        return self._was_asked

    def is_agreed(self, step: int | None) -> bool:
        if ranks.group() is not None:
            return ranks.any_of(self.is_there())
        if self._context.n_ranks > 1 and step is not None and self._file is not None:
            return self._is_agreed_by_files(step, Path(self._file).parent)
        return self.is_there()

    def _is_agreed_by_files(self, step: int, folder: Path) -> bool:
        """All say at which step they heard it; the highest of these is where all stop."""
        if not self.is_there():
            return False
        if self._stop_at is None:
            self._stop_at = _latest_step(folder, self._context, step)
        return step >= self._stop_at


def _latest_step(folder: Path, found: Context, step: int) -> int:
    """The highest step that any rank had reached; of those who spoke in time."""
    own = folder / f"stop-rank-{found.rank}"
    written = own.with_name(f"{own.name}.tmp")
    written.write_text(str(step))
    os.replace(written, own)
    deadline = time.monotonic() + PATIENCE_S
    others = [folder / f"stop-rank-{rank}" for rank in range(found.n_ranks)]
    while not all(other.exists() for other in others) and time.monotonic() < deadline:
        time.sleep(0.005)
    return max(int(other.read_text()) for other in others if other.exists())


@cache
def notice() -> StopNotice:
    """This process's, listening since it was first asked for."""
    found = StopNotice(context())
    found.listen()
    _tell_stacks(context().stack_file)
    return found


_stacks: list[TextIO] = []
"""Kept open: `faulthandler` writes by the number of the descriptor."""


def _tell_stacks(prefix: Path | None) -> None:
    """Write where all threads are whenever SIGUSR2 comes, which the runtime sends to a job that hangs."""
    if prefix is None or signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL:
        return
    try:
        file = Path(f"{prefix}.{os.getpid()}").open("w")  # noqa: SIM115 - open as long as the process
    except OSError as error:
        print(f"nightlab: if this job hangs, its stacks can not be kept ({error})", file=sys.stderr, flush=True)
        return
    _stacks.append(file)
    faulthandler.register(signal.SIGUSR2, file=file, all_threads=True)


def should_stop(step: int | None = None) -> bool:
    """Whether to save and leave now. Ask once a step; it costs a look for a file.

    With `torch.distributed` set up, every rank must ask at the same steps, and all get the same answer. Ranks without
    it agree by their step, where it is given: they wait for each other, and all stop at the same one.
    """
    return notice().is_agreed(step)


def ignore_stop_signal(_worker: int = 0) -> None:
    """For processes that only help, such as those of a data loader (`worker_init_fn`): SIGTERM is not for them.

    The notice reaches the whole process group; a worker that died of it would fail the very step that ends with the
    checkpoint.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
