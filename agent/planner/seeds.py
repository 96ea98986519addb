"""Which seed serves what: the search, the race while it goes on, the claim at the end. Pure.

The three never meet: a fresh seed that the race had touched would carry the luck of the choice into the final claim.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from agent.task import Task


def n_pairs_at_most(task: Task) -> int:
    """Pairs that one claim may take: never fewer than those of the first look."""
    return max(task.seeds.fresh, task.seeds.max_pairs)


def all_fresh(task: Task) -> list[int]:
    """Every seed that is kept for the end, in order: twice the pairs, since broken pairs are replaced."""
    first, n = task.seeds.first_fresh, 2 * n_pairs_at_most(task)
    return [seed for seed in range(first, first + n + 1) if seed != task.seeds.search][:n]


def is_fresh(task: Task, seed: int) -> bool:
    """Whether a seed is kept for the claim at the end."""
    first, n = task.seeds.first_fresh, 2 * n_pairs_at_most(task)
    return first <= seed <= first + n and seed != task.seeds.search


def racing(task: Task) -> Iterator[int]:
    """Seeds of the race, in order, without end: the same for every configuration."""
    for seed in itertools.count(task.seeds.first_racing):
        if seed != task.seeds.search and not is_fresh(task, seed):
            yield seed


def is_racing(task: Task, seed: int) -> bool:
    return seed >= task.seeds.first_racing and seed != task.seeds.search and not is_fresh(task, seed)
