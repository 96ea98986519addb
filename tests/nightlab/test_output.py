"""What commands print for people and programs."""

import errno
import json

import pytest

from nightlab.known_errors import failure_of
from nightlab.output import ENVELOPE_VERSION, ago, duration, print_json, print_table
from runtime_client import errors
from runtime_client.models import API_VERSION, GarbageRow


def test_the_envelope_is_that_of_the_wire(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([GarbageRow(reason="own", goes=False, n_folders=1, n_bytes=2)])
    envelope = json.loads(capsys.readouterr().out)
    assert envelope == {"v": API_VERSION, "data": [{"reason": "own", "goes": False, "n_folders": 1, "n_bytes": 2}]}
    assert ENVELOPE_VERSION == API_VERSION


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (12000, "3 h 20 min"), (187200, "2 d 4 h")],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_relative_times_never_lie_in_the_future() -> None:
    assert ago(200.0, now=100.0) == "0.0 s ago"


def test_piped_tables_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("job", "state"), [("j" * 90, "running")], state_column=1)
    assert "j" * 90 in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.Unreachable("x", code="c", retryable=True), 3),
        (errors.TimedOut("x", code="c", retryable=True), 3),
        (errors.InvalidSpec("x", code="c", path="compute"), 2),
        (errors.NotFound("x", code="c"), 2),
        (errors.Forbidden("x", code="c"), 2),
        (errors.Conflict("x", code="c"), 1),
        (errors.OverBudget("x", code="c"), 1),
        (errors.ServerFault("x", code="c", retryable=True), 3),
        (errors.ServerFault("x", code="c"), 4),
    ],
)
def test_every_error_of_the_client_has_its_exit_code(error: errors.RuntimeClientError, exit_code: int) -> None:
    assert failure_of(error).exit_code == exit_code


def test_no_error_of_the_client_is_a_bug_of_ours() -> None:
    for kind in errors.CLASS_BY_KIND.values():
        assert failure_of(kind("x", code="c", retryable=True)).code == "c"


def test_other_exceptions_are_bugs_with_a_log() -> None:
    failure = failure_of(ZeroDivisionError("division by zero"))
    assert failure.exit_code == 4
    assert "ZeroDivisionError" in failure.message


def test_a_full_disk_is_no_bug_whoever_meets_it() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert failure_of(full).exit_code == 1
    assert "free some" in failure_of(full).message
