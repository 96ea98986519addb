"""The scorer's own files: where they lie, and what contradicts that they are kept from the training."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.private_files import private_elsewhere, private_in_code
from agent.task import Task
from agent.task_file import TaskError, parse_task

TASK = """
task: digits
objective: {metric: loss, direction: minimize}
job: {command: python train.py, code_source: {root_path: code}}
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
