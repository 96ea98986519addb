"""Draws that the history fixes: numpy generators seeded by the task's seed, a number and who draws. Pure.

The number counts configurations where draws are not to depend on when replicates were made: so the same ones are drawn
at random in every session on a task.
"""

from __future__ import annotations

import hashlib

import numpy as np

from agent.planner.geometry import Geometry, Vector
from agent.task import CategoricalParameter, Task


def seed_for(task: Task, who: str, number: int, redraw: int = 0) -> int:
    """32 bits, another for every proposer, trial number and redraw."""
    text = f"{task.sampler_seed}/{who}/{number}/{redraw}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def source_for(task: Task, who: str, number: int) -> np.random.Generator:
    return np.random.default_rng(seed_for(task, who, number))


def uniform_places(geometry: Geometry, source: np.random.Generator, n: int) -> Vector:
    """Points of the whole space, one a row."""
    places = source.random((n, len(geometry.names)))
    for column, parameter in enumerate(geometry.parameters):
        if isinstance(parameter, CategoricalParameter):
            places[:, column] = source.integers(len(parameter.choices), size=n)
    return places
