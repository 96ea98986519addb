"""Numbers of system calls, and the first words of every filter of them (seccomp). Pure.

Source: asm/unistd_64.h, asm-generic/unistd.h, linux/audit.h, seccomp(2).
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime_client.bpf import KILL, LOAD_ARCHITECTURE, LOAD_NUMBER, if_at_least, unless_equal

MACHINES = ("x86_64", "aarch64")
"""As `os.uname().machine` names them; on others nothing is filtered."""
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ioctl": (16, 29), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "socket": (41, 198),
    "connect": (42, 203), "sendto": (44, 206), "sendmsg": (46, 211), "socketpair": (53, 199), "clone": (56, 220),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "kill": (62, 129), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "fcntl": (72, 25), "chmod": (90, None), "fchmod": (91, 52), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "ptrace": (101, 117), "syslog": (103, 116),
    "rt_sigqueueinfo": (129, 138), "utime": (132, None), "mknod": (133, None), "setpriority": (141, 140),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "vhangup": (153, 58), "pivot_root": (155, 41),
    "adjtimex": (159, 171), "chroot": (161, 51), "acct": (163, 89), "settimeofday": (164, 170), "mount": (165, 40),
    "umount2": (166, 39), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "init_module": (175, 105), "delete_module": (176, 106), "quotactl": (179, 60), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "tkill": (200, 130), "sched_setaffinity": (203, 122), "semtimedop": (220, 192),
    "clock_settime": (227, 112), "tgkill": (234, 131), "utimes": (235, None), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "kexec_load": (246, 104), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "ioprio_set": (251, 30), "inotify_add_watch": (254, 27), "migrate_pages": (256, 238),
    "mknodat": (259, 33), "fchownat": (260, 54), "futimesat": (261, None), "fchmodat": (268, 53),
    "unshare": (272, 97), "utimensat": (280, 88), "rt_tgsigqueueinfo": (297, 240), "perf_event_open": (298, 241),
    "fanotify_init": (300, 262), "prlimit64": (302, 261), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "clock_adjtime": (305, 266), "sendmmsg": (307, 269), "setns": (308, 268),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "finit_module": (313, 273),
    "sched_setattr": (314, 274), "kexec_file_load": (320, 294), "bpf": (321, 280), "execveat": (322, 281),
    "userfaultfd": (323, 282), "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "clone3": (435, 435),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "mount_setattr": (442, 442), "quotactl_fd": (443, 443),
    "process_mrelease": (448, 448), "fchmodat2": (452, 452), "setxattrat": (463, 463), "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}  # fmt: skip
"""On x86_64 and on aarch64; None: there is no such call."""


def numbers_of(names: Iterable[str]) -> dict[str, dict[str, int]]:
    """By machine, the numbers of those calls that it has."""
    found: dict[str, dict[str, int]] = {machine: {} for machine in MACHINES}
    for name in names:
        for machine, number in zip(MACHINES, _NUMBERS[name], strict=True):
            if number is not None:
                found[machine][name] = number
    return found


def by_one_entry(machine: str) -> list[bytes]:
    """The process ends where it enters the kernel by another way (32-bit, x32); then the call's number is at hand.

    Raises:
        KeyError: a machine whose numbers are not known.
    """
    told = [LOAD_ARCHITECTURE, *unless_equal(AUDIT_ARCH[machine], [KILL]), LOAD_NUMBER]
    return [*told, *if_at_least(_X32, [KILL])] if machine == "x86_64" else told
