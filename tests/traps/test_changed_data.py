"""Trap: the data, or what measures, changes under the session. A value on other data is another question.

The naive rule compares numbers, wherever they come from: the default's were measured before somebody "cleaned" the
validation set, the challenger's after it, and the cleaning is sold as a gain.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from agent_worlds import World, a_world
from trap_worlds import (
    DEFAULT_X,
    FIRST_FRESH,
    NOISE,
    measured,
    naive_difference,
    noise,
    result_of,
    trap_task,
    trials_of,
    x_of,
)

from agent.planner.comparable import why_not_comparable
from agent.store.views import Purpose, TrialState
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

CLEANING = 0.5
"""What the other data, or the other scorer, adds to every value."""


def null(spec: JobSpec) -> float:
    return 0.5 + NOISE * noise(x_of(spec), spec.seed)


class ChangedAtTheEnd:
    """Jobs that read a file; it changes when the challenger's first fresh seed is about to be measured."""

    def __init__(self, path: Path, *, is_scored: bool = False) -> None:
        self.path = path
        self.is_scored = is_scored
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("as it was")

    def __call__(self, spec: JobSpec) -> FakeOutcome:
        if self.is_scored and "nightlab.score_of" not in spec.tags:
            return FakeOutcome(curves={"train_loss": [1.0, 0.5]}, duration_s=10.0)
        is_changed = self.path.read_text() != "as it was"
        if not is_changed and (spec.seed or 0) >= FIRST_FRESH and x_of(spec) != DEFAULT_X:
            self.path.write_text("cleaned up a little")
            is_changed = True
        return measured(spec, null(spec) + (CLEANING if is_changed else 0.0))


def scored_task(folder: Path) -> Task:
    return trap_task(
        job={"command": "train", "code_source": {"root_path": str(folder)}}, score={"command": "python evaluate.py"}
    )


def nothing_is_mixed(world: World, task: Task) -> None:
    """No pair that counted was on different data: the difference is that of nothing, not of the cleaning."""
    found = result_of(world)
    assert found.verdict != "supported"
    assert found.difference is None or abs(found.difference.estimate) < CLEANING / 4
    assert naive_difference(world) > CLEANING / 5, "pairs by seed alone, first come first counted, fall in"


@pytest.mark.parametrize("fingerprint", ["manifest", "sha256"])
def test_a_gain_that_comes_with_other_data_is_none(fingerprint: str, tmp_path: Path) -> None:
    data = tmp_path / "data" / "validation.csv"
    task = trap_task(data=[{"path": str(data.parent), "fingerprint": fingerprint}])
    world = a_world(tmp_path / "home", task=task, script=ChangedAtTheEnd(data))
    world.live()
    prints = {t.facts.data for t in trials_of(world)}
    assert len(prints) == 2
    assert None not in prints
    nothing_is_mixed(world, task)


def test_a_gain_that_comes_with_another_scorer_is_none(tmp_path: Path) -> None:
    scorer = tmp_path / "code" / "evaluate.py"
    task = scored_task(scorer.parent)
    world = a_world(tmp_path / "home", task=task, script=ChangedAtTheEnd(scorer, is_scored=True))
    world.live()
    assert len({t.facts.scorer for t in trials_of(world) if t.value is not None}) == 2
    nothing_is_mixed(world, task)


def test_trials_on_either_side_of_a_change_are_not_comparable(tmp_path: Path) -> None:
    data = tmp_path / "data" / "validation.csv"
    task = trap_task(data=[{"path": str(data)}])
    world = a_world(tmp_path / "home", task=task, script=ChangedAtTheEnd(data))
    world.live()
    before = next(t for t in trials_of(world, Purpose.SEARCH) if t.state is TrialState.MEASURED)
    after = next(t for t in reversed(trials_of(world, Purpose.REPLICATE)) if t.state is TrialState.MEASURED)
    reason = why_not_comparable(before, after, task)
    assert reason is not None
    assert "the data changed" in reason


def test_the_control_finds_a_true_gain_on_pinned_data(tmp_path: Path) -> None:
    data = tmp_path / "data" / "validation.csv"
    data.parent.mkdir()
    data.write_text("as it is")
    script: Callable[[JobSpec], FakeOutcome] = lambda spec: measured(  # noqa: E731
        spec, 1 - (x_of(spec) - 0.7) ** 2 + 0.2 * NOISE * noise(x_of(spec), spec.seed)
    )
    world = a_world(tmp_path / "home", task=trap_task(data=[{"path": str(data)}]), script=script)
    world.live()
    assert result_of(world).verdict == "supported"
