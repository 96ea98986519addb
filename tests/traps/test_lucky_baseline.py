"""Trap: luck on one seed. A lucky challenger is no gain, and an unlucky default makes none.

The naive rule holds one value against one value. With an unlucky default nearly everything is "better"; with a lucky
challenger its lucky value is also what is reported as the result.
"""

from __future__ import annotations

from pathlib import Path

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
)


def null(x: float, seed: int) -> float:
    """Nothing differs but by noise."""
    return 0.5 + NOISE * noise(x, seed)


def test_an_unlucky_default_makes_no_gain(tmp_path: Path) -> None:
    def value(x: float, seed: int) -> float:
        return null(x, seed) - (0.5 if x == DEFAULT_X and seed == SEARCH_SEED else 0.0)

    world = ended(tmp_path, scripted(value))
    found, values = result_of(world), search_values(world)
    assert found.verdict != "supported"
    others = [v for x, v in values.items() if x != DEFAULT_X]
    assert all(v > values[DEFAULT_X] for v in others), "keep-if-better falls in, with every single one"


def test_a_lucky_challenger_is_no_gain_and_its_luck_is_not_reported(tmp_path: Path) -> None:
    def value(x: float, seed: int) -> float:
        is_lucky = seed == SEARCH_SEED and 0.6 < x < 0.8
        return null(x, seed) + (0.4 if is_lucky else 0.0)

    world = ended(tmp_path, scripted(value))
    found, values = result_of(world), search_values(world)
    naive = naive_keep_if_better(list(values.values()), values[DEFAULT_X])
    assert naive is not None
    assert naive > 0.8, "keep-if-better falls in"
    assert found.verdict != "supported"
    assert found.best_mean is None or abs(found.best_mean.estimate - 0.5) < 3 * NOISE


def test_noise_alone_supports_nothing_in_any_of_many_sessions(tmp_path: Path) -> None:
    """Six whole sessions without any effect: not one claims a gain, and the naive rule does in nearly all."""
    n_naive = 0
    task = trap_task(budgets={"trials": 8}, seeds={"fresh": 6, "max_pairs": 12})
    for session in range(6):

        def value(x: float, seed: int, session: int = session) -> float:
            return 0.5 + NOISE * noise(session, x, seed)

        world = ended(
            tmp_path / str(session),
            scripted(value),
            task=task,
        )
        assert result_of(world).verdict != "supported"
        values = search_values(world)
        n_naive += naive_keep_if_better(list(values.values()), values[DEFAULT_X]) is not None
    assert n_naive >= 5
