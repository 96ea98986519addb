"""The small language of the scheduling tests: a cluster and its jobs in a line each, a decision as lines of text.

state = cluster("a:8xH100 b:4", running("j1", on="a:0-3"), queued("j2", n_devices=8, priority="critical"))
assert decide(state) == ["preempt j1 for j2"]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.model.apply import apply
from runtime.model.check import check
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    Event,
    JobSubmitted,
    NodeJoined,
    Recorded,
    StartOrdered,
    StopOrdered,
    Then,
)
from runtime.model.nouns import Device, Job, Needs, Node, Placement, Shape, Worth
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, JobState, OnTimeout, StopCause
from runtime.scheduling.asking import describe_placements
from runtime.scheduling.decision import Action, Decision, Expire, Preempt, Start, TimeOut
from runtime.scheduling.policy import DEFAULT_CLASSES, Policy
from runtime.scheduling.schedule import schedule

NOW = 1000.0
MEMORY_MB = {"H100": 80 * 1024, "A100": 40 * 1024}
"""Of a device, by kind."""


def node(node_id: str, devices: str, generation: int = 1) -> Node:
    """`4` (CPU slots), `8xH100`, `2xH100+2xA100`. There are fewer cores than devices, so that some share one."""
    kinds: list[str] = []
    for part in devices.split("+"):
        count, _, kind = part.partition("x")
        kinds += [kind or "cpu"] * int(count)
    return Node(
        node_id=node_id,
        generation=generation,
        boot_id="boot",
        hostname=node_id,
        cpus=(2 * len(kinds) + 2) // 3,
        memory_mb=1024,
        devices=tuple(
            Device(index=i, kind=kind, uuid=f"{node_id}-{i}", memory_mb=MEMORY_MB.get(kind), is_fake=True)
            for i, kind in enumerate(kinds)
        ),
    )


def placements(text: str) -> tuple[Placement, ...]:
    """`a:0-3 b:0,2`."""
    found = []
    rank = 0
    for part in text.split():
        node_id, _, listed = part.partition(":")
        devices: list[int] = []
        for item in listed.split(","):
            first, _, last = item.partition("-")
            devices += range(int(first), int(last or first) + 1)
        found.append(Placement(node_id=node_id, devices=tuple(devices), first_rank=rank))
        rank += len(devices)
    return tuple(found)


def job(
    job_id: str,
    *,
    n_devices: int = 1,
    priority: str = "normal",
    kind: str | None = None,
    per_node: int | None = None,
    needs: Needs | None = None,
    is_preemptible: bool | None = None,
    submitted_at: float = 0.0,
    grace_s: float = 30.0,
    max_retries: int = 0,
    timeout_s: float | None = None,
    on_timeout: OnTimeout = OnTimeout.END,
    max_total_s: float | None = None,
    queue_timeout_s: float | None = None,
    finish_by_s: float | None = None,
    not_before_s: float = 0.0,
    experiment: str = "test",
    project: str = "default",
    session: str | None = None,
    worth: tuple[float, float] | None = None,
) -> Job:
    """A new job; its place in the order is the number in its id.

    Args:
        worth: gain, and cost in device-seconds.
    """
    level = DEFAULT_CLASSES[priority]
    return Job(
        job_id=job_id,
        order=int(job_id.lstrip("j")),
        project=project,
        experiment=experiment,
        session_id=session,
        priority_class=priority,
        priority=level.priority,
        is_preemptible=level.is_preemptible if is_preemptible is None else is_preemptible,
        shape=Shape(n_devices=n_devices, accelerator=kind, devices_per_node=per_node, needs=needs),
        submitted_at_s=submitted_at,
        grace_s=grace_s,
        max_retries=max_retries,
        timeout_s=timeout_s,
        on_timeout=on_timeout,
        max_total_s=max_total_s,
        queue_timeout_s=queue_timeout_s,
        finish_by_s=finish_by_s,
        not_before_s=not_before_s,
        worth=None if worth is None else Worth(gain=worth[0], uncertainty=0.0, cost_s=worth[1]),
    )


@dataclass
class Journal:
    """A state and everything that was recorded on it."""

    state: State = field(default_factory=State)
    recorded: list[Recorded] = field(default_factory=list)

    def record(self, event: Event, at_s: float = 0.0) -> None:
        entry = Recorded(
            seq=self.state.last_seq + 1, at_s=at_s, actor="test", on_behalf_of=None, project=None, event=event
        )
        apply(self.state, entry)
        self.recorded.append(entry)


Step = Callable[[Journal], None]


def queued(job_id: str, **traits: object) -> Step:
    return lambda journal: journal.record(JobSubmitted(job=job(job_id, **traits)), 0.0)  # type: ignore[arg-type]


def starting(job_id: str, *, on: str, at_s: float = 0.0, **traits: object) -> Step:
    placed = placements(on)

    def step(journal: Journal) -> None:
        queued(job_id, n_devices=sum(len(p.devices) for p in placed), **traits)(journal)
        journal.record(StartOrdered(job_id=job_id, attempt=1, placements=placed, reason="test"), at_s)

    return step


def running(job_id: str, *, on: str, at_s: float = 0.0, saved_at_s: float | None = None, **traits: object) -> Step:
    """Started at `at_s`, with a checkpoint at `saved_at_s`."""

    def step(journal: Journal) -> None:
        starting(job_id, on=on, at_s=at_s, **traits)(journal)
        journal.record(AttemptStarted(job_id=job_id, attempt=1, pid=1), at_s)
        if saved_at_s is not None:
            journal.record(CheckpointSeen(job_id=job_id, attempt=1, step=1), saved_at_s)

    return step


def stopping(
    job_id: str, *, on: str, cause: StopCause = StopCause.PREEMPT, beneficiary: str | None = None, **traits: object
) -> Step:
    def step(journal: Journal) -> None:
        running(job_id, on=on, **traits)(journal)  # type: ignore[arg-type]
        journal.record(
            StopOrdered(job_id=job_id, attempt=1, cause=cause, reason="test", beneficiary=beneficiary, grace_s=30.0)
        )

    return step


def gone(job_id: str, attempt: int = 1, at_s: float = 0.0) -> Step:
    """A preempted attempt has left."""
    return lambda journal: journal.record(
        AttemptEnded(
            job_id=job_id,
            attempt=attempt,
            outcome=AttemptOutcome.PREEMPTED,
            exit_reason=ExitReason.PREEMPTED,
            exit_code=75,
            evidence=None,
            then=Then.REQUEUE,
            end_state=None,
        ),
        at_s,
    )


def renewed(job_id: str, attempt: int = 1, at_s: float = 0.0) -> Step:
    """An attempt has left at its time limit; its job goes on."""
    return lambda journal: journal.record(
        AttemptEnded(
            job_id=job_id,
            attempt=attempt,
            outcome=AttemptOutcome.TIMED_OUT,
            exit_reason=ExitReason.RUN_TIMEOUT,
            exit_code=75,
            evidence=None,
            then=Then.REQUEUE,
            end_state=None,
        ),
        at_s,
    )


def ordered(job_id: str, *, on: str, at_s: float = 0.0) -> Step:
    """A queued job's next attempt starts."""

    def step(journal: Journal) -> None:
        attempt = journal.state.jobs[job_id].n_attempts + 1
        placed = placements(on)
        journal.record(StartOrdered(job_id=job_id, attempt=attempt, placements=placed, reason="test"), at_s)
        journal.record(AttemptStarted(job_id=job_id, attempt=attempt, pid=1), at_s)

    return step


