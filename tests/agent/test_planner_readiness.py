"""Whether a session could succeed, judged by a few trials of the default before a night is spent."""

from typing import Any

import pytest
from agent_worlds import a_task

from agent.planner.readiness import Level, PreemptionTry, Readiness, TrialRun, judge
from agent.task import Task

BUDGETS: dict[str, Any] = {"budgets": {"trials": 10}, "seeds": {"fresh": 8, "max_pairs": 30}}


def runs(*values: float | None, note: str = "metric 'score' never appeared", run_s: float = 10.0) -> list[TrialRun]:
    return [
        TrialRun(seed=n, value=v, note=None if v is not None else note, run_s=run_s, device_seconds=run_s)
        for n, v in enumerate(values)
    ]


def a_try(
    value: float | None = 0.5, *, step: int | None = 4, is_done: bool = True, run_s: float = 12.0
) -> PreemptionTry:
    return PreemptionTry(
        is_done=is_done,
        checkpoint_step=step,
        leaving_s=0.3,
        outcome="preempted",
        value=value,
        note=None if value is not None else "import_error: no module",
        run_s=run_s,
    )


def codes(readiness: Readiness, level: Level) -> set[str]:
    return {finding.code for finding in readiness.findings if finding.level is level}


def judged(*values: float | None, task: Task | None = None, preemption: PreemptionTry | None = None) -> Readiness:
    return judge(task or a_task(**BUDGETS), runs(*values), preemption, n_slots=2)


def test_a_task_in_order_is_ready_with_noise_time_and_smallest_gain() -> None:
    readiness = judged(0.5, 0.52, 0.48, preemption=a_try(0.5))
    assert readiness.can_succeed
    assert readiness.noise == pytest.approx(0.02)
    assert readiness.n_pairs == 30
    assert readiness.session_s == 10.0 * (10 + 1 + 60 + 1) / 2
    assert readiness.smallest_gain is not None
    assert 0.01 < readiness.smallest_gain < 0.03
    assert not codes(readiness, Level.WARNING)


def test_no_value_is_a_problem_that_repeats_which_metrics_did_appear() -> None:
    readiness = judge(a_task(**BUDGETS), runs(None, None, None, note="metrics that did appear: acc"), None, n_slots=2)
    assert not readiness.can_succeed
    assert "metrics that did appear: acc" in readiness.findings[0].text


def test_a_value_on_some_seeds_only_is_a_warning() -> None:
    assert "fails_on_some_seeds" in codes(judged(0.5, None, 0.4), Level.WARNING)


def test_equal_values_mean_that_the_seed_is_not_used() -> None:
    assert "seed_not_used" in codes(judged(0.5, 0.5, 0.5), Level.WARNING)


def test_a_budget_without_room_for_pairs_is_a_problem() -> None:
    task = a_task(**{**BUDGETS, "budgets": {"trials": 10, "device_seconds": 120}})
    readiness = judged(0.5, 0.52, 0.48, task=task)
    assert readiness.n_pairs == 0
    assert "budget_too_small" in codes(readiness, Level.PROBLEM)


def test_a_wall_limit_bounds_the_pairs_by_slots() -> None:
    task = a_task(**{**BUDGETS, "budgets": {"trials": 10, "wall_minutes": 2}})
    assert judged(0.5, 0.52, 0.48, task=task).n_pairs == (2 * 60 * 2 // 10 - 11) // 2


def test_pairs_that_can_show_nothing_at_all_are_a_problem() -> None:
    task = a_task(budgets={"trials": 10}, seeds={"fresh": 2, "max_pairs": 4})
    assert "nothing_detectable" in codes(judged(0.5, 0.52, 0.48, task=task), Level.PROBLEM)


def test_a_min_effect_below_what_can_be_seen_is_a_warning() -> None:
    objective = {"metric": "score", "direction": "maximize", "min_effect": 0.001}
    readiness = judged(0.5, 0.52, 0.48, task=a_task(**BUDGETS, objective=objective))
    assert "gain_too_small_to_see" in codes(readiness, Level.WARNING)


def test_leaving_without_a_checkpoint_is_a_warning_with_its_cost() -> None:
    readiness = judged(0.5, 0.52, 0.48, preemption=a_try(0.5, step=None, run_s=16.0))
    (found,) = [one for one in readiness.findings if one.code == "no_checkpoint"]
    assert "6 s" in found.text


def test_a_resumed_run_that_comes_to_another_value_is_a_warning() -> None:
    assert "resumes_wrongly" in codes(judged(0.5, 0.51, 0.49, preemption=a_try(0.9)), Level.WARNING)
    assert "lost_by_preemption" in codes(judged(0.5, 0.51, 0.49, preemption=a_try(None)), Level.WARNING)


def test_a_trial_that_ended_before_it_could_leave_is_no_warning() -> None:
    readiness = judged(0.5, 0.51, 0.49, preemption=a_try(0.5, is_done=False))
    assert "too_short_to_preempt" in codes(readiness, Level.FACT)
    assert not codes(readiness, Level.WARNING)


def test_a_model_that_suggests_nothing_is_told_as_one_that_only_diagnoses() -> None:
    only = a_task(**BUDGETS, model={"name": "small"})
    assert "model_diagnoses_only" in codes(judged(0.5, 0.52, 0.48, task=only), Level.FACT)
    both = a_task(**BUDGETS, model={"name": "small"}, search={"use": ["sampler", "model"]})
    assert "model_diagnoses_only" not in codes(judged(0.5, 0.52, 0.48, task=both), Level.FACT)
