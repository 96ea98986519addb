"""Directions that are not to be taken: the grammar, what a condition covers, and that nobody proposes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world
from hypothesis import given
from hypothesis import strategies as st
from test_thinking_session import a_model_task, live, of_the_model, says, told

from agent.planner.configuration import problems, space_problems
from agent.planner.forbidden import canonical_condition, forbidden, parsed, why_no_condition
from agent.planner.history import History
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.points import Points, n_untried
from agent.planner.proposers.random_points import RandomPoints
from agent.planner.proposers.refiner import Refiner
from agent.steering.word import Course, Kind, Word, steered
from agent.store.views import SessionState
from agent.task import Task
from agent.task_checks import cross_checks

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True, "default": 0.01},
    "width": {"type": "int", "low": 1, "high": 64, "default": 8},
    "optimizer": {"type": "categorical", "choices": ["sgd", "adam w", True, 2], "default": "sgd"},
}


def spaced(*forbid: str, **changes: Any) -> Task:
    job = {"command": "train", "args_style": "argparse"}
    return a_task(**({"space": SPACE, "forbid": list(forbid), "job": job} | changes))


def point(lr: float = 0.01, width: int = 8, optimizer: Any = "sgd") -> dict[str, Any]:
    return {"lr": lr, "width": width, "optimizer": optimizer}


@pytest.mark.parametrize(
    ("condition", "covered", "free"),
    [
        ("lr > 0.1", point(lr=0.2), point(lr=0.1)),
        ("lr>=1e-1", point(lr=0.1), point(lr=0.0999)),
        ("width < 4", point(width=3), point(width=4)),
        ("width<=4", point(width=4), point(width=5)),
        ("width != 8", point(width=9), point(width=8)),
        ("width = 16", point(width=16), point(width=15)),
        ('optimizer = "adam w"', point(optimizer="adam w"), point()),
        ("optimizer = true", point(optimizer=True), point(optimizer=2)),
        ("optimizer == 2", point(optimizer=2), point(optimizer=True)),
        ("optimizer != sgd", point(optimizer=2), point()),
        ("lr > 0.1 and width>32 AND optimizer=sgd", point(0.2, 33), point(0.2, 32)),
    ],
)
def test_a_condition_covers_what_it_says(condition: str, covered: dict[str, Any], free: dict[str, Any]) -> None:
    task = spaced(condition)
    assert list(cross_checks(task)) == []
    assert problems(covered, task) == [f"forbidden: {canonical_condition(condition)}"]
    assert problems(free, task) == []
    assert space_problems(covered, task) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a comparison is missing"),
        ("lr", "no comparison at 'lr'"),
        ("lr > 0.1 or width > 3", "only `and` joins comparisons, not 'or width > 3'"),
        ("lr > 0.1 and", "a comparison is missing"),
        ("lr > nan", "not a finite number"),
        ("lr > big", "not a finite number"),
        ("lR > 0.1", "did you mean 'lr'?"),
        ("depth > 3", "'depth' is no parameter of this task; there are: lr, width, optimizer"),
        ("optimizer > sgd", "optimizer has choices"),
        ("optimizer = lion", "there are: sgd, adam w, True, 2"),
        ("lr > 0.001", "it covers the default configuration (lr > 0.001)"),
        ("width = 8 and optimizer = sgd", "it covers the default configuration"),
        ("__import__('os').system('x') > 1", "no comparison at"),
        ("lr > 0.1" * 100, "more than a condition may have"),
    ],
)
def test_what_is_no_condition_is_refused_with_what_would_do(text: str, said: str) -> None:
    assert said in str(why_no_condition(text, spaced()))
    [problem] = [p for p in cross_checks(spaced(text)) if p.path == "forbid.0"]
    assert said in problem.message


VALUES = st.one_of(
    st.text(st.characters(exclude_characters='"', exclude_categories=("Cs",)), max_size=12),
    st.text(st.characters(exclude_characters="'", exclude_categories=("Cs",)), max_size=12),
)


@given(st.lists(st.tuples(st.sampled_from(["=", "!="]), VALUES), min_size=1, max_size=3))
def test_whatever_stands_in_quotation_marks_is_kept_as_it_was_meant(said: list[tuple[str, str]]) -> None:
    """Conditions are kept in their canonical form, and read again for every configuration."""
    marks = ["'" if '"' in value else '"' for _, value in said]
    text = " and ".join(f"x {sign} {mark}{value}{mark}" for (sign, value), mark in zip(said, marks, strict=True))
    kept = canonical_condition(text)
    assert [(one.sign, one.text) for one in parsed(kept)] == said
    assert canonical_condition(kept) == kept


@pytest.mark.parametrize("choice", ["a=b", 'say "x"', "it's", "a b", "<tag>", "and", "'quoted'"])
def test_a_choice_of_any_text_can_be_forbidden(choice: str) -> None:
    space = {"kind": {"type": "categorical", "choices": ["plain", choice], "default": "plain"}}
    mark = "'" if '"' in choice else '"'
    task = said_to(a_task(space=space), f"kind = {mark}{choice}{mark}")
    assert problems({"kind": choice}, task) != []
    assert problems({"kind": "plain"}, task) == []


def said_to(task: Task, condition: str) -> Task:
    return steered(Course(task=task), Word(kind=Kind.FORBID, text=condition), by="ann").task


def test_of_choices_that_differ_in_case_alone_the_one_that_was_written_is_meant() -> None:
    space = {"kind": {"type": "categorical", "choices": ["x", "SGD", "sgd"], "default": "x"}}
    task = a_task(space=space, forbid=["kind = sgd"])
    assert [problems({"kind": kind}, task) == [] for kind in ("SGD", "sgd")] == [True, False]


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        comparisons = parsed(text)
    except ValueError:
        assert "write it as" in str(why_no_condition(text, spaced()))
        return
    assert parsed(canonical_condition(text)) == comparisons


@given(
    sign=st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    limit=st.floats(-2, 2, allow_nan=False),
    value=st.floats(-2, 2, allow_nan=False),
)
def test_a_comparison_is_the_comparison(sign: str, limit: float, value: float) -> None:
    space = {"x": {"type": "float", "low": -2, "high": 2, "default": 0}}
    task = a_task(space=space, forbid=[f"x {sign} {limit!r}"])
    expected = {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "=": value == limit,
        "!=": value != limit,
    }[sign]
    assert (forbidden({"x": value}, task) is not None) == expected


def test_no_proposer_goes_where_it_is_forbidden() -> None:
    task = spaced("lr > 0.02", "optimizer != sgd", budgets={"trials": 100})
    for proposer in (OptunaSampler(task), RandomPoints(task), Refiner(task)):
        found = proposer.ask(History.of(()), 8)
        assert [forbidden(one.params, task) for one in found] == [None] * len(found)


def test_listed_points_that_are_forbidden_are_not_waited_for() -> None:
    points = [{"width": 2}, {"width": 40}]
    task = spaced("width > 32", search={"use": ["points"], "points": points})
    assert [one.params["width"] for one in Points(task).ask(History.of(()), 5)] == [2]
    assert n_untried(task, History.of(())) == 1


def test_a_session_ends_where_all_that_is_left_is_forbidden(tmp_path: Path) -> None:
    space = {
        "x": {"type": "int", "low": 0, "high": 9, "default": 2},
        "kind": {"type": "int", "low": 0, "high": 1, "default": 0},
    }
    task = a_task(
        space=space, forbid=["x > 3"], budgets={"trials": 20}, held_out=None, seeds={"fresh": 2, "max_pairs": 2}
    )
    world = a_world(tmp_path, task=task)
    assert world.live() is SessionState.FINISHED
    assert {t.params["x"] for t in world.store.trials("s1")} <= {0, 1, 2, 3}


def test_a_model_is_told_and_held_to_it(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task(forbid=["x>0.65"]))
    model = says(
        lambda n, _: {"trials": [{"parameters": {"x": 0.7 - n / 50}, "why": "near"}, {"parameters": {"x": 0.7}}]}
    )
    assert live(world, model) is SessionState.FINISHED
    assert "Not to be tried, by the researcher's word" in model.requests[0].messages[-1].text
    assert "x > 0.65" in model.requests[0].messages[-1].text
    assert any("no trial: forbidden: x > 0.65" in line for line in told(world))
    assert of_the_model(world)
    assert all(float(t.params["x"] or 0) <= 0.65 for t in world.store.trials("s1"))
