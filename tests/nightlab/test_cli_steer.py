"""Steering from the command line: what is said is kept and listed; what can not be said is wrong use."""

from pathlib import Path

import pytest
from cli_process import nightlab
from test_cli_suggest import home  # noqa: F401 - a fixture

pytestmark = pytest.mark.cli


def test_what_is_said_is_kept_listed_and_shown(home: Path) -> None:  # noqa: F811
    said = nightlab(
        "research", "steer", "s1", "--forbid", "lr>0.9", "--budget", "trials=5", "--hypothesis", "tanh is smoother",
        "--try", "act=tanh", "--pause", "--why", "lunch", "--by", "Ada", "--json", home=home,
    ).data  # fmt: skip
    words = [one["words"] for one in said]
    assert words == [
        "Ada forbids lr > 0.9",
        "Ada sets budgets.trials to 5 (lunch)",
        "Ada expects: tanh is smoother; to try: act=tanh",
        "Ada pauses the session (lunch)",
    ]
    assert nightlab("research", "steer", "s1", "--json", home=home).data == said
    assert "pauses the session (lunch)" in nightlab("research", "steer", "s1", home=home).out
    status = nightlab("status", "--json", home=home).data
    assert [one["is_paused"] for one in status["sessions"]] == [True]
    shown = nightlab("research", "show", "s1", home=home).out
    assert "forbidden: lr > 0.9" in shown
    assert "end it with: nightlab research steer s1 --go-on" in shown


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--forbid", "lR > 0.9"), "did you mean 'lr'?"),
        (("--budget", "trials=many"), "give a number, or none for no limit"),
        (("--try", "lr=0.3"), "--try belongs to --hypothesis"),
        (("--pause", "--go-on"), "not both"),
    ],
)
def test_what_can_not_be_said_is_wrong_use(home: Path, given: tuple[str, ...], told: str) -> None:  # noqa: F811
    ended = nightlab("research", "steer", "s1", *given, "--json", home=home)
    assert ended.exit_code == 2
    assert told in ended.error["message"]


def test_where_nobody_has_said_anything_it_says_how(home: Path) -> None:  # noqa: F811
    assert "nobody has said anything to s1 yet" in nightlab("research", "steer", "s1", home=home).out
