"""`nightlab lab` runs whole sessions in virtual time and answers with a table or an envelope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightlab.__main__ import main

TASK = str(Path(__file__).parents[2] / "examples" / "digits" / "task.yaml")


def lab(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code, and standard output followed by standard error."""
    with pytest.raises(SystemExit) as ended:
        main(["lab", *arguments])
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out + told.err


def test_it_tells_each_session_and_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = lab(capsys, TASK, "--sessions", "2", "--trials", "4")
    assert code == 0
    assert all(word in told for word in ("finished", "truth", "regret", "busy", "2 sessions on synthetic:sphere"))


def test_json_is_one_envelope_with_sessions_and_summary(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--sessions", "2", "--trials", "3", "--together", "--urgent-every", "2m", "--json")
    _, told = lab(capsys, TASK, *arguments)
    data = json.loads(told)["data"]
    assert (data["n_devices"], data["together"], len(data["sessions"])) == (8, True, 2)
    assert data["summary"]["n_sessions"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--world", "synthetic:nowhere"), "synthetic:sphere"),
        (("--world", "none.csv"), "can not be read"),
        (("--devices", "many"), "64x8"),
        (("--urgent-every", "soon"), "--urgent-every"),
    ],
)
def test_wrong_use_says_what_is_right(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = lab(capsys, TASK, *arguments)
    assert code == 2
    assert said in told
