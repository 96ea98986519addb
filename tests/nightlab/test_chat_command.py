"""`nightlab chat` as scripts use it: one turn by --say, answers, lists, JSON, exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from chat_service import chat_service, told_home
from cli_process import Ended

from agent.store.store import AgentStore
from nightlab.__main__ import main

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agent_worlds import a_task

pytestmark = pytest.mark.web

Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    home = tmp_path_factory.mktemp("home")

    def ran(*arguments: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended, redirect_stdout(out), redirect_stderr(err):
            main(["chat", *arguments, "--home", str(home)])
        assert isinstance(ended.value.code, int)
        return Ended(exit_code=ended.value.code, out=out.getvalue(), err=err.getvalue())

    with closing(AgentStore.open(home)) as store:
        for _ in range(2):
            store.create_session(a_task())
        with told_home(home), chat_service(home):
            yield ran


def test_a_script_says_answers_lists_and_reads_json(run: Run) -> None:
    asked = run("--session", "s1", "--say", "/stop")
    assert asked.exit_code == 5
    assert "question 3: stop session s1" in asked.out
    assert "nightlab chat --chat c1 --approve 3" in asked.err
    assert run("--chat", "c1", "--say", "/sessions").exit_code == 1  # a turn is under way
    approved = run("--chat", "c1", "--approve", "3", "--json")
    entries = [json.loads(line)["data"] for line in approved.out.splitlines()]
    assert [one["kind"] for one in entries] == ["answer", "result"]
    failed = run("--session", "s1", "--say", "/nonsense")
    assert (failed.exit_code, "/help" in failed.out) == (1, True)
    (listed,) = run("--search", "nonsense", "--json").data
    assert (listed["chat_id"], listed["state"]) == ("c1", "idle")
    assert run("--search", "never said", "--json").data == []
    assert run("--list").out.split()[:2] == ["chat", "session"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--new", "--continue"),
        ("--chat", "c1", "--session", "s1"),
        ("--approve", "3"),
        ("--chat", "c9", "--say", "/help"),
        ("--session", "s9", "--say", "/help"),
        ("--say", " "),
        ("--session", "s2", "--continue", "--say", "/help"),
        ("--note", "x"),
    ],
)
def test_wrong_use_is_told(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert (ended.exit_code, ended.out) == (2, "")
    assert ended.err.startswith("nightlab: ")


def test_without_a_service_the_way_up_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["chat", "--list", "--home", str(tmp_path)])
    assert ended.value.code == 3
    assert "nightlab up" in capsys.readouterr().err


def test_lines_of_standard_input_are_said_one_by_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/sessions\n/nonsense\n"))
    ended = run("--new")
    assert ended.exit_code == 1
    assert "toy" in ended.out
    assert "/nonsense: there is no such command" in ended.out


@pytest.mark.parametrize("option", ["--plain", "--json"])
def test_without_a_terminal_nothing_steers_it(run: Run, option: str) -> None:
    ended = run("--new", "--say", "/sessions", option)
    assert ended.exit_code == 0
    assert "\x1b" not in ended.out


def test_bytes_of_another_encoding_are_said_all_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("--new", "--say", "/help \udcff\udcfe")
    assert (told.exit_code, told.err) == (0, "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"/sessions\n/nonsense \xff\n"), encoding="utf-8"))
    ended = run("--new")
    assert (ended.exit_code, "toy" in ended.out) == (1, True)


def test_a_closed_standard_input_says_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert run("--new").exit_code == 0


def test_what_is_too_long_is_told(run: Run) -> None:
    refused = run("--new", "--say", "x" * 20_001)
    assert (refused.exit_code, refused.out) == (2, "")
    assert "text" in refused.err


def test_what_a_person_is_asked_does_not_get_into_piped_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = io.StringIO("/stop\nn too early\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    ended = run("--session", "s2", "--json")
    assert [json.loads(line)["data"]["kind"] for line in ended.out.splitlines()] == [
        "said",
        "call",
        "ask",
        "answer",
        "result",
    ]
    assert "[y]es" in ended.err
