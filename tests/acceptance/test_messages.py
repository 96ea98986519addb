"""What a person is told when something is wrong: what it is, and what to do; never a traceback."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import nightlab
from fault_lab import SCRIPTS, FaultLab, check_whole, curve_task, eventually, holds, processes_with

from agent.store.views import SessionState
from runtime_client.models import Environment, JobSpec

pytestmark = pytest.mark.acceptance

TASK_FILE = f"""
task: curve
objective: {{metric: acuracy, direction: maximize}}
job:
  command: python trouble.py
  args_style: argparse
  code_source: {{root_path: {SCRIPTS}}}
  metric_sources: [{{kind: json_lines}}]
space: {{how: {{type: categorical, choices: [plain, best, noisy], default: plain}}}}
seeds: {{fresh: 2}}
budgets: {{trials: 3}}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    with FaultLab(tmp_path_factory.mktemp("messages")) as lab:
        yield lab


def test_a_metric_that_never_appears_fails_the_session_with_the_names_that_did(lab: FaultLab, tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text(TASK_FILE)
    followed = nightlab("research", "start", str(file), "--follow", home=lab.home)
    assert followed.exit_code == 1
    said = followed.err.splitlines()[-1]
    assert "failed" in said
    assert "'acuracy' never appeared" in said
    assert "metrics that did appear: score" in said
    assert "objective.metric" in said
    shown = nightlab("research", "show", "s1", home=lab.home)
    assert "metrics that did appear: score" in shown.out


def test_a_python_that_does_not_exist_is_named_at_submission(lab: FaultLab, tmp_path: Path) -> None:
    said = nightlab("job", "run", "--python", "/no/python", "--", "python", "train.py", home=lab.home)
    assert said.exit_code == 2
    assert "/no/python does not exist" in said.err
    file = tmp_path / "task.yaml"
    file.write_text(TASK_FILE.replace("job:\n", "job:\n  environment: {python: /no/python}\n"))
    said = nightlab("research", "start", str(file), home=lab.home)
    assert said.exit_code == 2
    assert "/no/python does not exist" in said.err


def test_a_python_that_has_gone_since_ends_the_job_with_its_name(lab: FaultLab) -> None:
    job = lab.client.submit(
        JobSpec(experiment_name="x", command="python -V", environment=Environment(python="/no/python"))
    )
    ended = lab.client.await_end(job.job_id, timeout_s=30)
    assert (ended.state, ended.exit_reason) == ("failed", "bad_python")
    got = nightlab("job", "get", job.job_id, home=lab.home)
    assert "/no/python" in got.out


def test_a_session_whose_python_has_gone_fails_and_says_what_to_set(lab: FaultLab) -> None:
    task = curve_task(lab.starts_file)
    job = task.job.model_copy(update={"environment": Environment(python="/no/python")})
    session_id = lab.start_session(task.model_copy(update={"job": job}))
    view = lab.await_end(session_id)
    assert view.state is SessionState.FAILED
    assert "/no/python" in view.message
    assert "set environment.python to an interpreter that exists" in view.message


@pytest.mark.parametrize("option", ["--port", "--mlflow-port"])
def test_a_port_in_use_is_named_with_its_holder_and_the_way_out(option: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        others = ("--mlflow-port", "0") if option == "--port" else ("--port", "0")
        said = nightlab("up", "--devices", "cpu:1", option, str(port), *others, home=tmp_path)
    assert said.exit_code == 2
    assert f"port {port}" in said.err
    assert f"pid {os.getpid()}" in said.err
    assert f"{option} N" in said.err


BAD_TASKS = {
    "unknown key": (TASK_FILE.replace("budgets", "budget"), "budget"),
    "impossible value": (TASK_FILE.replace("maximize", "upwards"), "objective.direction"),
    "default outside": (TASK_FILE.replace("default: plain", "default: other"), "'other'"),
    "not YAML": ("task: [", "YAML"),
    "not a mapping": ("- 1\n", "mapping"),
    "empty": ("", "task.yaml"),
    "no such folder": (TASK_FILE.replace(str(SCRIPTS), "/no/folder"), "/no/folder"),
    "bad pattern": (TASK_FILE.replace("{kind: json_lines}", "{kind: stdout_pattern, pattern: '('}"), "metric_sources"),
    "no trials": (TASK_FILE.replace("trials: 3", "trials: 0"), "budgets.trials"),
}


@pytest.mark.parametrize("fault", BAD_TASKS)
def test_a_task_file_with_a_fault_is_refused_and_the_place_is_named(fault: str, lab: FaultLab, tmp_path: Path) -> None:
    text, words = BAD_TASKS[fault]
    file = tmp_path / "task.yaml"
    file.write_text(text)
    n_before = len(lab.store.sessions())
    said = nightlab("research", "start", str(file), home=lab.home)
    assert said.exit_code == 2, said
    assert words in said.err
    assert len(lab.store.sessions()) == n_before


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00task", "folder"])
def test_a_task_file_that_can_not_be_read_is_wrong_use(
    content: bytes | str | None, lab: FaultLab, tmp_path: Path
) -> None:
    file = tmp_path / "task.yaml"
    if content == "folder":
        file.mkdir()
    elif isinstance(content, bytes):
        file.write_bytes(content)
    said = nightlab("research", "start", str(file), home=lab.home)
    assert said.exit_code == 2
    assert str(file) in said.err


def test_a_damaged_agent_database_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "agent.db").write_text("not a database, but long enough to be looked at as if it were one" * 20)
    for command in (("research", "list"), ("research", "show", "s1"), ("status",)):
        said = nightlab(*command, home=tmp_path)
        assert said.exit_code == (3 if command == ("status",) else 1)
        assert "agent.db is damaged" in said.out + said.err
        assert "move it away" in said.out + said.err


@pytest.mark.parametrize(
    "command", [("up", "--no-mlflow", "--port", "0"), ("status",), ("down",), ("research", "list")]
)
def test_a_home_that_is_no_folder_is_wrong_use(command: tuple[str, ...], tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    said = nightlab(*command, home=home)
    assert said.exit_code == 2
    assert f"{home} is no folder" in said.err


# A full disk: a small file system of its own as home.


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """A file system in memory; only root can have one."""
    folder.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size={size_mib}m nightlab-test {folder} 2>/dev/null") != 0:
        pytest.skip("a small file system can not be mounted here (it takes root and the right to mount)")
    try:
        yield folder
    finally:
        os.system(f"umount -l {folder}")


class Ballast:
    """A file that takes space away and gives it back."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "ballast"

    def leave(self, n_bytes: int) -> None:
        """Let so much be free."""
        disk = os.statvfs(self._folder)
        size = self._path.stat().st_size if self._path.exists() else 0
        with self._path.open("ab") as file:
            wanted = size + disk.f_bavail * disk.f_frsize - n_bytes
            os.posix_fallocate(file.fileno(), 0, max(wanted, 1))

    def fill(self) -> None:
        """Take every byte, in smaller and smaller pieces."""
        with self._path.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def drop(self) -> None:
        self._path.unlink()


def test_with_a_full_disk_a_session_waits_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 300) as disk, FaultLab(disk) as lab:
        ballast = Ballast(disk)
        lab.starts_file = tmp_path / "starts"  # The script's notes are not to suffer.
        lab.start_session()
        lab.await_moment("search")
        ballast.fill()
        refused = eventually(lambda: refusal(lab), what="a refusal")
        assert "free some space" in refused or "nothing is started until space is freed" in refused
        eventually(lambda: "at least 200 MiB wanted" in notices(lab), what="a notice of the full disk")
        killed = lab.kill("session")
        eventually(lambda: set(processes_with(lab.home, "agent.frontdoors.research")) - {killed}, within_s=60)
        holds(lambda: lab.session().state is SessionState.RUNNING, for_s=8.0)
        ballast.drop()
        lab.await_end()
        check_whole(lab, with_retries=True)


def notices(lab: FaultLab) -> str:
    """What `status` warns of."""
    told = nightlab("status", home=lab.home)
    return "\n".join(line for line in told.out.splitlines() if line.startswith("! "))


def refusal(lab: FaultLab) -> str | None:
    said = nightlab("job", "run", "--python", sys.executable, "--", "python", "-V", home=lab.home)
    return None if said.exit_code == 0 else said.err


def test_up_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        Ballast(disk).fill()
        said = nightlab("up", "--devices", "cpu:1", "--no-mlflow", "--port", "0", home=disk / "home")
    assert said.exit_code == 1
    assert "space" in said.err
