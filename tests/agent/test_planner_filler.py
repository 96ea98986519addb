"""What idle slots do, and when they stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.budget import Spend
from agent.planner.configuration import configuration_id, default_params
from agent.planner.filler import WORTH_IT, idle_work, to_cut
from agent.planner.history import SLOT_NEEDED, History, Proposal
from agent.planner.plan import first_plan
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.worth import outlook, worth_of, worth_of_replicate
from agent.store.views import Purpose, TrialState, TrialView, Worth
from agent.task import Task

TASK = a_task(budgets={"trials": 40}, idle={"max_share": 1.0})
DEFAULT = configuration_id(default_params(TASK))
NOISE = (0.01, -0.01, 0.004, -0.006, 0.008, -0.002)


def searched(values: dict[float, float], task: Task = TASK) -> list[TrialView]:
    """Search trials: `x` to value; the default (0.2) first."""
    return [a_trial(task, n, {"x": x, "kind": "a"}, value) for n, (x, value) in enumerate(values.items(), start=1)]


def raced(x: float, mean: float, n: int, first_number: int) -> list[TrialView]:
    return [
        a_trial(
            TASK, first_number + i, {"x": x, "kind": "a"}, mean + NOISE[i % 6], seed=100 + i, purpose=Purpose.REPLICATE
        )
        for i in range(n)
    ]


SEARCH = searched({0.2: 0.50, 0.7: 0.80, 0.6: 0.795, 0.1: 0.30, 0.9: 0.40})


def work(history: History, n: int, *, task: Task = TASK, **spend: Any) -> list[Proposal]:
    used = Spend(**{"device_seconds": 0.0, "wall_seconds": 0.0, **spend})
    return idle_work(first_plan(task), task, history, n, spend=used, explorer=OptunaSampler(task))


def point(proposal: Proposal) -> tuple[object, int]:
    return proposal.params["x"], proposal.seed


def test_first_the_best_and_its_challenger_are_replicated_each_with_the_default_as_its_pair() -> None:
    found = work(a_history(*SEARCH), 5)
    assert {point(p) for p in found} <= {(x, seed) for x in (0.7, 0.6, 0.2) for seed in (100, 101)}
    assert {0.7, 0.6} & {p.params["x"] for p in found}
    pairs = {p.seed for p in found if p.configuration != DEFAULT}
    assert pairs <= {p.seed for p in found if p.configuration == DEFAULT}
    assert all(p.is_idle_work and p.worth is not None and p.why.startswith("idle time: replicate") for p in found)


def test_what_is_far_behind_is_not_replicated() -> None:
    history = a_history(*SEARCH, *raced(0.7, 0.80, 4, 10), *raced(0.6, 0.79, 4, 20))
    found = work(history, 4, task=TASK)
    assert not {p.params["x"] for p in found if p.purpose is Purpose.REPLICATE} & {0.1, 0.9}


def test_no_racing_seed_is_run_twice_and_none_is_kept_for_the_end() -> None:
    history = a_history(*SEARCH, *raced(0.7, 0.80, 2, 10), *raced(0.6, 0.797, 2, 20))
    found = [p for p in work(history, 8) if p.purpose is Purpose.REPLICATE]
    keys = [(p.configuration, p.seed) for p in found]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & set(history.replicates)
    assert all(100 <= p.seed < 1000 for p in found)


def test_it_explores_when_one_more_replicate_would_tell_nothing() -> None:
    history = a_history(*SEARCH, *raced(0.7, 0.80, 12, 10), *raced(0.6, 0.60, 12, 30), *raced(0.2, 0.50, 12, 50))
    known = outlook(TASK, history)
    assert known is not None
    assert max(worth_of_replicate(known, name).gain for name in known.beliefs) < WORTH_IT * known.noise
    found = work(history, 2)
    assert [p.purpose for p in found] == [Purpose.SEARCH, Purpose.SEARCH]
    assert all(p.why.startswith("idle time: explore") and p.is_idle_work for p in found)


def test_exploring_never_goes_beyond_the_number_of_trials() -> None:
    task = a_task(budgets={"trials": 6}, idle={"max_share": 1.0, "replicate": False})
    assert len(work(a_history(*searched({0.2: 0.5, 0.7: 0.8, 0.6: 0.7, 0.1: 0.3, 0.9: 0.4})), 5, task=task)) == 1


@pytest.mark.parametrize(
    ("idle", "purposes"),
    [
        ({"replicate": False}, {Purpose.SEARCH}),
        ({"explore": False}, {Purpose.REPLICATE}),
        ({"replicate": False, "explore": False}, set()),
        ({"max_share": 0.0}, set()),
    ],
)
def test_the_task_says_what_idle_slots_may_do(idle: dict[str, Any], purposes: set[Purpose]) -> None:
    task = a_task(budgets={"trials": 40}, idle={"max_share": 1.0, **idle})
    assert {p.purpose for p in work(a_history(*SEARCH), 3, task=task)} == purposes


def test_idle_work_stays_within_its_share_of_the_device_time() -> None:
    """Five trials of 10 s, a quarter at most: one of 10 s more (10 of 60), not two (20 of 70)."""
    task = a_task(budgets={"trials": 40}, idle={"max_share": 0.25})
    found = work(a_history(*SEARCH), 4, task=task)
    assert len(found) == 1
    idle = replace(a_trial(task, 9, {"x": 0.7, "kind": "a"}, seed=100, purpose=Purpose.REPLICATE), is_idle_work=True)
    assert work(a_history(*SEARCH, idle), 4, task=task) == []


def test_idle_work_takes_nothing_that_wanted_work_is_expected_to_need() -> None:
    """5 of 10 search trials, 6 fresh ones and 1 look are to come, 10 s each: 120 s."""
    task = a_task(budgets={"trials": 10, "device_seconds": 200}, idle={"max_share": 1.0})
    assert work(a_history(*SEARCH), 4, task=task, device_seconds=75.0) == []
    assert len(work(a_history(*SEARCH), 4, task=task, device_seconds=65.0)) == 1


def test_nothing_is_worth_it_once_the_search_is_closed() -> None:
    plan = replace(first_plan(TASK), search_closed="all search trials have ended")
    used = Spend(device_seconds=0.0, wall_seconds=0.0)
    assert idle_work(plan, TASK, a_history(*SEARCH), 4, spend=used, explorer=OptunaSampler(TASK)) == []


def test_nothing_is_judged_before_anything_is_known() -> None:
    assert work(a_history(*SEARCH[:2]), 4) == []


def test_the_same_history_gives_the_same_idle_work() -> None:
    history = a_history(*SEARCH, *raced(0.7, 0.80, 2, 10))
    assert work(history, 6) == work(history, 6)


def test_a_smaller_metric_may_be_the_better_one() -> None:
    task = a_task(
        budgets={"trials": 40}, idle={"max_share": 1.0}, objective={"metric": "score", "direction": "minimize"}
    )
    found = work(a_history(*searched({0.2: 0.50, 0.7: 0.20, 0.6: 0.205, 0.1: 0.9, 0.9: 0.8}, task)), 2, task=task)
    assert {p.params["x"] for p in found} <= {0.7, 0.6, 0.2}
    assert {p.params["x"] for p in found} & {0.7, 0.6}


def in_flight(number: int, worth: Worth | None, *, is_idle: bool = True) -> TrialView:
    trial = a_trial(TASK, number, {"x": number / 100, "kind": "a"}, purpose=Purpose.REPLICATE, seed=100)
    return replace(trial, is_idle_work=is_idle, worth=worth)


@pytest.mark.parametrize(
    ("n_wanted", "cut"), [(1, []), (2, ["s1-t3"]), (3, ["s1-t3", "s1-t2"]), (9, ["s1-t3", "s1-t2"])]
)
def test_for_each_slot_that_is_wanted_the_least_valuable_idle_trial_gives_way(n_wanted: int, cut: list[str]) -> None:
    history = a_history(
        in_flight(1, None, is_idle=False),
        in_flight(2, Worth(gain=0.2, uncertainty=0.0, cost_s=10.0)),
        in_flight(3, Worth(gain=0.2, uncertainty=0.1, cost_s=100.0)),
    )
    assert [trial.trial_id for trial in to_cut(history, 3, n_wanted)] == cut


def test_what_was_cut_short_says_nothing_about_its_configuration() -> None:
    state = TrialState.INVALID
    point = {"x": 0.3, "kind": "a"}
    cut = a_trial(TASK, 6, point, state=state, exit_reason=SLOT_NEEDED)
    again = a_trial(TASK, 7, point, state=state, seed=100, purpose=Purpose.REPLICATE, exit_reason=SLOT_NEEDED)
    history = a_history(*SEARCH, cut, again)
    assert (history.search, history.replicates) == (tuple(SEARCH), {})
    assert cut in history.trials


def test_a_new_configuration_promises_less_the_better_the_best_is() -> None:
    near = a_history(*searched({0.2: 0.50, 0.7: 0.55, 0.6: 0.45, 0.1: 0.52}))
    far = a_history(*searched({0.2: 0.50, 0.7: 0.99, 0.6: 0.45, 0.1: 0.52, 0.3: 0.5, 0.4: 0.5, 0.5: 0.5}))
    close, distant = worth_of(TASK, near, Purpose.SEARCH), worth_of(TASK, far, Purpose.SEARCH)
    assert close is not None
    assert distant is not None
    assert close.gain / 0.05 > distant.gain / 0.2
    assert close.cost_s == 10.0


def test_one_more_value_tells_less_of_what_was_measured_often() -> None:
    once = outlook(TASK, a_history(*SEARCH, *raced(0.6, 0.797, 2, 20)))
    often = outlook(TASK, a_history(*SEARCH, *raced(0.6, 0.797, 2, 20), *raced(0.7, 0.80, 12, 40)))
    assert once is not None
    assert often is not None
    name = SEARCH[1].configuration
    assert worth_of_replicate(often, name).gain < worth_of_replicate(once, name).gain
