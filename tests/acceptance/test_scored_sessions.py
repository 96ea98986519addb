"""A whole session with a scorer, on a real server, with real training and scoring processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.store.views import SessionState, TrialState
from agent.task_file import parse_task
from agent.waiting import EventPump
from runtime.server.config import ServerConfig
from runtime.server.threaded import threaded_server
from runtime_client.client import RuntimeClient

pytestmark = pytest.mark.acceptance

TRAIN = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--seed", type=int)
args = parser.parse_args()
pathlib.Path("model.json").write_text(json.dumps({"x": args.x}))
step = pathlib.Path(os.environ["NIGHTLAB_CHECKPOINT_DIR"]) / "step-1"
step.mkdir()
(step / "seed").write_text(str(args.seed))
(step / "COMPLETE").touch()
print(json.dumps({"score": 99.0}))
"""
SCORE = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--seed", type=int)
args = parser.parse_args()
left = pathlib.Path(os.environ["NIGHTLAB_AFTER_FOLDERS"])
assert left.name == os.environ["NIGHTLAB_AFTER_JOBS"]
assert (left / "checkpoints" / "step-1" / "seed").read_text() == str(args.seed)
x = json.loads((left / "work" / "model.json").read_text())["x"]
assert x == args.x
print(json.dumps({"score": 1 - (x - 0.7) ** 2 + args.seed % 7 / 1e4}))
"""
TASK = """
task: scored
objective: {{metric: score, direction: maximize, valid: {{low: 0, high: 2}}}}
job:
  command: {python} train.py
  args_style: argparse
  metric_sources: [{{kind: json_lines}}]
space:
  x: {{type: float, low: 0.0, high: 1.0, default: 0.2}}
score: {{command: {python} score.py}}
data: [{{path: data.bin}}]
budgets: {{trials: 3}}
seeds: {{fresh: 2}}
"""


def test_a_scorer_finds_what_each_training_left_and_its_value_is_the_one_that_counts(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    for name, text in {"train.py": TRAIN, "score.py": SCORE, "data.bin": "1"}.items():
        (code / name).write_text(text)
    task = parse_task(TASK.format(python=sys.executable), source=code / "task.yaml")
    home = tmp_path / "home"
    config = ServerConfig(home=home, port=0, low_disk_bytes=0, devices="cpu:2")
    with threaded_server(config):
        store = AgentStore.open(tmp_path / "agent")
        session = store.create_session(task)
        deps = SessionDeps(
            store=store,
            connect=lambda: RuntimeClient.from_home(home),
            open_waiter=lambda runtime, since: EventPump(runtime, since=since, is_leaving=lambda: False),
            folder=tmp_path / "sessions",
        )
        assert run_session(session.session_id, deps) is SessionState.FINISHED
        trials = store.trials(session.session_id)
    assert len(trials) >= 5
    for trial in trials:
        assert trial.state is TrialState.MEASURED, trial.note
        x = float(trial.params["x"] or 0.0)
        assert trial.value == pytest.approx(1 - (x - 0.7) ** 2 + trial.seed % 7 / 1e4)
        assert trial.facts.device_model == "cpu"
        assert trial.facts.data is not None
        assert trial.facts.data == trial.facts.data_after
    assert len({(trial.facts.code, trial.facts.scorer) for trial in trials}) == 1
    assert None not in {trial.facts.code for trial in trials}
    assert json.loads(store.session(session.session_id).task_json)["score"]["command"].endswith("score.py")
