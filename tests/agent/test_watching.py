"""The regression watch: tonight against a reference night, by pairs of the same configuration and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from agent_worlds import a_task

from agent.planner.watching import Side, watched
from agent.store.views import Purpose, TrialFacts, TrialState, TrialView
from agent.sweeps.sweep import Watch
from agent.sweeps.views import Change, WatchResult
from agent.task import Direction, Task


def trials(
    values: Sequence[float], *, session: str = "s1", seconds: float | None = None, code: str = "a"
) -> list[TrialView]:
    return [
        TrialView(
            trial_id=f"{session}-t{number}",
            session_id=session,
            number=number,
            configuration=f"c{number % 4}",
            params={},
            seed=number // 4,
            purpose=Purpose.SEARCH,
            suggested_by="points",
            why="",
            state=TrialState.MEASURED,
            job_id=f"j{number}",
            value=value,
            note=None,
            exit_reason=None,
            device_seconds=1.0,
            proposed_at=0.0,
            launched_at=0.0,
            ended_at=1.0,
            facts=TrialFacts(code=code, run_seconds=seconds),
        )
        for number, value in enumerate(values)
    ]


def side(found: Sequence[TrialView], task: Task | None = None, night: str = "d-n1") -> Side:
    if night == "d-n1":
        found = [replace(trial, trial_id=f"earlier-{trial.trial_id}") for trial in found]
    return Side(night_id=night, task=task or a_task(), trials=found)


def of(what: str, found: Sequence[WatchResult]) -> WatchResult:
    return next(one for one in found if one.what == what)


RNG = np.random.default_rng(7)
BASE = [float(x) for x in RNG.normal(0.8, 0.02, 24)]


def test_a_drop_in_the_metric_is_worse_although_the_code_differs() -> None:
    tonight = side(trials([x - 0.05 for x in BASE], code="b"), night="d-n2")
    result = of("metric", watched("digits", tonight, side(trials(BASE)), Watch(), n_cells=1))
    assert result.change is Change.WORSE
    assert result.interval is not None
    assert abs(result.interval.estimate + 0.05) < 1e-9
    assert (result.reference, result.n_pairs) == ("d-n1", 24)


def test_the_direction_is_the_tasks() -> None:
    task = a_task()
    task = task.model_copy(update={"objective": task.objective.model_copy(update={"direction": Direction.MINIMIZE})})
    tonight = side(trials([x - 0.05 for x in BASE]), task, "d-n2")
    result = of("metric", watched("digits", tonight, side(trials(BASE), task), Watch(), n_cells=1))
    assert result.change is Change.BETTER
    assert result.interval is not None
    assert result.interval.estimate < 0


def test_equal_to_the_last_digit_is_unchanged() -> None:
    result = of("metric", watched("digits", side(trials(BASE), night="d-n2"), side(trials(BASE)), Watch(), n_cells=1))
    assert result.change is Change.UNCHANGED


def test_too_few_pairs_are_said_to_be_too_few_with_how_many_would_do() -> None:
    found = watched(
        "digits", side(trials([x - 0.5 for x in BASE[:4]]), night="d-n2"), side(trials(BASE[:4])), Watch(), n_cells=1
    )
    result = of("metric", found)
    assert result.change is Change.UNKNOWN
    assert "4 pairs can not show a change; 10 would" in result.reason


def test_equal_pairs_show_nothing_and_are_no_pairs_too_many() -> None:
    changed = [x - 0.5 if place < 4 else x for place, x in enumerate(BASE)]
    found = watched("digits", side(trials(changed), night="d-n2"), side(trials(BASE)), Watch(), n_cells=1)
    result = of("metric", found)
    assert result.change is Change.UNKNOWN
    assert "24 pairs, 20 of them equal, can not show a change" in result.reason


def test_time_is_compared_as_a_part_and_small_changes_are_none() -> None:
    before = side(trials(BASE, seconds=10.0))
    slow = of("speed", watched("d", side(trials(BASE, seconds=12.0), night="d-n2"), before, Watch(), n_cells=1))
    assert slow.change is Change.WORSE
    assert slow.interval is not None
    assert abs(slow.interval.estimate - 0.2) < 1e-9
    small = of("speed", watched("d", side(trials(BASE, seconds=10.2), night="d-n2"), before, Watch(), n_cells=1))
    assert small.change is Change.UNCHANGED


def test_what_is_not_comparable_makes_no_pair() -> None:
    other = [replace(t, facts=replace(t.facts, device_model="H100")) for t in trials(BASE)]
    mine = [replace(t, facts=replace(t.facts, device_model="A100")) for t in trials(BASE)]
    result = of("metric", watched("d", side(mine, night="d-n2"), side(other), Watch(), n_cells=1))
    assert (result.change, result.n_pairs) == (Change.UNKNOWN, 0)


def test_a_trial_that_both_nights_have_is_no_pair_with_itself() -> None:
    before = Side(night_id="d-n1", task=a_task(), trials=trials(BASE))
    result = of("metric", watched("d", side(trials(BASE), night="d-n2"), before, Watch(), n_cells=1))
    assert (result.change, result.n_pairs) == (Change.UNKNOWN, 0)


def test_looks_at_held_out_data_make_no_pair() -> None:
    looks = [replace(trial, purpose=Purpose.HELD_OUT) for trial in trials(BASE)]
    result = of("metric", watched("d", side(looks, night="d-n2"), side(trials(BASE)), Watch(), n_cells=1))
    assert (result.change, result.n_pairs) == (Change.UNKNOWN, 0)


def test_the_first_night_has_nothing_to_be_compared_with() -> None:
    assert {r.change for r in watched("d", side(trials(BASE)), None, Watch(), n_cells=1)} == {Change.UNKNOWN}


def test_false_alarms_of_a_night_keep_to_its_budget() -> None:
    """Nights in which nothing changed: 400 of three cells, coarse and heavy-tailed values; at most the budget."""
    rng = np.random.default_rng(11)
    watch = Watch(error_budget=0.05, speed=False, memory=False)
    n_alarms = 0
    for _ in range(400):
        is_alarm = False
        for _cell in range(3):
            one, other = (np.round(rng.standard_t(3, 16), 1) for _ in range(2))
            found = watched(
                "d", side(trials(one.tolist()), night="d-n2"), side(trials(other.tolist())), watch, n_cells=3
            )
            is_alarm = is_alarm or found[0].change in (Change.WORSE, Change.BETTER)
        n_alarms += is_alarm
    assert n_alarms <= 0.05 * 400 + 3 * (400 * 0.05 * 0.95) ** 0.5
