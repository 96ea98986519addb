"""Trials of edited code: what they are to the planner, the store and the task file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world
from planner_builders import a_history, a_trial

from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.planner.comparable import why_not_comparable
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.doctor import Doctor
from agent.planner.proposers.on_base import OnBase
from agent.planner.repetition import Tried
from agent.store.book import TrialBook
from agent.store.fenced import FencedWriter
from agent.store.shelf import Shelf
from agent.store.views import CodeState, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task
from agent.task_file import TaskError, parse_task
from nightlab.session_page import print_session
from nightlab.trials.page import print_record
from nightlab.trials.record import read_record, shelf_of

ONE = CodeState(tree="1" * 40, commit="a" * 40, branch="trial/1", added=3, files=("model.py",), summary="wider")
OTHER = replace(ONE, tree="2" * 40)


def a_code_task(**changes: Any) -> Task:
    code = {"editable": ["model.py"]}
    return a_task(**({"code": code, "held_out": None} | changes))


def edited(trial: TrialView, code: CodeState) -> TrialView:
    return replace(trial, facts=replace(trial.facts, edited=code), configuration=configuration_id(trial.params, code))


def a_proposal(params: dict[str, Any], code: CodeState | None, seed: int = 0) -> Proposal:
    return Proposal(
        params=params,
        configuration=configuration_id(params, code),
        seed=seed,
        purpose=Purpose.SEARCH if seed == 0 else Purpose.REPLICATE,
        suggested_by="coder",
        why="",
        facts=TrialFacts(edited=code),
    )


def test_the_same_parameters_with_other_code_are_another_configuration() -> None:
    params = {"x": 0.2, "kind": "a"}
    names = {configuration_id(params), configuration_id(params, ONE), configuration_id(params, OTHER)}
    assert len(names) == 3
    assert configuration_id(params, ONE) == configuration_id(params, replace(ONE, summary="", commit="b" * 40))


def test_a_point_tried_with_other_code_is_no_repetition() -> None:
    task = a_code_task()
    default = default_params(task)
    tried = Tried(task)
    tried.follow([a_trial(task, 1, default, 0.5), edited(a_trial(task, 2, default, 0.6), ONE)])
    assert (tried.objection(default) or "").endswith("s1-t1")
    assert (tried.objection(default, ONE) or "").endswith("s1-t2")
    assert "s1-t2" in (tried.objection({**default, "x": 0.2001}, ONE) or "")
    assert tried.objection(default, OTHER) is None


def test_without_any_parameter_code_alone_tells_trials_apart() -> None:
    task = a_code_task(space={}, search={"use": ["coder"]})
    tried = Tried(task)
    tried.follow([a_trial(task, 1, {}, 0.5)])
    assert tried.objection({}) == "the same configuration as s1-t1"
    assert tried.objection({}, ONE) is None


def test_proposers_of_parameters_are_shown_what_the_base_code_gave() -> None:
    class Seen:
        name = "seen"

        def __init__(self) -> None:
            self.told: list[History] = []

        def ask(self, history: History, n: int) -> list[Proposal]:
            self.told.append(history)
            return []

        def tell(self, history: History) -> None:
            self.told.append(history)

    task, seen = a_code_task(), Seen()
    history = a_history(a_trial(task, 1, {"x": 0.2, "kind": "a"}, 0.5), edited(a_trial(task, 2, {"x": 0.2}, 9.0), ONE))
    shown = OnBase(seen)
    shown.tell(history)
    shown.ask(history, 1)
    assert [trial.number for trial in seen.told[0].trials] == [1]
    assert seen.told[0] is seen.told[1]


def test_a_portfolio_of_parameters_does_without_any() -> None:
    task = a_code_task(space={})
    history = a_history(a_trial(task, 1, {}, 0.5))
    assert chosen_proposers(task).ask(history, 2) == []


def test_a_fix_of_edited_code_keeps_the_code() -> None:
    task = a_code_task()
    found = Diagnosis(failure=FailureClass.DIVERGED, evidence=(), cause="too far", suggestion="less", change={"x": 0.1})
    failed = a_trial(task, 2, {"x": 0.2, "kind": "a"}, state=TrialState.INVALID, facts=TrialFacts(diagnosis=found))
    [fix] = Doctor(task).ask(a_history(a_trial(task, 1, {"x": 0.2, "kind": "a"}, 0.5), edited(failed, ONE)), 1)
    assert fix.facts.edited == ONE
    assert fix.configuration == configuration_id({"x": 0.1, "kind": "a"}, ONE)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (TrialFacts(code="1" * 64), TrialFacts(code="2" * 64), "the code differs: 111111111111 and 222222222222"),
        (TrialFacts(code="1" * 64), TrialFacts(code="2" * 64, edited=ONE), None),
        (TrialFacts(code="1" * 64, edited=OTHER), TrialFacts(code="2" * 64, edited=ONE), None),
        (
            TrialFacts(code="1" * 64, edited=ONE),
            TrialFacts(code="2" * 64, edited=ONE),
            "the code differs: 111111111111 and 222222222222",
        ),
    ],
)
def test_code_may_differ_only_where_that_was_declared(
    first: TrialFacts, second: TrialFacts, reason: str | None
) -> None:
    task = a_code_task()
    one, other = (a_trial(task, n, {"x": 0.2}, 0.5, facts=f) for n, f in enumerate((first, second), start=1))
    assert why_not_comparable(one, other, task) == reason
    assert why_not_comparable(other, one, task) == reason


def test_the_store_keeps_the_code_and_a_replicate_has_that_of_its_configuration(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_code_task())
    writer = FencedWriter(world.store, world.session_id, world.store.claim(world.session_id, 1))
    book, params = TrialBook(writer), {"x": 0.2, "kind": "a"}
    book.propose([a_proposal(params, None), a_proposal(params, ONE)])
    again = replace(a_proposal(params, ONE, seed=1000), facts=TrialFacts())
    book.propose([again, replace(again, configuration=configuration_id(params))])
    for known in (book.history().trials, world.store.trials(world.session_id)):
        assert [trial.facts.edited for trial in known] == [None, ONE, ONE, None]
    shelf = Shelf(writer)
    shelf.put("coder", [a_proposal(params, OTHER)], premise=None, took_s=1.0)
    assert [one.proposal.facts.edited for one in Shelf(writer).thoughts("coder")] == [OTHER]


WHOLE = """
task: lm
objective: {metric: loss, direction: minimize}
job: {command: python train.py}
code: {editable: [model.py]}
score: {command: python score.py}
model: {name: small}
search: {use: [coder]}
budgets: {trials: 4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.py", "model.py", "score.py"):
        (tmp_path / name).write_text("pass\n")
    return tmp_path


def test_a_task_may_search_code_alone(folder: Path) -> None:
    task = parse_task(WHOLE.replace("[model.py]", "[model.py], readable: [data]"), source=folder / "task.yaml")
    assert task.space == {}
    assert task.code is not None
    assert task.code.sandbox == "sealed"
    assert task.code.readable == (str(folder / "data"),)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("code: {editable: [model.py]}\n", "", "code: is required: search.use names coder"),
        (
            "code: {editable: [model.py]}\nscore: {command: python score.py}\nmodel: {name: small}\n"
            "search: {use: [coder]}\n",
            "",
            "space: is required: without parameters, and without `code`",
        ),
        ("search: {use: [coder]}", "search: {use: [sampler]}", "code: nobody would edit"),
        ("model: {name: small}\n", "", "model: edits come from a language model"),
        ("{name: small}", "{name: small, rung: menu}", "model: edits come from a language model"),
        ("score: {command: python score.py}\n", "", "score: is required with `code`"),
        ("[model.py]", "[models.py]", "code.editable.0: 'models.py' matches no file"),
        ("[model.py]", "[/etc/passwd]", "code.editable.0: '/etc/passwd': give files of the code"),
        ("[model.py]", "[model.py, ../x.py]", "code.editable.1: '../x.py': give files of the code"),
        ("[model.py]", "[.git/config]", "code.editable.0: '.git/config': give files of the code"),
        ("[model.py]", "['*.py']", "code.editable.0: '*.py' covers score.py, which measures"),
        ("[model.py]", "[]", "code.editable"),
        ("[model.py]", "[model.py], max_changed_lines: 0", "code.max_changed_lines"),
        ("[model.py]", "[model.py], sandbox: none", "code.sandbox"),
    ],
)
def test_a_task_whose_code_trials_could_not_be(folder: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(TaskError) as caught:
        parse_task(WHOLE.replace(old, new), source=folder / "task.yaml")
    assert problem in str(caught.value)


def test_files_of_which_not_even_the_definitions_fit_into_the_model_are_a_problem_at_once(folder: Path) -> None:
    (folder / "model.py").write_text("".join(f"def f{n}():\n    return {n}\n" for n in range(900)))
    small = WHOLE.replace("{name: small}", "{name: small, context_tokens: 8192}")
    with pytest.raises(
        TaskError, match=r"model.context_tokens: 5,\d\d\d tokens are left for a question, and the files"
    ):
        parse_task(small, source=folder / "task.yaml")
    assert parse_task(small.replace("8192", "65536"), source=folder / "task.yaml").code is not None
    assert parse_task(small.replace("[coder]", "[coder, outside]").replace("8192", "65536"), source=folder / "t.yaml")


def test_outside_agents_may_edit_where_there_is_no_model(folder: Path) -> None:
    text = WHOLE.replace("model: {name: small}\n", "").replace("[coder]", "[outside]")
    assert parse_task(text, source=folder / "task.yaml").model is None


def test_pages_tell_what_was_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world(tmp_path, task=a_code_task())
    book = TrialBook(FencedWriter(world.store, world.session_id, world.store.claim(world.session_id, 1)))
    code = replace(ONE, removed=2, parent="s1-t1")
    book.propose([a_proposal({"x": 0.2, "kind": "a"}, None), a_proposal({"x": 0.2, "kind": "a"}, code)])
    print_session(world.store, world.session_id)
    said = capsys.readouterr().out
    assert "x=0.2 kind=a code +3 -2 (s1-t1)" in said
    assert "wider" in said
    print_record(read_record(world.store, tmp_path, "s1-t2", None), shelf_of(world.store, "s1"))
    said = " ".join(capsys.readouterr().out.split())
    assert "edited +3 -2 lines in model.py, made from s1-t1, branch trial/1: wider" in said
    print_record(read_record(world.store, tmp_path, "s1-t1", None), shelf_of(world.store, "s1"))
    assert "edited" not in capsys.readouterr().out
