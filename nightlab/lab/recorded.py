"""Worlds from what was measured: a CSV table, or JSON lines with whole curves. Gzip by the name `.gz`.

CSV: a column for each parameter of the task, one for its metric (and for the held-out one), and if there are any
`seed` and `train_time` (seconds). JSON lines: `{"parameters": {...}, "seed": 0, "metrics": {"loss": [2.1, 1.4]},
"train_time": 120, "exit_code": 1, "output": "..."}`; the last three may be left out.

A configuration that was not recorded is taken for the nearest one; a seed that was not is drawn from the recorded
ones, by a hash of the configuration and the seed, so that evaluations are independent draws from what was measured.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from agent.planner.configuration import canonical, configuration_id, problems
from agent.store.views import ParamValue
from agent.task import CategoricalParameter, Direction, FloatParameter, IntParameter, Task
from runtime_client.models import JobSpec

from .synthetic import place
from .world import BadWorld, Course, Extent

USUAL_RUN_S = 60.0
"""Of a record that does not tell."""


@dataclass(slots=True, kw_only=True)
class _Point:
    """What was recorded of one configuration."""

    params: dict[str, ParamValue]
    by_seed: dict[int, Course] = field(default_factory=dict)


class RecordedWorld:
    """Implements `World` for one task."""

    def __init__(self, path: Path, task: Task) -> None:
        """
        Raises:
            BadWorld: the file can not be read as such, or lacks what the task needs.
        """
        self.name = path.name
        self._task = task
        self._points: dict[str, _Point] = {}
        for where, params, seed, course in _records(path, task):
            point = canonical(params, task)
            wrong = problems(point, task)
            if wrong:
                raise BadWorld(f"{where}: not in the task's space: {'; '.join(wrong)}")
            known = self._points.setdefault(configuration_id(point), _Point(params=point))
            known.by_seed[len(known.by_seed) if seed is None else seed] = course
        if not self._points:
            raise BadWorld(f"{path}: there is no record in it")
        self._ids = list(self._points)
        self._places = np.array([self._at(self._points[name].params) for name in self._ids])
        self._truths = {name: self._mean(point) for name, point in self._points.items()}
        found = [truth for truth in self._truths.values() if truth is not None]
        if not found:
            raise BadWorld(f"{path}: no record has a finite value of {task.objective.metric!r}")
        is_up = task.objective.direction is Direction.MAXIMIZE
        self.extent = Extent(best=max(found) if is_up else min(found), worst=min(found) if is_up else max(found))

    def course(self, spec: JobSpec, draw: int) -> Course:
        name = self._nearest(canonical(spec.parameters, self._task))
        recorded = self._points[name].by_seed
        seed = spec.seed or 0
        if seed in recorded:
            return recorded[seed]
        digest = hashlib.sha256(f"{self.name}/{draw}/{name}/{seed}".encode()).digest()
        seeds = sorted(recorded)
        return recorded[seeds[int.from_bytes(digest[:8], "big") % len(seeds)]]

    def truth(self, params: Mapping[str, ParamValue]) -> float | None:
        return self._truths[self._nearest(canonical(params, self._task))]

    def _nearest(self, params: Mapping[str, ParamValue]) -> str:
        name = configuration_id(params)
        if name in self._points:
            return name
        distances = np.sum((self._places - self._at(params)) ** 2, axis=1)
        return self._ids[int(np.argmin(distances))]

    def _at(self, params: Mapping[str, ParamValue]) -> np.ndarray:
        """Places in the unit cube; each choice has an axis of its own, since choices have no order."""
        at: list[float] = []
        for name, parameter in self._task.space.items():
            if isinstance(parameter, CategoricalParameter):
                at.extend(float(params[name] == choice) for choice in parameter.choices)
            else:
                at.append(place(params[name], parameter))
        return np.array(at)

    def _mean(self, point: _Point) -> float | None:
        metric = self._task.objective.metric
        ends = [course.curves[metric][-1] for course in point.by_seed.values() if course.curves.get(metric)]
        finite = [value for value in ends if math.isfinite(value)]
        return math.fsum(finite) / len(finite) if finite else None


_Record = tuple[str, dict[str, ParamValue], int | None, Course]
"""Where it stands, parameters, seed, what happened."""


def _records(path: Path, task: Task) -> Iterator[_Record]:
    is_table = ".csv" in path.suffixes
    if not is_table and ".jsonl" not in path.suffixes:
        raise BadWorld(f"{path}: a world is a table (.csv), recorded curves (.jsonl), or synthetic:NAME")
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            yield from _rows(path, file, task) if is_table else _lines(path, file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadWorld(f"{path} can not be read: {error}") from error


def _rows(path: Path, file: IO[str], task: Task) -> Iterator[_Record]:
    rows = csv.DictReader(file)
    columns = tuple(rows.fieldnames or ())
    metrics = [task.objective.metric, *([] if task.held_out is None else [task.held_out.metric])]
    lacking = [name for name in (*task.space, task.objective.metric) if name not in columns]
    if lacking:
        raise BadWorld(f"{path}: no column {', '.join(lacking)}; there are: {', '.join(columns) or 'none'}")
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        try:
            params = {name: _cell(row[name], task, name) for name in task.space}
            curves = {name: (float(row[name]),) for name in metrics if row.get(name)}
            seed = int(row["seed"]) if row.get("seed") else None
            run_s = float(row["train_time"]) if row.get("train_time") else USUAL_RUN_S
        except (TypeError, ValueError) as error:
            raise BadWorld(f"{where}: {error}") from error
        yield where, params, seed, Course(run_s=run_s, curves=curves)


def _cell(text: str, task: Task, name: str) -> ParamValue:
    match task.space[name]:
        case FloatParameter():
            return float(text)
        case IntParameter():
            return int(float(text))
        case CategoricalParameter() as parameter:
            return next((choice for choice in parameter.choices if str(choice) == text), text)


def _lines(path: Path, file: IO[str]) -> Iterator[_Record]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record: dict[str, Any] = json.loads(line)
            curves = {name: tuple(float(value) for value in curve) for name, curve in record["metrics"].items()}
            course = Course(
                run_s=float(record.get("train_time", USUAL_RUN_S)),
                curves=curves,
                exit_code=int(record.get("exit_code", 0)),
                output=str(record.get("output", "")),
            )
            params, seed = dict(record["parameters"]), record.get("seed")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadWorld(f"{where}: not a record of a run ({type(error).__name__}: {error})") from error
        yield where, params, None if seed is None else int(seed), course
