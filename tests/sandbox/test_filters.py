"""What the filters of system calls answer, on both kinds of machine, by playing the kernel's part."""

from __future__ import annotations

import errno
import struct

import pytest

from runtime.sandbox import fence_filter
from runtime.sandbox import filter as calls
from runtime_client.syscalls import AUDIT_ARCH, MACHINES

KILL, ASK, ALLOW, REFUSED = "kill", "ask", "allow", "refused"
_ANSWERS = {0x80000000: KILL, 0x7FC00000: ASK, 0x7FFF0000: ALLOW}
UNIX, INET, INET6, NETLINK, PACKET = 1, 2, 10, 16, 17
STREAM, DATAGRAM, SEQUENCED, CLOSE_ON_EXEC = 1, 2, 5, 0x80000
PID = 4711


def answer(program: bytes, machine: str, number: int, *arguments: int) -> str:
    """Of the kernel, to a call; a refusal with its number, unless it is EPERM."""
    data = struct.pack("=iIQ6Q", number, AUDIT_ARCH[machine], 0, *arguments, *[0] * (6 - len(arguments)))
    at, loaded = 0, 0
    while True:
        kind, if_true, if_false, value = struct.unpack_from("HBBI", program, 8 * at)
        at += 1
        match kind:
            case 0x20:
                loaded = struct.unpack_from("I", data, value)[0]
            case 0x54:
                loaded &= value
            case 0x15:
                at += if_true if loaded == value else if_false
            case 0x35:
                at += if_true if loaded >= value else if_false
            case 0x45:
                at += if_true if loaded & value else if_false
            case 0x06:
                if value in _ANSWERS:
                    return _ANSWERS[value]
                return REFUSED if value & 0xFFFF == errno.EPERM else errno.errorcode[value & 0xFFFF]
            case _:
                raise AssertionError(f"an instruction {kind:#x}")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("socket", (UNIX, STREAM | CLOSE_ON_EXEC), ALLOW),
        ("socket", (UNIX, DATAGRAM), "EAFNOSUPPORT"),
        ("socket", (INET, STREAM | CLOSE_ON_EXEC), ASK),
        ("socket", (INET, STREAM, 6), ASK),
        ("socket", (INET, STREAM, 262), "EAFNOSUPPORT"),
        ("socket", (INET, DATAGRAM), "EAFNOSUPPORT"),
        ("socket", (INET6, STREAM), "EAFNOSUPPORT"),
        ("socket", (NETLINK, 3), "EAFNOSUPPORT"),
        ("socketpair", (UNIX, STREAM), ALLOW),
        ("socketpair", (UNIX, SEQUENCED | CLOSE_ON_EXEC), ALLOW),
        ("socketpair", (UNIX, DATAGRAM), "EAFNOSUPPORT"),
        ("connect", (3,), ASK),
        ("sendto", (3, 0, 0, 0x4000), ALLOW),
        ("sendto", (3, 0, 0, 0x20000000), REFUSED),
        ("sendmsg", (3, 0, 0x20004000), REFUSED),
        ("sendmmsg", (3, 0, 1, 0x20000000), REFUSED),
        ("fchmod", (3, 0o600), ASK),
        ("fchmodat", (3, 0, 0o600), ASK),
        ("utimensat", (3, 0, 0, 0), ASK),
        ("fchownat", (3, 0, 0, 0, 0), REFUSED),
        ("setxattr", (0, 0), errno.errorcode[errno.EOPNOTSUPP]),
        ("setxattrat", (0, 0), "ENOSYS"),
        ("inotify_add_watch", (3, 0), REFUSED),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (PID, 7), REFUSED),
        ("sched_setaffinity", (PID,), REFUSED),
        ("setpriority", (0, 0), ALLOW),
        ("setpriority", (0, PID), REFUSED),
        ("setpriority", (2, 0), REFUSED),
        ("ioprio_set", (1, 0), ALLOW),
        ("ioprio_set", (3, 0), REFUSED),
        ("shmat", (1,), REFUSED),
        ("ioctl", (3, 0x5401), ALLOW),
        ("ioctl", (3, 0x40086602), REFUSED),
    ],
)
def test_a_fence_leaves_a_job_what_is_its_own(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
) -> None:
    program = fence_filter.program(machine, is_network_open=False, abi=7)
    assert answer(program, machine, fence_filter.NUMBERS[machine][name], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("kill", (PID, 15), ASK),
        ("tgkill", (PID, PID, 6), ASK),
        ("tkill", (PID, 6), REFUSED),
        ("pidfd_send_signal", (3, 15), REFUSED),
        ("rt_sigqueueinfo", (PID, 15), REFUSED),
        ("fcntl", (3, 8, PID), REFUSED),
        ("fcntl", (3, 2, 1), ALLOW),
        ("ioctl", (3, 0x8901), REFUSED),
    ],
)
def test_signals_are_asked_for_where_landlock_does_not_hold_them_back(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
) -> None:
    number = fence_filter.NUMBERS[machine][name]
    older, newer = (fence_filter.program(machine, is_network_open=False, abi=abi) for abi in (5, 6))
    assert answer(older, machine, number, *arguments) == expected
    assert answer(newer, machine, number, *arguments) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_an_open_network_has_no_local_sockets_but_pairs(machine: str) -> None:
    program, numbers = fence_filter.program(machine, is_network_open=True, abi=7), fence_filter.NUMBERS[machine]
    assert answer(program, machine, numbers["socket"], UNIX, STREAM) == "EAFNOSUPPORT"
    assert answer(program, machine, numbers["socketpair"], UNIX, STREAM) == ALLOW
    for family, kind in ((INET, STREAM), (INET, DATAGRAM), (INET6, STREAM)):
        assert answer(program, machine, numbers["socket"], family, kind) == ALLOW
    assert answer(program, machine, numbers["connect"], 3) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("mount", (), REFUSED),
        ("clone", (0x11,), ALLOW),
        ("clone", (0x10000011,), REFUSED),
        ("clone3", (), "ENOSYS"),
        ("socket", (PACKET, 3), "EAFNOSUPPORT"),
        ("socket", (NETLINK, 3, 0), ALLOW),
        ("socket", (NETLINK, 3, 9), "EAFNOSUPPORT"),
        ("ioctl", (3, 0x5412), REFUSED),
        ("ioctl", (3, 0x5401), ALLOW),
    ],
)
def test_every_sealed_job_is_kept_from_the_machine(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
) -> None:
    assert answer(calls.program(machine), machine, calls.NUMBERS[machine][name], *arguments) == expected


def test_another_entry_to_the_kernel_ends_the_process() -> None:
    assert answer(calls.program("x86_64"), "x86_64", 0x40000000 | 41, UNIX, STREAM) == KILL
    assert answer(calls.program("x86_64"), "aarch64", 0) == KILL


def test_both_filters_look_at_these_calls_alone() -> None:
    for machine in MACHINES:
        assert calls.NUMBERS[machine].keys() & fence_filter.NUMBERS[machine].keys() == {"socket", "ioctl"}
