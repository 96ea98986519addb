"""Where the processes of an attempt are: a dump of their stacks, by the best means that there is.

py-spy where it is installed; else what a Python process writes by itself when its script has registered
`faulthandler` for SIGUSR2 (it says so by making the file `<NIGHTLAB_STACK_FILE>.<pid>`); else what the kernel tells.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from runtime.node import processes

STACKS = "stacks.txt"
"""The dump, in the attempt's folder."""
PREFIX = "stacks"
"""NIGHTLAB_STACK_FILE, in the attempt's folder."""
MOST_PROCESSES = 64
MOST_BYTES = 1024 * 1024
_PY_SPY_S = 10.0
_ANSWER_S = 2.0


def dump(pids: Iterable[int], folder: Path) -> str:
    """The stacks of these processes as text; takes some seconds."""
    chosen = sorted(pids)[:MOST_PROCESSES]
    asked = {pid: before for pid in chosen if (before := _ask(pid, folder)) is not None}
    py_spy = _find_py_spy()
    parts = [_of_process(pid, folder, py_spy, asked) for pid in chosen]
    return "\n".join(part for part in parts if part)[:MOST_BYTES]


def _of_process(pid: int, folder: Path, py_spy: str | None, asked: dict[int, int]) -> str:
    found = processes.look_up(pid)
    if found is None:
        return ""
    told = _by_py_spy(pid, py_spy) or (_answer(pid, folder, asked[pid]) if pid in asked else "") or _by_kernel(pid)
    return f"== process {pid}: {_command(pid)}\n{told.rstrip()}\n"


def _ask(pid: int, folder: Path) -> int | None:
    """Ask a process for its stacks, if it is prepared to tell. Returns how much its file held before."""
    path = folder / f"{PREFIX}.{pid}"
    try:
        size = path.stat().st_size
        if not _catches(pid, signal.SIGUSR2):
            return None
        os.kill(pid, signal.SIGUSR2)
    except OSError:
        return None
    return size


def _catches(pid: int, signum: int) -> bool:
    """Whether a signal would not end the process."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signum - 1) & 1)
    return False


def _answer(pid: int, folder: Path, before: int) -> str:
    """What the process wrote into its file since it was asked."""
    end = time.monotonic() + _ANSWER_S
    path, last = folder / f"{PREFIX}.{pid}", -1
    while time.monotonic() < end:
        size = path.stat().st_size if path.is_file() and not path.is_symlink() else before
        if size > before and size == last:
            break
        last = size
        time.sleep(0.05)
    if last <= before:
        return ""
    with path.open("rb") as file:
        file.seek(before)
        return file.read(MOST_BYTES).decode(errors="replace")


def _find_py_spy() -> str | None:
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _by_py_spy(pid: int, py_spy: str | None) -> str:
    if py_spy is None or not _is_python(pid):
        return ""
    command = [py_spy, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PY_SPY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _is_python(pid: int) -> bool:
    try:
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def _by_kernel(pid: int) -> str:
    """State and place in the kernel of each thread."""
    lines = []
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)[:MOST_PROCESSES]
    except OSError:
        return ""
    for thread in threads:
        place = f"/proc/{pid}/task/{thread}"
        state = next((line for line in _read(f"{place}/status").splitlines() if line.startswith("State:")), "State: ?")
        waits_in = _read(f"{place}/wchan").strip("0\n") or "the processor, or it can not be told"
        lines.append(f"thread {thread}: {state.removeprefix('State:').strip()}, in {waits_in}")
        lines += [f"    {frame}" for frame in _read(f"{place}/stack").splitlines()[:20]]
    return "\n".join(lines)


def _command(pid: int) -> str:
    words = " ".join(_read(f"/proc/{pid}/cmdline").replace("\0", " ").split())
    return words[:300] or _read(f"/proc/{pid}/comm").strip()


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(64 * 1024).decode(errors="replace")
    except OSError:
        return ""
