"""Trap: the seed. A configuration that is good on the search seed alone is not good.

The naive rule compares the values of the search, which all ran on one seed: whoever fits that seed, by luck or by
choosing it, wins. A seed is never a parameter, whoever asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from trap_worlds import (
    DEFAULT_X,
    NOISE,
    SEARCH_SEED,
    ended,
    naive_keep_if_better,
    noise,
    result_of,
    scripted,
    search_values,
    trap_task,
    trials_of,
)

from agent.store.views import Purpose
from agent.task_file import TaskError, parse_task

TASK = """
task: seeds
objective: {metric: score, direction: maximize}
job: {command: python train.py, args_style: argparse}
budgets: {trials: 4}
"""
SPACE = "space: {x: {type: float, low: 0.0, high: 1.0, default: 0.2}}\n"


def hacked(x: float, seed: int) -> float:
    """Worth nothing, but for the search seed."""
    return 0.5 + NOISE * noise(x, seed) + (0.5 if seed == SEARCH_SEED and x != DEFAULT_X else 0.0)


def test_what_only_wins_on_the_search_seed_is_not_supported(tmp_path: Path) -> None:
    world = ended(tmp_path, scripted(hacked))
    found, values = result_of(world), search_values(world)
    assert found.verdict != "supported"
    assert found.best_mean is None or found.best_mean.estimate < 0.6, "the search value is no part of the estimate"
    naive = naive_keep_if_better(list(values.values()), values[DEFAULT_X])
    assert naive is not None
    assert naive > 0.8, "keep-if-better falls in"


def test_what_wins_on_the_search_seed_and_on_the_racing_seeds_alone_is_not_supported(tmp_path: Path) -> None:
    """Seeds that were seen while choosing say nothing at the end: only untouched ones do."""
    task = trap_task()

    def value(x: float, seed: int) -> float:
        is_seen = seed == SEARCH_SEED or task.seeds.first_racing <= seed < task.seeds.first_fresh
        return 0.5 + NOISE * noise(x, seed) + (0.02 if is_seen and x != DEFAULT_X else 0.0)

    found = result_of(ended(tmp_path, scripted(value), task=task))
    assert found.difference is None or abs(found.difference.estimate) < 0.1
    assert found.verdict != "supported"


@pytest.mark.parametrize("name", ["seed", "random_seed", "random-state", "RandomSeed"])
def test_a_space_can_not_hold_the_seed(name: str, tmp_path: Path) -> None:
    text = TASK + f"space: {{{name}: {{type: int, low: 0, high: 100, default: 0}}}}\n"
    with pytest.raises(TaskError, match="luckiest"):
        parse_task(text, source=tmp_path / "task.yaml")


@pytest.mark.parametrize(
    "more",
    ["held_out: {metric: test, parameters: {seed: 3}}", "fidelity: {parameter: seed, value: 3}"],
)
def test_nothing_in_a_task_fixes_the_seed(more: str, tmp_path: Path) -> None:
    text = TASK + SPACE + more + "\n"
    with pytest.raises(TaskError, match="replicates repeat one run"):
        parse_task(text, source=tmp_path / "task.yaml")


def test_a_fixed_parameter_is_not_the_seed(tmp_path: Path) -> None:
    """With it, every pair would be the same lucky pair again, and eight of them would pass for certainty."""
    text = TASK.replace("argparse}", "argparse, parameters: {seed: 3}}") + SPACE
    with pytest.raises(TaskError, match="replicates repeat one run"):
        parse_task(text, source=tmp_path / "task.yaml")


def test_all_of_a_search_runs_on_one_seed_and_the_end_on_others(tmp_path: Path) -> None:
    world = ended(tmp_path, scripted(hacked))
    assert {t.seed for t in trials_of(world, Purpose.SEARCH)} == {SEARCH_SEED}
    assert SEARCH_SEED not in {t.seed for t in trials_of(world, Purpose.REPLICATE)}
