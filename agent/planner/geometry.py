"""Where configurations lie to each other: parameters on a scale of 0 to 1, logarithmic ones by logarithm. Pure.

A value beyond its range lies below 0 or above 1. A categorical parameter keeps the place of its choice; two choices are
equal or one whole unit apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.planner.configuration import canonical
from agent.store.views import ParamValue
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task

Vector = npt.NDArray[np.float64]


class Geometry:
    """The space of a task as a unit cube."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.names = tuple(task.space)
        self.parameters: tuple[Parameter, ...] = tuple(task.space.values())
        self.is_categorical = np.array([isinstance(p, CategoricalParameter) for p in self.parameters], dtype=bool)

    def places(self, params: Mapping[str, ParamValue]) -> Vector:
        """One row: 0 to 1 for numbers of the space, the index of the choice for the others."""
        return np.array([place(params[name], p) for name, p in zip(self.names, self.parameters, strict=True)])

    def params(self, places: Sequence[float] | Vector) -> dict[str, ParamValue]:
        """The configuration nearest to a place; numbers outside of 0 to 1 are taken to the border."""
        found = {n: value_at(x, p) for n, p, x in zip(self.names, self.parameters, places, strict=True)}
        return canonical(found, self._task)

    def differences(self, first: Vector, second: Vector) -> Any:
        """Absolute differences, one row of `first` by one of `second` by one parameter; categorical ones are 0 or 1."""
        apart = np.abs(first[:, None, :] - second[None, :, :])
        if self.is_categorical.any():
            apart[:, :, self.is_categorical] = apart[:, :, self.is_categorical] > 0
        return apart


def place(value: ParamValue, parameter: Parameter) -> float:
    match parameter:
        case CategoricalParameter():
            return float(_index(value, parameter))
        case FloatParameter() | IntParameter():
            low, high, x = float(parameter.low), float(parameter.high), float(value)  # type: ignore[arg-type]
            if parameter.log:
                low, high, x = math.log(low), math.log(high), math.log(x)
            return (x - low) / (high - low)


def value_at(at: float, parameter: Parameter) -> ParamValue:
    match parameter:
        case CategoricalParameter():
            return parameter.choices[min(max(round(at), 0), len(parameter.choices) - 1)]
        case FloatParameter() | IntParameter():
            at = min(max(float(at), 0.0), 1.0)
            low, high = float(parameter.low), float(parameter.high)
            if parameter.log:
                x = math.exp(math.log(low) + at * (math.log(high) - math.log(low)))
            else:
                x = low + at * (high - low)
            if isinstance(parameter, IntParameter):
                return min(max(round(x), parameter.low), parameter.high)
            return min(max(x, low), high)


def _index(value: ParamValue, parameter: CategoricalParameter) -> int:
    for index, choice in enumerate(parameter.choices):
        if choice == value and isinstance(choice, bool) == isinstance(value, bool):
            return index
    raise ValueError(f"{value!r} is not among {list(parameter.choices)}")
