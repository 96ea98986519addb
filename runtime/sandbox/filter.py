"""Which system calls a sealed job may not make, as a program for the kernel's filter (seccomp). Pure.

A deny list: what reaches for the machine rather than for files, memory and processes of one's own. Another entry than
the machine's own (32-bit, x32) ends the process.

Source: seccomp(2), linux/audit.h; numbers from asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

import errno

from runtime_client.bpf import (
    ALLOW,
    KILL,
    LOAD_ARCHITECTURE,
    LOAD_NUMBER,
    if_any_of,
    if_at_least,
    if_equal,
    load_argument,
    of_call,
    refuse,
    unless_equal,
)

_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW*: ns, cgroup, uts, ipc, user, pid, net."""
_TYPING_FOR_OTHERS = (0x5412, 0x541C)
"""ioctl: TIOCSTI, TIOCLINUX."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_SAME = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
NUMBERS = {
    "x86_64": {
        "ptrace": 101, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "swapon": 167, "swapoff": 168,
        "reboot": 169, "sethostname": 170, "setdomainname": 171, "init_module": 175, "delete_module": 176,
        "kexec_load": 246, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        "perf_event_open": 298, "open_by_handle_at": 304, "name_to_handle_at": 303, "setns": 308, "unshare": 272,
        "process_vm_readv": 310, "process_vm_writev": 311, "keyctl": 250, "add_key": 248, "request_key": 249,
        "quotactl": 179, "acct": 163, "iopl": 172, "ioperm": 173, "settimeofday": 164, "clock_settime": 227,
        "adjtimex": 159, "clock_adjtime": 305, "syslog": 103, "vhangup": 153, "kcmp": 312, "fanotify_init": 300,
        "mknod": 133, "mknodat": 259, "clone": 56, "socket": 41, "ioctl": 16, **_SAME,
    },
    "aarch64": {
        "ptrace": 117, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "swapon": 224, "swapoff": 225,
        "reboot": 142, "sethostname": 161, "setdomainname": 162, "init_module": 105, "delete_module": 106,
        "kexec_load": 104, "finit_module": 273, "kexec_file_load": 294, "bpf": 280, "userfaultfd": 282,
        "perf_event_open": 241, "open_by_handle_at": 265, "name_to_handle_at": 264, "setns": 268, "unshare": 97,
        "process_vm_readv": 270, "process_vm_writev": 271, "keyctl": 219, "add_key": 217, "request_key": 218,
        "quotactl": 60, "acct": 89, "settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "clock_adjtime": 266,
        "syslog": 116, "vhangup": 58, "kcmp": 272, "fanotify_init": 262, "mknodat": 33, "clone": 220, "socket": 198,
        "ioctl": 29, **_SAME,
    },
}  # fmt: skip
_LOOKED_INTO = frozenset({"clone", "socket", "ioctl"})
_AS_IF_UNKNOWN = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})
"""ENOSYS: libraries then fall back to an older call, whose arguments can be looked at."""


def program(machine: str) -> bytes:
    """The filter for a machine (`os.uname().machine`) as an array of struct sock_filter.

    Raises:
        KeyError: a machine whose numbers are not known.
    """
    numbers = NUMBERS[machine]
    told = [LOAD_ARCHITECTURE, *unless_equal(AUDIT_ARCH[machine], [KILL]), LOAD_NUMBER]
    if machine == "x86_64":
        told += if_at_least(_X32, [KILL])
    for name, number in sorted(numbers.items()):
        if name not in _LOOKED_INTO:
            told += if_equal(number, [refuse(errno.ENOSYS if name in _AS_IF_UNKNOWN else errno.EPERM)])
    told += of_call(numbers["clone"], [load_argument(0), *if_any_of(_NEW_NAMESPACES, [refuse()])])
    typing = [word for request in _TYPING_FOR_OTHERS for word in if_equal(request, [refuse()])]
    told += of_call(numbers["ioctl"], [load_argument(1), *typing])
    told += of_call(numbers["socket"], _sockets())
    return b"".join([*told, ALLOW])


def _sockets() -> list[bytes]:
    """Local and internet ones, and questions to the kernel about its own network interfaces; no other family."""
    allowed = [part for family in (_UNIX, _INET, _INET6) for part in if_equal(family, [ALLOW])]
    routes = [load_argument(2), *if_equal(0, [ALLOW])]
    return [load_argument(0), *allowed, *if_equal(_NETLINK, routes), refuse(errno.EAFNOSUPPORT)]
