"""Fixes: what failed is tried again with the parameter changed that its diagnosis names; bounded, one arm of many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World, a_task, a_world
from planner_builders import a_history, a_trial

from agent.doctor.changes import change_for
from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.doctor.naming import failure_name
from agent.planner.failure import hopeless
from agent.planner.history import History
from agent.planner.portfolio import CONTROL, Portfolio, yields
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.doctor import DOCTOR, MOST_TRIES, Doctor
from agent.planner.proposers.random_points import RandomPoints
from agent.store.lessons import read_lessons
from agent.store.store import AgentStore
from agent.store.views import ParamValue, Purpose, SessionState, TrialFacts, TrialState, TrialView
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec, SuggestionView

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "default": 0.5, "log": True},
    "batch": {"type": "int", "low": 8, "high": 512, "default": 256},
    "width": {"type": "categorical", "choices": [64, 128, 512], "default": 128},
    "kind": {"type": "categorical", "choices": ["a", "b"], "default": "a"},
}
PARAMS: dict[str, ParamValue] = {"lr": 0.5, "batch": 256, "width": 128, "kind": "a"}


def task(**changes: Any) -> Task:
    return a_task(**({"space": SPACE, "held_out": None, "budgets": {"trials": 20}} | changes))


def diagnosis(**changes: Any) -> Diagnosis:
    given: dict[str, Any] = {
        "failure": FailureClass.DIVERGED,
        "evidence": ("loss is nan",),
        "cause": "c",
        "suggestion": "s",
        "change": {"lr": 0.15},
        "is_sure": True,
    }
    return Diagnosis(**(given | changes))


def failed(number: int, params: dict[str, ParamValue] | None = None, **facts: Any) -> TrialView:
    known = TrialFacts(**({"diagnosis": diagnosis()} | facts))
    return a_trial(task(), number, {**PARAMS, **(params or {})}, state=TrialState.INVALID, facts=known)


@pytest.mark.parametrize(
    ("failure", "params", "fills", "change"),
    [
        (FailureClass.DIVERGED, {}, None, {"lr": 0.15}),
        (FailureClass.DIVERGED, {"lr": 2e-4}, None, {"lr": 1e-4}),
        (FailureClass.DIVERGED, {"lr": 1e-4}, None, None),
        (FailureClass.OUT_OF_DEVICE_MEMORY, {}, "batch", {"batch": 128}),
        (FailureClass.OUT_OF_DEVICE_MEMORY, {"batch": 9}, "batch", {"batch": 8}),
        (FailureClass.OUT_OF_DEVICE_MEMORY, {"batch": 8}, "batch", None),
        (FailureClass.OUT_OF_MEMORY, {"width": 512}, "width", {"width": 128}),
        (FailureClass.OUT_OF_MEMORY, {"width": 64}, "width", None),
        (FailureClass.OUT_OF_MEMORY, {}, "not_in_the_space", None),
        (FailureClass.OUT_OF_MEMORY, {}, None, None),
        (FailureClass.SHAPE, {}, "batch", None),
    ],
)
def test_a_change_is_plain_and_lies_in_the_space(
    failure: FailureClass, params: dict[str, ParamValue], fills: str | None, change: dict[str, ParamValue] | None
) -> None:
    assert change_for(failure, {**PARAMS, **params}, task(), fills_memory=fills) == change


def test_a_failed_trial_is_tried_again_with_the_change_alone() -> None:
    (fix,) = Doctor(task()).ask(a_history(failed(1)), 5)
    assert fix.params == {**PARAMS, "lr": 0.15}
    assert (fix.facts.fixes, fix.suggested_by, fix.purpose) == ("s1-t1", DOCTOR, Purpose.SEARCH)
    assert "lr 0.5 to 0.15" in fix.why


def test_a_failure_is_mended_twice_in_a_row_at_most() -> None:
    chain = [failed(1)]
    for number in range(2, MOST_TRIES + 2):
        (fix,) = Doctor(task()).ask(a_history(*chain), 1)
        change = {"lr": float(fix.params["lr"] or 0) * 0.3}
        facts = {"fixes": f"s1-t{number - 1}", "diagnosis": diagnosis(change=change)}
        chain.append(failed(number, {"lr": fix.params["lr"]}, **facts))
    assert Doctor(task()).ask(a_history(*chain), 1) == []


@pytest.mark.parametrize(("trials", "most"), [(20, 2), (50, 5)])
def test_fixes_are_a_tenth_of_the_search_at_most(trials: int, most: int) -> None:
    bad = [failed(n, {"lr": 1.0 - n / 50}, diagnosis=diagnosis(change={"lr": n / 100})) for n in range(1, 9)]
    history, n_made = a_history(*bad), 0
    while found := Doctor(task(budgets={"trials": trials})).ask(history, 9):
        number = 9 + n_made
        n_made += 1
        history = history.after([a_trial(task(), number, found[0].params, 0.5, facts=found[0].facts)])
    assert n_made == most


def test_fixes_are_made_one_at_a_time_and_a_failed_one_is_followed_first() -> None:
    bad = [failed(1), failed(2, {"lr": 0.9}, diagnosis=diagnosis(change={"lr": 0.27}))]
    running = a_trial(task(), 3, {**PARAMS, "lr": 0.15}, facts=TrialFacts(fixes="s1-t1"))
    assert Doctor(task()).ask(a_history(*bad, running), 1) == []
    again = failed(3, {"lr": 0.15}, fixes="s1-t1", diagnosis=diagnosis(change={"lr": 0.045}))
    (fix,) = Doctor(task()).ask(a_history(*bad, again), 1)
    assert fix.facts.fixes == "s1-t3"


@pytest.mark.parametrize(
    "known",
    [
        a_trial(task(), 2, {**PARAMS, "lr": 0.15}, 0.4),
        a_trial(task(), 2, {**PARAMS, "lr": 0.1501}, 0.4),
        a_trial(task(), 2, {**PARAMS, "lr": 0.9}, 0.4, facts=TrialFacts(fixes="s1-t1")),
    ],
)
def test_what_was_tried_or_mended_is_not_tried_again(known: TrialView) -> None:
    assert Doctor(task()).ask(a_history(failed(1), known), 1) == []


def test_a_change_out_of_the_space_is_no_trial() -> None:
    odd = failed(1, diagnosis=diagnosis(change={"lr": 7.0}))
    assert Doctor(task()).ask(a_history(odd), 1) == []


def measured(n: int) -> list[TrialView]:
    params = [{**PARAMS, "lr": 0.001 * number, "kind": "b"} for number in range(1, n + 1)]
    return [a_trial(task(), number, one, 0.01 * number) for number, one in enumerate(params, start=1)]


def test_an_arm_with_nothing_to_mend_changes_nothing() -> None:
    plain = Portfolio(task(), [RandomPoints(task())])
    with_doctor = Portfolio(task(), [RandomPoints(task())], occasional=[Doctor(task())])
    history = a_history(*measured(6))
    assert with_doctor.ask(history, 4) == plain.ask(history, 4)
    assert with_doctor.escalations == plain.escalations


def test_the_control_arm_keeps_its_share_while_something_is_mended() -> None:
    given = task(budgets={"trials": 200})
    history = a_history(*measured(4), failed(5))
    shares = yields(given, history, [CONTROL, "random", DOCTOR])
    assert shares[CONTROL].share >= given.search.control_share
    found = chosen_proposers(given).ask(history, 12)
    assert [p.suggested_by for p in found].count(DOCTOR) == 1
    assert CONTROL in {p.suggested_by for p in found}


def test_a_list_of_points_is_not_mended() -> None:
    points = {"search": {"use": ["points"], "points": [PARAMS, {**PARAMS, "lr": 0.1}], "confirm": False}}
    found = chosen_proposers(task(**points)).ask(History.of([failed(1)]), 5)
    assert {p.suggested_by for p in found} == {"points"}


def diverges_above(limit: float) -> Any:
    def script(spec: JobSpec) -> FakeOutcome:
        lr = float(spec.parameters["lr"])
        if lr > limit:
            return FakeOutcome(exit_reason="non_finite_metric", evidence="the last value of 'score' is nan")
        return FakeOutcome(curves={"score": [1.0 - abs(lr - 0.05)]})

    return script


def lived(tmp_path: Path, **changes: Any) -> World:
    given = task(search={"confirm": False}, idle={"replicate": False, "explore": False}, **changes)
    return a_world(tmp_path, script=diverges_above(0.2), task=given)


def test_a_session_mends_what_diverged_and_learns_from_it(tmp_path: Path) -> None:
    world = lived(tmp_path, budgets={"trials": 10})
    assert world.live() is SessionState.FINISHED
    trials = {trial.trial_id: trial for trial in AgentStore.open(tmp_path).trials("s1")}
    fixes = [trial for trial in trials.values() if trial.facts.fixes is not None]
    assert 1 <= len(fixes) <= 2
    first = fixes[0]
    broken = trials[first.facts.fixes or ""]
    assert broken.facts.diagnosis is not None
    assert broken.facts.diagnosis.failure is FailureClass.DIVERGED
    assert broken.facts.diagnosis.change == {"lr": first.params["lr"]}
    assert failure_name(broken) == "diverged"
    assert "diverged: a value became NaN" in (broken.note or "")
    if first.state is TrialState.MEASURED:
        lessons = read_lessons(world.store, "s1")
        assert any(
            one.written_by == DOCTOR and set(one.evidence) == {broken.trial_id, first.trial_id} for one in lessons
        )


def test_a_session_whose_default_fails_goes_on_while_it_can_be_mended() -> None:
    given = task()
    alike = [failed(n, {"kind": "b" if n % 2 else "a", "lr": 0.5 + n / 50}) for n in range(1, 5)]
    alike = [replace(trial, exit_reason="non_finite_metric", note="nan") for trial in alike]
    assert hopeless(given, a_history(*alike)) is None
    mended = [
        replace(failed(5 + n, {"lr": 0.01 * n}, fixes=f"s1-t{n}"), exit_reason="non_finite_metric") for n in (1, 2)
    ]
    assert "NaN" in (hopeless(given, a_history(*alike, *mended)) or "")


def test_what_ran_out_of_memory_is_mended_as_the_runtime_suggests(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        batch = int(spec.parameters["batch"])
        if batch > 100:
            idea = SuggestionView(change="batch", factor=0.5, old=batch, new=batch // 2, why="halve batch")
            return FakeOutcome(exit_reason="out_of_memory_device", evidence="CUDA out of memory", suggestion=idea)
        return FakeOutcome(curves={"score": [batch / 512]})

    given = task(budgets={"trials": 14}, search={"confirm": False}, idle={"replicate": False, "explore": False})
    world = a_world(tmp_path, script=script, task=given)
    assert world.live() is SessionState.FINISHED
    trials = {trial.trial_id: trial for trial in world.store.trials("s1")}
    fixes = [trial for trial in trials.values() if trial.facts.fixes is not None]
    assert fixes
    for fix in fixes:
        broken = trials[fix.facts.fixes or ""]
        assert fix.params == {**broken.params, "batch": int(broken.params["batch"] or 0) // 2}
