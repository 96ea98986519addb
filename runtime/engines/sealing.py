"""How sealed jobs are sealed on this machine: of the ways that the machine lets us have, the best one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

from runtime.sandbox import fence_filter, probe, walls
from runtime.sandbox import filter as calls

PROBE_TIMEOUT_S = 10.0
_OLDEST = {walls.ROOT: (5, 12), walls.USER_NAMESPACE: (5, 12), walls.LANDLOCK: (6, 2)}
"""Of Linux."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """Exactly one of the two is None."""

    how: str | None
    """`root`, `user namespace` or `landlock`."""
    why_not: str | None
    """What is missing, and what to do."""


def ways(*, is_root: bool) -> tuple[str, str]:
    """The better one first."""
    return (walls.ROOT if is_root else walls.USER_NAMESPACE), walls.LANDLOCK


def why_no_way(*, machine: str, release: str) -> str | None:
    """What tells without a trial that no way can be had."""
    known = [name for name in calls.NUMBERS if name in fence_filter.NUMBERS]
    if machine not in known:
        return f"sealed jobs need one of {', '.join(known)}; this machine is {machine}"
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None or (int(found[1]), int(found[2])) < min(_OLDEST.values()):
        return f"sealed jobs need Linux 5.12 or newer; this machine has {release}"
    return None


def why_none(refused: dict[str, str]) -> str:
    """`refused`: by way, what the kernel did not let this user have."""
    tried = "; ".join(f"by {way}: {what}" for way, what in refused.items())
    if walls.ROOT in refused:
        advice = "give the container the right to make namespaces (SYS_ADMIN), or use Linux 6.2 or newer with Landlock"
    else:
        advice = (
            "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, an AppArmor "
            "profile), use Linux 6.2 or newer with Landlock (lsm=landlock,... on the kernel's command line), or start "
            "the server as root"
        )
    return f"sealed jobs can not be had here ({tried}): {advice}; or say `sandbox: user` for code that you trust"


@cache
def sealing_here() -> Sealing:
    """Tried for real, once a process; the first call may take some tenths of a second."""
    uname = os.uname()
    missing = why_no_way(machine=uname.machine, release=uname.release)
    if missing is not None:
        return Sealing(how=None, why_not=missing)
    refused: dict[str, str] = {}
    for way in ways(is_root=os.geteuid() == 0):
        told = refusal(way)
        if told is None:
            return Sealing(how=way, why_not=None)
        refused[way] = told
    return Sealing(how=None, why_not=why_none(refused))


def refusal(way: str) -> str | None:
    """What the kernel does not let this user have, by a trial in a process that ends at once; None: nothing."""
    command = [sys.executable, "-I", "-m", probe.__name__, way]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the trial could not be made: {error}"
    if told.returncode == 0:
        return None
    return (told.stdout or told.stderr.strip().rpartition("\n")[2]).strip().partition("\n")[0] or "no reason given"
