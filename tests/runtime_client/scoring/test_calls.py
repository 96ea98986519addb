"""The candidate's filter, played by a small interpreter: what it answers to calls, for both kinds of machine."""

from __future__ import annotations

import errno
import struct

import pytest

from runtime_client.scoring import calls
from runtime_client.syscalls import AUDIT_ARCH

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
PID = 4321


def answer(machine: str, number: int, first: int = 0, architecture: int | None = None) -> int:
    words = list(struct.iter_unpack("HBBI", calls.program(machine, PID)))
    data = {0: number, 4: architecture or AUDIT_ARCH[machine], 16: first}
    loaded, at = 0, 0
    while True:
        kind, if_true, if_false, value = words[at]
        at += 1
        match kind:
            case 0x20:
                loaded = data[value]
            case 0x15:
                at += if_true if loaded == value else if_false
            case 0x35:
                at += if_true if loaded >= value else if_false
            case 0x45:
                at += if_true if loaded & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"no such word: {kind:#x}")


@pytest.mark.parametrize("machine", calls.NUMBERS)
def test_what_reaches_others_is_refused(machine: str) -> None:
    numbers = calls.NUMBERS[machine]
    unknown = {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"}
    found = {name: answer(machine, number, first=1) for name, number in numbers.items()}
    assert found == {name: ERRNO | (errno.ENOSYS if name in unknown else errno.EPERM) for name in numbers}
    assert len(set(numbers.values())) == len(numbers), "one number twice"


@pytest.mark.parametrize("machine", calls.NUMBERS)
def test_threads_and_signals_to_itself_are_allowed(machine: str) -> None:
    numbers = calls.NUMBERS[machine]
    assert answer(machine, numbers["clone"], first=0x003D0F00) == ALLOW
    for name in ("kill", "tgkill", "prlimit64"):
        assert answer(machine, numbers[name], first=PID) == ALLOW
    assert answer(machine, numbers["prlimit64"], first=0) == ALLOW
    assert answer(machine, numbers["kill"], first=0) == ERRNO | errno.EPERM, "its group, which has others in it"
    assert answer(machine, numbers["kill"], first=2**32 - 1) == ERRNO | errno.EPERM


@pytest.mark.parametrize("machine", calls.NUMBERS)
def test_the_rest_is_allowed_by_the_machines_own_entry_alone(machine: str) -> None:
    assert answer(machine, 9) == ALLOW if machine == "x86_64" else answer(machine, 222) == ALLOW
    assert answer(machine, 9, architecture=0x40000003) == KILL


def test_the_third_entry_of_one_machine_ends_it() -> None:
    assert answer("x86_64", 0x40000000) == KILL
