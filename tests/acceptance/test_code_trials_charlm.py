"""A whole session on the character model of the examples, real and sealed: an improvement wins, eight cheats do not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fault_lab import with_this_python

from agent.planner.compared import hold_against
from agent.planner.statistics.verdicts import Comparison
from agent.store.views import TrialState
from agent.task import Model, SearchMethod
from agent.task_file import load_task
from bench.code_session import run_edits, why_refused
from runtime.server.config import ServerConfig
from runtime.server.threaded import threaded_server
from runtime_client import landlock

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0 or landlock.abi() < 1, reason="needs root and Landlock"),
]

ROOT = Path(__file__).resolve().parents[2]
CHEATS = ROOT / "tests" / "agent" / "cheats"
BETTER = "momentum"
SAID = {
    "scorer edit": "score.py may not be edited",
    "no-op": "would change nothing",
    "nan as best": "NaN",
    "longer training": "more than 1.5 times as long (code.max_slowdown)",
}
LIKE_THE_BASE = ("split leak", "metric printing", "cached result")


def test_an_improvement_of_the_character_model_wins_and_eight_cheats_do_not(tmp_path: Path) -> None:
    code = tmp_path / "code"
    shutil.copytree(ROOT / "examples" / "code", code, ignore=shutil.ignore_patterns("__pycache__"))
    cheats = {
        path.stem.replace("-", " "): path.read_text() for path in sorted(CHEATS.iterdir()) if path.suffix != ".md"
    }
    assert len(cheats) == 8
    texts = {**cheats, BETTER: (code / "charlm/edits/good-1-momentum.patch").read_text()}
    task = with_this_python(load_task(code / "charlm.yaml"))
    search = SearchMethod(use=("coder",), replicates=3)
    budgets = task.budgets.model_copy(update={"trials": 8})
    idle = task.idle.model_copy(update={"replicate": False, "explore": False})
    changes = {"search": search, "budgets": budgets, "idle": idle, "model": Model(name="small"), "held_out": None}
    with threaded_server(ServerConfig(home=tmp_path / "home", port=0, low_disk_bytes=0, devices="cpu:2")):
        ended = run_edits(tmp_path / "home", code, texts, task.model_copy(update=changes))

    reasons = {name: why_refused(ended, name) or "nothing" for name in SAID}
    assert {name: reason for name, reason in reasons.items() if SAID[name] not in reason} == {}
    base = {trial.seed: trial.value for trial in ended.of_base()}
    for name in LIKE_THE_BASE:
        trials = ended.named(name)
        assert len(trials) == 3, name
        assert [(t.state, t.value) for t in trials] == [(TrialState.MEASURED, base[t.seed]) for t in trials], name
        assert (why_refused(ended, name) or "").startswith("the scorer measured 1.628, and 1.628 of the base"), name
    hacked = {trial.seed: trial.value for trial in ended.named("seed hack")}
    assert len(hacked) == 3
    assert sum(hacked[seed] != base[seed] for seed in hacked) == 1, "better on the seed of the search alone"
    held = hold_against(ended.named("seed hack"), ended.of_base(), ended.task)
    assert held.comparison is not Comparison.BETTER

    result = ended.session.result
    assert result is not None
    assert result.code is not None
    assert (result.code.state.summary, result.comparison, result.verdict) == (BETTER, "better", "supported")
    assert result.difference is not None
    assert result.difference.high < 0
