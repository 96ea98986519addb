"""The hour by which jobs are over, and jobs that go on from ended ones, over HTTP and with a clock in the hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec

from runtime.engines.fake import ByHand
from runtime.model.states import EXIT_REQUEUE
from runtime_client.errors import Conflict, InvalidSpec
from runtime_client.models import BudgetScope

HOUR = 1_001_000.0


@dataclass
class HandClock:
    now_s: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def made(tmp_path: Path, clock: HandClock) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=2, clock=clock) as found:
        yield found


def make_a_round(made: Lab) -> None:
    made.client.set_budget(BudgetScope.SESSION, "nobody", device_seconds=1)


def test_at_its_hour_what_runs_is_asked_to_leave_and_what_waits_has_ended(made: Lab, clock: HandClock) -> None:
    for _ in range(3):
        made.client.submit(spec(finish_by=HOUR))
    made.in_state("j1", "running")
    made.in_state("j2", "running")
    clock.now_s = HOUR - 32.0
    make_a_round(made)
    waited = made.in_state("j3", "cancelled")
    assert (waited.exit_reason, waited.attempts) == ("deadline", ())
    assert made.in_state("j1", "stopping").attempts[0].stop_cause == "deadline"
    made.do(lambda: made.engine.checkpoint(key("j1"), 7))
    made.finish("j1", exit_code=EXIT_REQUEUE)
    left = made.in_state("j1", "cancelled")
    assert (left.exit_reason, left.checkpoint_step, left.attempts[0].outcome) == ("deadline", 7, "cancelled")
    made.finish("j2", exit_code=0)
    assert made.in_state("j2", "succeeded").exit_reason == "completed"


def test_an_hour_that_is_past_is_refused_but_a_known_token_is_answered(made: Lab, clock: HandClock) -> None:
    first = made.client.submit(spec(finish_by=HOUR, idempotency_token="t"))
    clock.now_s = HOUR + 5.0
    with pytest.raises(InvalidSpec, match=r"finish_by: 1001000 was 5 s ago, .* give a later time, or leave it out"):
        made.client.submit(spec(finish_by=HOUR))
    with pytest.raises(InvalidSpec, match="was 5 s ago"):
        made.client.what_if(spec(finish_by=HOUR))
    with pytest.raises(InvalidSpec, match="seconds since the epoch"):
        made.client.submit(spec(finish_by=HOUR * 1e6))
    assert made.client.submit(spec(finish_by=HOUR, idempotency_token="t")).job_id == first.job_id


def test_a_job_goes_on_only_from_an_ended_one_of_its_own_experiment(made: Lab, clock: HandClock) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    with pytest.raises(Conflict, match="j1 has not ended; wait for that, or cancel it"):
        made.client.submit(spec(continues="j1"))
    clock.now_s += 40.0
    made.do(lambda: made.engine.checkpoint(key("j1"), 7))
    made.client.cancel("j1")
    made.finish("j1", exit_code=-15)
    made.in_state("j1", "cancelled")
    with pytest.raises(InvalidSpec, match="there is no job 'j9'; give that of an ended job"):
        made.client.submit(spec(continues="j9"))
    for other in ({"experiment_name": "other"}, {"project": "other"}):
        with pytest.raises(InvalidSpec, match="a job goes on only from one of its own"):
            made.client.submit(spec(continues="j1", **other))
        with pytest.raises(InvalidSpec, match="a job goes on only from one of its own"):
            made.client.what_if(spec(continues="j1", **other))
    again = made.client.submit(spec(continues="j1"))
    assert made.server.on_loop(lambda: made.server.services.loop.state.jobs[again.job_id].done_s) == 40.0


def test_a_machine_that_slept_over_the_hour_is_noticed_without_any_word(made: Lab, clock: HandClock) -> None:
    """Timers of the loop stand still meanwhile; it looks at its clock now and then."""
    loop = made.server.services.loop
    made.do(lambda: (setattr(loop, "ticks", clock), setattr(loop, "awake_s", 0.02)))
    made.client.submit(spec(finish_by=HOUR))
    made.in_state("j1", "running")
    clock.now_s = HOUR + 3600.0
    left = made.in_state("j1", "stopping")
    assert left.attempts[0].stop_cause == "deadline"
    assert left.state_reason is not None
    assert "3600 s late, since the runtime was away" in left.state_reason
