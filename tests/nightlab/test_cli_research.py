"""Sessions by command: what can be said without a runtime, and what needs one."""

import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from cli_process import nightlab

from agent.llm.turns import turns
from agent.store.store import AgentStore
from agent.task_file import parse_task
from nightlab.moments import moment
from nightlab.session_page import best_of, session_data

pytestmark = pytest.mark.cli

TASK = """
task: tiny
objective: {metric: loss, direction: minimize}
job: {command: python train.py, args_style: argparse, code_source: {root_path: .}}
space: {lr: {type: float, low: 0.1, high: 1.0, default: 0.5}}
budgets: {trials: 2}
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    file = tmp_path / "task.yaml"
    file.write_text(TASK)
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With one session, s1, that nobody works on."""
    home = tmp_path / "home"
    with closing(AgentStore.open(home)) as store:
        store.create_session(parse_task(TASK, source=tmp_path / "task.yaml"))
    return home


def test_a_task_with_problems_is_wrong_use_with_path_value_and_allowed(task_file: Path) -> None:
    task_file.write_text(TASK.replace("direction: minimize", "direction: down"))
    ended = nightlab("research", "start", str(task_file), "--json", home=task_file.parent)
    assert ended.exit_code == 2
    assert ended.error["path"] == "objective.direction"
    assert "'down'" in ended.error["message"]
    assert "minimize" in ended.error["message"]


def test_a_task_whose_python_does_not_exist_is_wrong_use(task_file: Path) -> None:
    task_file.write_text(TASK.replace("job: {", "job: {environment: {python: /no/python}, "))
    ended = nightlab("research", "start", str(task_file), home=task_file.parent)
    assert ended.exit_code == 2
    assert "job.environment.python: names /no/python: /no/python does not exist" in ended.err
    assert str(task_file) in ended.err


@pytest.mark.parametrize(("text", "part"), [("2020-01-01 07:00", "is past"), ("soon", "is no time")])
def test_an_hour_that_is_past_or_none_is_wrong_use(text: str, part: str, task_file: Path, home: Path) -> None:
    for what in (("start", str(task_file)), ("resume", "s1")):
        ended = nightlab("research", *what, "--finish-by", text, "--json", home=home)
        assert ended.exit_code == 2
        assert part in ended.error["message"]


def test_a_session_tells_its_hour(home: Path) -> None:
    with closing(AgentStore.open(home)) as store:
        store.request_stop("s1")
        store.request_resume("s1", finish_by=time.time() + 3600.0)
        expected = moment(store.session("s1").finish_by or 0.0)
    shown = nightlab("research", "show", "s1", home=home)
    assert f"nothing of it runs after {expected}" in shown.out


def test_without_a_runtime_a_session_is_not_started(task_file: Path) -> None:
    home = task_file.parent / "home"
    ended = nightlab("research", "start", str(task_file), home=home)
    assert ended.exit_code == 3
    assert "nightlab up" in ended.err
    assert not (home / "agent.db").exists()


def test_sessions_can_be_listed_shown_and_stopped_without_a_runtime(home: Path) -> None:
    assert nightlab("research", "list", "--json", home=home).data[0]["session_id"] == "s1"
    assert "tiny" in nightlab("research", "show", "s1", home=home).out
    assert nightlab("research", "stop", "s1", "--json", home=home).data["state"] == "stopping"


def test_an_unknown_session_is_wrong_use_and_the_known_ones_are_named(home: Path) -> None:
    ended = nightlab("research", "show", "s9", "--json", home=home)
    assert ended.exit_code == 2
    assert ended.error["kind"] == "not_found"
    assert "s1" in ended.error["message"]


def test_a_session_is_not_resumed_without_a_runtime(home: Path) -> None:
    assert nightlab("research", "resume", "s1", home=home).exit_code == 3


def test_a_session_as_data_has_trials_and_activity(home: Path) -> None:
    with closing(AgentStore.open(home)) as store:
        data = session_data(store, "s1")
        assert best_of(store.session("s1"), store.trials("s1")) is None
    told = {
        "session",
        "budgets",
        "plan",
        "looks",
        "held_out",
        "model",
        "rung_steps",
        "model_calls",
        "lessons",
        "trials",
        "steerings",
        "gates",
    }
    assert set(data) == told | {"activity"}
    assert data["model"] == asdict(turns([]))


def test_no_sessions_is_said_with_what_to_do(tmp_path: Path) -> None:
    assert "nightlab research start" in nightlab("research", "list", home=tmp_path).out


@pytest.mark.acceptance
def test_a_session_runs_to_its_end_and_reports(task_file: Path) -> None:
    train = "import sys, time\nlr = float(sys.argv[2])\nprint(f'loss {abs(lr - 0.3)}', flush=True)\n"
    (task_file.parent / "train.py").write_text(train)
    source = "metric_sources: [{kind: stdout_pattern, pattern: 'loss (?P<loss>\\S+)'}]"
    task_file.write_text(TASK.replace("job: {", f"job: {{{source}, ") + "seeds: {fresh: 2}\n")
    home = task_file.parent / "home"
    try:
        assert nightlab("up", "--devices", "cpu:2", "--no-mlflow", "--port", "0", home=home).exit_code == 0
        began = time.monotonic()
        followed = nightlab("research", "start", str(task_file), "--follow", home=home, timeout_s=150)
        assert followed.exit_code == 0, followed.err
        assert time.monotonic() - began < 140
        shown = nightlab("research", "show", "s1", "--json", home=home).data
        assert shown["session"]["state"] == "finished"
        assert shown["trials"]
        report = nightlab("research", "report", "s1", "-o", str(home / "r.html"), "--json", home=home).data
        assert Path(report["path"]).read_text().startswith("<!doctype html>")
    finally:
        nightlab("down", "--jobs", "cancel", home=home)