def finished(job_id: str, attempt: int = 1, at_s: float = 0.0) -> Step:
    return lambda journal: journal.record(
        AttemptEnded(
            job_id=job_id,
            attempt=attempt,
            outcome=AttemptOutcome.SUCCEEDED,
            exit_reason=ExitReason.COMPLETED,
            exit_code=0,
            evidence=None,
            then=Then.END,
            end_state=JobState.SUCCEEDED,
        ),
        at_s,
    )


def cluster(nodes: str, *steps: Step) -> State:
    """`a:8xH100 b:4`, then what happened on it; every step is checked."""
    journal = Journal()
    for part in nodes.split():
        node_id, _, devices = part.partition(":")
        journal.record(NodeJoined(node=node(node_id, devices)))
    for step in steps:
        step(journal)
        check(journal.state)
    return journal.state


def then(state: State, *steps: Step) -> State:
    """What happens next."""
    journal = Journal(state=state)
    for step in steps:
        step(journal)
        check(journal.state)
    return state


def line(action: Action) -> str:
    match action:
        case Start():
            return f"start {action.job_id} on {describe_placements(action.placements)}"
        case Preempt():
            return f"preempt {action.job_id} for {action.beneficiary}"
        case TimeOut():
            return f"{'renew' if action.is_renewed else 'time out'} {action.job_id}"
        case Expire():
            return f"expire {action.job_id}"


def round_of(state: State, *, now_s: float = NOW, policy: Policy | None = None) -> Decision:
    return schedule(state, now_s=now_s, policy=policy or Policy())


def decide(state: State, *, now_s: float = NOW, policy: Policy | None = None) -> list[str]:
    return [line(action) for action in round_of(state, now_s=now_s, policy=policy).actions]
