"""From rows and the live state to what the wire shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from runtime.model.holds import Hold, Standing
from runtime.model.nouns import Job, Node, Placement
from runtime.model.state import State, holders
from runtime.model.states import JobState, StopCause
from runtime.model.suggestion import suggest
from runtime.scheduling import forecast as scheduling
from runtime.scheduling.explain import describe_standing
from runtime.scheduling.policy import Policy
from runtime.store import history, records
from runtime.store.history import AttemptRow, JobRow
from runtime.store.journal import StoredEvent
from runtime.store.records import RunRow
from runtime.tracking.queries import runs_by_id
from runtime.tracking.runs import page_url
from runtime_client.models import (
    AgentsStopView,
    AttemptView,
    DeviceView,
    EventView,
    Forecast,
    Holds,
    HoldScope,
    HoldView,
    JobSpec,
    JobView,
    MetricPoint,
    NodeView,
    PlacementView,
    SandboxView,
    SuggestionView,
    VictimView,
)


def event_view(stored: StoredEvent) -> EventView:
    return EventView(
        seq=stored.seq,
        type=stored.type,
        version=stored.version,
        at=stored.at_s,
        actor=stored.actor,
        on_behalf_of=stored.on_behalf_of,
        project=stored.project,
        job_id=stored.job_id,
        data=stored.payload,
    )


def read_job_views(
    connection: sa.Connection, rows: Sequence[JobRow], *, mlflow_url: str | None = None
) -> list[JobView]:
    """The views of these jobs, with their attempts and runs."""
    attempts = history.get_attempts(connection, [row.job_id for row in rows])
    runs = runs_by_id(connection, [row.run_id for row in rows])
    return [job_view(row, attempts[row.job_id], runs.get(row.run_id), mlflow_url=mlflow_url) for row in rows]


def job_view(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    run: RunRow | None,
    *,
    mlflow_url: str | None = None,
    spec: JobSpec | None = None,
) -> JobView:
    """One job. `spec` saves reading it again from the row, when it is at hand."""
    read_spec = JobSpec.model_validate(row.spec) if spec is None else spec
    started = [attempt.started_at for attempt in attempts if attempt.started_at is not None]
    return JobView.model_construct(
        job_id=row.job_id,
        state=row.state.value,
        state_reason=row.state_reason,
        spec=read_spec,
        priority=row.priority,
        preemptible=row.is_preemptible,
        submitted_at=row.submitted_at,
        started_at=min(started, default=row.started_at),
        ended_at=row.ended_at,
        n_preemptions=row.n_preemptions,
        n_retries=row.n_retries,
        checkpoint_step=row.checkpoint_step,
        attempts=tuple(_attempt_view(attempt) for attempt in attempts),
        run_id=row.run_id,
        mlflow_run_id=None if run is None else run.mlflow_run_id,
        mlflow_url=None if run is None else page_url(run, mlflow_url),
        exit_reason=None if row.exit_reason is None else row.exit_reason.value,
        suggestion=suggestion_view(row, attempts, read_spec.parameters),
    )


def suggestion_view(
    row: JobRow, attempts: Sequence[AttemptRow], parameters: Mapping[str, object]
) -> SuggestionView | None:
    """What its latest ended attempt suggests."""
    last = next((attempt.exit_reason for attempt in reversed(attempts) if attempt.exit_reason is not None), None)
    found = suggest(row.exit_reason or last, parameters)
    if found is None:
        return None
    return SuggestionView(change=found.change, factor=found.factor, old=found.old, new=found.new, why=found.why)


def _attempt_view(row: AttemptRow) -> AttemptView:
    return AttemptView.model_construct(
        attempt=row.attempt,
        placements=tuple(
            PlacementView.model_construct(
                node_id=placement.node_id, devices=placement.devices, first_rank=placement.first_rank
            )
            for placement in row.placements
        ),
        ordered_at=row.ordered_at,
        started_at=row.started_at,
        stop_ordered_at=row.stop_ordered_at,
        stop_cause=None if row.stop_cause is None else row.stop_cause.value,
        beneficiary=row.beneficiary,
        ended_at=row.ended_at,
        outcome=None if row.outcome is None else row.outcome.value,
        exit_reason=None if row.exit_reason is None else row.exit_reason.value,
        exit_code=row.exit_code,
        evidence=row.evidence,
        launch=row.launch,
        launch_why=row.launch_why,
        sandbox=None
        if row.sandbox is None
        else SandboxView.model_construct(
            level=row.sandbox.level, layers=row.sandbox.layers, uid=row.sandbox.uid, how=row.sandbox.how
        ),
        run_s=row.run_s,
        cpu_s=row.cpu_s,
        peak_memory_mb=row.peak_memory_mb,
        checkpoint_step=row.checkpoint_step,
    )


def node_views(state: State) -> list[NodeView]:
    return [
        _node_view(node, holders(state, node.node_id), state.standing(node.node_id))
        for _, node in sorted(state.nodes.items())
    ]


def _node_view(node: Node, jobs: Iterable[Job], standing: Standing) -> NodeView:
    reserved = {device: reservation for reservation in standing.reservations for device in reservation.devices}
    held: dict[int, tuple[str, int]] = {}
    for job in jobs:
        assert job.attempt is not None, "a holder has an attempt"
        for placement in job.attempt.placements:
            if placement.node_id == node.node_id:
                held |= dict.fromkeys(placement.devices, (job.job_id, job.attempt.number))
    return NodeView(
        node_id=node.node_id,
        generation=node.generation,
        why_not_sealed=node.why_not_sealed,
        sealed_by=node.sealed_by,
        state=standing.state.value,
        state_reason=standing.reason,
        devices=tuple(
            DeviceView(
                index=device.index,
                kind=device.kind,
                uuid=device.uuid,
                memory_mb=device.memory_mb,
                is_fake=device.is_fake,
                job_id=held.get(device.index, (None, None))[0],
                attempt=held.get(device.index, (None, None))[1],
                reserved_for=None if (kept := reserved.get(device.index)) is None else kept.holder,
                reserved_until=None if kept is None else kept.until_s,
                busy_external=device.index in standing.busy_external,
                busy_reason=standing.busy_reason(device.index),
            )
            for device in node.devices
        ),
        hostname=node.hostname,
        cpus=node.cpus,
        memory_mb=node.memory_mb,
    )


def forecast_view(found: scheduling.Forecast) -> Forecast:
    return Forecast(
        prospect=found.prospect.value,
        summary=found.summary,
        details=found.details,
        queue_position=found.queue_position,
        placements=tuple(_placement_view(placement) for placement in found.placements),
        victims=tuple(
            VictimView(job_id=v.job_id, priority_class=v.priority_class, lost_device_seconds=v.lost_s)
            for v in found.victims
        ),
        behind=found.behind,
    )


def _placement_view(placement: Placement) -> PlacementView:
    return PlacementView(node_id=placement.node_id, devices=placement.devices, first_rank=placement.first_rank)


def holds_view(state: State) -> Holds:
    leaving = (state.jobs[job_id].attempt for job_id in state.index.stopping)
    return Holds(
        holds=tuple(_hold_view(hold) for hold in state.holds.values()),
        agents_stop=agents_stop_view(state),
        n_held=len(state.index.held),
        n_leaving=sum(1 for attempt in leaving if attempt and attempt.stop and attempt.stop.cause is StopCause.PAUSE),
    )


def _hold_view(hold: Hold) -> HoldView:
    return HoldView(
        scope=HoldScope(hold.scope.value),
        name=hold.name,
        reason=hold.reason,
        placed_at=hold.placed_at_s,
        placed_by=hold.placed_by,
    )


def agents_stop_view(state: State) -> AgentsStopView | None:
    stop = state.agents_stop
    return None if stop is None else AgentsStopView(reason=stop.reason, since=stop.since_s)


def operator_notices(state: State) -> list[str]:
    """What people put in the way of work, in a sentence each."""
    notices = [f"paused ({hold.key}, by {hold.placed_by}): {hold.reason}" for hold in state.holds.values()]
    if state.agents_stop is not None:
        notices.append(f"all agents are stopped: {state.agents_stop.reason}")
    for node_id in sorted(state.nodes):
        said = describe_standing(state.standing(node_id))
        if said is not None:
            notices.append(f"node {node_id} is not fully in use: {said}")
    return notices


def stranded_notices(state: State, policy: Policy) -> list[str]:
    """Live jobs of classes that the policy no longer has, or has with another priority."""
    n_by_class = Counter((job.priority_class, job.priority) for job in state.jobs.values())
    notices = []
    for (name, priority), n in sorted(n_by_class.items()):
        cls = policy.classes.get(name)
        if cls is None or cls.priority != priority:
            now = "is not in the policy any more" if cls is None else f"has priority {cls.priority} now"
            notices.append(f"class {name} {now}; its {n} older jobs keep the priority {priority} until they end")
    return notices


def metric_point(row: records.MetricRow) -> MetricPoint:
    is_number = math.isfinite(row.value)
    text = None if is_number else "NaN" if math.isnan(row.value) else "Infinity" if row.value > 0 else "-Infinity"
    return MetricPoint(
        key=row.key,
        value=row.value if is_number else None,
        text=text,
        step=row.step,
        at=row.at_s,
        attempt=row.attempt,
    )


def words_for_ended(row: JobRow) -> str:
    """One sentence about a job that is over."""
    words: Mapping[JobState, str] = {
        JobState.SUCCEEDED: "succeeded",
        JobState.FAILED: "failed",
        JobState.CANCELLED: "was cancelled",
    }
    why = f": {row.state_reason}" if row.state_reason else ""
    return f"{row.job_id} {words.get(row.state, row.state.value)}{why}"
