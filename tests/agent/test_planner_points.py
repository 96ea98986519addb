"""Points that the task lists: in order, as written, counted with the default; the checks of the task file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world
from planner_builders import a_history, a_trial

from agent.planner.configuration import configuration_id
from agent.planner.plan import n_open
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.repetition import Step
from agent.store.views import ParamValue, Purpose, SessionState
from agent.task import Task
from agent.task_file import TaskError, parse_task

DEFAULT: dict[str, ParamValue] = {"x": 0.2, "kind": "a"}


def a_list(*points: dict[str, Any], **changes: Any) -> Task:
    return a_task(search={"use": ["points"], "points": list(points)}, held_out=None, **changes)


def asked(task: Task, *trials: Any, n: int = 10) -> list[dict[str, ParamValue]]:
    return [p.params for p in chosen_proposers(task).ask(a_history(*trials), n)]


def test_points_come_in_their_order_with_the_default_for_what_they_leave_open() -> None:
    task = a_list({"x": 0.9}, {"kind": "b"}, {"x": 0.1, "kind": "b"})
    default = a_trial(task, 1, DEFAULT, 0.5)
    assert asked(task, default) == [{"x": 0.9, "kind": "a"}, {"x": 0.2, "kind": "b"}, {"x": 0.1, "kind": "b"}]


def test_points_that_are_close_are_two_and_equal_ones_are_one() -> None:
    task = a_list({"x": 0.5}, {"x": 0.5000001}, {"x": 0.5}, {"x": 0.2})
    default = a_trial(task, 1, DEFAULT, 0.5)
    assert [p["x"] for p in asked(task, default)] == [0.5, 0.5000001]


def test_points_come_before_what_the_samplers_suggest() -> None:
    task = a_task(search={"use": ["random", "points"], "points": [{"x": 0.9}, {"x": 0.8}]}, budgets={"trials": 6})
    found = chosen_proposers(task).ask(a_history(a_trial(task, 1, DEFAULT, 0.5)), 4)
    assert [p.suggested_by for p in found] == ["points", "points", "random", "random"]


def test_a_choice_is_written_as_in_the_space() -> None:
    space = {"n": {"type": "categorical", "choices": [16, 64], "default": 16}}
    task = a_list({"n": 64.0}, {"n": 16.0}, space=space)
    (point,) = asked(task, a_trial(task, 1, {"n": 16}, 0.5))
    assert point == {"n": 64}
    assert isinstance(point["n"], int)
    assert configuration_id(point) == configuration_id({"n": 64})


def test_the_list_is_at_its_end_when_all_have_ended() -> None:
    task = a_list({"x": 0.9}, budgets={"trials": 6})
    portfolio = chosen_proposers(task)
    running = a_history(a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, {"x": 0.9, "kind": "a"}))
    assert portfolio.ask(running, 1) == []
    assert not portfolio.escalations
    portfolio.ask(a_history(a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, {"x": 0.9, "kind": "a"}, 0.6)), 1)
    (stop,) = portfolio.escalations
    assert (stop.step, stop.reason) == (Step.STOP, "every point that the task lists was tried")


@pytest.mark.parametrize(("n_trials", "n_open_now"), [(3, 0), (4, 1)])
def test_ideas_of_others_do_not_take_the_place_of_a_point(n_trials: int, n_open_now: int) -> None:
    task = a_list({"x": 0.9}, {"x": 0.2}, {"x": 0.8}, budgets={"trials": n_trials})
    assert n_open(task, a_history(a_trial(task, 1, DEFAULT, 0.5))) == n_open_now


@pytest.mark.parametrize(
    ("points", "path", "parts"),
    [
        ("[{lr: 0.01}, {width: 3}]", "search.points.1.width", ["is not in the space", "allowed: lr, kind"]),
        ("[{lr: 3.0}]", "search.points.0.lr", ["3.0 is not allowed", "a number from 0.0001 to 0.1"]),
        ("[{kind: c}]", "search.points.0.kind", ["'c' is not allowed", "allowed: a, b"]),
        ("[{lr: true}]", "search.points.0.lr", ["True is not allowed"]),
        ("[{lr: 0.01}, {lr: 0.02}, {lr: 0.03}]", "budgets.trials", ["3 is too few", "4 different", "give 4"]),
    ],
)
def test_points_that_do_not_fit_are_named(points: str, path: str, parts: list[str], tmp_path: Path) -> None:
    text = f"""
task: digits
objective: {{metric: val_accuracy, direction: maximize}}
job: {{command: python train.py, args_style: argparse}}
space:
  lr: {{type: float, low: 1.0e-4, high: 1.0e-1, log: true, default: 1.0e-3}}
  kind: {{type: categorical, choices: [a, b], default: a}}
budgets: {{trials: 3}}
search: {{use: [points], points: {points}}}
"""
    with pytest.raises(TaskError) as caught:
        parse_task(text, source=tmp_path / "task.yaml")
    ((found_path, message),) = [(p.path, p.message) for p in caught.value.problems]
    assert found_path == path
    assert all(part in message for part in parts), message


def test_the_default_among_the_points_is_counted_once(tmp_path: Path) -> None:
    task = a_list({"x": 0.2}, {"x": 0.9}, {"x": 0.9000001}, budgets={"trials": 3})
    world = a_world(tmp_path, task=task)
    assert world.live() is SessionState.FINISHED
    searched = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH]
    assert [t.params["x"] for t in searched] == [0.2, 0.9, 0.9000001]
