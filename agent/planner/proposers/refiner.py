"""Steps around the best by standing: few parameters at a time, farther while that works and shorter when not. Pure.

Of many such steps the one is proposed that a surrogate of the values so far expects most of. Running trials are part
of it with the values that it expects of them, so parallel proposals spread out. Trials that gave no value are never
given one: places near them count less by the share of such trials around.

Sources: the one-fifth success rule (Rechenberg, 1973) for the length of the steps; Ginsbourger, Le Riche and Carraro,
Kriging is well-suited to parallelize optimization, 2010, for running trials.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from agent.planner.configuration import configuration_id
from agent.planner.geometry import Geometry, Vector
from agent.planner.history import History, Proposal
from agent.planner.proposers.drawing import source_for, uniform_places
from agent.planner.repetition import Tried
from agent.planner.standings import means_so_far, values_so_far
from agent.planner.surrogate import Surrogate, expected_gain
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.task import CategoricalParameter, Direction, Task

N_POINTS = 90
"""Configurations that the surrogate sees: the best and the newest."""
_N_STEPS = 240
_FIRST_STEP = 0.3
_SHORTEST, _LONGEST = 0.02, 0.5
"""Standard deviation of a step, in parts of a parameter's range."""
_N_CENTERS = 3
_FEWEST = 4
"""Measured configurations from which a surrogate says something."""


class Refiner:
    """Implements `Proposer`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._geometry = Geometry(task)
        self._tried = Tried(task)
        self._sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0

    @property
    def name(self) -> str:
        return "refiner"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        """Nothing before any value is known, and nothing when all the steps only repeat."""
        known = self._known(history)
        if not known or n < 1:
            return []
        self._tried.follow(history.search)
        number = history.trials[-1].number if history.trials else 0
        pending = [t.params for t in history.search if not t.is_ended][-N_POINTS:]
        found: list[Proposal] = []
        while len(found) < n:
            params = self._next(history, known, pending, number + 1 + len(found))
            if params is None:
                break
            pending.append(params)
            found.append(self._proposal(params))
        return found

    def _proposal(self, params: dict[str, ParamValue]) -> Proposal:
        return Proposal(
            params=params,
            configuration=configuration_id(params),
            seed=self._task.seeds.search,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why="a step from one of the best so far, from which its neighbors let most be expected",
        )

    def _known(self, history: History) -> list[tuple[TrialView, float, int]]:
        """Trial, mean goodness and number of values: the best and the newest, in the order of the trials."""
        means = means_so_far(self._task, history)
        trials = history.search if len(history.search) <= N_POINTS else self._chosen(history, means)
        seen = [t for t in trials if t.state is TrialState.MEASURED and t.configuration in means]
        values = values_so_far(self._task, history, [t.configuration for t in seen])
        return [(t, self._sign * means[t.configuration], len(values[t.configuration])) for t in seen]

    def _chosen(self, history: History, means: Mapping[str, float]) -> list[TrialView]:
        measured = [t for t in history.search if t.state is TrialState.MEASURED and t.configuration in means]
        newest = measured[-N_POINTS // 3 :]
        best = sorted(measured, key=lambda t: -self._sign * means[t.configuration])
        wanted = {t.trial_id for t in (*newest, *best[: N_POINTS - len(newest)])}
        return [t for t in measured if t.trial_id in wanted]

    def _next(
        self,
        history: History,
        known: list[tuple[TrialView, float, int]],
        pending: list[dict[str, ParamValue]],
        number: int,
    ) -> dict[str, ParamValue] | None:
        source = source_for(self._task, self.name, number)
        points = np.array([self._geometry.places(trial.params) for trial, _, _ in known])
        goodness = np.array([good for _, good, _ in known])
        order = np.argsort(-goodness, kind="stable")
        if len(known) < _FEWEST:
            fresh = self._fresh(self._steps(points[order[:1]], self._step_length(history), source), pending)
            return fresh[0] if fresh else None
        counts = np.array([float(n) for _, _, n in known])
        surrogate = Surrogate(self._geometry, points, goodness, counts)
        belief = surrogate.believe(points)
        order = np.argsort(-belief.mean, kind="stable")
        steps = self._steps(points[order[:_N_CENTERS]], self._step_length(history), source)
        candidates = self._fresh(steps, pending) or self._fresh(uniform_places(self._geometry, source, 30), pending)
        if not candidates:
            return None
        if pending:
            surrogate = surrogate.believing(np.array([self._geometry.places(p) for p in pending]))
        places = np.array([self._geometry.places(params) for params in candidates])
        worth = expected_gain(surrogate.believe(places), float(belief.mean[order[0]]))
        return candidates[int(np.argmax(worth * self._chance_of_a_value(places, points, history)))]

    def _steps(self, centers: Vector, length: float, source: np.random.Generator) -> Vector:
        """Points that differ from a center in one to three parameters."""
        n_parameters = len(self._geometry.names)
        rows = np.repeat(centers, -(-_N_STEPS // len(centers)), axis=0)[:_N_STEPS]
        n_moved = source.integers(1, min(n_parameters, 3) + 1, size=len(rows))
        is_moved = np.argsort(source.random(rows.shape), axis=1) < n_moved[:, None]
        moved = np.clip(rows + source.normal(0.0, length, rows.shape), 0.0, 1.0)
        for column, parameter in enumerate(self._geometry.parameters):
            if isinstance(parameter, CategoricalParameter):
                moved[:, column] = source.integers(len(parameter.choices), size=len(rows))
        stepped = np.where(is_moved, moved, rows)
        return np.asarray(stepped[source.permutation(len(stepped))])

    def _fresh(self, places: Vector, pending: list[dict[str, ParamValue]]) -> list[dict[str, ParamValue]]:
        names = {configuration_id(params) for params in pending}
        found = []
        for row in places:
            params = self._geometry.params(row)
            name = configuration_id(params)
            if name not in names and self._tried.objection(params) is None:
                names.add(name)
                found.append(params)
        return found

    def _step_length(self, history: History) -> float:
        """Longer by a half after each own trial that was the best by then, shorter by a tenth after the others."""
        best, length = -np.inf, _FIRST_STEP
        for trial in history.search:
            if trial.state is not TrialState.MEASURED or trial.value is None:
                continue
            good = self._sign * trial.value
            if trial.suggested_by == self.name:
                length = min(max(length * (1.5 if good > best else 0.9), _SHORTEST), _LONGEST)
            best = max(best, good)
        return length

    def _chance_of_a_value(self, places: Vector, points: Vector, history: History) -> Vector:
        failed = [t.params for t in history.search if t.state is TrialState.INVALID][-N_POINTS:]
        if not failed:
            return np.ones(len(places))
        bad = np.array([self._geometry.places(params) for params in failed])
        weight_bad, weight_good = (
            np.exp(-0.5 * np.sum(self._geometry.differences(places, some) ** 2, axis=2) / 0.15**2).sum(axis=1)
            for some in (bad, points)
        )
        return np.asarray((weight_good + 0.1) / (weight_good + weight_bad + 0.1))
