"""The rules of the plan: what is run next, when the search closes, when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.budget import Spend
from agent.planner.failure import hopeless
from agent.planner.history import History, Proposal
from agent.planner.plan import Phase, Plan, first_plan, next_work, revised, unwanted
from agent.planner.plan_text import plan_from_json, plan_to_json
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task

NOTHING_SPENT = Spend(device_seconds=0.0, wall_seconds=0.0, n_slots=2)
DEFAULT = {"x": 0.2, "kind": "a"}
GOOD = {"x": 0.7, "kind": "a"}


class Counting:
    """A proposer that says 0.01, 0.02, ... as x."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        first = len(history.search)
        task = a_task()
        made = [a_trial(task, i, {"x": i / 100, "kind": "b"}) for i in range(first + 1, first + n + 1)]
        return [
            Proposal(
                params=t.params,
                configuration=t.configuration,
                seed=0,
                purpose=Purpose.SEARCH,
                suggested_by="counting",
                why="",
            )
            for t in made
        ]


def work(task: Task, plan: Plan, *trials: TrialView, n: int = 10) -> list[tuple[str, float, int]]:
    """What is proposed, as (purpose, x, seed)."""
    found = next_work(plan, task, a_history(*trials), n, Counting())
    return [(p.purpose.value, float(p.params["x"] or 0), p.seed) for p in found]


def plan_after(task: Task, *trials: TrialView, spend: Spend = NOTHING_SPENT, before: Plan | None = None) -> Plan:
    return revised(before or first_plan(task), task, a_history(*trials), spend)


def a_search(task: Task, n: int = 3) -> list[TrialView]:
    """A default with 0.5, a good one with 0.9, the others with 0.1."""
    points = [DEFAULT, GOOD, *({"x": i / 100, "kind": "a"} for i in range(n - 2))]
    return [a_trial(task, i + 1, p, [0.5, 0.9, 0.1][min(i, 2)]) for i, p in enumerate(points)]


def replicates(task: Task, params: dict[str, str | float], first: int, value: float | None = 0.5) -> list[TrialView]:
    return [a_trial(task, first + i, dict(params), value, seed=1000 + i, purpose=Purpose.REPLICATE) for i in range(3)]


def test_the_default_is_the_first_trial_with_the_search_seed() -> None:
    task = a_task(seeds={"fresh": 3, "search": 5})
    assert work(task, first_plan(task), n=1) == [("search", 0.2, 5)]


def test_search_goes_on_while_trials_remain() -> None:
    task = a_task()
    found = work(task, first_plan(task), a_trial(task, 1, DEFAULT), n=2)
    assert [purpose for purpose, _, _ in found] == ["search", "search"]


def test_no_more_search_trials_than_the_budget() -> None:
    task = a_task(budgets={"trials": 3})
    found = work(task, first_plan(task), *a_search(task, 2))
    assert [purpose for purpose, _, _ in found].count("search") == 1


def test_free_slots_take_fresh_seeds_of_the_default_while_the_search_still_runs() -> None:
    task = a_task(budgets={"trials": 2})
    found = work(task, first_plan(task), a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD))
    assert found == [("replicate", 0.2, 1000), ("replicate", 0.2, 1001), ("replicate", 0.2, 1002)]


def test_the_best_gets_the_same_fresh_seeds_and_the_look_when_the_search_has_ended() -> None:
    task = a_task(budgets={"trials": 2})
    trials = [*a_search(task, 2), *replicates(task, DEFAULT, 3)]
    plan = plan_after(task, *trials)
    assert plan.phase is Phase.CONFIRM
    expected = [("replicate", 0.7, 1000), ("replicate", 0.7, 1001), ("replicate", 0.7, 1002), ("held_out", 0.7, 1000)]
    assert work(task, plan, *trials) == expected


def test_the_direction_turns_the_choice_of_the_best() -> None:
    task = a_task(budgets={"trials": 3}, objective={"metric": "score", "direction": "minimize"})
    plan = plan_after(task, *a_search(task))
    best = next(p for p in work(task, plan, *a_search(task)) if p[0] == "held_out")
    assert best[1] == 0.0


