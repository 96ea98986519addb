"""Sessions of code trials with real sealed jobs: what is better wins, what cheats does not, and many do not meet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.code_session import (
    CHILD,
    TRUE,
    a_code_folder,
    a_code_task,
    disk_bytes,
    edits,
    n_right,
    run_at_once,
    run_edits,
    twenty,
    why_refused,
)
from runtime.server.config import ServerConfig
from runtime.server.threaded import threaded_server
from runtime_client import landlock
from runtime_client.client import RuntimeClient

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0 or landlock.abi() < 1, reason="needs root and Landlock"),
]

SAID = {
    "scorer edit": "score.py may not be edited",
    "no-op": "would change nothing",
    "seed hack": "its luck can not be told from its worth",
    "split leak": "No such file or directory: 'answers.json'",
    "NaN as best": "loss",
    "longer training": "more than 1.5 times as long (code.max_slowdown)",
    "metric printing": "of the base with the same seed: no difference shown",
    "cached result": "of the base with the same seed: no difference shown",
}


def test_true_improvements_are_accepted_and_eight_cheats_are_refused_with_reasons(tmp_path: Path) -> None:
    code, home = a_code_folder(tmp_path / "code"), tmp_path / "home"
    before = {path.name: path.read_bytes() for path in code.iterdir()}
    texts = edits(code)
    task = a_code_task(
        code, n_trials=9, model={"name": "small"}, search={"use": ["coder"], "replicates": 3}, seeds={"fresh": 8}
    )
    with threaded_server(ServerConfig(home=home, port=0, low_disk_bytes=0, devices="cpu:4")):
        ended = run_edits(home, code, texts, task)
    reasons = {name: why_refused(ended, name) for name in texts if name not in (TRUE, CHILD)}
    assert len(reasons) == 8
    assert {name: reason for name, reason in reasons.items() if reason is None or SAID[name] not in reason} == {}
    result = ended.session.result
    assert result is not None
    assert (result.comparison, result.verdict) == ("better", "supported")
    assert result.difference is not None
    assert result.difference.high < 0
    assert result.code is not None
    (first, *_) = ended.named(TRUE)
    assert (result.code.state.summary, result.code.parent) == (CHILD, first.trial_id)
    assert result.code.over_parent is not None
    assert result.code.over_parent.n == 8
    assert result.code.over_parent.high < 0
    assert {path.name: path.read_bytes() for path in code.iterdir()} == before


def test_twenty_trials_at_once_run_their_own_code_each_and_leave_no_folders(tmp_path: Path) -> None:
    code, home = a_code_folder(tmp_path / "code"), tmp_path / "home"
    texts = twenty()
    task = a_code_task(code, n_trials=21, max_slowdown=None, search={"use": ["outside"], "confirm": False})
    with threaded_server(ServerConfig(home=home, port=0, low_disk_bytes=0, devices="cpu:21")):
        ended = run_at_once(home, code, texts, task)
        jobs = RuntimeClient.from_home(home).jobs(limit=100)
    assert len(jobs) == 42
    assert {attempt.sandbox.level for job in jobs for attempt in job.attempts if attempt.sandbox} == {"sealed"}
    assert n_right(ended, code) == 20
    assert len({t.facts.code for t in ended.trials}) == 21
    (base,) = ended.of_base()
    assert base.value is not None
    assert len(list((ended.workshop / "trees").iterdir())) <= 1
    assert disk_bytes(ended.workshop) < 1_000_000
