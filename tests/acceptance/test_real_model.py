"""A whole session on real training with a real, small, slow language model: it may help little, and hurts nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_lab import FaultLab, with_this_python

from agent.edits.workshop import workshop_folder
from agent.planner.configuration import problems
from agent.planner.portfolio import CONTROL
from agent.store.calls import model_calls_of
from agent.store.views import Purpose, SessionState
from agent.task import Model
from agent.task_file import load_task
from agent.thinking.suggesting import MODEL

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

URL = "NIGHTLAB_TEST_MODEL_URL"
EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "digits"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[FaultLab]:
    if URL not in os.environ:
        pytest.skip(f"{URL} is not set: the address of an endpoint on this machine, such as http://127.0.0.1:8081/v1")
    with FaultLab(tmp_path / "home") as lab:
        yield lab


def a_model(**changes: Any) -> Model:
    name = os.environ.get("NIGHTLAB_TEST_MODEL", "qwen")
    return Model(name=name, base_url=os.environ[URL], context_tokens=4096, **changes)


def test_a_session_on_digits_with_a_real_model_ends_well(
    lab: FaultLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "digits"
    shutil.copytree(EXAMPLE, folder)
    task = with_this_python(load_task(folder / "task.yaml"))
    model = a_model(rung="schema", max_tokens=400, batch=2)
    search = task.search.model_copy(update={"use": ("sampler", "refiner", "replicator", "model")})
    budgets = task.budgets.model_copy(update={"tokens": 200_000, "wall_minutes": 5})
    session_id = lab.start_session(task.model_copy(update={"model": model, "search": search, "budgets": budgets}))
    ended = lab.await_end(session_id, within_s=900)
    assert ended.state is SessionState.FINISHED, ended.message
    calls = model_calls_of(lab.store, session_id)
    assert calls, "the model was asked"
    assert ended.tokens == sum(one.prompt_tokens + one.completion_tokens for one in calls) <= 200_000
    searched = [t for t in lab.trials(session_id) if t.purpose is Purpose.SEARCH]
    assert [problems(t.params, task) for t in searched] == [[]] * len(searched)
    names = [t.suggested_by for t in searched]
    assert names.count(CONTROL) + names.count("default") >= task.search.control_share * len(names)
    lost = sum(one.outcome != "used" for one in calls)
    with capsys.disabled():
        print(f"\n{len(calls)} calls, {lost} lost, {ended.tokens} tokens, {names.count(MODEL)} trials of the model")


def test_a_session_that_edits_code_with_a_real_model_ends_well(
    lab: FaultLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ideas may be poor: nothing breaks, nothing is lost, and nobody's code is touched."""
    folder = tmp_path / "code"
    shutil.copytree(EXAMPLES / "code", folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    task = with_this_python(load_task(folder / "charlm.yaml"))
    assert task.fidelity is not None
    changes = {
        "model": a_model(rung="fenced", max_tokens=500),
        "fidelity": task.fidelity.model_copy(update={"value": 1000}),
        "budgets": task.budgets.model_copy(update={"trials": 4, "tokens": 100_000, "wall_minutes": 4}),
        "seeds": task.seeds.model_copy(update={"fresh": 2, "max_pairs": 8}),
    }
    session_id = lab.start_session(task.model_copy(update=changes))
    ended = lab.await_end(session_id, within_s=900)
    assert ended.state is SessionState.FINISHED, ended.message
    calls = model_calls_of(lab.store, session_id)
    assert calls, "the model was asked"
    assert ended.tokens == sum(one.prompt_tokens + one.completion_tokens for one in calls)
    trials = lab.trials(session_id)
    assert all(trial.is_ended for trial in trials)
    assert trials[0].value is not None
    searched = [t for t in trials if t.purpose is Purpose.SEARCH]
    assert all((trial.facts.edited is None) == (trial.suggested_by == "default") for trial in searched)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert len(list((workshop_folder(lab.home, session_id) / "trees").iterdir())) <= 1
    lost = sum(one.outcome != "used" for one in calls)
    with capsys.disabled():
        values = [f"{t.value:.3f}" if t.value is not None else t.note for t in searched]
        print(f"\n{len(calls)} calls, {lost} lost, {ended.tokens} tokens, edits gave {values}")
