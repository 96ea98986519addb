"""The system calls of a sandbox that Python has no names for. Standard library only: the supervisors import this.

Every one raises OSError that says what failed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 0x1, 0x2, 0x4, 0x8, 0x20, 0x1000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSYMFOLLOW = 0x1, 0x2, 0x4, 0x200000
CAP_KILL = 1 << 5
_MNT_DETACH = 2
_AT_RECURSIVE = 0x8000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_PR_SET_CHILD_SUBREAPER = 36
_SECCOMP_MODE_FILTER = 2
_SECCOMP_SET_MODE_FILTER, _SECCOMP_NEW_LISTENER = 1, 8
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPABILITY_VERSION = 0x20080522
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, *arguments: int) -> int:
    values = [*arguments, 0, 0, 0, 0][:4]
    return _check(_libc.prctl(option, *(ctypes.c_ulong(value) for value in values)), f"prctl {option}")


def forbid_new_rights() -> None:
    """From here on, no program that is executed has more rights than this process."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(signum: int) -> None:
    """To be said again after the user was changed, which takes it back."""
    _prctl(_PR_SET_PDEATHSIG, signum)


def show_memory_to_its_user(is_shown: bool) -> None:
    """Whether processes of the same user may look into this one's memory and files (/proc/PID)."""
    _prctl(_PR_SET_DUMPABLE, int(is_shown))


def unshare(flags: int, what: str) -> None:
    _check(_libc.unshare(flags), f"a {what} namespace of its own")


def become_own_namespace_of_users() -> None:
    """All rights over what this process makes from here on, none over what was there; it stays the user that it is.

    For a process without threads.
    """
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER, "user")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
        except OSError as error:
            raise OSError(
                error.errno, f"a user namespace of its own ({name}): {os.strerror(error.errno or 0)}"
            ) from None


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind, options)]
    _check(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mounting {target}")


def restrict_mount(target: str, attributes: int) -> None:
    """Set attributes of a mount and of all below it. Needs Linux 5.12."""
    request = ctypes.create_string_buffer(struct.pack("QQQQ", attributes, 0, 0, 0))
    arguments = (ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(-100), os.fsencode(target), ctypes.c_uint(_AT_RECURSIVE))
    _check(_libc.syscall(*arguments, request, ctypes.c_size_t(32)), f"restricting the mount at {target}")


def pivot_into(root: str, old: str) -> None:
    """Make `root`, a mount, the root of this process and of no other; what it had before is gone."""
    call = ctypes.c_long(_PIVOT_ROOT[os.uname().machine])
    _check(_libc.syscall(call, os.fsencode(root), os.fsencode(old)), "a root of its own")
    os.chdir("/")
    inside = "/" + os.path.relpath(old, root)
    _check(_libc.umount2(os.fsencode(inside), _MNT_DETACH), "letting go of the machine's root")
    os.rmdir(inside)


def drop_bounding() -> None:
    """No program that is executed can have a capability. Needs CAP_SETPCAP."""
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return  # The kernel knows no further ones.


def drop_capabilities(*, but: int = 0) -> None:
    """None is left to this process, but those of the mask."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION, 0))
    _check(
        _libc.capset(header, ctypes.create_string_buffer(struct.pack("6I", but, but, 0, 0, 0, 0))),
        "dropping capabilities",
    )


def filter_calls(program: bytes) -> None:
    """For good. `program` as `runtime.sandbox.filter` makes it."""
    instructions = ctypes.create_string_buffer(program, len(program))
    request = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    told = ctypes.create_string_buffer(request)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(told))


def filter_calls_and_listen(program: bytes) -> int:
    """For good; a descriptor at which calls are asked about that the program says so of. Needs Linux 5.14."""
    instructions = ctypes.create_string_buffer(program, len(program))
    request = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    call = ctypes.c_long(_SECCOMP[os.uname().machine])
    arguments = (ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(_SECCOMP_NEW_LISTENER), request)
    return _check(int(_libc.syscall(call, *arguments)), "a filter of system calls that asks")


def adopt_orphans() -> None:
    """What a child leaves behind becomes this process's child."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        fcntl.ioctl(asker, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP_RUNNING))
