"""Snapshots from a runtime and a store: who holds which slot, what waits, what is best."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace

import pytest
from rich.console import Console

from agent.gates.gate import Answer, Gate, GateKind
from agent.report.sample import TASK, sample_report_input
from agent.store.views import (
    ActivityView,
    CodeState,
    LookView,
    PlanView,
    Purpose,
    SessionState,
    SessionView,
    TrialState,
    TrialView,
)
from nightlab.live import LiveView, Phase, SnapshotSource
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, SessionFence

SAMPLE = sample_report_input()


@dataclass(slots=True)
class Shelf:
    """A store's views, put there by hand."""

    view: SessionView
    rows: list[TrialView] = field(default_factory=list)
    lines: list[ActivityView] = field(default_factory=list)

    def session(self, session_id: str) -> SessionView:
        return self.view

    def trials(self, session_id: str) -> list[TrialView]:
        return self.rows

    def activity(self, session_id: str, limit: int = 50) -> list[ActivityView]:
        return self.lines[-limit:]

    def looks(self, session_id: str) -> list[LookView]:
        return []

    def plans(self, session_id: str) -> list[PlanView]:
        return []


@pytest.fixture
def client():
    curve = [0.5 + 0.01 * n for n in range(20)]
    return FakeRuntime(lambda spec: FakeOutcome(curves={"val_accuracy": curve}, duration_s=10.0))


@pytest.fixture
def store(client):
    session = replace(
        SAMPLE.session, state=SessionState.RUNNING, result=None, created_at=client.now, ended_at=None, n_trials=0
    )
    return Shelf(view=session)


@pytest.fixture
def source(client, store):
    return SnapshotSource(client, store, "s1", clock=lambda: client.now)


def job_for(trial_id: str, **changes: object) -> JobSpec:
    fields: dict[str, object] = {
        "experiment_name": "digits",
        "command": "python train.py",
        "parameters": {"epochs": 20},
        "priority_class": "exploratory",
        "session": SessionFence(session_id="s1", fence=1),
        "idempotency_token": trial_id,
    }
    return JobSpec.model_validate({**fields, **changes})


def launch(store: Shelf, client: FakeRuntime, n: int) -> None:
    """The first `n` trials of the sample, launched and not measured yet."""
    for trial in SAMPLE.trials[:n]:
        job = client.submit(job_for(trial.trial_id))
        store.rows.append(replace(trial, job_id=job.job_id, state=TrialState.LAUNCHED, value=None, ended_at=None))


def measure(store: Shelf, number: int, value: float) -> None:
    at = number - 1
    store.rows[at] = replace(store.rows[at], state=TrialState.MEASURED, value=value, ended_at=float(number))


def test_idle_slots_before_anything_runs(source):
    shown = source.snapshot()
    assert [slot.job_id for slot in shown.slots] == [None, None]
    assert (shown.phase, shown.best, shown.spend.max_trials) == (Phase.SEARCHING, None, 18)


def test_slots_show_trial_progress_and_value(source, store, client):
    launch(store, client, 2)
    client.advance(5.2)
    first = source.snapshot().slots[0]
    assert (first.trial_number, first.purpose, first.priority_class) == (1, Purpose.SEARCH, "exploratory")
    assert first.n_steps == 20
    assert first.step is not None
    assert 0 < first.step < 20
    assert first.value == pytest.approx(0.6, abs=0.03)
    assert dict(first.params)["lr"] == 0.001


def test_best_follows_the_direction_of_the_task(source, store, client):
    launch(store, client, 3)
    for number, value in ((1, 0.9), (2, 0.95), (3, 0.92)):
        measure(store, number, value)
    shown = source.snapshot()
    assert (shown.best, shown.best_trial, shown.default) == (0.95, 2, 0.9)
    assert shown.best_series == (0.9, 0.95, 0.95)
    minimized = TASK.model_dump(mode="json")
    minimized["objective"]["direction"] = "minimize"
    store.view = replace(store.view, task_json=type(TASK).model_validate(minimized).model_dump_json())
    assert source.snapshot().best_series == (0.9, 0.9, 0.9)


