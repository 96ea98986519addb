"""What a job's process does to itself, by the level that was demanded. Standard library only."""

from __future__ import annotations

import resource

from runtime.sandbox import fence, kernel, walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NONE: dict[str, Any] = {"level": "none", "layers": [], "uid": None, "how": None}


def reached(sandbox: dict[str, Any]) -> dict[str, Any]:
    """What holds a job that was started under this part of its order."""
    if sandbox["level"] == "none":
        return NONE
    if sandbox["level"] == "user":
        return {"level": "user", "layers": ["no_new_privs", "rlimit"], "uid": None, "how": None}
    absent = {"net"} if sandbox["network"] != "none" else set()
    absent |= set() if sandbox["groups"] else {"cgroup"}
    layers = fence.LAYERS if sandbox["how"] == walls.LANDLOCK else walls.LAYERS
    absent |= set() if sandbox["has_own_user"] else {"uid"}
    return {
        "level": "sealed",
        "layers": [layer for layer in layers if layer not in absent],
        "uid": sandbox["uid"],
        "how": sandbox["how"],
    }


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
