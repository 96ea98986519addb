"""A person's values, given as text, become points of the space, or it is said what is allowed."""

import pytest
from agent_worlds import a_task

from agent.planner.suggested import read_suggestion
from agent.task import Task

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 0.1, "log": True, "default": 1e-3},
    "n_layers": {"type": "int", "low": 1, "high": 8, "default": 2},
    "act": {"type": "categorical", "choices": ["relu", "tanh"], "default": "relu"},
    "bias": {"type": "categorical", "choices": [True, False], "default": True},
    "batch": {"type": "categorical", "choices": [16, 32], "default": 16},
}


@pytest.fixture
def task() -> Task:
    return a_task(space=SPACE)


def test_values_get_the_types_of_the_space(task: Task) -> None:
    read = read_suggestion({"lr": "3e-4", "n_layers": "4.0", "act": "tanh", "bias": "false", "batch": "32.0"}, task)
    assert read.problems == ()
    assert read.params == {"lr": 3e-4, "n_layers": 4, "act": "tanh", "bias": False, "batch": 32}
    assert [type(value) for value in read.params.values()] == [float, int, str, bool, int]


def test_only_what_was_given_is_suggested(task: Task) -> None:
    assert read_suggestion({"act": "tanh"}, task).params == {"act": "tanh"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("lr", "0.5", "a number from 0.0001 to 0.1"),
        ("lr", "nan", "a number from 0.0001 to 0.1"),
        ("lr", "fast", "a number from 0.0001 to 0.1"),
        ("n_layers", "2.5", "a whole number from 1 to 8"),
        ("act", "gelu", "relu, tanh"),
        ("bias", "1", "true, false"),
        ("lrr", "0.1", "did you mean 'lr'?"),
        ("depth", "3", "there are: lr, n_layers, act, bias, batch"),
    ],
)
def test_what_is_not_in_the_space_is_refused_with_what_is_allowed(task: Task, name: str, text: str, said: str) -> None:
    read = read_suggestion({name: text}, task)
    assert len(read.problems) == 1
    assert name in read.problems[0]
    assert said in read.problems[0]


def test_every_problem_is_told_at_once(task: Task) -> None:
    assert len(read_suggestion({"lr": "7", "act": "gelu", "depth": "3"}, task).problems) == 3


def test_nothing_given_is_a_problem(task: Task) -> None:
    assert read_suggestion({}, task).problems == ("no parameter was given",)
