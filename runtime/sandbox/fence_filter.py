"""Which further system calls a job may not make that is fenced by Landlock: they reach what Landlock does not guard.

What a job needs of them for itself is asked of the first process of its box (`runtime.sandbox.doorman`). Beside the
filter of every sealed job, not in place of it. Pure. Source: asm/unistd_64.h, asm-generic/unistd.h, landlock(7).
"""

from __future__ import annotations

import errno

from runtime_client.bpf import (
    ALLOW,
    ASK,
    LOAD_NUMBER,
    if_any_of,
    if_equal,
    load_argument,
    mask,
    of_call,
    refuse,
    unless_equal,
)
from runtime_client.landlock import SIGNALS_SINCE
from runtime_client.syscalls import numbers_of

NUMBERS = numbers_of((
    "socket", "connect", "sendto", "sendmsg", "socketpair", "sendmmsg", "ioctl", "chmod", "fchmod", "fchmodat",
    "fchmodat2", "utimensat", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat",
    "inotify_add_watch", "migrate_pages", "prlimit64", "sched_setparam", "fcntl", "sched_setscheduler",
    "sched_setaffinity", "sched_setattr", "setpriority", "ioprio_set", "shmget", "shmat", "shmctl", "semget",
    "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "setxattr",
    "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat", "removexattrat",
    "file_setattr", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
))  # fmt: skip
ABOUT_FILES = frozenset({"chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat"})
SIGNALS = frozenset({"kill", "tgkill"})
_OTHER_SIGNALS = frozenset({"tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"})
_OWN_PROCESS_ALONE = {
    "prlimit64": 0, "sched_setparam": 0, "sched_setscheduler": 0, "sched_setaffinity": 0, "sched_setattr": 0,
    "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip
"""Where the call names the process; 0 is the caller. Groups and users are 1 and 2 in the argument before."""
_BY_GROUP_OR_USER = {"setpriority": 0, "ioprio_set": 1}
"""What `which` is for a single process."""
_AS_IF_THE_DISK_HAD_NONE = frozenset(
    {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}
)
"""EOPNOTSUPP: programs that copy files do without."""
_AS_IF_UNKNOWN = frozenset({"setxattrat", "removexattrat", "file_setattr"})
_NEVER = frozenset({
    "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "inotify_add_watch", "migrate_pages",
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl",
    "mq_open", "mq_unlink",
})  # fmt: skip
_UNIX, _INET = 1, 2
_STREAM, _SEQUENCED = 1, 5
_KIND, _TCP = 0xF, 6
_FAST_OPEN = 0x20000000
"""A flag of sending: to connect with the first bytes."""
_FLAGS_AT = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
_NO_FAMILY = refuse(errno.EAFNOSUPPORT)
_FILE_ATTRIBUTES = (0x40086602, 0x401C5820)
"""ioctl: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR."""
_SIGNAL_OWNERS = (0x8901, 0x8902)
"""ioctl: FIOSETOWN, SIOCSPGRP."""
_SET_OWNER = (8, 15)
"""fcntl: F_SETOWN, F_SETOWN_EX."""


def program(machine: str, *, is_network_open: bool, abi: int) -> bytes:
    """The filter as an array of struct sock_filter; `abi` is Landlock's version.

    Raises:
        KeyError: a machine whose numbers are not known.
    """
    numbers = NUMBERS[machine]
    told = [LOAD_NUMBER]
    for name, number in sorted(numbers.items()):
        answer = _answer(name, abi)
        told += [] if answer is None else if_equal(number, [answer])
    for name, index in _OWN_PROCESS_ALONE.items():
        told += of_call(numbers[name], [*_single_process(name), load_argument(index), *unless_equal(0, [refuse()])])
    requests = _FILE_ATTRIBUTES + (() if abi >= SIGNALS_SINCE else _SIGNAL_OWNERS)
    told += of_call(numbers["ioctl"], [load_argument(1), *_refused(requests)])
    if abi < SIGNALS_SINCE:
        told += of_call(numbers["fcntl"], [load_argument(1), *_refused(_SET_OWNER)])
    told += of_call(numbers["socketpair"], _pairs())
    told += _open_network(numbers) if is_network_open else _gateway_alone(numbers)
    return b"".join([*told, ALLOW])


def _answer(name: str, abi: int) -> bytes | None:
    """To calls that are not looked into; None: it is allowed, or looked into."""
    if name in _NEVER:
        return refuse()
    if name in _AS_IF_UNKNOWN:
        return refuse(errno.ENOSYS)
    if name in _AS_IF_THE_DISK_HAD_NONE:
        return refuse(errno.EOPNOTSUPP)
    if name in ABOUT_FILES:
        return ASK
    if abi < SIGNALS_SINCE and name in SIGNALS | _OTHER_SIGNALS:
        return ASK if name in SIGNALS else refuse()
    return None


def _single_process(name: str) -> list[bytes]:
    which = _BY_GROUP_OR_USER.get(name)
    return [] if which is None else [load_argument(0), *unless_equal(which, [refuse()])]


def _gateway_alone(numbers: dict[str, int]) -> list[bytes]:
    """A socket of the internet is made by the first process of the box, and connected by it too: to one place."""
    stream = [load_argument(1), mask(_KIND), *unless_equal(_STREAM, [_NO_FAMILY])]
    tcp = [*stream, load_argument(2), *if_equal(0, [ASK]), *if_equal(_TCP, [ASK]), _NO_FAMILY]
    local = [*stream, ALLOW]
    told = of_call(numbers["socket"], [load_argument(0), *if_equal(_UNIX, local), *if_equal(_INET, tcp), _NO_FAMILY])
    told += if_equal(numbers["connect"], [ASK])
    for name, index in _FLAGS_AT.items():
        told += of_call(numbers[name], [load_argument(index), *if_any_of(_FAST_OPEN, [refuse()])])
    return told


def _open_network(numbers: dict[str, int]) -> list[bytes]:
    """All but sockets of the machine: who connects to those of its user may do what that user may."""
    return of_call(numbers["socket"], [load_argument(0), *if_equal(_UNIX, [_NO_FAMILY])])


def _pairs() -> list[bytes]:
    """Such as are connected for good: with datagrams, each may be addressed to another socket."""
    kinds = [load_argument(1), mask(_KIND), *if_equal(_STREAM, [ALLOW]), *if_equal(_SEQUENCED, [ALLOW]), _NO_FAMILY]
    return [load_argument(0), *if_equal(_UNIX, kinds), _NO_FAMILY]


def _refused(values: tuple[int, ...]) -> list[bytes]:
    return [word for value in values for word in if_equal(value, [refuse()])]
