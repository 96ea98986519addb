"""Trainings and models that cheat, on a real server in real sealed jobs: none gains anything by it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from agent.planner.comparable import OTHER_USER
from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.store.views import SessionState, TrialState
from agent.task_file import parse_task
from agent.waiting import EventPump
from runtime.server.config import ServerConfig
from runtime.server.threaded import threaded_server
from runtime_client import landlock
from runtime_client.client import RuntimeClient

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0 or landlock.abi() < 1, reason="needs root and Landlock"),
]
SCRIPTS = Path(__file__).with_name("scripts")
GAIN_NOTHING = ("none", "read", "other", "link folder", "pipe", "plant", "background", "metric", "peek", "print")
TOLD = {
    "link": "training left no work/left.json that can be read: is a link",
    "huge": f"has {2**32} bytes, and 1000000 are allowed",
    "hang": "predict took longer than it may",
    "nan": "predict answered numbers that are NaN or infinite",
    "shape": "predict answered an array of shape (1,), and an array of shape (8) was asked for",
    "crash": "ended with exit code 0 before predict was done",
}
TASK = """
task: cheating
objective: {{metric: accuracy, direction: maximize}}
job:
  command: {python} train.py
  args_style: argparse
  parameters: {{private: {private}}}
  metric_sources: [{{kind: json_lines}}]
space:
  attack: {{type: categorical, choices: [{attacks}], default: none}}
code: {{editable: [model.py]}}
score: {{command: {python} score.py, private: [score.py, private]}}
search: {{use: [points, outside], confirm: false, points: [{points}]}}
budgets: {{trials: {n_trials}}}
idle: {{replicate: false, explore: false}}
"""


def test_no_cheat_gets_through_to_the_private_answers(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "private").mkdir(parents=True)
    (code / "private" / "answers.json").write_text("[1, 0, 1, 0, 1, 0, 1, 0]")
    for name, script in (("train", "cheating_train"), ("model", "cheating_model"), ("score", "careful_score")):
        shutil.copy(SCRIPTS / f"{script}.py", code / f"{name}.py")
    attacks = [*GAIN_NOTHING, *TOLD]
    text = TASK.format(
        python=sys.executable,
        private=code / "private" / "answers.json",
        attacks=", ".join(attacks),
        points=", ".join(f"{{attack: {attack}}}" for attack in attacks[1:]),
        n_trials=len(attacks),
    )
    task = parse_task(text, source=code / "task.yaml")
    home = tmp_path / "home"
    with threaded_server(ServerConfig(home=home, port=0, low_disk_bytes=0, devices="cpu:2")):
        store = AgentStore.open(tmp_path / "agent")
        session = store.create_session(task)
        deps = SessionDeps(
            store=store,
            connect=lambda: RuntimeClient.from_home(home),
            open_waiter=lambda runtime, since: EventPump(runtime, since=since, is_leaving=lambda: False),
            folder=tmp_path / "sessions",
        )
        state = run_session(session.session_id, deps)
        trials = {str(trial.params["attack"]): trial for trial in store.trials(session.session_id)}
        with RuntimeClient.from_home(home) as client:
            scorer = client.job(trials["none"].facts.score_job_id or "")
            tags = client.run(scorer.run_id or "").tags
    message = store.session(session.session_id).message
    assert state is SessionState.FINISHED
    assert set(trials) == set(attacks)
    measured = {name: (trials[name].value, trials[name].note) for name in GAIN_NOTHING}
    assert measured == dict.fromkeys(GAIN_NOTHING, (0.5, None))
    assert all(trials[name].state is TrialState.INVALID for name in TOLD)
    notes = {name: trials[name].note or "" for name in TOLD}
    assert {name: note for name, note in notes.items() if TOLD[name] not in note} == {}
    assert tags["scoring.candidate"] == "landlock, seccomp, rlimit"
    assert tags["nightlab.scorer_reach"] == OTHER_USER
    assert "kept apart from the training (sealed, other user)" in message
    assert {trial.facts.scorer_reach for trial in trials.values()} == {OTHER_USER}
    assert len({trial.facts.scorer for trial in trials.values()}) == 1
