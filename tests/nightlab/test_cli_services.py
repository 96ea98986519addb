"""The command line on a real runtime with two CPU slots."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cli_process import Ended, eventually, nightlab

from nightlab.services.settings import ServiceFiles
from nightlab.services.state import SupervisorState, read_state
from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobSpec, JobView

TRAIN = """
import sys, time
print("args", *sys.argv[1:], flush=True)
deadline = time.monotonic() + float(sys.argv[sys.argv.index("--s") + 1]) if "--s" in sys.argv else 0
while time.monotonic() < deadline:
    time.sleep(0.02)
sys.exit(3 if "--fail" in sys.argv else 0)
"""
UP = ("up", "--devices", "cpu:2", "--no-mlflow", "--port", "0")


@pytest.mark.acceptance
def test_a_policy_stays_in_force_until_another_is_given(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "lab.yaml"
    file.write_text("min_run_s: 60\n")
    broken = tmp_path / "broken.yaml"
    broken.write_text("quotas: 5\n")
    up = (*UP, "--json")
    try:
        assert "quotas: " in nightlab(*UP, "--policy", str(broken), home=home).err
        assert nightlab(*up, "--policy", str(file), home=home).exit_code == 0
        file.write_text("min_run_s: 30\n")
        other = nightlab(*up, "--policy", str(file), home=home)
        assert (other.exit_code, "another scheduling policy" in other.out) == (2, True)
        nightlab("down", home=home)
        assert nightlab(*up, home=home).exit_code == 0
        assert nightlab("policy", "--json", home=home).data["min_run_s"] == 60
        nightlab("down", home=home)
        assert nightlab(*up, "--policy", "default", home=home).exit_code == 0
        assert nightlab("policy", "--json", home=home).data["min_run_s"] == 0
    finally:
        nightlab("down", "--jobs", "cancel", home=home)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home").resolve()
    started = nightlab(*UP, home=folder)
    assert started.exit_code == 0, started.err
    yield folder
    nightlab("down", "--jobs", "cancel", home=folder)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(TRAIN)
    return folder


def run_job(home: Path, code: Path, *flags: str, arguments: tuple[str, ...] = ()) -> Ended:
    command = ("--python", sys.executable, *flags, "--", "python", "train.py", *arguments)
    return nightlab("job", "run", *command, home=home, cwd=code)


def submitted(home: Path, code: Path, *arguments: str) -> str:
    return str(run_job(home, code, "--json", arguments=arguments).data["job_id"])


def job(home: Path, job_id: str) -> JobView:
    with RuntimeClient.from_home(home) as client:
        return client.job(job_id)


def cancel(home: Path, job_id: str) -> None:
    with RuntimeClient.from_home(home) as client:
        client.cancel(job_id)


def is_answering(home: Path) -> bool:
    try:
        with RuntimeClient.from_home(home) as client:
            client.info()
    except RuntimeClientError:
        return False
    return True


def supervisor(home: Path) -> SupervisorState:
    state = read_state(ServiceFiles(home))
    assert state is not None
    return state


@pytest.mark.cli
def test_status_tells_services_and_devices(home: Path) -> None:
    told = nightlab("status", "--json", home=home)
    assert told.exit_code == 0
    assert told.data["is_up"] is True
    assert told.data["runtime"]["n_devices"] == 2
    assert {one["name"]: one["state"] for one in told.data["services"]}["server"] == "up"
    assert {one["name"]: one["state"] for one in told.data["services"]}["mlflow"] == "off"
    assert "2 devices free" in nightlab("status", home=home).out


@pytest.mark.acceptance
def test_a_dry_run_learns_from_jobs_that_have_run_and_says_whom_it_would_wait_for(home: Path, code: Path) -> None:
    task = "task: t\nobjective: {metric: m, direction: minimize}\njob: {command: sleep 0.2, args_style: none}\n"
    task += "budgets: {trials: 2}\nspace: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}\n"
    (code / "task.yaml").write_text(task)
    sweep = "sweep: s\ntask: task.yaml\nmethod: {kind: random, trials: 9}\nconfirm: false\n"
    (code / "sweep.yaml").write_text(sweep + "priority_class: normal\n")
    before = nightlab("job", "list", "--all", "--json", home=home).data
    with RuntimeClient.from_home(home) as client:
        done = client.submit(JobSpec(experiment_name="t", command="sleep 0.2"))
        eventually(lambda: client.job(done.job_id).is_ended)
        long = [client.submit(JobSpec(experiment_name="t", command="sleep 60")).job_id for _ in range(2)]
        waiting = client.submit(JobSpec(experiment_name="t", command="true", priority_class="exploratory")).job_id
        eventually(lambda: all(client.job(one).state == "running" for one in long))
        told = nightlab("sweep", "run", str(code / "sweep.yaml"), "--dry-run", "--json", home=home).data
        for one in (waiting, *long):
            client.cancel(one)
    (cell,) = told["cells"]
    assert cell["run_time"]["basis"] == "jobs of the runtime"
    assert 9 * 0.2 <= cell["device_seconds"] <= 9 * 5.0
    assert told["forecast"]["prospect"] == "waits"
    assert told["overtakes"] == [waiting]
    assert told["ends_at"] is None
    assert any(told["forecast"]["expected_start"]["basis"] in one for one in told["unknown"])
    after = nightlab("job", "list", "--all", "--json", home=home).data
    assert len(after) == len(before) + 4


@pytest.mark.cli
def test_a_second_up_finds_the_first(home: Path) -> None:
    again = nightlab("up", "--devices", "cpu:2", "--no-mlflow", home=home)
    assert again.exit_code == 0
    assert "already up at http://127.0.0.1:" in again.out


@pytest.mark.cli
def test_a_second_up_with_other_settings_says_what_differs(home: Path) -> None:
    again = nightlab("up", "--devices", "cpu:4", "--json", home=home)
    assert again.exit_code == 2
    assert "devices: cpu:2 (asked: cpu:4)" in again.error["message"]


@pytest.mark.cli
def test_a_watched_job_shows_its_output_and_state(home: Path, code: Path) -> None:
    ended = run_job(home, code, "--watch", "--param", "lr=1e-3", "--args-style", "argparse")
    assert ended.exit_code == 0
    assert ended.out == "args --lr 0.001\n"
    assert "succeeded" in ended.err


@pytest.mark.cli
def test_a_watched_job_that_fails_is_exit_1(home: Path, code: Path) -> None:
    ended = run_job(home, code, "--watch", "--json", arguments=("--fail",))
    assert ended.exit_code == 1
    assert ended.data["state"] == "failed"
    assert ended.data["attempts"][0]["exit_code"] == 3


@pytest.mark.cli
def test_the_python_of_the_readme_runs(home: Path, code: Path) -> None:
    readme = Path(__file__).parents[2] / "README.md"
    snippet = readme.read_text().partition("```python\n")[2].partition("```")[0]
    environment = {**os.environ, "NIGHTLAB_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("succeeded\n", "")


@pytest.mark.cli
def test_ctrl_c_detaches_from_a_watched_job(home: Path, code: Path) -> None:
    argv = [sys.executable, "-m", "nightlab", "job", "run", "--watch", "--python", sys.executable, "--"]
    watching = subprocess.Popen(
        [*argv, "python", "train.py", "--s", "60"],
        cwd=code,
        env={**os.environ, "NIGHTLAB_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    assert watching.stdout.readline() == "args --s 60\n"
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=10)
    assert watching.returncode == 130
    assert "detached" in err
    job_id = err.split()[0]
    assert job(home, job_id).state == "running"
    cancel(home, job_id)


@pytest.mark.acceptance
def test_a_job_can_be_listed_explained_read_and_cancelled(home: Path, code: Path) -> None:
    job_id = submitted(home, code, "--s", "60")
    eventually(lambda: job(home, job_id).state == "running")
    assert job_id in [one["job_id"] for one in nightlab("job", "list", "--json", home=home).data]
    assert job_id in nightlab("job", "list", home=home).out
    assert nightlab("job", "explain", job_id, "--json", home=home).data["job_id"] == job_id
    assert job_id in [d["job_id"] for d in nightlab("node", "list", "--json", home=home).data[0]["devices"]]
    assert nightlab("job", "logs", job_id, "--lines", "1", home=home).out == "args --s 60\n"
    cancelled = nightlab("job", "cancel", job_id, "--reason", "wrong data", "--json", home=home)
    assert [one["job_id"] for one in cancelled.data["cancelled"]] == [job_id]
    eventually(lambda: job(home, job_id).state == "cancelled")
    followed = nightlab("job", "logs", job_id, "-f", home=home)
    assert followed.out == "args --s 60\n"
    assert "cancelled" in followed.err


@pytest.mark.cli
def test_the_same_idempotency_key_is_the_same_job(home: Path, code: Path) -> None:
    first = run_job(home, code, "--json", "--idempotency-key", "once").data["job_id"]
    assert run_job(home, code, "--json", "--idempotency-key", "once").data["job_id"] == first


@pytest.mark.cli
def test_an_unknown_job_is_wrong_use(home: Path) -> None:
    ended = nightlab("job", "get", "j999", "--json", home=home)
    assert ended.exit_code == 2
    assert ended.error["kind"] == "not_found"
    assert "j999" in ended.error["message"]


@pytest.mark.cli
def test_one_job_that_can_not_be_cancelled_is_exit_1(home: Path) -> None:
    ended = nightlab("job", "cancel", "j999", "--json", home=home)
    assert ended.exit_code == 1
    assert ended.data["failed"][0]["job_id"] == "j999"


@pytest.mark.kills
def test_a_killed_server_is_started_again_and_the_job_goes_on(home: Path, code: Path) -> None:
    job_id = submitted(home, code, "--s", "60")
    eventually(lambda: job(home, job_id).state == "running")
    old = supervisor(home).services["server"]
    assert old.pid is not None
    os.kill(old.pid, signal.SIGKILL)
    eventually(lambda: supervisor(home).services["server"].n_restarts == old.n_restarts + 1)
    eventually(lambda: is_answering(home), within_s=60)
    found = job(home, job_id)
    assert (found.state, len(found.attempts)) == ("running", 1)
    cancel(home, job_id)


@pytest.mark.kills
def test_up_works_after_everything_was_killed_and_down_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    assert nightlab(*UP, home=home).exit_code == 0
    state = supervisor(home)
    for pid in (state.pid, *(service.pid for service in state.services.values())):
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    assert nightlab("status", "--json", home=home).exit_code == 3
    assert nightlab(*UP, home=home).exit_code == 0
    assert nightlab("down", home=home).exit_code == 0
    eventually(lambda: not processes_of(home))
    assert nightlab("down", home=home).out.startswith("nightlab was not up")


def processes_of(home: Path) -> list[list[str]]:
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(home) in part for part in process.cmdline()):
                found.append(process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.cli
def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = nightlab("up", "--no-mlflow", "--port", port, home=tmp_path)
    assert ended.exit_code == 2
    assert f"port {port}" in ended.err
    assert f"pid {os.getpid()}" in ended.err
    assert "--port N" in ended.err


@pytest.mark.cli
@pytest.mark.parametrize("devices", ["gpu:2", "cpu:0", "cpu", "fake:8", "cpu:two"])
def test_devices_of_no_known_form_are_refused_with_the_allowed_ones(devices: str, tmp_path: Path) -> None:
    ended = nightlab("up", "--devices", devices, home=tmp_path)
    assert ended.exit_code == 2
    assert "cpu:N" in ended.err
    assert not (tmp_path / "services").exists()


@pytest.mark.cli
def test_a_server_that_can_not_start_says_why_once(tmp_path: Path) -> None:
    ended = nightlab("up", "--no-mlflow", "--port", "0", "--database", "nonsense://x", "--json", home=tmp_path)
    assert ended.exit_code == 1
    assert "nonsense" in ended.error["message"]
    assert "server.log" in ended.error["message"]
    assert not processes_of(tmp_path)


@pytest.mark.cli
@pytest.mark.parametrize("command", [("job", "list"), ("node", "list"), ("job", "run", "--", "true")])
def test_without_a_runtime_the_way_to_start_one_is_told(command: tuple[str, ...], tmp_path: Path) -> None:
    ended = nightlab(*command, home=tmp_path)
    assert ended.exit_code == 3
    assert "nightlab up" in ended.err


@pytest.mark.cli
def test_without_a_runtime_status_is_an_envelope_too(tmp_path: Path) -> None:
    told = nightlab("status", "--json", home=tmp_path)
    assert told.exit_code == 3
    assert told.data["is_up"] is False
    assert json.loads(told.out)["v"] == 1


@pytest.mark.acceptance
def test_down_requeues_running_jobs_and_up_resumes_them(tmp_path: Path, code: Path) -> None:
    home = tmp_path.resolve()
    assert nightlab(*UP, home=home).exit_code == 0
    job_id = submitted(home, code, "--s", "600")
    eventually(lambda: job(home, job_id).state == "running")
    stopped = nightlab("down", "--json", home=home)
    assert stopped.data["has_left_jobs"] is False
    eventually(lambda: not processes_of(home))
    assert nightlab(*UP, home=home).exit_code == 0
    eventually(lambda: len(job(home, job_id).attempts) == 2 and job(home, job_id).state == "running")
    assert job(home, job_id).attempts[0].outcome == "preempted"
    assert nightlab("down", "--jobs", "cancel", home=home).exit_code == 0
    eventually(lambda: not processes_of(home))


@pytest.mark.acceptance
def test_down_with_leave_jobs_lets_training_go_on_and_up_takes_it_over(tmp_path: Path, code: Path) -> None:
    home = tmp_path.resolve()
    assert nightlab(*UP, home=home).exit_code == 0
    job_id = submitted(home, code, "--s", "600")
    eventually(lambda: job(home, job_id).state == "running")
    assert nightlab("down", "--leave-jobs", home=home).exit_code == 0
    assert nightlab(*UP, home=home).exit_code == 0
    found = job(home, job_id)
    assert (found.state, len(found.attempts)) == ("running", 1)
    cancel(home, job_id)
    eventually(lambda: job(home, job_id).state == "cancelled")
    assert nightlab("down", home=home).exit_code == 0


@pytest.mark.cli
@pytest.mark.parametrize("name", ["a?b", "a#b", "a%20b"])
def test_a_home_that_no_database_address_can_have_is_refused(name: str, tmp_path: Path) -> None:
    ended = nightlab("up", "--port", "0", "--no-mlflow", "--json", home=tmp_path / name)
    assert ended.exit_code == 2
    assert ended.error["code"] == "bad_home"
    assert not list(tmp_path.iterdir())


RANKS = """
import os, sys
for rank in (0, 1):
    with open(f"{os.environ['NIGHTLAB_RANK_LOG_DIR']}/rank_{rank}.log", "w") as log:
        print(f"rank {rank} begins\\nValueError: bad batch {rank}", file=log)
print("common")
sys.exit(1)
"""


@pytest.mark.acceptance
def test_output_is_shown_by_rank_and_as_error_lines(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    command = ("--gpus", "2", "--watch", "--json", "--python", sys.executable, "--", "python", "ranks.py")
    job_id = nightlab("job", "run", *command, home=home, cwd=tmp_path).data["job_id"]

    def logs(*flags: str) -> Ended:
        return nightlab("job", "logs", job_id, *flags, home=home)

    assert logs().out == "common\n"
    assert logs("--rank", "1").out == "rank 1 begins\nValueError: bad batch 1\n"
    merged = logs("--rank", "all", "-f").out.splitlines()
    assert sorted(merged) == sorted(
        ["common", *(f"[{n}] {line}" for n in (0, 1) for line in (f"rank {n} begins", f"ValueError: bad batch {n}"))]
    )
    assert logs("--errors").out == "     2x  ranks 0-1  ValueError: bad batch 0\n"
    (line,) = logs("--errors", "--json").data["lines"]
    assert (line["count"], line["ranks"]) == (2, [0, 1])
    assert logs("--rank", "7").err.startswith("rank 7 has no output of its own; there is: main, 0, 1")
    assert logs("--rank", "first").exit_code == 2
