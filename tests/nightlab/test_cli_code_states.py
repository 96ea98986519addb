"""A night over two states of the code: each trial runs its own commit, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import nightlab

from runtime_client.client import RuntimeClient

pytestmark = pytest.mark.acceptance

TASK = """
task: t
objective: {metric: m, direction: minimize}
job:
  command: python train.py
  args_style: argparse
  metric_sources: [{kind: stdout_pattern, pattern: 'm (?P<m>\\S+)'}]
space: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}
budgets: {trials: 2}
"""
SWEEP = """
sweep: s
task: task.yaml
method: {kind: grid, values: {lr: [0.25]}}
confirm: false
matrix: {code: [main, v1]}
"""


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout.strip()


def test_each_trial_of_a_night_runs_the_commit_that_its_state_names(tmp_path: Path) -> None:
    code, home = tmp_path / "repo", tmp_path / "home"
    code.mkdir()
    (code / "task.yaml").write_text(TASK)
    (code / "sweep.yaml").write_text(SWEEP)
    git(code, "init", "-q", "-b", "main")
    for value, tag in ((1.0, "v1"), (2.0, "v2")):
        (code / "train.py").write_text(f"print('m {value}', flush=True)\n")
        git(code, "add", "-A")
        git(code, "commit", "-qm", tag)
        git(code, "tag", tag)
    (code / "train.py").write_text("print('m 3.0', flush=True)\n")
    try:
        assert nightlab("up", "--devices", "cpu:2", "--no-mlflow", "--port", "0", home=home).exit_code == 0
        run = ("sweep", "run", str(code / "sweep.yaml"), "--python", sys.executable, "--json")
        ended = nightlab(*run, home=home, timeout_s=180)
        assert ended.exit_code == 0, ended.err
        with RuntimeClient.from_home(home) as client:
            jobs = client.jobs()
            values = {(job.spec.tags["mlflow.source.git.commit"], client.metrics(job.job_id)[-1].value) for job in jobs}
    finally:
        nightlab("down", "--jobs", "cancel", home=home)
    assert values == {(git(code, "rev-parse", "v1"), 1.0), (git(code, "rev-parse", "v2"), 2.0)}
    assert len(jobs) == 4
    assert {cell["cell"]: cell["default_value"] for cell in ended.data["summary"]["cells"]} == {
        "t@main": 2.0,
        "t@v1": 1.0,
    }
