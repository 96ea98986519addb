"""`nightlab job diagnose` for jobs of a runtime in memory: what is gathered, and what a person reads."""

from __future__ import annotations

import pytest

from agent.doctor.diagnosis import FailureClass
from agent.doctor.gather import gather, last_ended
from agent.doctor.rules import diagnose
from nightlab.diagnosis_page import print_diagnosis
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import CodeSource, JobSpec, JobView


def failed(outcome: FakeOutcome) -> tuple[FakeRuntime, JobView]:
    runtime = FakeRuntime(lambda _spec: outcome)
    job = runtime.submit(JobSpec(experiment_name="e", command="train", code_source=CodeSource(root_path="/")))
    runtime.advance(100.0)
    return runtime, runtime.job(job.job_id)


def test_the_record_of_the_attempt_and_the_metrics_are_gathered() -> None:
    line = "ValueError: math domain error"
    runtime, job = failed(FakeOutcome(exit_reason="code_error", evidence=line, curves={"loss": [1.0]}))
    evidence = gather(runtime, job, last_ended(job))
    assert (evidence.exit_reason, evidence.line, dict(evidence.metrics)) == ("code_error", line, {"loss": 1.0})
    assert evidence.output is not None
    assert evidence.output.ends[0].lines == (line,)


def test_a_person_reads_class_cause_change_and_what_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    line = "ModuleNotFoundError: No module named 'flash_attn'"
    runtime, job = failed(FakeOutcome(exit_reason="import_error", evidence=line))
    evidence = gather(runtime, job, last_ended(job))
    print_diagnosis(job, 1, evidence, diagnose(evidence))
    said = capsys.readouterr().out
    assert said.startswith(f"{job.job_id}, attempt 1: import\n")
    assert "the module flash_attn is not installed" in said
    assert f"what says so:\n  {line}" in said


def test_what_can_not_be_told_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    runtime, job = failed(FakeOutcome(exit_reason="code_error", evidence="step 4 loss 0.2"))
    evidence = gather(runtime, job, last_ended(job))
    found = diagnose(evidence)
    assert found.failure is FailureClass.UNKNOWN
    print_diagnosis(job, 1, evidence, found)
    said = capsys.readouterr().out
    assert "could not tell" in said
    assert "nightlab job logs" in said
    assert "its last words:\n  step 4 loss 0.2" in said
