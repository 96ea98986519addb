"""Which system calls a candidate may not make, as a program for the kernel's filter (seccomp). Pure.

A deny list. It may have threads, but make no process, execute nothing, open no socket, and signal nobody but itself;
what Landlock leaves open (modes and owners of files, shared memory by number) is closed here.

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

_CLONE_THREAD = 0x00010000

NUMBERS = numbers_of((
    "fork", "vfork", "execve", "execveat", "clone", "kill", "tkill", "tgkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo", "prlimit64", "socket", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp",
    "perf_event_open", "bpf", "userfaultfd", "open_by_handle_at", "name_to_handle_at", "keyctl", "add_key",
    "request_key", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "swapon", "swapoff", "reboot",
    "sethostname", "setdomainname", "init_module", "delete_module", "finit_module", "kexec_load", "kexec_file_load",
    "iopl", "ioperm", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "acct", "quotactl", "syslog",
    "vhangup", "fanotify_init", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown",
    "fchownat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "shmget",
    "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open",
    "mq_unlink", "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "clone3", "pidfd_getfd", "process_madvise",
    "mount_setattr", "quotactl_fd", "process_mrelease", "fchmodat2", "setxattrat", "removexattrat",
))  # fmt: skip
_ON_ITSELF = frozenset({"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "prlimit64"})
"""Allowed where the first argument is its own process."""
_AS_IF_UNKNOWN = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})
"""ENOSYS: libraries then fall back to an older call, whose arguments can be looked at."""


def program(machine: str, pid: int) -> bytes:
    """The filter for a machine (`os.uname().machine`) and the process that it is for: an array of struct sock_filter.

    Raises:
        KeyError: a machine whose numbers are not known.
    """
    numbers = NUMBERS[machine]
    told = by_one_entry(machine)
    for name, number in sorted(numbers.items()):
        if name == "clone":
            told += of_call(number, [load_argument(0), *if_any_of(_CLONE_THREAD, [ALLOW]), refuse()])
        elif name in _ON_ITSELF:
            own = [word for one in _ways_to_say(pid, name) for word in if_equal(one, [ALLOW])]
            told += of_call(number, [load_argument(0), *own, refuse()])
        else:
            told += if_equal(number, [refuse(errno.ENOSYS if name in _AS_IF_UNKNOWN else errno.EPERM)])
    return b"".join([*told, ALLOW])


def _ways_to_say(pid: int, name: str) -> tuple[int, ...]:
    """What names the calling process; 0 names a whole group where a signal is sent."""
    return (pid, 0) if name == "prlimit64" else (pid,)
