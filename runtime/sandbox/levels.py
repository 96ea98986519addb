"""What a job's process does to itself, by the level that was demanded. Standard library only."""

from __future__ import annotations

import resource

from runtime.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NONE: dict[str, Any] = {"level": "none", "layers": [], "uid": None}


def reached(level: str) -> dict[str, Any]:
    """What a process has that `restrain` has returned in."""
    return NONE if level == "none" else {"level": "user", "layers": ["no_new_privs", "rlimit"], "uid": None}


def restrain(level: str) -> None:
    """In the process that is about to become the command: take what `user` takes.

    Raises:
        OSError: the kernel does not let it.
    """
    if level == "none":
        return
    kernel.forbid_new_rights()
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
