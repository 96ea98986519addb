"""Values beyond the declared ranges: where a task allows them to a model, within bounds, told wherever they matter."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world
from hypothesis import given
from hypothesis import strategies as st
from test_thinking_session import a_model_task, live, of_the_model, says, told

from agent.gates.gate import Answer, GateKind
from agent.llm.untrusted import clean
from agent.planner.configuration import canonical, default_params, problems
from agent.planner.history import History, Proposal
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.refiner import Refiner
from agent.planner.reach import beyond, reach
from agent.planner.repetition import Tried
from agent.planner.suggested import read_suggestion
from agent.store.gates import GateStore
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import FloatParameter, IntParameter, Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec


def a_wide_task(**changes: Any) -> Task:
    wide = {"model": {"name": "small", "batch": 2, "outside_space": True}, "autonomy": {"outside_space": "run"}}
    return a_model_task(**(wide | changes))


def far(spec: JobSpec) -> FakeOutcome:
    """A training whose best lies at x = 3, beyond the range that the task declares."""
    x = float(spec.parameters["x"])
    noise = ((spec.seed or 0) * 2654435761 % 1000) / 1e5
    return FakeOutcome(curves={"score": [1.0 - (x - 3.0) ** 2 + noise]}, duration_s=10.0)


def step_out(n: int, _: object) -> dict[str, Any]:
    ideas = [{"parameters": {"x": x}, "why": "it rises towards the end"} for x in (0.5 * n + 1.0, 0.5 * n + 1.25)]
    return {"trials": ideas}


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (FloatParameter(type="float", low=1e-4, high=0.1, log=True, default=1e-3), (1e-5, 1.0)),
        (FloatParameter(type="float", low=0.0, high=1.0, default=0.2), (0.0, 11.0)),
        (FloatParameter(type="float", low=0.2, high=0.7, default=0.2), (0.02, 5.7)),
        (FloatParameter(type="float", low=-1.0, high=1.0, default=0.0), (-21.0, 21.0)),
        (FloatParameter(type="float", low=-1.0, high=0.0, default=0.0), (-11.0, 0.0)),
        (FloatParameter(type="float", low=-3.0, high=-1.0, default=-1.0), (-23.0, -0.1)),
        (FloatParameter(type="float", low=0.0, high=1e308, default=0.0), (0.0, 1.7976931348623157e308)),
        (IntParameter(type="int", low=8, high=512, log=True, default=64), (1, 5120)),
        (IntParameter(type="int", low=1, high=4, default=2), (1, 34)),
        (IntParameter(type="int", low=0, high=10**17, default=2), (0, 2**53)),
    ],
)
def test_how_far_a_value_may_lie(parameter: FloatParameter | IntParameter, expected: tuple[float, float]) -> None:
    assert reach(parameter) == pytest.approx(expected)


@given(
    text=st.one_of(
        st.floats().map(repr), st.integers().map(str), st.text(max_size=8), st.sampled_from(["true", "null", "1e309"])
    ),
    parameter=st.sampled_from(
        [
            {"type": "float", "low": 1e-4, "high": 0.1, "log": True, "default": 1e-3},
            {"type": "float", "low": -1.0, "high": 1.0, "default": 0.0},
            {"type": "int", "low": 1, "high": 64, "log": True, "default": 8},
            {"type": "categorical", "choices": ["a", 2, True], "default": "a"},
        ]
    ),
)
def test_whatever_is_said_what_is_taken_is_finite_typed_and_within_reach(text: str, parameter: dict[str, Any]) -> None:
    task = a_wide_task(space={"p": parameter})
    read = read_suggestion({"p": text}, task)
    if read.problems:
        assert not read.params
        return
    value, declared = read.params["p"], task.space["p"]
    if isinstance(declared, FloatParameter | IntParameter):
        low, high = reach(declared)
        assert type(value) is (float if isinstance(declared, FloatParameter) else int)
        assert math.isfinite(float(value))
        assert low <= float(value) <= high
    else:
        assert value in declared.choices
    assert problems(read.params, task) == []


@pytest.mark.parametrize("text", ["11.5", "-0.001", "1e308", "nan", "inf", "true", "x", "9" * 400])
def test_what_lies_out_of_reach_is_refused_with_both_ranges(text: str) -> None:
    [problem] = read_suggestion({"x": text}, a_wide_task()).problems
    assert "allowed: a number from 0 to 1 (beyond that range, from 0 to 11)" in problem


def test_without_the_tasks_word_the_range_is_the_range() -> None:
    [problem] = read_suggestion({"x": "1.5"}, a_model_task()).problems
    assert problem.endswith("allowed: a number from 0 to 1")
    assert problems({"x": 1.5, "kind": "a"}, a_task()) == ["x = 1.5: outside 0.0 to 1.0"]


def test_a_value_beyond_is_no_repetition_of_the_border() -> None:
    task = a_wide_task()
    tried = Tried(task)
    tried.add("t1", "border", {"x": 1.0, "kind": "a"})
    assert tried.objection({"x": 4.0, "kind": "a"}) is None
    assert tried.objection({"x": 1.001, "kind": "a"}) is not None


def measured(number: int, x: float, task: Task) -> TrialView:
    params = canonical({**default_params(task), "x": x}, task)
    return replace(_blank(number, task), params=params, configuration=f"c{number}", state=TrialState.MEASURED, value=x)


def _blank(number: int, task: Task) -> TrialView:
    proposal = Proposal(
        params=default_params(task), configuration="", seed=0, purpose=Purpose.SEARCH, suggested_by="model", why=""
    )
    return proposal.as_trial(number, trial_id=f"t{number}")


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes", "gp", "qmc", "nsgaii"])
def test_samplers_go_on_inside_whatever_was_tried_beyond(sampler: str) -> None:
    if sampler == "gp":
        pytest.importorskip("torch")
    if sampler == "cmaes":
        pytest.importorskip("cmaes")
    task = a_wide_task(search={"use": ["sampler", "model"], "sampler": sampler}, budgets={"trials": 100})
    beyond_and_inside = [measured(n, x, task) for n, x in enumerate((0.2, 5.0, 0.4, 11.0, 0.9, 3.0) * 3, start=1)]
    history = History.of(beyond_and_inside)
    for proposal in (*OptunaSampler(task).ask(history, 3), *Refiner(task).ask(history, 3)):
        assert beyond(proposal.params, task) == []


def test_the_study_of_a_sampler_never_hears_of_what_lies_beyond() -> None:
    """A value moved to the border would be a lie about the border."""
    task = a_wide_task(budgets={"trials": 100})
    inside = [measured(n, n / 20, task) for n in range(1, 16)]
    sampler = OptunaSampler(task)
    sampler.tell(History.of([*inside, measured(16, 8.0, task), measured(17, 1.0, task)]))
    assert [trial.params["x"] for trial in sampler._study.get_trials(deepcopy=False)] == [
        n / 20 for n in range(1, 16)
    ] + [1.0]


def test_a_session_follows_its_model_to_a_best_that_lies_beyond(tmp_path: Path) -> None:
    budgets = {"trials": 14}
    world = a_world(tmp_path, task=a_wide_task(budgets=budgets), script=far)
    model = says(step_out)
    assert live(world, model) is SessionState.FINISHED
    result = world.store.session("s1").result
    assert result is not None
    assert float(result.best["x"] or 0) == pytest.approx(3.0, abs=0.6)
    assert "It lies beyond the declared space: x=" in result.sentence
    assert "is outside 0 to 1." in result.sentence
    [question] = [m.text for m in model.requests[0].messages if "Parameters:" in m.text]
    assert "x: a number from 0 to 1 (beyond that range, from 0 to 11)" in clean(question)
    assert "The ranges were a guess." in "".join(m.text for m in model.requests[0].messages)
    replicates = [t for t in world.store.trials("s1") if t.purpose is Purpose.REPLICATE and t.params == result.best]
    assert replicates


def test_without_the_tasks_word_the_same_model_stays_inside(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task(budgets={"trials": 14}), script=far)
    model = says(step_out)
    assert live(world, model) is SessionState.FINISHED
    assert all(0.0 <= float(t.params["x"] or 0) <= 1.0 for t in world.store.trials("s1"))
    assert of_the_model(world) == []
    assert any("is not allowed; allowed: a number from 0 to 1" in line for line in told(world))
    assert "The ranges were a guess." not in "".join(m.text for m in model.requests[0].messages)


def test_by_default_a_person_is_asked_once_for_each_configuration_beyond(tmp_path: Path) -> None:
    task = a_wide_task(autonomy={"unanswered": "approve", "answer_within_minutes": 0.1}, budgets={"trials": 14})
    world = a_world(tmp_path, task=task, script=far)
    assert live(world, says(step_out)) is SessionState.FINISHED
    gates = GateStore(world.store).gates("s1")
    assert {gate.kind for gate in gates} == {GateKind.OUTSIDE_SPACE}
    assert len({gate.subject for gate in gates}) == len(gates)
    assert any("is outside 0 to 1" in gate.text for gate in gates)
    assert any(gate.answer_at(math.inf) is Answer.APPROVE for gate in gates)
