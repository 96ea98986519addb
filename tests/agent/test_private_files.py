"""The scorer's own files: where they lie, and what contradicts that they are kept from the training."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_worlds import a_task

from agent.private_files import moved_with_code, private_elsewhere, private_in_code
from agent.sweeps.cells import CodeRef, cells_of
from agent.sweeps.sweep import Sweep
from agent.task import Task
from agent.task_file import TaskError, parse_task

TASK = """
task: digits
objective: {metric: loss, direction: minimize}
job: {command: python train.py, args_style: argparse, code_source: {root_path: code}}
score: {command: python score.py, private: [PRIVATE]}
code: {editable: [model.py], readable: [READABLE]}
search: {use: [outside]}
data: [{path: DATA}]
budgets: {trials: 4}
space: {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("code/model.py", "code/score.py", "code/private/test.npy", "elsewhere/test.npy", "shared/train.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def read(folder: Path, private: str, *, readable: str = "shared", data: str = "shared/train.npy") -> Task:
    text = TASK.replace("PRIVATE", private).replace("READABLE", readable).replace("DATA", data)
    return parse_task(text, source=folder / "task.yaml")


def problems(folder: Path, private: str, **shown: str) -> list[tuple[str, str]]:
    with pytest.raises(TaskError) as refused:
        read(folder, private, **shown)
    return [(problem.path, problem.message) for problem in refused.value.problems]


def test_private_files_are_told_apart_by_whether_they_lie_in_the_code(folder: Path) -> None:
    task = read(folder, "code/score.py, ./code/private, elsewhere/../elsewhere/test.npy")
    assert private_in_code(task) == ("score.py", "private")
    assert private_elsewhere(task) == (str(folder / "elsewhere/test.npy"),)


def test_a_private_file_that_is_missing_is_told(folder: Path) -> None:
    assert problems(folder, "code/absent.py") == [
        ("score.private.0", f"{folder}/code/absent.py does not exist, or can not be read by this user")
    ]


def test_patterns_are_no_names(folder: Path) -> None:
    ((path, message),) = problems(folder, '"code/*.npy"')
    assert path == "score.private.0"
    assert "not patterns" in message


@pytest.mark.parametrize("private", ["code", "."])
def test_the_code_itself_can_not_be_private(folder: Path, private: str) -> None:
    found = dict(problems(folder, private, readable="/usr", data="/usr"))
    assert "holds the code" in found["score.private.0"]


@pytest.mark.parametrize("shown", ["elsewhere", "elsewhere/test.npy"])
def test_what_the_training_is_shown_can_not_be_private(folder: Path, shown: str) -> None:
    assert [path for path, _ in problems(folder, "elsewhere/test.npy", readable=shown)] == ["code.readable.0"]
    assert [path for path, _ in problems(folder, "elsewhere/test.npy", data=shown)] == ["data.0.path"]
    assert [path for path, _ in problems(folder, "elsewhere", readable="elsewhere/test.npy")] == ["code.readable.0"]


def test_private_files_in_another_state_of_the_code_are_those_of_that_state(folder: Path) -> None:
    """In a sweep over states of the code, a checkout of each has files of its own: none of them is shown either."""
    task = read(folder, "code/score.py, code/private, elsewhere/test.npy")
    moved = moved_with_code(task, "/states/main/code")
    assert moved is not None
    assert moved.private == (
        "/states/main/code/score.py",
        "/states/main/code/private",
        str(folder / "elsewhere/test.npy"),
    )


def test_the_cells_of_a_sweep_have_them_where_their_code_is(folder: Path) -> None:
    for name in ("score.py", "model.py", "private/test.npy"):
        (folder / "state" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "state" / name).write_text("")
    task = read(folder, "code/score.py, code/private").model_copy(update={"code": None, "space": a_task().space})
    sweep = Sweep.model_validate({"sweep": "s", "task": "t.yaml", "method": {"kind": "random", "trials": 4}})
    ref = CodeRef(name="main", root_path=str(folder / "state"), data=())
    made = cells_of(sweep, [task], {task.task: [ref]})
    assert made.problems == ()
    (cell,) = made.cells
    assert private_in_code(cell.task) == ("score.py", "private")
