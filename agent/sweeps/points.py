"""The configurations that a sweep file names: as a task reads them, what is wrong with them, what is there twice. Pure.

Places are those of the sweep file: `method.values.lr.2`, `method.points.3`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.planner.configuration import canonical, configuration_id, default_params, problems
from agent.planner.suggested import allowed
from agent.sweeps.sweep import GridMethod, ListMethod, Sweep
from agent.task import Task
from agent.task_checks import Problem

Point = dict[str, str | int | float | bool]
N_POINTS = 10_000
"""Configurations of a grid at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    points: tuple[Point, ...] = ()
    """Each configuration once, in the order of the file."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    """What is written twice and runs once."""


def named_points(sweep: Sweep, task: Task) -> Points:
    """None of random and Optuna's, whose configurations the file does not name."""
    match sweep.method:
        case GridMethod(values=values):
            return _of_grid(values, task)
        case ListMethod(points=points):
            return _of_list(points, task)
        case _:
            return Points()


def _of_grid(values: Mapping[str, Sequence[str | int | float | bool]], task: Task) -> Points:
    n = math.prod(len(choices) for choices in values.values())
    if n > N_POINTS:
        what = f"{n} configurations; at most {N_POINTS} are possible"
        return Points(problems=(Problem(path="method.values", message=what),))
    wrong: list[Problem] = []
    notes: list[Problem] = []
    kept: dict[str, list[str | int | float | bool]] = {}
    for name, choices in values.items():
        places = [f"method.values.{name}.{at}" for at in range(len(choices))]
        unknown = list(_unknown(f"method.values.{name}", name, task))
        wrong += unknown or itertools.chain.from_iterable(
            _not_allowed(place, name, value, task) for place, value in zip(places, choices, strict=True)
        )
        if wrong:
            continue
        first = _first_places([{name: value} for value in choices], task)
        kept[name] = [value for at, value in enumerate(choices) if first[at] == at]
        notes += [
            Problem(path=place, message=f"{choices[at]!r} is there already (method.values.{name}.{first[at]})")
            for at, place in enumerate(places)
            if first[at] != at
        ]
    if wrong:
        return Points(problems=tuple(wrong))
    rows = itertools.product(*kept.values())
    return Points(points=tuple(dict(zip(kept, row, strict=True)) for row in rows), notes=tuple(notes))


def _of_list(points: Sequence[Point], task: Task) -> Points:
    wrong: list[Problem] = []
    for at, point in enumerate(points):
        for name, value in point.items():
            place = f"method.points.{at}.{name}"
            wrong += list(_unknown(place, name, task)) or _not_allowed(place, name, value, task)
    if wrong:
        return Points(problems=tuple(wrong))
    first = _first_places(points, task)
    default = configuration_id(default_params(task))
    notes = []
    for at, point in enumerate(points):
        place = f"method.points.{at}"
        if first[at] != at:
            what = f"is the same configuration as method.points.{first[at]}; it runs once"
            notes.append(Problem(path=place, message=what))
        elif _identity(point, task) == default:
            notes.append(Problem(path=place, message="is the default configuration, which runs first in any case"))
    return Points(points=tuple(point for at, point in enumerate(points) if first[at] == at), notes=tuple(notes))


def _first_places(points: Sequence[Mapping[str, str | int | float | bool]], task: Task) -> list[int]:
    """For each point, where the same configuration is named first."""
    seen: dict[str, int] = {}
    return [seen.setdefault(_identity(point, task), at) for at, point in enumerate(points)]


def _identity(point: Mapping[str, str | int | float | bool], task: Task) -> str:
    return configuration_id(canonical({**default_params(task), **point}, task))


def _unknown(place: str, name: str, task: Task) -> Iterator[Problem]:
    if name not in task.space:
        what = f"{name} is not in the space of task {task.task}; allowed: {', '.join(task.space)}"
        yield Problem(path=place, message=what)


def _not_allowed(place: str, name: str, value: str | int | float | bool, task: Task) -> list[Problem]:
    if not problems(canonical({**default_params(task), name: value}, task), task):
        return []
    what = f"{value!r} is not allowed by task {task.task}; allowed: {allowed(name, task)}"
    return [Problem(path=place, message=what)]
