"""Shut a process off where the machine lets it have no namespaces: Landlock, filters of system calls, bounds.

The job sees the machine as it is (its processes, names and attributes of files), but may open, reach and signal only
what was given. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import os

from runtime.sandbox import fence_filter, kernel, walls
from runtime.sandbox import filter as calls
from runtime_client import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OLDEST_ABI = 3
"""Before it, files could be cut to nothing that may not be written."""
LAYERS = ("landlock", "capabilities", "no_new_privs", "seccomp", "rlimit", "cgroup")
"""`cgroup` only where the machine lets nightlab have it."""


def shut(box: dict[str, Any]) -> int:
    """In the process that is about to become the command. Returns where it asks (`runtime.sandbox.doorman`).

    Raises:
        OSError: the kernel does not let it; says what.
    """
    machine = os.uname().machine
    programs = (
        calls.program(machine),
        fence_filter.program(machine, is_network_open=box["network"] != "none", abi=box["abi"]),
    )
    walls.bound({**box["rlimits"], "RLIMIT_NPROC": box["rlimits"]["RLIMIT_NPROC"] + _others(box["uid"])})
    kernel.forbid_new_rights()
    kernel.drop_capabilities()  # For root too: it stays the user that it is, and has no right of it.
    os.umask(0o022)
    kernel.show_memory_to_its_user(True)  # Else who answers it could not read what it asks for.
    landlock.restrict(
        read=["/proc"],
        write=[*(path for path, is_writable in box["binds"] if is_writable), box["own_output"]],
        execute=[path for path, _ in box["binds"]],
        unlisted=["/dev/shm"],
        listed=box["listed"],
        devices=[f"/dev/{name}" for name in (*walls.DEVICES, *box["devices"])],
        no_signals=box["abi"] >= landlock.SIGNALS_SINCE,
    )
    kernel.filter_calls(programs[0])
    return kernel.filter_calls_and_listen(programs[1])


def _others(uid: int) -> int:
    """How many threads the user has besides the job's: the kernel counts them all."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += len(os.listdir(f"/proc/{name}/task")) if os.stat(f"/proc/{name}").st_uid == uid else 0
            except OSError:
                continue
    return found
