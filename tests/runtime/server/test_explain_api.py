"""What a job is told over HTTP: its past with others, and when it is expected to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until

from runtime.engines.fake import ByHand
from runtime_client.models import HoldScope


class Clock:
    """Seconds since the epoch, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(tmp_path: Path, clock: Clock) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), clock=clock) as found:
        yield found


def preempted_once(made: Lab, clock: Clock) -> None:
    """j1 holds two devices, saves after 60 s, is asked to leave for j2 at 100 s, and has left at 110 s."""
    made.client.submit(spec(priority_class="exploratory", compute={"num_accelerators": 2}))
    made.in_state("j1", "running")
    clock.now_s += 60
    made.do(lambda: made.engine.checkpoint(key("j1"), step=1))
    until(lambda: made.client.job("j1").checkpoint_step)
    clock.now_s += 40
    made.client.submit(spec(priority_class="critical"))
    made.in_state("j1", "stopping")
    clock.now_s += 10


def test_a_job_that_runs_again_says_for_whom_it_was_preempted_and_what_it_lost(made: Lab, clock: Clock) -> None:
    preempted_once(made, clock)
    made.finish("j1", exit_code=75)
    made.in_state("j2", "running")
    made.finish("j2")
    made.in_state("j1", "running")
    told = made.client.explain("j1")
    assert (told.summary, told.beneficiary) == ("j1 runs on local:0,1", "j2")
    (departure,) = told.departures
    assert (departure.job_id, departure.attempt, departure.cause, departure.beneficiary) == ("j1", 1, "preempt", "j2")
    assert departure.left_at is not None
    assert departure.left_at - departure.asked_at == 10.0
    assert departure.lost_device_seconds == 100.0
    assert departure.reason is not None
    assert "j2 (critical) needs 1 device" in departure.reason


def test_a_job_that_ended_says_so_too(made: Lab, clock: Clock) -> None:
    preempted_once(made, clock)
    made.finish("j1", exit_code=75)
    made.in_state("j2", "running")
    made.client.cancel("j1")
    told = made.client.explain("j1")
    assert (told.state, told.beneficiary, len(told.departures)) == ("cancelled", "j2", 1)


def test_a_job_that_others_left_for_says_whom_it_cost_what(made: Lab, clock: Clock) -> None:
    preempted_once(made, clock)
    (leaving,) = made.client.explain("j2").cost_to_others
    assert (leaving.job_id, leaving.left_at, leaving.lost_device_seconds) == ("j1", None, None)
    made.finish("j1", exit_code=75)
    made.in_state("j2", "running")
    (left,) = made.client.explain("j2").cost_to_others
    assert (left.job_id, left.priority_class, left.lost_device_seconds) == ("j1", "exploratory", 100.0)
    made.finish("j2")
    made.in_state("j2", "succeeded")
    assert made.client.explain("j2").cost_to_others == (left,)


def test_a_victim_that_finishes_within_its_grace_lost_nothing(made: Lab, clock: Clock) -> None:
    preempted_once(made, clock)
    made.finish("j1")
    made.in_state("j2", "running")
    (left,) = made.client.explain("j2").cost_to_others
    assert (left.outcome, left.lost_device_seconds) == ("succeeded", 0.0)


def test_a_paused_job_says_who_paused_it_and_why(made: Lab, clock: Clock) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    made.client.pause(HoldScope.ALL, reason="thunderstorm")
    made.finish("j1", exit_code=75)
    made.in_state("j1", "queued")
    (departure,) = made.client.explain("j1").departures
    assert (departure.cause, departure.beneficiary, departure.reason) == ("pause", None, "all: thunderstorm")


def test_the_expected_start_is_learned_from_like_jobs(made: Lab, clock: Clock) -> None:
    for number in (1, 2, 3):
        made.client.submit(spec(compute={"num_accelerators": 2}))
        made.in_state(f"j{number}", "running")
        clock.now_s += 50
        made.finish(f"j{number}")
        made.in_state(f"j{number}", "succeeded")
    made.client.submit(spec(compute={"num_accelerators": 2}))
    made.in_state("j4", "running")
    clock.now_s += 20
    made.client.submit(spec(compute={"num_accelerators": 2}))
    expected = made.client.explain("j5").expected_start
    assert expected is not None
    assert (expected.in_seconds, expected.at) == (30.0, clock.now_s + 30)
    assert expected.basis == "when j4 has ended (as long as like jobs ran)"
    after = made.client.what_if(spec(compute={"num_accelerators": 2})).expected_start
    assert after is not None
    assert after.in_seconds == 80.0


def test_no_start_is_invented_where_no_run_time_is_known(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 2}))
    made.in_state("j1", "running")
    expected = made.client.what_if(spec()).expected_start
    assert expected is not None
    assert expected.at is None
    assert expected.basis.startswith("nobody knows how long j1 runs")


def test_what_can_not_wait_for_room_has_no_expected_start(made: Lab) -> None:
    never = made.client.what_if(spec(compute={"num_accelerators": 5}))
    assert (never.prospect, never.expected_start) == ("never", None)
    made.client.pause(HoldScope.ALL, reason="noise")
    assert made.client.what_if(spec()).expected_start is None
    held = made.client.submit(spec())
    assert made.client.explain(held.job_id).expected_start is None
