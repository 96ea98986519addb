"""`nightlab job diagnose` for jobs of a runtime in memory: what is gathered, and what a person reads."""

from __future__ import annotations

import json

import pytest

from agent.doctor.diagnosis import FailureClass
from agent.doctor.gather import gather, last_ended
from agent.doctor.rules import diagnose
from agent.llm.chat import ModelError, Trouble
from agent.llm.ladder import Asker
from agent.llm.scripted import ScriptedModel, called
from agent.task import Task
from nightlab.diagnosis_page import print_diagnosis
from nightlab.failure import Failure
from nightlab.outside.reading import diagnosis
from nightlab.second_opinion import opinion_of
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import CodeSource, JobSpec, JobView

TASK = Task.model_validate(
    {
        "task": "toy",
        "objective": {"metric": "score", "direction": "maximize"},
        "job": {"command": "train"},
        "space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2}},
        "budgets": {"trials": 6},
        "model": {"name": "small"},
    }
)


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


def test_a_model_of_a_task_file_is_asked_where_the_rules_can_not_tell(capsys: pytest.CaptureFixture[str]) -> None:
    line = "the buffer is too small, giving up"
    runtime, job = failed(FakeOutcome(exit_reason="code_error", evidence=line))
    evidence = gather(runtime, job, last_ended(job))
    answer = {"failure": "code", "evidence": line, "cause": "a buffer", "suggestion": "more", "change": {"x": 9.0}}
    model = ScriptedModel(lambda request: called(request.tools[0].name, json.dumps(answer)))
    opinion = opinion_of(Asker(model), TASK, job, evidence)
    print_diagnosis(job, 1, evidence, opinion.diagnosis, opinion.refusals)
    said = capsys.readouterr().out
    assert said.startswith(f"{job.job_id}, attempt 1: code (suspected)\n")
    assert "told by    scripted" in said
    assert "not taken  the change can not be tried: x = 9.0: outside 0.0 to 1.0" in said


def test_a_model_without_an_answer_is_said_to_have_none() -> None:
    runtime, job = failed(FakeOutcome(exit_reason="code_error", evidence="giving up"))
    asker = Asker(ScriptedModel(lambda _: ModelError(Trouble.UNAUTHORIZED, "bad key")))
    with pytest.raises(Failure, match="no second opinion"):
        opinion_of(asker, TASK, job, gather(runtime, job, last_ended(job)))


def test_an_outside_agent_gets_the_class_and_the_evidence_inside_a_fence() -> None:
    runtime, job = failed(FakeOutcome(exit_reason="code_error", evidence="RuntimeError: shape mismatch: (3,) and (4,)"))
    found = diagnosis(runtime, job.job_id)
    assert (found["failure"], found["is_sure"]) == ("shape", True)
    assert "<untrusted" in found["cause_and_evidence"]
    assert "RuntimeError: shape mismatch" in found["cause_and_evidence"]
