"""Which system calls a sealed job may not make, as a program for the kernel's filter (seccomp). Pure.

A deny list: what reaches for the machine rather than for files, memory and processes of one's own. Another entry than
the machine's own (32-bit, x32) ends the process.

Source: seccomp(2), linux/audit.h; numbers from asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

import errno

from runtime_client.bpf import (
    ALLOW,
    if_any_of,
    if_equal,
    load_argument,
    of_call,
    refuse,
)
from runtime_client.syscalls import by_one_entry, numbers_of

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW*: ns, cgroup, uts, ipc, user, pid, net."""
_TYPING_FOR_OTHERS = (0x5412, 0x541C)
"""ioctl: TIOCSTI, TIOCLINUX."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16

NUMBERS = numbers_of((
    "ptrace", "mount", "umount2", "pivot_root", "chroot", "swapon", "swapoff", "reboot", "sethostname",
    "setdomainname", "init_module", "delete_module", "kexec_load", "finit_module", "kexec_file_load", "bpf",
    "userfaultfd", "perf_event_open", "open_by_handle_at", "name_to_handle_at", "setns", "unshare",
    "process_vm_readv", "process_vm_writev", "keyctl", "add_key", "request_key", "quotactl", "acct", "iopl",
    "ioperm", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "syslog", "vhangup", "kcmp",
    "fanotify_init", "mknod", "mknodat", "clone", "socket", "ioctl", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "clone3",
    "pidfd_getfd", "process_madvise", "mount_setattr", "quotactl_fd",
))  # fmt: skip
_LOOKED_INTO = frozenset({"clone", "socket", "ioctl"})
_AS_IF_UNKNOWN = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})
"""ENOSYS: libraries then fall back to an older call, whose arguments can be looked at."""


def program(machine: str) -> bytes:
    """The filter for a machine (`os.uname().machine`) as an array of struct sock_filter.

    Raises:
        KeyError: a machine whose numbers are not known.
    """
    numbers = NUMBERS[machine]
    told = by_one_entry(machine)
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
