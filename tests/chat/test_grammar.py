"""The fixed grammar: what people type, what it means, and what they are told where it means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from agent.chat.grammar import WrongUse, is_command, parse
from agent.chat.tools import ALL


@pytest.mark.parametrize(
    ("line", "tool", "arguments"),
    [
        ("/jobs", "list_jobs", {}),
        ("/jobs failed", "list_jobs", {"state": "failed"}),
        ("  /EXPLAIN 42 ", "explain_job", {"job": "42"}),
        ("/exp j42", "explain_job", {"job": "j42"}),
        ("/best", "best_trials", {}),
        ("/best s3", "best_trials", {"session": "s3"}),
        ("/best s3 5", "best_trials", {"session": "s3", "n": "5"}),
        ("/best 5", "best_trials", {"n": "5"}),
        ("/compare t1 t2", "compare_trials", {"first": "t1", "second": "t2"}),
        ("/curve s1-t1 val/loss", "read_curve", {"of": "s1-t1", "metric": "val/loss"}),
        ("/budget", "read_budget", {}),
        ("/help exp", "list_commands", {"command": "exp"}),
    ],
)
def test_a_command_means_a_tool(line: str, tool: str, arguments: dict[str, Any]) -> None:
    found = parse(line)
    assert not isinstance(found, WrongUse), found.text
    assert (found[0].name, found[1]) == (tool, arguments)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/", "which command? /help tells all"),
        ("/nonsense", "there is no command /nonsense; /help tells all"),
        ("/tri", "/tri may mean /trial, /trials"),
        ("/explain", "JOB is missing. Use: /explain JOB"),
        ("/explain 1 2", "'2' is too much. Use: /explain JOB"),
        ("/logs j1 many", "n: Input should be a valid integer"),
        ("/logs j1 0", "n: Input should be greater than or equal to 1"),
        ('/explain "', "Use: /explain JOB"),
        ("/jobs " + "x" * 3000, "are too many for a command"),
    ],
)
def test_wrong_use_is_answered_with_the_right_one(line: str, said: str) -> None:
    found = parse(line)
    if isinstance(found, WrongUse):
        assert said in found.text
    else:  # a lone quote is a word, and no job
        assert line == '/explain "'


def test_a_line_is_a_command_by_its_slash() -> None:
    assert is_command(" /jobs")
    assert not is_command("what about /jobs?")


def test_every_command_is_told_by_its_own_usage() -> None:
    slashes = [tool.slash for tool in ALL if tool.slash is not None]
    for slash in slashes:
        assert slash.usage.split()[0] == f"/{slash.name}"
        assert slash.summary
    assert len({tool.name for tool in ALL}) == len(ALL)
    assert len({slash.usage for slash in slashes}) == len(slashes)
