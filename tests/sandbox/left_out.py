"""A sandbox with layers left out, or on an older kernel: what it would be without them. In this process, for good."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
from typing import Any

from runtime.node import launcher, records
from runtime.sandbox import fence, groups, kernel, walls
from runtime_client import landlock

VARIABLE = "LEFT_OUT"
_NAMESPACES = {
    "mount": kernel.CLONE_NEWNS, "pid": kernel.CLONE_NEWPID, "ipc": kernel.CLONE_NEWIPC, "uts": kernel.CLONE_NEWUTS,
    "net": kernel.CLONE_NEWNET,
}  # fmt: skip


def pretend(wishes: dict[str, Any]) -> None:
    """`abi`: the version of Landlock."""
    if "abi" in wishes:
        landlock.abi = lambda: int(wishes["abi"])


def by_attempt() -> None:
    """In a launcher: each attempt is without the layers that its environment names."""
    real = launcher.supervise

    def supervise(folder: str, *, is_warm: bool = False) -> None:
        order = records.read(os.path.join(folder, records.ORDER))
        if order is not None:
            leave_out(set(json.loads(order["env"].get(VARIABLE, "[]"))))
        real(folder, is_warm=is_warm)

    launcher.supervise = supervise


def leave_out(without: set[str]) -> None:
    _leave_out_namespaces(without)
    for layer, do_without in _WAYS.items():
        if layer in without:
            do_without()


def _leave_out_namespaces(without: set[str]) -> None:
    real_unshare, real_mount = kernel.unshare, kernel.mount

    def unshare(flags: int, what: str) -> None:
        if not any(flags == flag for name, flag in _NAMESPACES.items() if name in without - {"mount"}):
            real_unshare(flags, what)

    def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
        if kind == "proc" and "pid" in without:
            real_mount("/proc", target, "", kernel.MS_BIND | kernel.MS_REC)
        else:
            real_mount(source, target, kind, flags, options)

    kernel.unshare, kernel.mount = unshare, mount


def _whole_tree() -> None:
    """All of the machine's files, with what the processes of the box are."""

    def enclose(_: dict[str, Any]) -> None:
        for name in ("mount", "ipc", "uts"):
            kernel.unshare(_NAMESPACES[name], name)
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV)

    walls.enclose = enclose


def _machines_network() -> None:
    def shut_network(_: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", 0))

    walls.shut_network = shut_network


def _same_user() -> None:
    os.setgroups = os.setresgid = os.setresuid = lambda *_: None


def _all_capabilities() -> None:
    """Those that root has, or the owner of the namespace; kept over the change of the user, and by what it executes."""

    def keep() -> None:
        kernel._prctl(8, 1)

    def take(*, but: int = 0) -> None:
        with open("/proc/self/status") as file:
            mask = next(int(line.split()[1], 16) for line in file if line.startswith("CapPrm"))
        header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
        low, high = mask & 0xFFFFFFFF, mask >> 32
        kernel._libc.capset(header, ctypes.create_string_buffer(struct.pack("6I", low, low, low, high, high, high)))
        for capability in range(64):
            if mask >> capability & 1:
                kernel._prctl(47, 2, capability)

    kernel.drop_bounding, kernel.drop_capabilities = keep, take


def _new_rights() -> None:
    kernel.forbid_new_rights = landlock.forbid_new_rights = lambda: None


def _all_calls() -> None:
    kernel.filter_calls = lambda program: None
    kernel.filter_calls_and_listen = lambda program: os.open("/dev/null", os.O_RDONLY)


def _all_files() -> None:
    fence.landlock = type("", (), {"restrict": lambda **_: None, "SIGNALS_SINCE": landlock.SIGNALS_SINCE})


def _init_shows_itself() -> None:
    """The first process of a box to others of its user."""
    kernel.show_memory_to_its_user = lambda _: kernel._prctl(4, 1)


def _no_bounds() -> None:
    walls.bound = lambda rlimits: None


def _no_groups() -> None:
    groups.make = lambda name, bounds: []


_WAYS = {
    "mount": _whole_tree, "net": _machines_network, "uid": _same_user, "capabilities": _all_capabilities,
    "no_new_privs": _new_rights, "seccomp": _all_calls, "landlock": _all_files, "rlimit": _no_bounds,
    "cgroup": _no_groups, "hidden init": _init_shows_itself,
}  # fmt: skip
