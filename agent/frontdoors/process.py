"""What the processes of sessions and nights share: how they are asked to leave, and that they end with their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from types import FrameType

_PR_SET_PDEATHSIG = 1


def leave_on_signals(leaving: threading.Event) -> None:
    """SIGTERM or Ctrl-C: leave in order; a second one ends the process at once."""

    def leave(signum: int, _frame: FrameType | None) -> None:
        if leaving.is_set():
            os._exit(128 + signum)
        leaving.set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)


def tie_to_parent(parent_pid: int) -> bool:
    """Be sent SIGTERM when the parent dies (Linux); False when it is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid
