"""Records are whole or absent, claims are unique; processes and sockets are what they are taken for."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.node import processes, records
from runtime.node.sockets import socket_folder


def test_only_one_claim_succeeds(tmp_path: Path) -> None:
    path = str(tmp_path / "claim.json")
    script = "import sys; from runtime.node import records; print(records.claim(sys.argv[1], {'n': int(sys.argv[2])}))"

    def claim(n: int) -> str:
        root = Path(records.__file__).parents[2]
        command = ["python3", "-S", "-c", script, path, str(n)]
        return subprocess.run(command, capture_output=True, text=True, cwd=root, check=True).stdout.strip()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(claim, range(6)))
    assert sorted(answers) == ["False"] * 5 + ["True"]
    record = records.read(path)
    assert record is not None
    assert record["n"] == answers.index("True")
    assert os.listdir(tmp_path) == ["claim.json"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": 1', b"[1]", b"\xff\xfe"])
def test_a_torn_record_counts_as_none(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "exit.json").write_bytes(body)
    assert records.read(str(tmp_path / "exit.json")) is None


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (records.SUPERVISOR, {"pid": 7, "start_ticks": 9, "boot_id": "b", "marker": "m", "cgroup": None}),
        (records.STARTED, {"pid": 7, "start_ticks": 9, "at": 1.5}),
        (records.EXIT, {"exit_code": 0, "was_killed": False, "oom_killed": False, "ended_at": 2.5}),
        (records.METRICS, {"positions": [{"offset": 3}]}),
    ],
)
def test_a_record_cut_by_a_power_failure_is_none_or_whole(tmp_path: Path, name: str, record: dict[str, object]) -> None:
    """At every byte; also where the disk gave the length, and zeros for the rest."""
    path = tmp_path / name
    records.reserve(str(path))
    records.write_reserved(str(path), record, is_durable=True)
    body = path.read_bytes()
    n_needed = len(body.rstrip())
    for cut in range(n_needed + 2):
        for rest in (b"", b"\0" * (len(body) - cut)):
            path.write_bytes(body[:cut] + rest)
            whole = cut >= n_needed and not rest
            assert records.read(str(path)) == (record if whole else None), (cut, rest[:1])


def test_a_failed_write_leaves_the_earlier_record(tmp_path: Path) -> None:
    path = str(tmp_path / "stop.json")
    records.write(path, {"grace_s": 1})
    with pytest.raises(OSError, match="File name too long"):
        records.write(path + "x" * 300, {"grace_s": 2})
    assert records.read(path) == {"grace_s": 1}
    assert os.listdir(tmp_path) == ["stop.json"]


def test_a_reserved_record_is_whole_json(tmp_path: Path) -> None:
    path = str(tmp_path / "record.json")
    records.reserve(path)
    assert not os.path.exists(path)
    records.write_reserved(path, {"exit_code": 0}, is_durable=True)
    assert records.read(path) == {"exit_code": 0}
    assert os.listdir(tmp_path) == ["record.json"]


def test_process_names_with_spaces_and_parentheses_are_understood() -> None:
    stat = b"42 (a) b (c) S 7 8 9 " + b"0 " * 15 + b"12345 0 0"
    process = processes.Process(42, stat)
    assert (process.parent, process.group, process.session) == (7, 8, 9)
    assert (process.start_ticks, process.is_zombie) == (12345, False)


def test_a_process_is_known_by_pid_and_start_time() -> None:
    own = processes.look_up(os.getpid())
    assert own is not None
    assert processes.is_alive(own.pid, own.start_ticks)
    assert not processes.is_alive(own.pid, own.start_ticks + 1)
    assert not processes.send_exactly(own.pid, own.start_ticks + 1, 9)


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    found = processes.look_up(child.pid)
    while found is not None and not found.is_zombie:
        found = processes.look_up(child.pid)
    assert found is not None
    assert not processes.is_alive(child.pid, found.start_ticks)
    child.wait()


def test_sockets_are_in_a_private_folder_of_the_home(tmp_path: Path) -> None:
    folder = socket_folder(tmp_path)
    assert folder == tmp_path / "run"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_long_home_always_finds_its_one_folder_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 100)
    folder = socket_folder(home)
    assert len(str(folder)) < 60
    assert folder == socket_folder(home)
    folder.rmdir()


def test_a_folder_elsewhere_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 100)
    folder = socket_folder(home)
    folder.chmod(0o755)
    other = socket_folder(home)
    assert other != folder
    folder.rmdir()
    other.rmdir()
