"""A draft of one transaction: events are numbered, applied and projected, in order, before they are committed.

The state is changed at once; if the commit fails, the state must be thrown away and rebuilt. Knows no clock and no
database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey, StopAttempt
from runtime.model.apply import apply
from runtime.model.codec import EVENT_VERSIONS, encode_event
from runtime.model.events import AttemptEnded, Event, JobSubmitted, Recorded, StartOrdered, StopOrdered
from runtime.model.names import event_type_name
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.store.history import JobRow
from runtime.store.journal import StoredEvent

from .projection import RowChanges, project, why_queued


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who causes an event, and for whom."""

    name: str
    """`scheduler`, `node:local`, `user:owner`, `session:s1`."""
    on_behalf_of: str | None = None


SCHEDULER = Actor(name="scheduler")
OWNER = Actor(name="user:owner")


@dataclass(slots=True, kw_only=True)
class Draft:
    state: State
    at_s: float
    events: list[StoredEvent] = field(default_factory=list)
    rows: RowChanges = field(default_factory=RowChanges)
    starts: list[StartOrdered] = field(default_factory=list)
    """Orders to carry out after the commit."""
    stops: list[StopAttempt] = field(default_factory=list)
    ended: list[AttemptKey] = field(default_factory=list)

    def add(self, event: Event, actor: Actor) -> None:
        """Record one event.

        Raises:
            IllegalTransition: it does not fit; the draft and the state are as before.
        """
        job_id = _job_id(event)
        before = self.state.jobs.get(job_id) if job_id is not None else None
        job = event.job if isinstance(event, JobSubmitted) else before
        recorded = Recorded(
            seq=self.state.last_seq + 1,
            at_s=self.at_s,
            actor=actor.name,
            on_behalf_of=actor.on_behalf_of,
            project=None if job is None else job.project,
            event=event,
        )
        waiters = _waiters(self.state, before)
        apply(self.state, recorded)
        after = self.state.jobs.get(job_id) if job_id is not None else None
        self.events.append(_stored(recorded, job_id))
        project(self.rows, recorded, before, after)
        if after is None:
            for waiter in waiters:
                self.rows.change_job(waiter, {"state_reason": why_queued(self.state.jobs[waiter])})
        if isinstance(event, AttemptEnded):
            self.ended.append(AttemptKey(job_id=event.job_id, attempt=event.attempt))
        elif isinstance(event, StartOrdered):
            self.starts.append(event)
        elif isinstance(event, StopOrdered):
            self.stops.append(
                StopAttempt(
                    key=AttemptKey(job_id=event.job_id, attempt=event.attempt),
                    cause=event.cause,
                    reason=event.reason,
                    grace_s=event.grace_s,
                )
            )

    def add_all(self, events: Iterable[Event], actor: Actor) -> None:
        for event in events:
            self.add(event, actor)

    def submit(self, event: JobSubmitted, row: JobRow, actor: Actor) -> None:
        """Record a new job together with its row."""
        self.add(event, actor)
        self.rows.add_job(row)


def _waiters(state: State, job: Job | None) -> list[str]:
    """Who may wait for the end of a job or of its array."""
    if job is None or not state.index.dependents:
        return []
    names = [job.job_id, *([] if job.array is None else [job.array.array_id])]
    return [waiter for name in names for waiter in sorted(state.index.dependents.get(name, ()))]


def _job_id(event: Event) -> str | None:
    if isinstance(event, JobSubmitted):
        return event.job.job_id
    found: str | None = getattr(event, "job_id", None)
    return found


def _stored(recorded: Recorded, job_id: str | None) -> StoredEvent:
    name = event_type_name(recorded.event)
    return StoredEvent(
        seq=recorded.seq,
        type=name,
        version=EVENT_VERSIONS[name],
        at_s=recorded.at_s,
        actor=recorded.actor,
        on_behalf_of=recorded.on_behalf_of,
        project=recorded.project,
        job_id=job_id,
        payload=encode_event(recorded.event),
    )