def test_exactly_as_many_looks_as_allowed_even_when_one_fails() -> None:
    task = a_task(budgets={"trials": 2}, held_out={"metric": "t", "looks": 2})
    failed = a_trial(task, 9, GOOD, seed=1000, purpose=Purpose.HELD_OUT, state=TrialState.INVALID)
    trials = [*a_search(task, 2), failed]
    looks = [found for found in work(task, plan_after(task, *trials), *trials) if found[0] == "held_out"]
    assert looks == [("held_out", 0.7, 1001)]


def test_a_default_that_is_best_gets_no_second_arm() -> None:
    task = a_task(budgets={"trials": 2})
    trials = [a_trial(task, 1, DEFAULT, 0.9), a_trial(task, 2, GOOD, 0.5)]
    found = work(task, plan_after(task, *trials), *trials)
    assert {(purpose, x) for purpose, x, _ in found} == {("replicate", 0.2), ("held_out", 0.2)}


def test_an_invalid_replicate_breaks_its_pair_and_a_new_seed_replaces_it() -> None:
    task = a_task(budgets={"trials": 2})
    bad = a_trial(task, 3, DEFAULT, seed=1000, purpose=Purpose.REPLICATE, state=TrialState.INVALID)
    trials = [*a_search(task, 2), bad]
    seeds = [
        seed
        for purpose, x, seed in work(task, plan_after(task, *trials), *trials)
        if (purpose, x) == ("replicate", 0.7)
    ]
    assert seeds == [1001, 1002, 1003]


def test_replacement_seeds_are_bounded() -> None:
    task = a_task(budgets={"trials": 2})
    bad = [
        a_trial(task, 3 + i, GOOD, seed=1000 + i, purpose=Purpose.REPLICATE, state=TrialState.INVALID) for i in range(6)
    ]
    trials = [*a_search(task, 2), *bad]
    assert [w for w in work(task, plan_after(task, *trials), *trials) if w[0] == "replicate"] == []


def test_the_search_seed_is_never_a_fresh_one() -> None:
    task = a_task(budgets={"trials": 2}, seeds={"fresh": 3, "search": 1001})
    trials = a_search(task, 2)
    seeds = {seed for purpose, _, seed in work(task, plan_after(task, *trials), *trials) if purpose == "replicate"}
    assert seeds == {1000, 1002, 1003}


def test_done_when_everything_is_measured_and_nothing_is_in_flight() -> None:
    task = a_task(budgets={"trials": 2}, seeds={"fresh": 3, "max_pairs": 3})
    look = a_trial(task, 20, GOOD, 0.8, seed=1000, purpose=Purpose.HELD_OUT)
    trials = [*a_search(task, 2), *replicates(task, DEFAULT, 3), *replicates(task, GOOD, 6, 0.9), look]
    assert plan_after(task, *trials).phase is Phase.DONE
    still = replace(look, state=TrialState.LAUNCHED, value=None)
    assert plan_after(task, *trials[:-1], still).phase is Phase.HELD_OUT


def test_nothing_is_revised_when_nothing_changed() -> None:
    task = a_task()
    plan = plan_after(task, a_trial(task, 1, DEFAULT, 0.5))
    assert plan.revision == 2
    assert plan_after(task, a_trial(task, 1, DEFAULT, 0.5), before=plan) is plan


def test_a_closed_search_stays_closed() -> None:
    task = a_task(objective={"metric": "score", "direction": "maximize", "target": 0.4})
    plan = plan_after(task, a_trial(task, 1, DEFAULT, 0.5))
    assert plan.search_closed is not None
    assert "target 0.4 was reached" in plan.search_closed
    later = plan_after(task, a_trial(task, 1, DEFAULT, 0.3), before=plan)
    assert later.search_closed == plan.search_closed


