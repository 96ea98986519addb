"""Which layers stop which way out, by how a job is sealed: without all that are named together, it succeeds.

Where several are named, each would stop it alone, so all of them have to be left out to see it succeed.
"""

from __future__ import annotations

MACHINE: tuple[str, ...] = ()
"""An ordinary user may not do it on this machine, sealed or not."""
HIDDEN_INIT = "hidden init"
"""The first process of a box shows nothing of itself to its user (PR_SET_DUMPABLE)."""
_FILES, _CALLS, _PROCESSES, _BOUNDS = (
    ("mount", "uid"), ("seccomp", "capabilities"), ("pid", "uid"), ("cgroup", "rlimit"),
)  # fmt: skip

ROOT: dict[str, tuple[str, ...]] = {
    "read /etc/shadow": _FILES,
    "read a private file": _FILES,
    "read another job's file": _FILES,
    "read a private file through a link": ("mount", "capabilities"),
    "read it through the init's root": ("mount", "capabilities"),
    "read its own order": ("uid",),
    "list a private folder": _FILES,
    "watch a private folder": _FILES,
    "cut a private file": _FILES,
    "change a private file's modes": _FILES,
    "change its modes through a link": ("mount", "capabilities"),
    "change a private file's times": _FILES,
    "give a private file an attribute": _FILES,
    "forge its own end": _FILES,
    "write to the system": _FILES,
    "write to the root": _FILES,
    "write to its Python": _FILES,
    "set what the kernel does": ("uid",),
    "make a device node": _CALLS,
    "open a disk": ("mount", "capabilities"),
    "read the kernel's log": ("mount", "capabilities"),
    "find others' shared memory": ("mount",),
    "attach others' shared memory": ("ipc",),
    "reach a server on the machine": ("net",),
    "reach it with the first bytes": ("net",),
    "reach the internet": ("net",),
    "reach it without a connection": ("net",),
    "ask a server of its user": _FILES,
    "ask it through a link": ("mount", "capabilities"),
    "ask one by an abstract name": ("net",),
    "write to a server of its user": _FILES,
    "write to one from a pair": _FILES,
    "open a raw packet socket": _CALLS,
    "open a vsock": ("seccomp",),
    "read the server's environment": ("pid", "capabilities"),
    "trace the init": _CALLS,
    "write the init's memory": ("capabilities",),
    "see the init's files": ("capabilities",),
    "signal the server": _PROCESSES,
    "lower the server's bounds": _PROCESSES,
    "take cores from the server": ("pid", "capabilities"),
    "become root": ("capabilities",),
    "gain rights by a program": ("mount", "no_new_privs", "seccomp"),
    "mount": _CALLS,
    "change the root": _CALLS,
    "set the machine's name": ("seccomp", "capabilities", "uts"),
    "make a user namespace": ("seccomp",),
    "enter the init's network": _CALLS,
    "load a program into the kernel": _CALLS,
    "use io_uring": ("seccomp",),
    "make a file beyond its bound": ("rlimit",),
    "hold more memory than its bound": _BOUNDS,
    "start more processes than its bound": _BOUNDS,
    "signal the server by a socket": _PROCESSES,
    "end the init": _PROCESSES,
}
USER_NAMESPACE = {
    name: tuple(layer for layer in layers if layer != "uid") or ("mount",) for name, layers in ROOT.items()
} | {
    **dict.fromkeys(
        (
            "read /etc/shadow", "write to the system", "write to the root", "write to its Python", "become root",
            "set what the kernel does", "make a device node", "open a disk", "read the server's environment",
            "gain rights by a program", "load a program into the kernel", "read the kernel's log",
            "enter the init's network", "set the machine's name",
        ),
        MACHINE,
    ),
    **dict.fromkeys(
        ("read a private file through a link", "change its modes through a link", "ask it through a link"), ("mount",)
    ),
    "read it through the init's root": ("mount", "capabilities", HIDDEN_INIT),
    "write the init's memory": ("capabilities", HIDDEN_INIT),
    "see the init's files": ("capabilities", HIDDEN_INIT),
    "trace the init": ("seccomp", "capabilities", HIDDEN_INIT),
}  # fmt: skip
LANDLOCK = {
    **dict.fromkeys(
        (
            "read a private file", "read another job's file", "read a private file through a link",
            "read its own order", "list a private folder", "cut a private file", "forge its own end",
            "find others' shared memory", "read the server's environment",
            "signal the server", "signal the server by a socket", "end the init",
        ),
        ("landlock",),
    ),
    **dict.fromkeys(
        (
            "watch a private folder", "change a private file's modes", "change a private file's times",
            "change its modes through a link", "ask it through a link",
            "give a private file an attribute", "attach others' shared memory", "reach a server on the machine",
            "reach it with the first bytes", "reach the internet", "reach it without a connection",
            "ask a server of its user", "write to a server of its user", "write to one from a pair", "open a vsock",
            "lower the server's bounds", "take cores from the server", "make a user namespace", "use io_uring",
        ),
        ("seccomp",),
    ),
    **dict.fromkeys(
        (
            "read /etc/shadow", "write to the system", "write to the root", "write to its Python", "become root",
            "set what the kernel does", "make a device node", "open a disk", "open a raw packet socket", "mount",
            "read the kernel's log",
            "change the root", "set the machine's name", "enter the init's network", "load a program into the kernel",
        ),
        MACHINE,
    ),
    **dict.fromkeys(
        ("read it through the init's root", "write the init's memory", "see the init's files"),
        ("landlock", HIDDEN_INIT),
    ),
    "trace the init": ("landlock", HIDDEN_INIT, "seccomp"),
    "ask one by an abstract name": ("landlock", "seccomp"),
    "gain rights by a program": ("landlock", "no_new_privs", "seccomp"),
    "make a file beyond its bound": ("rlimit",),
    "hold more memory than its bound": _BOUNDS,
    "start more processes than its bound": _BOUNDS,
}  # fmt: skip
BY_WAY = {"root": ROOT, "user namespace": USER_NAMESPACE, "landlock": LANDLOCK}
