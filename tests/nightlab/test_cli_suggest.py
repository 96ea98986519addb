"""People are a proposer: their ideas are checked at once, kept, and listed with what became of them."""

from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from cli_process import nightlab

from agent.store.store import AgentStore
from agent.store.tables import sessions
from agent.task_file import parse_task

pytestmark = pytest.mark.cli

TASK = """
task: tiny
objective: {metric: loss, direction: minimize}
job: {command: python train.py, args_style: argparse, code_source: {root_path: .}}
space:
  lr: {type: float, low: 0.1, high: 1.0, default: 0.5}
  act: {type: categorical, choices: [relu, tanh], default: relu}
budgets: {trials: 2}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With one session, s1, that nobody works on."""
    home = tmp_path / "home"
    with closing(AgentStore.open(home)) as store:
        store.create_session(parse_task(TASK, source=tmp_path / "task.yaml"))
    return home


def test_a_suggestion_is_kept_and_listed_as_waiting(home: Path) -> None:
    made = nightlab(
        "research", "suggest", "s1", "--set", "lr=0.3", "--set", "act=tanh", "--why", "a hunch", "--by", "Ada",
        "--json", home=home,
    ).data  # fmt: skip
    assert made["params"] == {"lr": 0.3, "act": "tanh"}
    (listed,) = nightlab("research", "suggestions", "s1", "--json", home=home).data
    assert listed == made
    assert (listed["suggested_by"], listed["why"], listed["trial_id"]) == ("Ada", "a hunch", None)
    assert "waits" in nightlab("research", "suggestions", "s1", home=home).out


def test_a_value_out_of_range_is_refused_with_the_range_and_nothing_is_kept(home: Path) -> None:
    ended = nightlab("research", "suggest", "s1", "--set", "lr=7", "--why", "x", "--json", home=home)
    assert ended.exit_code == 2
    assert "from 0.1 to 1" in ended.error["message"]
    assert nightlab("research", "suggestions", "s1", "--json", home=home).data == []


@pytest.mark.parametrize("given", [("--set", "lr"), ("--set", "lr=0.2", "--set", "lr=0.3"), ()])
def test_what_is_no_setting_is_wrong_use(home: Path, given: tuple[str, ...]) -> None:
    assert nightlab("research", "suggest", "s1", *given, "--why", "x", home=home).exit_code == 2


def test_a_suggestion_needs_a_reason(home: Path) -> None:
    ended = nightlab("research", "suggest", "s1", "--set", "lr=0.3", home=home)
    assert ended.exit_code == 2
    assert "--why" in ended.err


def test_a_finished_session_takes_no_suggestion(home: Path) -> None:
    with closing(AgentStore.open(home)) as store, store.engine.begin() as connection:
        connection.execute(sa.update(sessions).values(state="finished"))
    ended = nightlab("research", "suggest", "s1", "--set", "lr=0.3", "--why", "x", home=home)
    assert ended.exit_code == 1
    assert "nightlab research start" in ended.err
