"""The claims of a session: when they are opened, what judges them, how many pairs are bought, what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial
from test_planner_plan import Counting

from agent.planner.budget import Spend
from agent.planner.claims import error_budget, judged_on_the_way
from agent.planner.configuration import configuration_id
from agent.planner.hypothesis import Status
from agent.planner.plan import Phase, Plan, first_plan, next_work, reopened, revised, unwanted
from agent.planner.plan_text import plan_from_json, plan_to_json
from agent.planner.ranking import ranking
from agent.planner.verdict import conclude
from agent.store.views import Expected, ParamValue, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task

NOTHING_SPENT = Spend(device_seconds=0.0, wall_seconds=0.0, n_slots=2)
DEFAULT: dict[str, ParamValue] = {"x": 0.2, "kind": "a"}
GOOD: dict[str, ParamValue] = {"x": 0.7, "kind": "a"}
OTHER: dict[str, ParamValue] = {"x": 0.6, "kind": "a"}


def after(task: Task, trials: Sequence[TrialView], before: Plan | None = None) -> Plan:
    return revised(before or first_plan(task), task, a_history(*trials), NOTHING_SPENT)


def runs(
    task: Task, params: dict[str, ParamValue], first_number: int, first_seed: int, values: Sequence[float | None]
) -> list[TrialView]:
    """Replicates on consecutive seeds; None: still running."""
    return [
        a_trial(task, first_number + i, params, value, seed=first_seed + i, purpose=Purpose.REPLICATE)
        for i, value in enumerate(values)
    ]


def searched(task: Task, good: float = 0.9, other: float = 0.8) -> list[TrialView]:
    return [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, good), a_trial(task, 3, OTHER, other)]


def race(task: Task, n: int, gain: float = 0.3) -> list[TrialView]:
    """`n` racing pairs of GOOD and the default, the gain a little different each time."""
    noise = [0.001 * (i % 3) for i in range(n)]
    return [
        *runs(task, GOOD, 10, 100, [0.5 + gain + e for e in noise]),
        *runs(task, DEFAULT, 50, 100, [0.5 - e for e in noise]),
    ]


def test_a_challenger_gets_a_claim_and_its_share_before_its_first_value_is_read() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task), *runs(task, GOOD, 10, 100, [None])])
    claim = plan.hypotheses[1]
    assert (claim.hypothesis_id, claim.configuration, claim.status) == ("h2", configuration_id(GOOD), Status.OPEN)
    assert claim.alpha == pytest.approx(error_budget(task).share(1))
    assert claim.n_pairs == 0
    assert "h2 is opened" in plan.reason


def test_what_a_challengers_arm_had_predicted_is_what_will_be_scored() -> None:
    task = a_task(budgets={"trials": 6})
    said = TrialFacts(expected=Expected(probability=1.0, effect=0.2), model="small")
    first, good, other = searched(task)
    plan = after(task, [first, replace(good, facts=said), other, *race(task, 12)])
    claim = plan.hypotheses[1]
    assert (claim.prediction.probability, claim.prediction.effect, claim.prediction.made_by) == (0.99, 0.2, "small")
    assert claim.status is Status.SUPPORTED
    assert claim.brier == pytest.approx(0.0001)


def test_challengers_are_opened_in_the_order_in_which_they_were_sent_into_the_race() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task), *runs(task, OTHER, 10, 100, [None]), *runs(task, GOOD, 20, 100, [None])])
    assert [h.configuration for h in plan.hypotheses[1:]] == [configuration_id(OTHER), configuration_id(GOOD)]


def test_the_default_in_the_race_is_no_challenger() -> None:
    task = a_task(budgets={"trials": 6})
    assert len(after(task, [*searched(task), *runs(task, DEFAULT, 10, 100, [None])]).hypotheses) == 1


def test_all_shares_together_stay_within_the_error_budget() -> None:
    task = a_task(budgets={"trials": 40})
    points: list[dict[str, ParamValue]] = [{"x": i / 100, "kind": "b"} for i in range(30)]
    trials = [a_trial(task, 1, DEFAULT, 0.5)]
    trials += [a_trial(task, 2 + i, p, 0.1) for i, p in enumerate(points)]
    trials += [a_trial(task, 50 + i, p, seed=100, purpose=Purpose.REPLICATE) for i, p in enumerate(points)]
    plan = after(task, trials)
    assert len(plan.hypotheses) == 31
    assert sum(h.alpha for h in plan.hypotheses) <= task.trust.error_budget


def test_a_challenger_is_accepted_by_its_racing_pairs_and_becomes_the_incumbent() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task), *race(task, 14)])
    claim = plan.hypotheses[1]
    assert claim.status is Status.SUPPORTED
    assert claim.e_value >= 1 / claim.alpha
    assert len(claim.evidence) == 2 * claim.n_pairs
    assert plan.incumbent == configuration_id(GOOD)


def test_one_that_leads_and_is_not_accepted_is_the_leader_and_not_the_incumbent() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task), *race(task, 3)])
    assert (plan.leader, plan.incumbent) == (configuration_id(GOOD), configuration_id(DEFAULT))


def test_a_challenger_that_is_worse_is_refuted() -> None:
    task = a_task(budgets={"trials": 6})
    assert after(task, [*searched(task), *race(task, 14, gain=-0.3)]).hypotheses[1].status is Status.REFUTED


def test_search_values_are_no_evidence_for_a_challenger() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task, good=99.0), *race(task, 2, gain=0.0)])
    assert set(plan.hypotheses[1].evidence) == {"s1-t10", "s1-t50", "s1-t11", "s1-t51"}


def test_later_pairs_wait_for_an_earlier_one_that_is_still_running() -> None:
    task = a_task(budgets={"trials": 6})
    trials = [*searched(task), *race(task, 6)]
    held = [replace(t, state=TrialState.LAUNCHED, value=None) if t.trial_id == "s1-t52" else t for t in trials]
    assert after(task, held).hypotheses[1].n_pairs == 2
    broken = [replace(t, state=TrialState.INVALID, value=None) if t.trial_id == "s1-t52" else t for t in trials]
    assert after(task, broken).hypotheses[1].n_pairs == 5


def test_pairs_on_different_accelerator_models_are_no_evidence() -> None:
    task = a_task(budgets={"trials": 6})
    trials = [*searched(task), *race(task, 4)]
    moved = [
        replace(t, facts=replace(t.facts, device_model="H100" if t.configuration == configuration_id(GOOD) else "A100"))
        for t in trials
    ]
    assert after(task, trials).hypotheses[1].n_pairs == 4
    assert after(task, moved).hypotheses[1].n_pairs == 0


def test_a_closed_claim_stays_as_it_was_closed() -> None:
    task = a_task(budgets={"trials": 6})
    plan = after(task, [*searched(task), *race(task, 14)])
    later = after(task, [*searched(task), *race(task, 14), *runs(task, GOOD, 70, 114, [0.0] * 9)], plan)
    assert later.hypotheses[1] == plan.hypotheses[1]


def test_revisions_only_add_hypotheses_or_close_them() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 3, "max_pairs": 9}, held_out=None)
    trials = searched(task)
    plan, seen = first_plan(task), []
    fresh = [
        *runs(task, GOOD, 100, 1000, [0.9 + 0.001 * i for i in range(9)]),
        *runs(task, DEFAULT, 200, 1000, [0.5] * 9),
    ]
    for trial in [*trials, *race(task, 14), *fresh]:
        seen.append(trial)
        found = after(task, seen, plan)
        assert found.revision in (plan.revision, plan.revision + 1)
        for old, new in zip(plan.hypotheses, found.hypotheses, strict=False):
            assert (old.hypothesis_id, old.alpha, old.acceptance) == (new.hypothesis_id, new.alpha, new.acceptance)
            assert old.is_open or old == new
        assert len(found.hypotheses) >= len(plan.hypotheses)
        plan = found
    assert plan.phase is Phase.DONE
    assert [h.status for h in plan.hypotheses] == [Status.SUPPORTED, Status.SUPPORTED]


def test_a_stored_plan_wants_the_same_next_work() -> None:
    task = a_task(budgets={"trials": 3})
    trials = [*searched(task), *race(task, 5), *runs(task, GOOD, 100, 1000, [0.9, None])]
    plan = after(task, trials)
    again = plan_from_json(plan_to_json(plan), task)
    history = a_history(*trials)
    wanted = next_work(plan, task, history, 9, Counting())
    assert wanted
    assert next_work(again, task, history, 9, Counting()) == wanted
    assert after(task, trials, again) is again


def test_the_choice_follows_all_its_values_and_not_the_luckiest_one() -> None:
    task = a_task(budgets={"trials": 3})
    lucky = runs(task, GOOD, 10, 100, [0.55, 0.56, 0.54])
    solid = runs(task, OTHER, 20, 100, [0.79, 0.80, 0.81])
    plan = after(task, [*searched(task, good=0.9, other=0.8), *lucky, *solid])
    assert plan.chosen == configuration_id(OTHER)


def test_the_choice_is_made_once_and_late_racing_values_do_not_move_it() -> None:
    task = a_task(budgets={"trials": 3})
    trials = searched(task)
    plan = after(task, trials)
    assert plan.chosen == configuration_id(GOOD)
    late = [*trials, *runs(task, GOOD, 10, 100, [0.1, 0.1, 0.1, 0.1])]
    assert after(task, late, plan).chosen == configuration_id(GOOD)


def test_fresh_values_never_take_part_in_the_choice() -> None:
    task = a_task(budgets={"trials": 3})
    trials = [*searched(task), *runs(task, DEFAULT, 10, 1000, [99.0, 99.0, 99.0])]
    leader = ranking(task, a_history(*trials)).leader
    assert leader is not None
    assert leader.configuration == configuration_id(GOOD)


def test_of_equal_values_the_default_leads() -> None:
    task = a_task(budgets={"trials": 3})
    trials = [a_trial(task, 1, GOOD, 0.5), a_trial(task, 2, DEFAULT, 0.5)]
    leader = ranking(task, a_history(*trials)).leader
    assert leader is not None
    assert leader.configuration == configuration_id(DEFAULT)


def test_racing_values_never_enter_the_final_claim() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 8})
    trials = [*searched(task), *race(task, 14)]
    result = conclude(after(task, trials), task, a_history(*trials))
    assert result is not None
    assert (result.n_pairs, result.comparison, result.verdict) == (0, "invalid", "inconclusive")
    assert result.basis == "as_measured"  # three configurations are too few to correct by
    assert "Shown on the way" in result.sentence


def final(task: Task, best: Sequence[float | None], default: Sequence[float | None]) -> list[TrialView]:
    return [*searched(task), *runs(task, GOOD, 100, 1000, best), *runs(task, DEFAULT, 200, 1000, default)]


def wanted_seeds(task: Task, trials: Sequence[TrialView]) -> list[int]:
    plan = after(task, trials)
    found = next_work(plan, task, a_history(*trials), 100, Counting())
    return sorted({p.seed for p in found if p.purpose is Purpose.REPLICATE})


HALF = [0.1, -0.05, 0.12, 0.02, -0.04, 0.08]
"""A gain of about half a standard deviation of a difference."""


def test_while_nothing_is_decided_and_a_decision_is_within_reach_more_pairs_are_bought() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 6, "max_pairs": 30})
    trials = final(task, [0.5 + d for d in HALF], [0.5] * 6)
    assert wanted_seeds(task, trials) == [1006, 1007, 1008, 1009, 1010, 1011]


def test_no_more_pairs_than_the_task_allows() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 6, "max_pairs": 8})
    trials = final(task, [0.5 + d for d in HALF], [0.5] * 6)
    assert wanted_seeds(task, trials) in ([], [1006, 1007])
    full = final(task, [0.5 + d for d in [*HALF, 0.1, -0.1]], [0.5] * 8)
    assert wanted_seeds(task, full) == []


def test_a_difference_out_of_reach_buys_no_more_pairs() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 6, "max_pairs": 30})
    worse = final(task, [0.5 - d for d in HALF], [0.5] * 6)
    assert wanted_seeds(task, worse) == []


def test_a_decision_ends_the_pairs_and_withdraws_those_that_are_ready() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 8}, held_out=None)
    ready = a_trial(task, 300, GOOD, seed=1008, purpose=Purpose.REPLICATE, state=TrialState.PROPOSED)
    trials = [*final(task, [0.9 + 0.001 * i for i in range(8)], [0.5] * 8), ready]
    plan = after(task, trials)
    assert list(unwanted(plan, task, a_history(*trials))) == [ready]
    assert wanted_seeds(task, trials) == []


def test_a_done_plan_that_goes_on_opens_what_was_not_decided() -> None:
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 3, "max_pairs": 3}, held_out=None)
    plan = after(task, final(task, [0.5, 0.6, 0.4], [0.5, 0.5, 0.5]))
    assert (plan.phase, plan.claim.status) == (Phase.DONE, Status.INCONCLUSIVE)
    assert (reopened(plan).phase, reopened(plan).claim.status) == (Phase.SEARCH, Status.OPEN)


def test_a_min_effect_must_be_exceeded() -> None:
    small = {"metric": "score", "direction": "maximize", "min_effect": 0.5}
    task = a_task(budgets={"trials": 3}, seeds={"fresh": 8}, held_out=None, objective=small)
    trials = final(task, [0.9 + 0.001 * i for i in range(8)], [0.5] * 8)
    plan = after(task, trials)
    result = conclude(plan, task, a_history(*trials))
    assert result is not None
    assert result.verdict != "supported"
    assert "by more than 0.5" in plan.claim.statement


def test_a_claim_with_fewer_pairs_than_can_decide_is_dropped_and_its_prediction_not_scored() -> None:
    task = a_task(budgets={"trials": 6})
    trials = [*searched(task), *race(task, 3)]
    open_claim = after(task, trials).hypotheses[1]
    closed = judged_on_the_way(open_claim, task, a_history(*trials), is_over=True)
    assert (open_claim.status, closed.status, closed.n_pairs, closed.brier) == (Status.OPEN, Status.DROPPED, 3, None)
    assert "3 of the" in closed.note
