"""What wakes a session and what does not."""

from __future__ import annotations

import pytest

from agent.waiting import EventPump, Interest, Wake, matters, merged
from runtime_client.errors import RuntimeClientError, Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import EventView, JobSpec

MINE = Interest(job_ids=frozenset({"j1"}), metrics=frozenset({"acc"}), timeout_s=20.0)


def an_event(kind: str, job_id: str | None = None, **data: object) -> EventView:
    return EventView(seq=1, type=kind, at=0.0, actor="test", job_id=job_id, data=data)


def a_runtime() -> FakeRuntime:
    outcome = FakeOutcome(curves={"acc": [0.5]}, duration_s=1.0)
    return FakeRuntime(lambda spec: outcome, is_automatic=True)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (an_event("attempt_ended", "j1"), Wake(is_event=True, job_ids=("j1",))),
        (an_event("job_ended", "j1"), Wake(is_event=True, job_ids=("j1",))),
        (an_event("attempt_ended", "j2"), None),
        (an_event("attempt_started", "j1"), None),
        (an_event("metrics_logged", "j1", keys=["acc"]), Wake(is_event=True, job_ids=("j1",), has_metric=True)),
        (an_event("metrics_logged", "j1", keys=["loss"]), None),
        (an_event("node_joined"), Wake(is_event=True)),
        (an_event("resync"), Wake(is_event=True)),
    ],
)
def test_only_own_endings_watched_metrics_and_changes_of_the_world_wake(
    event: EventView, expected: Wake | None
) -> None:
    assert matters(event, MINE) == expected


def test_events_that_wait_together_are_one_wake_up() -> None:
    first, second = Wake(is_event=True, job_ids=("j1",)), Wake(is_event=True, job_ids=("j2", "j1"), has_metric=True)
    assert merged(first, second) == Wake(is_event=True, job_ids=("j1", "j2"), has_metric=True)


def test_a_wake_up_that_looks_at_everything_wins() -> None:
    assert merged(Wake(is_event=True, job_ids=("j1",)), Wake(is_event=True)).job_ids == ()


def test_the_pump_wakes_with_the_end_of_a_job() -> None:
    runtime = a_runtime()
    runtime.submit(JobSpec(experiment_name="e", command="c"))
    pump = EventPump(runtime, since=0, is_leaving=lambda: False)
    interest = Interest(job_ids=frozenset({"j1"}), metrics=frozenset(), timeout_s=20.0)
    assert pump.wait(interest) == Wake(is_event=True, job_ids=("j1",))


def test_the_pump_hands_a_broken_stream_to_the_session() -> None:
    class Broken(FakeRuntime):
        def events(self, *, since: int, wait_s: float | None = None) -> object:  # type: ignore[override]
            raise Unreachable("nobody answers", code="unreachable", retryable=True)

    pump = EventPump(Broken(lambda spec: FakeOutcome()), since=0, is_leaving=lambda: False)
    with pytest.raises(RuntimeClientError):
        pump.wait(MINE)


def test_the_pump_returns_when_somebody_asks_to_leave() -> None:
    pump = EventPump(a_runtime(), since=0, is_leaving=lambda: True)
    assert pump.wait(MINE) == Wake()
