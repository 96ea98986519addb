"""Rows with everything that a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime.model.nouns import Placement
from runtime.model.states import JobState
from runtime.store.history import AttemptRow, JobRow
from runtime.store.journal import StoredEvent
from runtime.store.records import MetricRow, RunRow


def event(seq: int, **changes: Any) -> StoredEvent:
    plain = StoredEvent(
        seq=seq,
        type="checkpoint_seen",
        version=1,
        at_s=float(seq),
        actor="scheduler",
        on_behalf_of=None,
        project="default",
        job_id="j1",
        payload={"step": seq},
    )
    return replace(plain, **changes)


def events(first: int, last: int, **changes: Any) -> list[StoredEvent]:
    return [event(seq, **changes) for seq in range(first, last + 1)]


def job(number: int, **changes: Any) -> JobRow:
    plain = JobRow(
        job_id=f"j{number}",
        number=number,
        project="default",
        experiment="digits",
        session_id=None,
        priority_class="normal",
        priority=50,
        is_preemptible=True,
        state=JobState.QUEUED,
        submitted_at=1000.0 + number,
        run_id=f"{number:032x}",
        spec={"command": ["python", "train.py"]},
    )
    return replace(plain, **changes)


def attempt(job_id: str, number: int, **changes: Any) -> AttemptRow:
    placements = (Placement(node_id="local", devices=(0, 1), first_rank=0),)
    return replace(AttemptRow(job_id=job_id, attempt=number, placements=placements, ordered_at=1.0), **changes)


def run(run_id: str, **changes: Any) -> RunRow:
    plain = RunRow(run_id=run_id, experiment_name="digits", run_name="a run", status="RUNNING", created_at=1.0)
    return replace(plain, **changes)


def point(key: str, value: float, step: int, **changes: Any) -> MetricRow:
    return replace(MetricRow(run_id="r1", key=key, value=value, step=step, at_s=float(step), attempt=1), **changes)
