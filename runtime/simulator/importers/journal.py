"""Our own journal: the jobs that a runtime has run, from the `events` table of its database. Only reads it.

What a job needs undisturbed is put together from its attempts: of one that was stopped early what it had saved, of
the last one all of it. How often it saves, and how long that takes when it is asked to leave, is what it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from runtime.model.codec import decode_event
from runtime.model.errors import BadPayload
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    Event,
    JobEnded,
    JobSubmitted,
    NodeJoined,
    StopOrdered,
    Then,
)
from runtime.model.nouns import Job, Node
from runtime.model.states import LEAVING
from runtime.simulator.errors import BadTrace
from runtime.simulator.workload import Costs, Skipped, TraceJob

_PAGE = 5000
EARLIER = "submitted before the journal begins"


@dataclass(slots=True)
class _Past:
    """A job on its way through the journal."""

    job: Job
    first_start_s: float | None = None
    started_s: float | None = None
    saved_at_s: float | None = None
    asked_s: float | None = None
    worked_s: float = 0.0
    n_attempts: int = 0
    save_gaps_s: list[float] = field(default_factory=list)
    """From its start to its first checkpoint, and from each to the next."""
    notice_saves_s: list[float] = field(default_factory=list)
    """From a notice to the checkpoint after it."""
    n_notices: int = 0


def read(path: Path, skipped: Skipped) -> Iterator[TraceJob]:
    """Jobs that ended, in the order in which they did.

    Raises:
        BadTrace: no such database, or it holds something else.
    """
    pasts: dict[str, _Past] = {}
    over: list[_Past] = []
    earlier: set[str] = set()
    for at_s, event in _events(path):
        match event:
            case JobSubmitted():
                pasts[event.job.job_id] = _Past(event.job)
            case AttemptStarted() | CheckpointSeen() | StopOrdered() | AttemptEnded():
                past = pasts.get(event.job_id)
                if past is None:
                    earlier.add(event.job_id)
                    continue
                _follow(past, event, at_s)
                if isinstance(event, AttemptEnded) and event.then is Then.END:
                    del pasts[event.job_id]
                    if past.worked_s > 0:
                        over.append(past)
                    else:
                        skipped.skip("did not run")
            case JobEnded():
                is_known = pasts.pop(event.job_id, None) is not None
                skipped.skip("did not run" if is_known else EARLIER)
            case _:
                pass
    for _ in earlier:
        skipped.skip(EARLIER)
    for _ in pasts:
        skipped.skip("had not ended yet")
    saves_s = [seconds for past in over for seconds in past.notice_saves_s]
    usual = Costs(notice_checkpoint_s=median(saves_s) if saves_s else Costs().notice_checkpoint_s)
    yield from (_trace_job(past, usual) for past in over)


def read_nodes(path: Path) -> tuple[Node, ...]:
    """The nodes that ever joined, as they were last.

    Raises:
        BadTrace: as `read`.
    """
    nodes = {event.node.node_id: event.node for _, event in _events(path) if isinstance(event, NodeJoined)}
    return tuple(nodes[node_id] for node_id in sorted(nodes))


def _follow(past: _Past, event: AttemptStarted | CheckpointSeen | StopOrdered | AttemptEnded, at_s: float) -> None:
    match event:
        case AttemptStarted():
            if past.started_s is None:
                past.started_s = at_s
                past.n_attempts += 1
            if past.first_start_s is None:
                past.first_start_s = at_s
        case CheckpointSeen():
            since_s = past.started_s if past.saved_at_s is None else past.saved_at_s
            if past.asked_s is not None:
                past.notice_saves_s.append(at_s - past.asked_s)
            elif since_s is not None:
                past.save_gaps_s.append(at_s - since_s)
            past.saved_at_s = at_s
        case StopOrdered():
            past.n_notices += past.asked_s is None and event.cause in LEAVING
            past.asked_s = at_s if past.asked_s is None else past.asked_s
        case AttemptEnded():
            until_s = at_s if event.then is Then.END else _kept_until_s(past)
            if past.started_s is not None and until_s is not None:
                past.worked_s += max(0.0, until_s - past.started_s)
            past.started_s = past.saved_at_s = past.asked_s = None


def _kept_until_s(past: _Past) -> float | None:
    """Until when its work was saved; a checkpoint on notice saves what was done up to the notice."""
    if past.saved_at_s is None or past.asked_s is None:
        return past.saved_at_s
    return min(past.saved_at_s, past.asked_s)


def _trace_job(past: _Past, usual: Costs) -> TraceJob:
    job = past.job
    wait_s = None if past.first_start_s is None else max(0.0, past.first_start_s - job.submitted_at_s)
    return TraceJob(
        job_id=job.job_id,
        submitted_at_s=job.submitted_at_s,
        run_s=past.worked_s,
        n_devices=job.shape.n_devices,
        devices_per_node=job.shape.devices_per_node,
        accelerator=job.shape.accelerator,
        priority_class=job.priority_class,
        project=job.project,
        experiment=job.experiment,
        recorded_wait_s=wait_s,
        costs=_costs(past, usual),
    )


def _costs(past: _Past, usual: Costs) -> Costs:
    """What it did; on notice, where it was never asked to leave, what others did."""
    on_notice_s = None if past.n_notices else usual.notice_checkpoint_s
    return Costs(
        checkpoint_every_s=max(1.0, median(past.save_gaps_s)) if past.save_gaps_s else None,
        notice_checkpoint_s=median(past.notice_saves_s) if past.notice_saves_s else on_notice_s,
        grace_s=past.job.grace_s,
    )


def _events(path: Path) -> Iterator[tuple[float, Event]]:
    """The journal from its oldest event on."""
    if not path.is_file():
        raise BadTrace(path, "does not exist; give the file runtime.db in the home folder of a runtime")
    import sqlalchemy as sa

    from runtime.store.engine import open_engine
    from runtime.store.journal import read_events

    engine = open_engine(f"sqlite:///{path}", read_only=True)
    since = 0
    try:
        with engine.begin() as connection:
            while page := read_events(connection, since=since, limit=_PAGE):
                for stored in page:
                    yield stored.at_s, decode_event(stored.type, stored.version, stored.payload)
                since = page[-1].seq
    except (sa.exc.DatabaseError, BadPayload) as error:
        why = str(getattr(error, "orig", None) or error)
        raise BadTrace(path, f"is no database of a runtime that this program can read: {why}") from error
    finally:
        engine.dispose()
