"""A task is checked, and a trial is run again here and elsewhere, through a real runtime."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import eventually, nightlab

pytestmark = pytest.mark.acceptance

TASK = """
task: tiny
objective: {metric: loss, direction: minimize}
job:
  command: python train.py
  args_style: argparse
  code_source: {root_path: .}
  metric_sources: [{kind: stdout_pattern, pattern: 'loss (?P<loss>\\S+)'}]
space: {lr: {type: float, low: 0.1, high: 1.0, default: 0.5}}
fidelity: {parameter: epochs, value: 20}
budgets: {trials: 2}
seeds: {fresh: 2, max_pairs: 8}
"""
TRAIN = """
import argparse, random, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
parser.add_argument("--epochs", type=int)
given = parser.parse_args()
noise = random.Random(given.seed).gauss(0, 0.01)
for _ in range(given.epochs):
    time.sleep(0.1)
    print(f"loss {abs(given.lr - 0.3) + noise}", flush=True)
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "task.yaml").write_text(TASK)
    return code / "task.yaml"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    assert nightlab("up", "--devices", "cpu:2", "--no-mlflow", "--port", "0", home=home).exit_code == 0
    yield home
    nightlab("down", "--jobs", "cancel", home=home)


def live_jobs(home: Path) -> list[str]:
    return [job["job_id"] for job in nightlab("job", "list", "--json", home=home).data]


def test_a_check_measures_noise_and_time_and_preempts_for_real(home: Path, task_file: Path) -> None:
    ended = nightlab("research", "check", str(task_file), "--json", home=home, timeout_s=120)
    assert ended.exit_code == 0, ended.out
    found = ended.data
    assert found["can_succeed"]
    assert found["noise"] > 0
    assert 1.5 < found["trial_s"] < 20
    assert found["smallest_gain"] > 0
    assert found["preemption"]["is_done"]
    assert found["preemption"]["outcome"] == "preempted"
    assert found["preemption"]["value"] == found["runs"][0]["value"]
    assert "no_checkpoint" in {one["code"] for one in found["findings"]}
    assert live_jobs(home) == []
    assert nightlab("research", "list", "--json", home=home).data == []


def test_a_task_whose_metric_never_appears_could_not_succeed(home: Path, task_file: Path) -> None:
    task_file.write_text(TASK.replace("metric: loss", "metric: accuracy"))
    ended = nightlab("research", "check", str(task_file), "--fidelity", "1", "--json", home=home, timeout_s=120)
    assert ended.exit_code == 1
    problem = next(one for one in ended.data["findings"] if one["level"] == "problem")
    assert problem["code"] == "no_value"
    assert "metrics that did appear: loss" in problem["text"]


def test_an_interrupted_check_leaves_nothing_running(home: Path, task_file: Path) -> None:
    command = [sys.executable, "-m", "nightlab", "research", "check", str(task_file), "--fidelity", "600"]
    check = subprocess.Popen([*command, "--home", str(home)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: len(live_jobs(home)) == 3, within_s=60)
    check.send_signal(signal.SIGINT)
    assert check.wait(timeout=60) == 130
    assert live_jobs(home) == []
    assert nightlab("status", "--json", home=home).exit_code == 0


def test_a_trial_is_held_against_its_record_here_and_elsewhere(home: Path, task_file: Path, tmp_path: Path) -> None:
    task_file.write_text(TASK.replace("value: 20", "value: 1"))
    assert nightlab("research", "start", str(task_file), "--follow", home=home, timeout_s=150).exit_code == 0
    (task_file.parent / "train.py").write_text("raise SystemExit('changed since')\n")
    again = nightlab("trial", "reproduce", "s1-t1", "--json", home=home, timeout_s=90)
    assert again.exit_code == 0, again.err
    assert again.data["reproduction"]["outcome"] == "equal"

    folder = tmp_path / "evidence"
    assert nightlab("trial", "export", "s1-t1", "-o", str(folder), "--json", home=home).data["has_code"]
    elsewhere = tmp_path / "elsewhere"
    verified = nightlab("verify", str(folder), "--json", home=elsewhere, timeout_s=150)
    assert verified.exit_code == 0, verified.err
    assert verified.data["reproduction"]["outcome"] == "equal"
    assert not (elsewhere / "server.json").exists()

    (folder / "code" / "train.py").write_text(TRAIN.replace("- 0.3", "- 0.4"))
    refused = nightlab("verify", str(folder), "--json", home=elsewhere)
    assert refused.exit_code == 1
    assert "code/train.py was changed" in refused.error["message"]


def test_a_scored_trial_is_scored_again_elsewhere(home: Path, task_file: Path, tmp_path: Path) -> None:
    code = task_file.parent
    (code / "train.py").write_text("import sys\nopen('model.txt', 'w').write(sys.argv[sys.argv.index('--lr') + 1])\n")
    (code / "score.py").write_text(
        "import os\nfrom pathlib import Path\n"
        "(model,) = Path(os.environ['NIGHTLAB_AFTER_FOLDERS']).rglob('model.txt')\n"
        "print('loss', model.read_text())\n"
    )
    task_file.write_text(TASK.replace("fidelity: {parameter: epochs, value: 20}", "score: {command: python score.py}"))
    assert nightlab("research", "start", str(task_file), "--follow", home=home, timeout_s=150).exit_code == 0
    again = nightlab("trial", "reproduce", "s1-t1", "--json", home=home, timeout_s=90)
    assert again.data["reproduction"]["outcome"] == "equal"
    folder = tmp_path / "evidence"
    assert nightlab("trial", "export", "s1-t1", "-o", str(folder), home=home).exit_code == 0
    verified = nightlab("verify", str(folder), "--json", home=tmp_path / "elsewhere", timeout_s=150)
    assert verified.data["reproduction"]["outcome"] == "equal", verified.out


def test_a_trial_whose_snapshot_was_removed_says_so_and_is_not_run(home: Path, task_file: Path) -> None:
    task_file.write_text(TASK.replace("value: 20", "value: 1"))
    assert nightlab("research", "start", str(task_file), "--follow", home=home, timeout_s=150).exit_code == 0
    for path in (home / "code").glob("*.json"):
        path.unlink()
    ended = nightlab("trial", "reproduce", "s1-t1", "--json", home=home)
    assert ended.exit_code == 1
    assert "snapshot" in ended.error["message"]
    assert "--anyway" in ended.error["message"]