@pytest.mark.parametrize(
    ("budgets", "spend"),
    [
        ({"trials": 6, "device_seconds": 100}, Spend(device_seconds=100.0, wall_seconds=0.0)),
        ({"trials": 6, "wall_minutes": 1}, Spend(device_seconds=0.0, wall_seconds=60.0)),
    ],
)
def test_a_spent_budget_launches_nothing_more_and_waits_for_what_is_in_flight(
    budgets: dict[str, float], spend: Spend
) -> None:
    task = a_task(budgets=budgets)
    trials = [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD)]
    plan = plan_after(task, *trials, spend=spend)
    assert plan.spent is not None
    assert work(task, plan, *trials) == []
    assert plan.phase is not Phase.DONE
    ended = [trials[0], replace(trials[1], state=TrialState.MEASURED, value=0.1)]
    assert plan_after(task, *ended, spend=spend, before=plan).phase is Phase.DONE


def test_the_search_closes_while_the_confirmation_can_still_be_paid_for() -> None:
    # 10 device-seconds a trial; 2 x 3 fresh seeds and one look are 70
    task = a_task(budgets={"trials": 100, "device_seconds": 100})
    trials = a_search(task, 3)
    assert plan_after(task, *trials, spend=Spend(device_seconds=20.0, wall_seconds=0.0)).search_closed is None
    closed = plan_after(task, *trials, spend=Spend(device_seconds=30.0, wall_seconds=0.0))
    assert closed.search_closed is not None
    assert closed.spent is None


def test_ready_search_trials_are_withdrawn_when_the_search_closes() -> None:
    task = a_task(objective={"metric": "score", "direction": "maximize", "target": 0.4})
    ready = a_trial(task, 2, GOOD, state=TrialState.PROPOSED)
    submitting = a_trial(task, 3, {"x": 0.3, "kind": "a"}, state=TrialState.PROPOSED, is_submitting=True)
    trials = [a_trial(task, 1, DEFAULT, 0.5), ready, submitting]
    plan = plan_after(task, *trials)
    assert [t.trial_id for t in unwanted(plan, task, a_history(*trials))] == ["s1-t2"]


def test_a_space_that_is_smaller_than_the_budget_ends_the_search() -> None:
    space = {"x": {"type": "int", "low": 0, "high": 1, "default": 0}}
    task = a_task(space=space)
    trials = [a_trial(task, 1, {"x": 0}, 0.5), a_trial(task, 2, {"x": 1}, 0.7)]
    plan = plan_after(task, *trials)
    assert plan.search_closed == "every configuration of the space was tried"


@pytest.mark.parametrize(("n", "is_hopeless"), [(3, False), (4, True)])
def test_four_first_trials_that_fail_alike_end_the_session(n: int, is_hopeless: bool) -> None:
    task = a_task()
    failed = [
        a_trial(task, i, {"x": i / 10, "kind": "a"}, state=TrialState.INVALID, exit_reason="code_error", note="boom")
        for i in range(1, n + 1)
    ]
    assert (hopeless(task, a_history(*failed)) is not None) == is_hopeless


def test_failures_of_different_kinds_or_one_success_do_not_end_the_session() -> None:
    task = a_task()
    failed = [
        a_trial(task, i, {"x": i / 10, "kind": "a"}, state=TrialState.INVALID, exit_reason="code_error")
        for i in range(1, 5)
    ]
    mixed = [*failed[:3], replace(failed[3], exit_reason="run_timeout")]
    assert hopeless(task, a_history(*mixed)) is None
    assert hopeless(task, a_history(*failed, a_trial(task, 9, GOOD, 0.5))) is None


def test_the_message_of_a_hopeless_session_says_what_was_seen_and_what_to_do() -> None:
    task = a_task(budgets={"trials": 1})
    only = a_trial(
        task, 1, DEFAULT, state=TrialState.INVALID, exit_reason="criteria_not_met", note="metrics that did appear: loss"
    )
    said = hopeless(task, a_history(only))
    assert said is not None
    assert "metrics that did appear: loss" in said
    assert "objective.metric" in said


def test_a_plan_survives_its_json() -> None:
    task = a_task()
    plan = replace(plan_after(task, *a_search(task)), next_trials=("s1-t4",))
    assert plan_from_json(plan_to_json(plan), task) == plan