def test_the_best_tells_its_code_where_that_was_edited(source, store, client):
    code = CodeState(tree="1", commit="1", branch="trial/s1-t3", parent="s1-t2", added=12, removed=3)
    best = next(t for t in SAMPLE.trials if t.purpose is Purpose.SEARCH and t.state is TrialState.MEASURED)
    store.rows = [replace(best, params={"lr": 0.1}, facts=replace(best.facts, edited=code))]
    assert source.snapshot().best_params == (("lr", 0.1), ("code", "+12 -3 (s1-t2)"))


@pytest.mark.parametrize(
    ("state", "purpose", "phase"),
    [
        (SessionState.RUNNING, Purpose.SEARCH, Phase.SEARCHING),
        (SessionState.RUNNING, Purpose.REPLICATE, Phase.CONFIRMING),
        (SessionState.RUNNING, Purpose.HELD_OUT, Phase.HELD_OUT),
        (SessionState.STOPPING, Purpose.SEARCH, Phase.STOPPING),
        (SessionState.FINISHED, Purpose.SEARCH, Phase.FINISHED),
        (SessionState.FAILED, Purpose.SEARCH, Phase.FAILED),
    ],
)
def test_phase_follows_state_and_what_runs(source, store, client, state, purpose, phase):
    launch(store, client, 1)
    store.rows = [replace(store.rows[0], purpose=purpose)]
    store.view = replace(store.view, state=state)
    assert source.snapshot().phase is phase


def test_after_the_held_out_look_the_session_does_not_confirm_again(source, store, client):
    launch(store, client, 2)
    first, look = store.rows
    store.rows = [
        replace(first, purpose=Purpose.REPLICATE, state=TrialState.MEASURED),
        replace(look, purpose=Purpose.HELD_OUT, state=TrialState.MEASURED),
    ]
    assert source.snapshot().phase is Phase.HELD_OUT


def test_what_has_no_slot_is_in_the_queue(source, store, client):
    launch(store, client, 3)
    client.advance(2.0)
    (waiting,) = source.snapshot().queue
    assert (waiting.trial_number, waiting.is_requeued) == (3, False)


def test_jobs_submitted_at_once_wait_in_the_order_of_their_numbers(source, store, client):
    launch(store, client, 12)
    numbers = [waiting.trial_number for waiting in source.snapshot().queue]
    assert len(numbers) > 2
    assert numbers == sorted(numbers)


def test_urgent_job_and_its_victim_are_shown_until_the_victim_has_ended(source, store, client):
    launch(store, client, 2)
    client.advance(4.0)
    client.preempt("j2", beneficiary="j3")
    client.submit(job_for("urgent", session=None, priority_class="critical"))
    client.advance(1.0)
    shown = source.snapshot()
    assert {slot.priority_class for slot in shown.slots} == {"critical", "exploratory"}
    (told,) = shown.preemptions
    assert (told.job_id, told.trial_number, told.beneficiary, told.resumed_attempt) == ("j2", 2, "j3", None)
    assert [(q.job_id, q.is_requeued) for q in shown.queue] == [("j2", True)]
    client.advance(60.0)
    (told,) = source.snapshot().preemptions
    assert (told.state, told.resumed_attempt) == ("succeeded", 2)


def test_view_follows_until_told_to_stop(source, store, client):
    launch(store, client, 2)
    seen = []

    def watch(shown):
        client.advance(1.0)
        seen.append(shown)
        return len(seen) == 3

    written = io.StringIO()
    last = LiveView(source, Console(file=written, force_terminal=False), period_s=0.0).follow(watch)
    assert last is seen[-1]
    assert "searching" in written.getvalue()


def test_a_question_that_waits_for_a_person_comes_before_other_notices(client, store):
    gate = Gate(
        gate_id=3, session_id="s1", subject="c", kind=GateKind.TRIAL, text="run it?", trial=None, cost_device_s=None,
        asked_at=0.0, answer_by=9.0, unanswered=Answer.DENY, answer=None, answered_by=None, answered_at=None, note=None,
    )  # fmt: skip
    source = SnapshotSource(client, store, "s1", clock=lambda: client.now, questions=lambda: [gate])
    assert source.snapshot().notices[0] == "gate 3 waits for an answer: nightlab gate list"
