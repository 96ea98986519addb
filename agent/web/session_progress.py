"""How far a session came, trial by trial, thinned so that a long one stays quick to draw. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

from agent.planner.history import History
from agent.planner.ranking import ranking
from agent.planner.statistics import Standing
from agent.report.facts import is_measured
from agent.report.progress import order_of_end, records
from agent.report.proposers_table import CONTROL_ARM
from agent.store.views import Purpose, TrialView
from agent.task import Direction, Task
from agent.web.session_wire import Point, Progress, Record

MOST_POINTS = 600
MOST_RECORDS = 200
T = TypeVar("T")
_Z = 1.96
"""Standard deviations of a 95 % interval."""


def progress(task: Task, history: History) -> tuple[Progress, list[Point]]:
    """The best so far and the control arm's beside it, and every search trial that has ended."""
    points = _points(history.trials)
    by_id = {trial.trial_id: trial for trial in history.trials}
    believed = {one.configuration: one for one in ranking(task, history).standings}
    is_maximized = task.objective.direction is Direction.MAXIMIZE
    measured = [point for point in points if point.value is not None]

    def told(point: Point) -> Record:
        return _record(point, believed.get(by_id[point.trial_id].configuration))

    def best_of(some: Sequence[Point]) -> tuple[Record, ...]:
        places = records([point.value or 0.0 for point in some], is_maximized=is_maximized)
        return tuple(told(some[at]) for at in thinned(places, MOST_RECORDS))

    first = next((point for point in measured if point.suggested_by == "default"), None)
    found = Progress(
        best=best_of(measured),
        control=best_of([point for point in measured if point.suggested_by in CONTROL_ARM]),
        default=None if first is None else told(first),
        n_measured=len(measured),
        n_failed=len(points) - len(measured),
        device_seconds=sum(trial.device_seconds for trial in history.trials),
    )
    return found, points


def shown(points: Sequence[Point], found: Progress) -> tuple[Point, ...]:
    """At most about `MOST_POINTS`: evenly many of them, and every record."""
    kept = {point.trial_id for point in thinned(points, MOST_POINTS)}
    kept |= {record.trial_id for record in (*found.best, *found.control)}
    return tuple(point for point in points if point.trial_id in kept)


def thinned(items: Sequence[T], most: int) -> list[T]:
    """Evenly many of them, the first and the last included."""
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]


def _points(trials: Iterable[TrialView]) -> list[Point]:
    ended = sorted((trial for trial in trials if trial.is_ended), key=order_of_end)
    used = accumulate(trial.device_seconds for trial in ended)
    found: list[Point] = []
    place = 0
    for trial, device_seconds in zip(ended, used, strict=True):
        if trial.purpose is not Purpose.SEARCH:
            continue
        place += is_measured(trial)
        found.append(
            Point(
                trial_id=trial.trial_id,
                number=trial.number,
                place=place,
                device_seconds=device_seconds,
                value=trial.value if is_measured(trial) else None,
                suggested_by=trial.suggested_by,
                is_edited=trial.facts.edited is not None,
                params=trial.params,
            )
        )
    return found


def _record(point: Point, standing: Standing | None) -> Record:
    assert point.value is not None
    reach = None if standing is None or standing.sd <= 0 else _Z * standing.sd
    return Record(
        trial_id=point.trial_id,
        number=point.number,
        place=point.place,
        device_seconds=point.device_seconds,
        value=point.value,
        low=None if standing is None or reach is None else standing.mean - reach,
        high=None if standing is None or reach is None else standing.mean + reach,
        mean=None if standing is None else standing.mean,
    )
