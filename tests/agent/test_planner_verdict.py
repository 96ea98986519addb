"""What a session says it found."""

from __future__ import annotations

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.plan import first_plan
from agent.planner.verdict import conclude
from agent.store.views import FinalResult, Purpose, TrialState, TrialView
from agent.task import Task

DEFAULT = {"x": 0.2, "kind": "a"}
GOOD = {"x": 0.7, "kind": "a"}
CLEAR: list[float | None] = [0.80, 0.81, 0.82, 0.80, 0.81, 0.82, 0.80, 0.81]
MIDDLE: list[float | None] = [0.50, 0.52, 0.51, 0.50, 0.52, 0.51, 0.50, 0.52]
NOISY: list[float | None] = [0.50, 0.55, 0.45, 0.56, 0.49, 0.50, 0.45, 0.58]
BAD: list[float | None] = [0.30, 0.31, 0.32, 0.30, 0.31, 0.32, 0.30, 0.31]


def found_with(task: Task, best: list[float | None], default: list[float | None], *more: TrialView) -> FinalResult:
    trials = [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, 0.9)]
    for params, values in ((GOOD, best), (DEFAULT, default)):
        for i, value in enumerate(values):
            state = TrialState.INVALID if value is None else TrialState.MEASURED
            number = len(trials) + 1
            trials.append(a_trial(task, number, params, value, seed=1000 + i, purpose=Purpose.REPLICATE, state=state))
    result = conclude(first_plan(task), task, a_history(*trials, *more))
    assert result is not None
    return result


def test_a_clear_gain_on_fresh_seeds_supports_the_claim() -> None:
    result = found_with(a_task(), CLEAR, MIDDLE)
    assert (result.comparison, result.verdict) == ("better", "supported")
    assert result.difference is not None
    assert result.difference.estimate == pytest.approx(0.29875)
    assert result.best["x"] == 0.7


def test_a_winner_by_luck_is_not_told_from_the_default() -> None:
    result = found_with(a_task(), NOISY, MIDDLE)
    assert (result.comparison, result.verdict) == ("indistinguishable", "inconclusive")


def test_a_best_that_is_worse_on_fresh_seeds_refutes_the_claim() -> None:
    result = found_with(a_task(), BAD, MIDDLE)
    assert (result.comparison, result.verdict) == ("worse", "refuted")


def test_search_values_are_no_evidence() -> None:
    result = found_with(a_task(), [0.5], [0.5])
    assert (result.comparison, result.verdict) == ("invalid", "inconclusive")
    assert result.best_mean is None


def test_only_whole_pairs_count() -> None:
    result = found_with(a_task(), [0.9, None, *CLEAR[2:]], MIDDLE)
    assert result.n_pairs == 7
    assert "1 pair left out since a side gave no value" in result.sentence


def test_a_default_that_was_not_beaten_is_said_so() -> None:
    task = a_task()
    trials = [a_trial(task, 1, DEFAULT, 0.9), a_trial(task, 2, GOOD, 0.5)]
    trials += [a_trial(task, 3 + i, DEFAULT, 0.9, seed=1000 + i, purpose=Purpose.REPLICATE) for i in range(3)]
    result = conclude(first_plan(task), task, a_history(*trials))
    assert result is not None
    assert (result.comparison, result.verdict) == ("indistinguishable", "inconclusive")
    assert result.difference is None
    assert "The default was not beaten" in result.sentence


def test_seeds_that_change_nothing_are_asked_about() -> None:
    asked = "does the script use its seed?"
    assert asked in found_with(a_task(), [0.8, 0.8, 0.8], [0.5, 0.5, 0.5]).sentence
    assert asked not in found_with(a_task(), [0.8, 0.8, 0.8], [0.5, 0.5, 0.51]).sentence
    assert asked not in found_with(a_task(), [0.8, 0.81, 0.82], [0.5, 0.52, 0.51]).sentence


def test_no_result_without_any_value() -> None:
    task = a_task()
    failed = a_trial(task, 1, DEFAULT, state=TrialState.INVALID)
    assert conclude(first_plan(task), task, a_history(failed)) is None


def test_the_held_out_value_is_reported_and_counted() -> None:
    task = a_task()
    look = a_trial(task, 30, GOOD, 0.77, seed=1000, purpose=Purpose.HELD_OUT)
    result = found_with(task, CLEAR, MIDDLE, look)
    assert (result.held_out_value, result.held_out_looks) == (0.77, 1)
    assert "test_score 0.77" in result.sentence
