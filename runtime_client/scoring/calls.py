"""Which system calls a candidate may not make, as a program for the kernel's filter (seccomp). Pure.

A deny list. It may have threads, but make no process, execute nothing, open no socket, and signal nobody but itself;
what Landlock leaves open (modes and owners of files, shared memory by number) is closed here.

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
_CLONE_THREAD = 0x00010000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_SAME = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
}  # fmt: skip
NUMBERS = {
    "x86_64": {
        "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "clone": 56,
        "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "prlimit64": 302,
        "socket": 41, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "open_by_handle_at": 304, "name_to_handle_at": 303,
        "keyctl": 250, "add_key": 248, "request_key": 249,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "init_module": 175,
        "delete_module": 176, "finit_module": 313, "kexec_load": 246, "kexec_file_load": 320, "iopl": 172,
        "ioperm": 173, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305, "acct": 163,
        "quotactl": 179, "syslog": 103, "vhangup": 153, "fanotify_init": 300, "mknod": 133, "mknodat": 259,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
        "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
        "fremovexattr": 199,
        "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220,
        "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241, **_SAME,
    },
    "aarch64": {
        "execve": 221, "execveat": 281, "clone": 220,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "prlimit64": 261,
        "socket": 198, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "perf_event_open": 241, "bpf": 280, "userfaultfd": 282, "open_by_handle_at": 265, "name_to_handle_at": 264,
        "keyctl": 219, "add_key": 217, "request_key": 218,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "swapon": 224, "swapoff": 225, "reboot": 142, "sethostname": 161, "setdomainname": 162, "init_module": 105,
        "delete_module": 106, "finit_module": 273, "kexec_load": 104, "kexec_file_load": 294, "settimeofday": 170,
        "clock_settime": 112, "adjtimex": 171, "clock_adjtime": 266, "acct": 89, "quotactl": 60, "syslog": 116,
        "vhangup": 58, "fanotify_init": 262, "mknodat": 33,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7,
        "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "shmget": 194, "shmctl": 195, "shmat": 196, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193,
        "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "mq_open": 180, "mq_unlink": 181, **_SAME,
    },
}  # fmt: skip
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
    told = [LOAD_ARCHITECTURE, *unless_equal(_ARCHITECTURES[machine], [KILL]), LOAD_NUMBER]
    if machine == "x86_64":
        told += if_at_least(_X32, [KILL])
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
