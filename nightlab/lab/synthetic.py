"""Worlds with a known truth for any task: each parameter is a place between 0 and 1, and a formula gives the rest.

The values lie between 0 (worst) and 1 (best), for a task that minimizes between 1 and 0. Training takes 60 to 300 s,
which depends on the configuration, and a little on the seed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from agent.planner.configuration import canonical
from agent.store.views import ParamValue
from agent.task import CategoricalParameter, Direction, Parameter, Task
from runtime_client.models import JobSpec

from .world import BadWorld, Course, Extent

SHORTEST_S, LONGEST_S = 60.0, 300.0
N_POINTS = 10
"""Of each curve."""
_N_TRUTH = 2000
"""Seeds that the truth of a rounded metric is averaged over."""
_OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 40, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB\n"
)

Height = Callable[[np.ndarray], float]
"""From places to a value between 0 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One kind of synthetic world."""

    about: str
    height: Height
    noise_sd: float = 0.02
    """Of one evaluation, in units of the range."""
    is_heavy_tailed: bool = False
    """Noise of a t distribution with 3 degrees of freedom, scaled to the same sd."""
    n_levels: int | None = None
    """The metric has so many steps, as the accuracy on a validation set of that size; None: it is smooth."""
    fails_above: float | None = None
    """Out of memory where the mean of the places is larger; None: nowhere."""


def _optimum(n: int) -> np.ndarray:
    """Where the best place lies on each axis: off the middle, off the edges, the same for all tasks."""
    return np.array([0.25 + 0.5 * ((0.381966 * (i + 1)) % 1.0) for i in range(n)])


def _sphere(places: np.ndarray) -> float:
    best = _optimum(len(places))
    furthest = np.maximum(best, 1.0 - best)
    return float(1.0 - np.sum((places - best) ** 2) / np.sum(furthest**2))


def _branin(places: np.ndarray) -> float:
    """The Branin function on the first two places; the others do nothing.

    Source: Dixon and Szegoe, The global optimization problem: an introduction (1978).
    """
    u = places if len(places) > 1 else np.append(places, 0.15)
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    value = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    value += 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    lowest, highest = 0.39788736, 308.12909601
    return float(1.0 - (value - lowest) / (highest - lowest))


def _flat(_places: np.ndarray) -> float:
    return 0.5


RECIPES: Mapping[str, Recipe] = {
    "sphere": Recipe(about="one smooth hill, gaussian noise of 2 % of the range", height=_sphere),
    "branin": Recipe(about="three equal valleys over the first two parameters", height=_branin),
    "noisy": Recipe(about="the hill under noise of 10 % of the range", height=_sphere, noise_sd=0.1),
    "heavy": Recipe(about="the hill under heavy-tailed noise", height=_sphere, is_heavy_tailed=True),
    "coarse": Recipe(about="the hill, measured in steps of 1/200", height=_sphere, n_levels=200),
    "cliff": Recipe(about="the hill; large configurations run out of memory", height=_sphere, fails_above=0.6),
    "null": Recipe(about="no parameter does anything: every claim of a gain is false", height=_flat, noise_sd=0.1),
}


class SyntheticWorld:
    """Implements `World` for one task."""

    def __init__(self, kind: str, task: Task) -> None:
        """
        Raises:
            BadWorld: there is no such kind.
        """
        if kind not in RECIPES:
            known = "; ".join(f"synthetic:{name} ({recipe.about})" for name, recipe in RECIPES.items())
            raise BadWorld(f"there is no world synthetic:{kind}; there are: {known}")
        self.name = f"synthetic:{kind}"
        self._recipe = RECIPES[kind]
        self._task = task
        is_up = task.objective.direction is Direction.MAXIMIZE
        self.extent = Extent(best=1.0, worst=0.0) if is_up else Extent(best=0.0, worst=1.0)

    def course(self, spec: JobSpec, draw: int) -> Course:
        params = canonical(spec.parameters, self._task)
        seed = spec.seed or 0
        rng = _generator(self.name, draw, params, seed)
        run_s = self._run_s(params) * float(np.exp(0.05 * rng.standard_normal()))
        if self._fails(params):
            return Course(run_s=0.1 * run_s, exit_code=1, output=_OUT_OF_MEMORY)
        metrics = spec.success.required_metrics or (self._task.objective.metric,)
        curves = {metric: self._curve(self._value(params, rng)) for metric in metrics}
        return Course(run_s=run_s, curves=curves)

    def truth(self, params: Mapping[str, ParamValue]) -> float | None:
        point = canonical(params, self._task)
        if self._fails(point):
            return None
        if self._recipe.n_levels is None:
            return self._shown(self._recipe.height(self._places(point)))
        values = [self._value(point, _generator(self.name, -1, point, seed)) for seed in range(_N_TRUTH)]
        return math.fsum(values) / len(values)

    def _value(self, params: Mapping[str, ParamValue], rng: np.random.Generator) -> float:
        recipe = self._recipe
        unit = rng.standard_t(3) / math.sqrt(3.0) if recipe.is_heavy_tailed else rng.standard_normal()
        height = recipe.height(self._places(params)) + recipe.noise_sd * float(unit)
        if recipe.n_levels is not None:
            height = min(max(round(height * recipe.n_levels), 0), recipe.n_levels) / recipe.n_levels
        return self._shown(height)

    def _shown(self, height: float) -> float:
        return height if self._task.objective.direction is Direction.MAXIMIZE else 1.0 - height

    def _curve(self, final: float) -> tuple[float, ...]:
        """A curve that comes from the worst value and closes nine tenths of what is left at each third."""
        start = self.extent.worst
        parts = [1.0 - 0.1 ** (3.0 * (i + 1) / N_POINTS) for i in range(N_POINTS - 1)]
        return (*(start + (final - start) * part for part in parts), final)

    def _fails(self, params: Mapping[str, ParamValue]) -> bool:
        limit = self._recipe.fails_above
        return limit is not None and float(np.mean(self._places(params))) > limit

    def _run_s(self, params: Mapping[str, ParamValue]) -> float:
        part = float(_generator("run_s", 0, params, 0).random())
        return SHORTEST_S + (LONGEST_S - SHORTEST_S) * part

    def _places(self, params: Mapping[str, ParamValue]) -> np.ndarray:
        return np.array([place(params[name], parameter) for name, parameter in self._task.space.items()])


def place(value: ParamValue, parameter: Parameter) -> float:
    """Where a value lies in its parameter's range: 0 at its low end, 1 at its high end; choices at equal distances."""
    if isinstance(parameter, CategoricalParameter):
        return parameter.choices.index(value) / max(len(parameter.choices) - 1, 1)
    assert isinstance(value, int | float), "a number of the space"
    low, high, at = float(parameter.low), float(parameter.high), float(value)
    if parameter.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)


def _generator(name: str, draw: int, params: Mapping[str, ParamValue], seed: int) -> np.random.Generator:
    text = json.dumps([name, draw, dict(params), seed], sort_keys=True)
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
