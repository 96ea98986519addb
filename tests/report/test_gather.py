"""Facts for a report come from the store's views and the runtime, the beneficiaries of preemptions included."""

from __future__ import annotations

from agent.report.gather import gather_report_input, session_jobs
from agent.report.sample import TASK, sample_report_input
from agent.store.views import ModelCallView
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, SessionFence

CALL = ModelCallView(
    call_id=1, at=0.0, purpose="suggest", prompt_version=None, model="small", rung="tools", outcome="used",
    prompt_tokens=10, completion_tokens=5, cost_usd=None, took_s=1.0,
)  # fmt: skip


class Reader:
    """The views of the sample session, as a store would give them."""

    def __init__(self) -> None:
        self.facts = sample_report_input()

    def session(self, session_id):
        return self.facts.session

    def trials(self, session_id):
        return self.facts.trials

    def activity(self, session_id, limit=50):
        return self.facts.activity[-limit:]

    def looks(self, session_id):
        return self.facts.looks

    def plans(self, session_id):
        return [self.facts.plan]


def runtime() -> FakeRuntime:
    return FakeRuntime(lambda spec: FakeOutcome(curves={"val_accuracy": [0.5, 0.6, 0.7]}, duration_s=10.0))


def trial_job(token: str, **changes: object) -> JobSpec:
    fields: dict[str, object] = {
        "experiment_name": "digits",
        "command": "python train.py",
        "priority_class": "exploratory",
        "session": SessionFence(session_id="s1", fence=1),
        "idempotency_token": token,
    }
    return JobSpec.model_validate({**fields, **changes})


def test_collects_jobs_metrics_and_who_they_were_preempted_for():
    client = runtime()
    for n in range(3):
        client.submit(trial_job(f"t{n}"))
    client.advance(4.0)
    client.preempt("j2", beneficiary="j4")
    urgent = client.submit(trial_job("urgent", session=None, priority_class="critical"))
    client.advance(60.0)
    facts = gather_report_input(Reader(), client, "s1", model_calls=[CALL])
    assert {job.job_id for job in facts.jobs} == {"j1", "j2", "j3", urgent.job_id}
    assert facts.task == TASK
    assert [p.value for p in facts.points["j3"] if p.key == "val_accuracy"] == [0.5, 0.6, 0.7]
    assert facts.n_devices == 2
    assert facts.model_calls == (CALL,)


def test_session_jobs_are_oldest_first_over_several_pages(monkeypatch):
    client = runtime()
    for n in range(7):
        client.submit(trial_job(f"t{n}"))
    monkeypatch.setattr("agent.report.gather.PAGE", 3)
    assert [job.job_id for job in session_jobs(client, "s1")] == [f"j{n}" for n in range(1, 8)]
