"""Processes as Linux shows them: who descends from whom, who carries a mark, and certain kills.

A process is named by pid *and* start time, since pids are used again. Standard library only: the supervisors
import this.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MARKER_VARIABLE = "NIGHTLAB_ATTEMPT_TOKEN_HASH"
"""In the environment of every process of an attempt: by it a tree is found whose supervisor was lost."""


class Process:
    """One line of the process table, at one moment."""

    __slots__ = ("group", "is_zombie", "parent", "pid", "session", "start_ticks")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The command name is in parentheses and may hold any character, so fields are counted after the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.is_zombie = fields[0] in (b"Z", b"X")
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start_ticks = int(fields[19])
        """Clock ticks from the machine's start to the process's."""


def look_up(pid: int) -> Process | None:
    """The process with that pid, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Process(pid, file.read())
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether exactly this process still runs. A zombie does not."""
    found = look_up(pid)
    return found is not None and found.start_ticks == start_ticks and not found.is_zombie


def table() -> dict[int, Process]:
    """All processes now."""
    found: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look_up(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def dies_of(pid: int, signum: int) -> bool:
    """Whether a signal that ends by default would end this process: it neither catches, ignores nor blocks it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file if line.startswith(b"Sig"))
    except OSError:
        return False
    return not any(int(fields[name], 16) >> (signum - 1) & 1 for name in (b"SigBlk", b"SigIgn", b"SigCgt"))


def children_by_parent(processes: dict[int, Process]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for process in processes.values():
        found.setdefault(process.parent, []).append(process.pid)
    return found


def descendants(roots: Iterable[int], processes: dict[int, Process]) -> set[int]:
    """All below `roots`, without them."""
    children = children_by_parent(processes)
    found: set[int] = set()
    open_ends = list(roots)
    while open_ends:
        for child in children.get(open_ends.pop(), ()):
            if child not in found:
                found.add(child)
                open_ends.append(child)
    return found


def below(root: int) -> set[int]:
    """All below one process, at a cost that follows their number alone where the kernel lists them."""
    found: set[int] = set()
    open_ends = [root]
    try:
        while open_ends:
            for child in _children(open_ends.pop()):
                if child not in found:
                    found.add(child)
                    open_ends.append(child)
    except FileNotFoundError:
        return descendants([root], table())
    return found


def _children(pid: int) -> list[int]:
    """Of all its threads; none when it is gone. Raises FileNotFoundError where the kernel keeps no such list."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            if os.path.exists(f"/proc/{pid}/task/{thread}"):
                raise
    return found


def carriers(marker: str, processes: dict[int, Process]) -> set[int]:
    """Those whose environment holds the marker. Processes of other users can not be read and are left out."""
    wanted = f"{MARKER_VARIABLE}={marker}".encode()
    found: set[int] = set()
    for pid in processes:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.add(pid)
        except OSError:
            continue
    return found


class Belonging:
    """The set of all processes that belong to attempts of ours: `pid in belonging`.

    By the marker in a process's environment, by its control group, or by descent from a supervisor.
    """

    def __init__(self, markers: Iterable[str], supervisors: Iterable[int]) -> None:
        self._markers = [marker.encode() for marker in markers]
        self._supervisors = set(supervisors)

    def __contains__(self, pid: object) -> bool:
        if not isinstance(pid, int):
            return False
        return self._is_marked(pid) or self._descends(pid)

    def _is_marked(self, pid: int) -> bool:
        words = [f"{MARKER_VARIABLE}=".encode() + marker for marker in self._markers]
        variables = _contents(f"/proc/{pid}/environ").split(b"\0")
        if any(word in variables for word in words):
            return True
        groups = _contents(f"/proc/{pid}/cgroup")
        return any(b"/nightlab-" + marker in groups for marker in self._markers)

    def _descends(self, pid: int) -> bool:
        seen: set[int] = set()
        while pid > 1 and pid not in seen:
            if pid in self._supervisors:
                return True
            seen.add(pid)
            found = look_up(pid)
            pid = found.parent if found is not None else 0
        return False


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def tree_of_lost_attempt(marker: str, leader_pid: int | None, leader_ticks: int | None) -> set[int]:
    """Living processes of an attempt whose supervisor is gone: marked ones, the leader's session, all below."""
    processes = table()
    found = carriers(marker, processes)
    if leader_pid is not None and leader_ticks is not None:
        holder = processes.get(leader_pid)
        # While members are left, the kernel does not give the session's number to anybody else.
        if holder is None or holder.start_ticks == leader_ticks:
            found |= {p.pid for p in processes.values() if p.session == leader_pid}
    found |= descendants(found, processes)
    found.discard(os.getpid())
    return {pid for pid in found if not processes[pid].is_zombie}


def send_exactly(pid: int, start_ticks: int, signum: int) -> bool:
    """Send a signal to this very process. False: it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(pid, start_ticks):
            return False
        signal.pidfd_send_signal(descriptor, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to each, as far as they exist and are ours."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def describe(pid: int) -> str:
    """`python3 (pid 4711, user bob)`; what can not be read is left out."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return f"a process that is gone (pid {pid})"
    return f"{name} (pid {pid}, user {user_name(uid)})"


def user_name(uid: int) -> str:
    """The user's name; the number where there is none."""
    import pwd  # Here, since supervisors fork from a process that should stay small.

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def oom_kills() -> int:
    """How often the kernel killed for want of memory since the machine started; 0 where it does not tell."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        return 0
    return 0
