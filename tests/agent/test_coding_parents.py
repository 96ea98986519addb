"""Whose code an edit begins from: mostly the leader's, others now and then, the same for the same seed and turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from code_worlds import a_code_task
from planner_builders import a_trial

from agent.coding.parents import Parent, drawn, named
from agent.planner.configuration import configuration_id
from agent.planner.history import History
from agent.store.views import CodeState, TrialState, TrialView
from agent.task import Task


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return a_code_task(tmp_path_factory.mktemp("code"))


def edited(task: Task, number: int, value: float | None, state: TrialState | None = None) -> TrialView:
    code = CodeState(tree=f"{number:040d}", commit="a" * 40, branch=f"trial/{number}")
    trial = a_trial(task, number, {}, value, state=state)
    return replace(trial, facts=replace(trial.facts, edited=code), configuration=configuration_id({}, code))


def parents_of(task: Task, history: History, turns: int = 400) -> Counter[str]:
    return Counter(drawn(task, history, turn).name for turn in range(turns))


def test_before_anything_is_measured_it_is_the_base(task: Task) -> None:
    assert parents_of(task, History.of([])) == {"base": 400}
    assert drawn(task, History.of([]), 1) == Parent(name="base", params={}, code=None)


def test_it_is_mostly_the_leader_sometimes_other_good_ones_and_the_base(task: Task) -> None:
    trials = [a_trial(task, 1, {}, 0.5), *(edited(task, n, 0.5 + n / 10) for n in range(2, 8))]
    found = parents_of(task, History.of(trials))
    assert found.most_common(1)[0][0] == "s1-t7"
    assert 200 < found["s1-t7"] < 360
    assert set(found) == {"s1-t7", "s1-t6", "s1-t5", "base"}


def test_the_same_turn_draws_the_same_one_and_another_seed_may_draw_another(task: Task) -> None:
    history = History.of([a_trial(task, 1, {}, 0.5), edited(task, 2, 0.6), edited(task, 3, 0.7)])
    other = task.model_copy(update={"seeds": task.seeds.model_copy(update={"search": 5})})
    draws = [drawn(task, history, turn).name for turn in range(50)]
    assert draws == [drawn(task, history, turn).name for turn in range(50)]
    assert draws != [drawn(other, history, turn).name for turn in range(50)]


def test_any_trial_that_has_ended_can_be_named_and_no_other(task: Task) -> None:
    failed, running = edited(task, 2, None, TrialState.INVALID), edited(task, 3, None, TrialState.LAUNCHED)
    history = History.of([a_trial(task, 1, {}, 0.5), failed, running])
    by_name = named(" s1-t2 ", task, history)
    assert isinstance(by_name, Parent)
    assert (by_name.code, by_name.trial_id) == (failed.facts.edited, "s1-t2")
    base = named("base", task, history)
    assert isinstance(base, Parent)
    assert (base.code, base.trial_id, base.value) == (None, None, 0.5)
    assert named("s1-t3", task, history) == "s1-t3 has not ended; begin from one that has, such as base"
    assert (
        named("nonsense", task, history) == "there is no trial 'nonsense'; name one of these as parent, or none: base"
    )
