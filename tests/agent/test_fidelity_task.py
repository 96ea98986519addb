"""The parts of a task from a small probe to the big run: read, and what contradicts refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent.task import Task
from agent.task_checks import cross_checks

_LEAST: dict[str, Any] = {
    "task": "t",
    "objective": {"metric": "loss", "direction": "minimize"},
    "job": {"command": "train", "args_style": "argparse"},
    "space": {"lr": {"type": "float", "low": 0.1, "high": 1.0, "default": 0.5}},
    "budgets": {"trials": 4},
}
_FIDELITY = {"parameter": "epochs", "value": 3}


def _problems(**more: Any) -> list[tuple[str, str]]:
    return [(one.path, one.message) for one in cross_checks(Task.model_validate({**_LEAST, **more}))]


def test_without_them_a_task_is_as_before() -> None:
    task = Task.model_validate(_LEAST)
    assert (task.halving, task.ladder, task.also, task.constraints, task.feasibility) == (None, (), (), (), None)
    assert task.earlier.sessions


def test_a_ladder_needs_a_fidelity() -> None:
    rung = {"name": "full", "fidelity": 100}
    assert [path for path, _ in _problems(ladder=[rung])] == ["ladder"]
    assert not _problems(ladder=[rung], fidelity=_FIDELITY)


def test_two_rungs_of_one_name_are_refused() -> None:
    ladder = [{"name": "full", "fidelity": 10}, {"name": "full", "fidelity": 100}]
    assert [path for path, _ in _problems(ladder=ladder, fidelity=_FIDELITY)] == ["ladder.1.name"]


@pytest.mark.parametrize("sides", [{}, {"at_most": 1.0, "at_least": 0.0}])
def test_a_constraint_has_one_side(sides: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="at_least or at_most"):
        Task.model_validate({**_LEAST, "constraints": [{"metric": "latency", **sides}]})


def test_a_constraint_says_itself() -> None:
    task = Task.model_validate({**_LEAST, "constraints": [{"metric": "latency_ms", "at_most": 30}]})
    assert task.constraints[0].words == "latency_ms <= 30"
