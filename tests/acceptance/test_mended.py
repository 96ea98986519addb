"""A session on real jobs that run out of memory and diverge: diagnosed, mended, learned from, told in the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import nightlab
from fault_lab import FaultLab, with_this_python

from agent.store.lessons import read_lessons
from agent.store.views import SessionState, TrialState, TrialView
from agent.task_file import load_task

pytestmark = pytest.mark.acceptance

SCRIPT = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--batch_size", type=int)
parser.add_argument("--seed", type=int)
given = parser.parse_args()
if given.batch_size > 64:
    raise RuntimeError("CUDA error: out of memory")
if given.lr > 0.3:
    raise FloatingPointError(f"loss is nan at step 3 with lr {given.lr}")
print(json.dumps({"score": 1.0 - abs(given.lr - 0.1)}), flush=True)
"""
TASK = """
task: mended
objective: {metric: score, direction: maximize}
job:
  command: python train.py
  args_style: argparse
  code_source: {root_path: FOLDER}
  metric_sources: [{kind: json_lines}]
space:
  lr: {type: float, low: 0.001, high: 1.0, default: 0.2, log: true}
  batch_size: {type: categorical, choices: [16, 32, 64, 128], default: 128}
search: {confirm: false}
idle: {replicate: false, explore: false}
budgets: {trials: 14}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    # One device: trials end in the order of their numbers, so the default's failure is the first that can be mended.
    with FaultLab(tmp_path_factory.mktemp("mended"), n_devices=1) as lab:
        yield lab


def test_a_default_that_can_not_run_is_mended(lab: FaultLab, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    file = tmp_path / "task.yaml"
    file.write_text(TASK.replace("FOLDER", str(tmp_path)))
    session_id = lab.start_session(with_this_python(load_task(file)))
    ended = lab.await_end(session_id)
    assert ended.state is SessionState.FINISHED, ended.message
    trials = {trial.trial_id: trial for trial in lab.trials(session_id)}
    default = trials[f"{session_id}-t1"]
    assert default.facts.diagnosis is not None
    assert default.facts.diagnosis.failure == "out_of_device_memory"
    fixes = sorted((t for t in trials.values() if t.facts.fixes), key=lambda t: t.number)
    assert fixes[0].params == {"lr": 0.2, "batch_size": 64}
    assert fixes[0].facts.fixes == default.trial_id
    assert fixes[0].state is TrialState.MEASURED
    assert len(fixes) <= 2
    for fix in fixes:
        broken = trials[fix.facts.fixes or ""].facts.diagnosis
        assert broken is not None
        assert fix.params == {**trials[fix.facts.fixes or ""].params, **(broken.change or {})}
    lessons = [one.text for one in read_lessons(lab.store, session_id) if one.written_by == "doctor"]
    assert "out of device memory at batch_size=128; batch_size=64 works there" in lessons
    found = {trial.facts.diagnosis.failure.value for trial in trials.values() if trial.facts.diagnosis is not None}
    assert found <= {"out_of_device_memory", "diverged"}
    check_told(lab, session_id, default)


def check_told(lab: FaultLab, session_id: str, default: TrialView) -> None:
    """A person reads it in the report, at the job, and a program in JSON."""
    report = Path(lab.session(session_id).report_path or "").read_text()
    assert "out_of_device_memory" in report
    assert "make the batch or the model smaller" in report
    said = nightlab("job", "diagnose", str(default.job_id), "--json", home=lab.home)
    found = json.loads(said.out)["data"]
    assert (found["failure"], found["is_sure"]) == ("out_of_device_memory", True)
    assert found["parameter"]["change"] == "batch_size"
    assert found["evidence"] == ["RuntimeError: CUDA error: out of memory (train.py:9)"]
