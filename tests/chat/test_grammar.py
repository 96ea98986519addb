"""The fixed grammar: what people type, what it means, and what they are told where it means nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.chat.grammar import WrongUse, help_text, is_command, meant, slashes
from agent.chat.toolbox import toolbox
from agent.chat.tools import ALL


@pytest.mark.parametrize(
    ("line", "tool", "arguments"),
    [
        ("/jobs", "list_jobs", {}),
        ("/jobs failed", "list_jobs", {"state": "failed"}),
        ("  /EXPLAIN 42 ", "explain_job", {"job": "j42"}),
        ("/exp j42", "explain_job", {"job": "j42"}),
        ("/best", "best_trials", {}),
        ("/best s3", "best_trials", {"session": "s3"}),
        ("/best s3 5", "best_trials", {"session": "s3", "n": 5}),
        ("/best 5", "best_trials", {"n": 5}),
        ("/compare t1 t2", "compare_trials", {"first": "t1", "second": "t2"}),
        ("/curve s1-t1 val/loss", "read_curve", {"of": "s1-t1", "metric": "val/loss"}),
        ("/budget", "read_budget", {}),
        ("/budget s3 trials=50", "set_budget", {"session": "s3", "budget": "trials", "value": 50.0}),
        ("/budget tokens=none", "set_budget", {"budget": "tokens", "value": None}),
        ("/forbid lr > 0.1", "forbid_direction", {"condition": "lr > 0.1"}),
        ("/forbid s3 kind = a", "forbid_direction", {"session": "s3", "condition": "kind = a"}),
        (
            "/hypothesis a small lr won't hurt lr=0.3 kind=b",
            "add_hypothesis",
            {"text": "a small lr won't hurt", "params": {"lr": "0.3", "kind": "b"}},
        ),
        ("/stop", "stop_session", {}),
        ("/go-on s3", "go_on", {"session": "s3"}),
    ],
)
def test_a_command_means_a_tool(line: str, tool: str, arguments: dict[str, Any]) -> None:
    found = meant(line, ALL)
    assert (found.tool.name, found.arguments.model_dump(exclude_unset=True)) == (tool, arguments)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/nonsense", "/nonsense: there is no such command; /help lists all"),
        ("/tri", "/tri: it may be any of /trial, /trials; /help lists all"),
        ("/explain", "JOB is missing; usage: /explain JOB"),
        ("/explain 1 2", "'2' is too much; usage: /explain JOB"),
        ('/explain 1 "', "is too much; usage: /explain JOB"),
        ("/budget trials", "is not NAME=VALUE; usage: /budget [SESSION], or /budget [SESSION] NAME=VALUE"),
        ("/session toy", "'toy' is no id of a session, such as s3; usage: /session [SESSION]"),
        ("/budget trials=many", "value: Input should be a valid number"),
        ("/budget hours=3", "budget: Input should be 'trials'"),
        ("/forbid s3", "CONDITION is missing; usage: /forbid [SESSION] CONDITION"),
        ("/hypothesis x=0.5", "SENTENCE is missing: what is expected, and why; usage: /hypothesis"),
        ("/logs j1 many", "n: Input should be a valid integer"),
        ("/logs j1 0", "n: Input should be greater than or equal to 1"),
        ("/jobs " + "x" * 5000, "are too many for a command"),
    ],
)
def test_wrong_use_is_answered_with_the_right_one(line: str, said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        meant(line, ALL)
    assert said in str(caught.value)


def test_a_line_is_a_command_by_its_slash() -> None:
    assert is_command(" /jobs")
    assert not is_command("what about /jobs?")


def test_help_lists_every_command_or_those_that_begin_alike() -> None:
    lines = (help_text("/help", ALL) or "").splitlines()
    assert lines == [f"{one.usage}: {one.summary}" for one in slashes(ALL)]
    assert help_text("/", ALL) == help_text("/help", ALL)
    assert (help_text("/help curve", ALL) or "").startswith("/curve ID [METRIC]: ")
    assert help_text("/help nonsense", ALL) == "there is no command /nonsense; /help lists all"
    assert help_text("/jobs", ALL) is None


def test_every_command_is_told_by_its_own_usage() -> None:
    slashes = [tool.slash for tool in ALL if tool.slash is not None]
    for slash in slashes:
        assert slash.usage.split()[0] == f"/{slash.name}"
        assert slash.summary
    assert len({tool.name for tool in ALL}) == len(ALL)
    assert len({slash.usage for slash in slashes}) == len(slashes)


def test_the_document_tells_every_command() -> None:
    text = (Path(__file__).parents[2] / "docs" / "chat.md").read_text(encoding="utf-8")
    for tool in ALL:
        assert tool.slash is not None
        row = f"| `{tool.slash.usage}` | {tool.slash.summary} | {'asks first' if tool.acts else ''} |"
        assert row in text, row


def test_a_model_with_a_small_window_keeps_what_is_needed_most() -> None:
    shown = {one.name for one in toolbox(ALL, int(4096 * 0.4)).tools}
    assert {"read_session", "compare_trials", "launch_replicates", "search_chat", "explain_job", "read_logs"} <= shown
    assert toolbox(ALL, int(8192 * 0.4)).left_out == ()
