"""How attempts end, as the server tells it."""

from __future__ import annotations

from pathlib import Path

from lab import key, lab, spec

from runtime.engines.fake import Refusal
from runtime.model.states import ExitReason
from runtime.scheduling.policy import Policy

OUT_OF_MEMORY = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n"


def test_a_job_out_of_memory_carries_a_suggestion(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job = here.client.submit(spec(parameters={"lr": 0.1, "batch_size": 64}))
        here.in_state(job.job_id, "running")
        here.do(lambda: here.engine.fail(key(job.job_id), log=OUT_OF_MEMORY))
        ended = here.in_state(job.job_id, "failed")
        assert ended.exit_reason == "out_of_memory_device"
        assert ended.suggestion is not None
        assert (ended.suggestion.change, ended.suggestion.factor, ended.suggestion.new) == ("batch_size", 0.5, 32)
        explained = here.client.explain(job.job_id)
        assert explained.suggestion == ended.suggestion
        assert any("halve batch_size" in line for line in explained.details)


def test_a_suggestion_is_there_while_the_job_waits_for_its_retry(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job = here.client.submit(spec(parameters={"batch_size": 64}, max_retries=1))
        here.in_state(job.job_id, "running")
        here.do(lambda: here.engine.fail(key(job.job_id), log=OUT_OF_MEMORY))
        here.in_state(job.job_id, "queued")
        suggestion = here.client.explain(job.job_id).suggestion
        assert suggestion is not None
        assert suggestion.change == "batch_size"


def test_a_launch_that_fails_for_the_machine_costs_no_retry(tmp_path: Path) -> None:
    with lab(tmp_path, policy=Policy(retry_backoff_s=0.01)) as here:
        refusal = Refusal(exit_reason=ExitReason.LAUNCHER_UNAVAILABLE, evidence="no launcher")
        here.do(lambda: here.engine.refusals.append(refusal))
        job = here.client.submit(spec(max_retries=0))
        running = here.in_state(job.job_id, "running")
        assert (running.n_retries, running.attempts[0].outcome) == (0, "launch_failed")
