"""The plan as data: hypotheses, their calibration, the held-out ledger, what is written and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.calibration import calibration
from agent.planner.held_out import HeldOutLedger
from agent.planner.hypothesis import Hypothesis, Prediction, Status
from agent.planner.plan import Phase, first_plan
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json, plan_to_json
from agent.planner.seeds import all_fresh, is_fresh, is_racing, racing
from agent.store.views import Purpose, TrialState

SAMPLES = Path(__file__).parent / "samples"


def a_claim(probability: float, status: Status) -> Hypothesis:
    said = Prediction(probability=probability, effect=None, made_by="test")
    return replace(first_plan(a_task()).claim, prediction=said, status=status)


def test_a_plan_of_the_first_version_is_still_read() -> None:
    task = a_task()
    plan = plan_from_json((SAMPLES / "plan.v1.json").read_text(), task)
    assert (plan.revision, plan.phase, plan.leader, plan.chosen) == (4, Phase.CONFIRM, "8a8f3f4f7d2c", "8a8f3f4f7d2c")
    assert plan.claim.alpha == pytest.approx(0.025)
    assert plan.next_trials == ("s1-t7", "s1-t8")
    assert "looked at once" in plan.claim.note
    assert plan.claim.acceptance == first_plan(task).claim.acceptance
    assert plan_from_json(plan_to_json(plan), task) == plan


def test_a_plan_of_a_later_version_is_refused_with_what_to_do() -> None:
    newer = json.dumps({**json.loads(plan_to_json(first_plan(a_task()))), "version": 3})
    with pytest.raises(UnknownPlanVersion, match=r"version 3.*up to 2.*newer nightlab"):
        plan_from_json(newer, a_task())


def test_the_claim_owns_half_of_the_error_budget_before_the_first_trial() -> None:
    plan = first_plan(a_task(trust={"error_budget": 0.1}))
    assert (plan.claim.hypothesis_id, plan.claim.alpha, plan.error_budget) == ("h1", 0.05, 0.1)


@pytest.mark.parametrize(
    ("probability", "status", "brier"),
    [
        (0.8, Status.SUPPORTED, 0.04),
        (0.8, Status.REFUTED, 0.64),
        (0.8, Status.INCONCLUSIVE, 0.64),
        (0.8, Status.OPEN, None),
        (0.8, Status.DROPPED, None),
    ],
)
def test_a_prediction_is_scored_when_its_claim_is_judged(
    probability: float, status: Status, brier: float | None
) -> None:
    found = a_claim(probability, status).brier
    assert found == (None if brier is None else pytest.approx(brier))


def test_calibration_counts_judged_claims_and_says_the_base_rate() -> None:
    found = calibration([a_claim(0.9, Status.SUPPORTED), a_claim(0.3, Status.INCONCLUSIVE), a_claim(0.1, Status.OPEN)])
    assert (found.n, found.base_rate) == (2, 0.5)
    assert found.brier == pytest.approx((0.01 + 0.09) / 2)
    assert found.brier_of_base_rate == pytest.approx(0.25)


def test_without_a_judged_claim_nothing_is_scored() -> None:
    assert calibration([a_claim(0.9, Status.OPEN)]).words == "no prediction can be scored yet"


def test_a_look_beyond_the_budget_is_refused_whoever_asks() -> None:
    task = a_task(held_out={"metric": "t", "looks": 1})
    first = a_trial(task, 1, {"x": 0.7, "kind": "a"}, seed=1000, purpose=Purpose.HELD_OUT, state=TrialState.INVALID)
    second = replace(first, trial_id="s1-t2", number=2, state=TrialState.PROPOSED, suggested_by="person")
    ledger = HeldOutLedger.of(task, a_history(first, second))
    assert ledger.objection(first) is None
    assert ledger.objection(second) == "held_out.looks: 1 of 1 looks at 't' are used"
    assert (ledger.n_used, ledger.n_left, ledger.words) == (1, 0, "1 of 1 look at t used")


def test_without_a_held_out_metric_no_look_is_allowed() -> None:
    task = a_task(held_out=None)
    look = a_trial(task, 1, {"x": 0.7, "kind": "a"}, seed=1000, purpose=Purpose.HELD_OUT, state=TrialState.PROPOSED)
    assert HeldOutLedger.of(task, a_history(look)).objection(look) is not None


def test_seeds_of_search_race_and_end_never_meet() -> None:
    task = a_task(seeds={"fresh": 3, "max_pairs": 4, "search": 101, "first_racing": 100, "first_fresh": 103})
    stream = racing(task)
    race = [next(stream) for _ in range(6)]
    assert race == [100, 102, 112, 113, 114, 115]
    assert all_fresh(task) == [103, 104, 105, 106, 107, 108, 109, 110]
    assert not {101, *race} & set(all_fresh(task))
    assert all(is_racing(task, seed) and not is_fresh(task, seed) for seed in race)
    assert all(is_fresh(task, seed) and not is_racing(task, seed) for seed in all_fresh(task))
