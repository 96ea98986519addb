"""Locks and ports that all users of a machine share: one holder each, free when it dies, safe from what others put."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.node import machine_locks, ports

HOLDER = """
import sys, time
from runtime.node import machine_locks
descriptor = machine_locks.take(sys.argv[1])
print(descriptor is not None, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock `tmp_path/l`."""
    root = Path(machine_locks.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", HOLDER, str(tmp_path / "l")], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_place_is_one_where_everybody_may_write() -> None:
    found = os.stat(machine_locks.place())
    assert found.st_mode & 0o1777 == 0o1777


def test_one_process_has_a_lock_and_it_is_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    path = str(tmp_path / "l")
    assert machine_locks.take(path) is None
    assert machine_locks.holders(path) == {holder.pid}
    assert f"(pid {holder.pid}, user " in machine_locks.holder(path)


def test_a_lock_is_free_when_its_holder_was_killed(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    held = machine_locks.take(str(tmp_path / "l"))
    assert held is not None
    os.close(held)


def test_a_lock_can_be_read_by_all_and_written_by_nobody(tmp_path: Path) -> None:
    held = machine_locks.take(str(tmp_path / "l"))
    assert held is not None
    assert os.fstat(held).st_mode & 0o777 == 0o444
    os.close(held)


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
def test_what_others_put_in_its_place_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path, victim = tmp_path / "l", tmp_path / "victim"
    victim.write_text("precious")
    mode = victim.stat().st_mode
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "hard link":
        path.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(machine_locks.Foreign):
        machine_locks.take(str(path))
    assert (victim.read_text(), victim.stat().st_mode) == ("precious", mode)


def test_a_lock_whose_file_was_swept_away_is_known_as_gone(tmp_path: Path) -> None:
    path = tmp_path / "l"
    held = machine_locks.take(str(path))
    assert held is not None
    assert machine_locks.is_at(held, str(path))
    path.unlink()
    assert not machine_locks.is_at(held, str(path))
    os.close(held)


def as_nobody(path: str) -> str:
    """What a process of another user says when it tries to take the lock."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "failed"
        try:
            os.setgid(65534)
            os.setuid(65534)
            held = machine_locks.take(path)
            said = machine_locks.holder(path) if held is None else "taken"
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("comes_first", ["we", "they"])
def test_a_lock_is_shared_by_all_users(comes_first: str) -> None:
    path = machine_locks.path_of(f"test-{os.getpid()}-{comes_first}")
    try:
        if comes_first == "they":
            assert as_nobody(path) == "taken"
        held = machine_locks.take(path)
        assert held is not None
        assert f"(pid {os.getpid()}, user root)" in as_nobody(path)
        os.close(held)
        assert as_nobody(path) == "taken"
    finally:
        os.unlink(path)


def test_two_attempts_never_hold_one_port(tmp_path: Path) -> None:
    held = [ports.hold(7, str(tmp_path)) for _ in range(5)]
    assert len({port.number for port in held}) == 5
    held[0].let_go()  # Its command listens there, or will; nobody else gets it.
    assert ports.hold(7, str(tmp_path)).number not in {port.number for port in held}


def test_a_held_port_can_be_bound_by_nobody_until_it_is_let_go(tmp_path: Path) -> None:
    port = ports.hold(0, str(tmp_path))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError) as refused:
            other.bind(("127.0.0.1", port.number))
        assert refused.value.errno == errno.EADDRINUSE
        port.let_go()
        other.bind(("127.0.0.1", port.number))
        other.listen()
    port.give_back()


def test_a_port_that_somebody_listens_at_is_passed_over(tmp_path: Path) -> None:
    with socket.socket() as foreign:
        port = ports.hold(0, str(tmp_path))
        port.give_back()
        foreign.bind(("127.0.0.1", port.number))
        foreign.listen()
        other = ports.hold(0, str(tmp_path))
        assert other.number != port.number
        other.give_back()


def test_ports_lie_below_those_that_the_kernel_gives_out() -> None:
    low, n_ports = ports.reach()
    first_by_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert 1024 < low < low + n_ports <= first_by_kernel
