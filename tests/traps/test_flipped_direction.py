"""Trap: the direction. The task says which way is better; no name, sign or habit does.

The naive rule takes `max` whatever is measured, or guesses from the metric's name: it crowns the worst loss.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from trap_worlds import DEFAULT_X, NOISE, ended, noise, result_of, scripted, search_values, trap_task, trials_of

from agent.planner.configuration import configuration_id

GUESSED = {"loss": min, "accuracy": max, "score": max}
"""What a rule that goes by the name does."""


def loss(x: float, seed: int) -> float:
    """Best, that is smallest, at 0.7."""
    return (x - 0.7) ** 2 * 4 + NOISE * noise(x, seed) * 0.2


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_the_smallest_wins_where_the_task_minimizes_whatever_the_name_says(metric: str, tmp_path: Path) -> None:
    task = trap_task(objective={"metric": metric, "direction": "minimize"})
    world = ended(tmp_path, scripted(loss, metric=metric), task=task)
    found, values = result_of(world), search_values(world)
    x = float(str(found.best["x"]))
    assert values[x] < values[DEFAULT_X]
    assert abs(x - 0.7) < 0.3
    assert found.verdict == "supported"
    assert found.difference is not None
    assert found.difference.estimate < 0
    naive = max(values, key=lambda at: values[at])
    assert values[naive] > values[DEFAULT_X], "taking the greatest falls in"
    if metric == "accuracy":
        guessed = GUESSED[metric](values.values())
        assert guessed > values[DEFAULT_X], "going by the name falls in"


def test_a_mirrored_metric_gives_the_same_session(tmp_path: Path) -> None:
    """Minimizing f and maximizing -f try the same points in the same order and say the same."""
    down = ended(
        tmp_path / "down", scripted(loss), task=trap_task(objective={"metric": "score", "direction": "minimize"})
    )
    up = ended(
        tmp_path / "up",
        scripted(lambda x, seed: -loss(x, seed)),
        task=trap_task(objective={"metric": "score", "direction": "maximize"}),
    )
    tried = [[(t.configuration, t.seed, t.purpose) for t in trials_of(world)] for world in (down, up)]
    assert tried[0] == tried[1]
    one, other = result_of(down), result_of(up)
    assert (one.verdict, one.comparison, one.best) == (other.verdict, other.comparison, other.best)
    assert one.difference is not None
    assert other.difference is not None
    assert one.difference.estimate == pytest.approx(-other.difference.estimate)


def test_nothing_is_better_than_a_default_that_is_the_best(tmp_path: Path) -> None:
    """The flipped rule finds a winner wherever the right one finds none."""
    task = trap_task(objective={"metric": "score", "direction": "minimize"})
    world = ended(tmp_path, scripted(lambda x, seed: abs(x - DEFAULT_X) + 0.01 * noise(x, seed)), task=task)
    found, values = result_of(world), search_values(world)
    assert found.verdict != "supported"
    assert max(values.values()) > values[DEFAULT_X], "the flipped rule falls in"
    assert configuration_id(found.default) == found.default_configuration
