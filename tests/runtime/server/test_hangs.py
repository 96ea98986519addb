"""Jobs that hang are stopped, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until
from pydantic import ValidationError

from runtime.engines.fake import ByHand

SOON = 0.3 / 60
"""Minutes."""


def started(here: Lab, **changes: object) -> str:
    job = here.client.submit(spec(**changes))
    here.in_state(job.job_id, "running")
    return job.job_id


def test_a_silent_job_is_stopped_as_hung(tmp_path: Path) -> None:
    with lab(tmp_path, hang_look_s=0.02) as here:
        ended = here.in_state(started(here, hang_minutes=SOON), "failed")
        assert ended.exit_reason == "hung"
        (attempt,) = ended.attempts
        assert attempt.stop_cause == "hang"
        assert attempt.evidence is not None
        assert attempt.evidence.startswith("no output, metric or checkpoint for")
        assert attempt.evidence.endswith("stacks.txt")


def test_a_hang_costs_a_retry(tmp_path: Path) -> None:
    with lab(tmp_path, hang_look_s=0.02) as here:
        job_id = started(here, hang_minutes=SOON, max_retries=1)
        waiting = until(lambda: (view := here.client.job(job_id)).attempts[0].outcome and view)
        assert (waiting.state, waiting.n_retries, waiting.attempts[0].exit_reason) == ("queued", 1, "hung")


@pytest.mark.parametrize("sign", ["output", "rank", "metric", "checkpoint"])
def test_every_sign_of_life_counts(tmp_path: Path, sign: str) -> None:
    with lab(tmp_path, hang_look_s=0.02) as here:
        quiet, alive = started(here, hang_minutes=SOON), started(here, hang_minutes=SOON)
        step = 0

        def speak() -> None:
            nonlocal step
            step += 1
            match sign:
                case "output":
                    here.engine.print(key(alive), "x")
                case "rank":
                    here.engine.print(key(alive), "x", stream="0")
                case "metric":
                    here.engine.log_metric(key(alive), "loss", 0.5, step)
                case _:
                    here.engine.checkpoint(key(alive), step)

        def is_over() -> bool:
            here.do(speak)
            return here.client.job(quiet).state == "failed"

        until(is_over)
        assert here.client.job(alive).state == "running"


@pytest.mark.parametrize("given", [{}, {"hang_minutes": "off"}])
def test_a_job_that_never_showed_a_rhythm_does_not_hang(tmp_path: Path, given: dict[str, object]) -> None:
    with lab(tmp_path, hang_look_s=0.02) as here:
        other, quiet = started(here, hang_minutes=SOON), started(here, **given)
        here.in_state(other, "failed")
        assert here.client.job(quiet).state == "running"


def test_a_job_that_is_leaving_is_not_taken_for_hung(tmp_path: Path) -> None:
    with lab(tmp_path, hang_look_s=0.02, script=ByHand()) as here:
        leaving, quiet = started(here, hang_minutes=1.0), started(here, hang_minutes=SOON)
        here.client.cancel(leaving)
        here.in_state(quiet, "stopping")
        assert here.client.job(leaving).attempts[0].stop_cause == "cancel"


def test_other_words_than_off_are_refused() -> None:
    with pytest.raises(ValidationError, match="hang_minutes"):
        spec(hang_minutes="never")
