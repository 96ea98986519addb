"""Fatal faults of devices in the kernel's log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.node.kernel_log import KernelLog, note_faults, short_bus_id

FELL_OFF = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def faults(*lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    note_faults(lines, found)
    return found


def test_a_fatal_fault_is_told_by_bus_id() -> None:
    assert faults("usb 1-1: new device", FELL_OFF) == {"3b:00": "XID 79: the GPU has fallen off the bus"}


@pytest.mark.parametrize("number", [13, 31, 43, 45, 63, 94])
def test_faults_of_a_program_or_contained_ones_are_not_fatal(number: int) -> None:
    assert faults(f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=77, name=python3") == {}


def test_the_first_fault_is_kept() -> None:
    later = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE"
    assert faults(FELL_OFF, later) == {"3b:00": "XID 79: the GPU has fallen off the bus"}


def test_a_driver_that_was_loaded_again_begins_without_faults() -> None:
    assert faults(FELL_OFF, "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15") == {}


@pytest.mark.parametrize("text", ["0000:3b:00", "0000:3B:00.0", "00000000:3B:00.0", "0000:3b:00.7"])
def test_the_log_and_nvml_write_one_bus_id_differently(text: str) -> None:
    assert short_bus_id(text) == "3b:00"
    assert short_bus_id("0001:3b:00") == "1:3b:00"


def test_the_log_is_read_as_it_grows(tmp_path: Path) -> None:
    """A pipe stands for the device: it gives what is new, and says when there is no more."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = KernelLog(str(path))
    assert log.fatal_faults() == {}
    writer = os.open(path, os.O_WRONLY)
    assert log.fatal_faults() == {}
    os.write(writer, f"4,1200,5000,-;{FELL_OFF}\n".encode())
    assert log.fatal_faults() == {"3b:00": "XID 79: the GPU has fallen off the bus"}
    assert log.fatal_faults() == {"3b:00": "XID 79: the GPU has fallen off the bus"}
    os.close(writer)
    os.close(reader)


def test_a_log_that_may_not_be_read_tells_nothing(tmp_path: Path) -> None:
    assert KernelLog(str(tmp_path / "none")).fatal_faults() == {}
