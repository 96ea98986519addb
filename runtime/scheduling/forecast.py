"""What would happen if a job were submitted now: a round on an overlay of the state, which stays as it is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from runtime.model.indexes import Queued, lane_of
from runtime.model.nouns import Job, Placement
from runtime.model.state import State

from .decision import Preempt, Start
from .explain import explain_in, feasible
from .paper import Round
from .policy import Policy
from .preempt import Candidate, candidates
from .quotas import too_small
from .reserve import overlap
from .round import play


class Prospect(StrEnum):
    """What would become of the job in the next round."""

    STARTS = "starts"
    """On devices that are free."""
    PREEMPTS = "preempts"
    """Others are asked to leave for it; it starts when they have left."""
    FOLLOWS = "follows"
    """It gets devices that are being left anyway."""
    WAITS = "waits"
    """There is no room for it, or others come first."""
    DEPENDS = "depends"
    """Others have to end first."""
    HELD = "held"
    """Somebody put a hold on jobs like it."""
    NEVER = "never"
    """It could not even run on an empty cluster, or asks for more than a quota allows at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An attempt that would be asked to leave."""

    job_id: str
    priority_class: str
    lost_s: float
    """Device-seconds of work since its last checkpoint, or since its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    prospect: Prospect
    summary: str
    details: tuple[str, ...]
    queue_position: int | None
    placements: tuple[Placement, ...]
    """Where it would run; empty when that is not known yet."""
    victims: tuple[Cost, ...]
    behind: tuple[str, ...]
    """Jobs that come first, wait too, and want some of the same devices."""


def what_if(state: State, job: Job, *, now_s: float, policy: Policy) -> Forecast:
    """Say what the next round would do about a job that is not there yet.

    Args:
        job: a queued one whose id and order no live job has; it is last in the order of its class.
    """
    assert job.job_id not in state.jobs, "it is not there yet"
    overlay = overlay_with(state, job)
    paper = play(overlay, now_s=now_s, policy=policy)
    reasons = explain_in(paper, job)
    start = next((a for a in paper.actions if isinstance(a, Start) and a.job_id == job.job_id), None)
    promise = paper.promises.get(job.job_id)
    placements = start.placements if start is not None else promise.placements if promise is not None else ()
    victims = _victims(paper, job)
    return Forecast(
        prospect=_prospect(state, job, paper, has_victims=bool(victims)),
        summary=reasons.summary,
        details=reasons.details,
        queue_position=reasons.queue_position,
        placements=placements,
        victims=victims,
        behind=_behind(paper, job) if start is None and promise is None else (),
    )


def overlay_with(state: State, job: Job) -> State:
    """A state that has this queued job too and shares everything else; fit to be read, never to be changed."""
    index = state.index
    jobs = {**state.jobs, job.job_id: job}
    if job.is_waiting:
        return replace(state, jobs=jobs, index=replace(index, waiting={*index.waiting, job.job_id}))
    if state.hold_on(job) is not None:
        return replace(state, jobs=jobs, index=replace(index, held={*index.held, job.job_id}))
    lanes = index.queue.get(job.priority, {})
    lane = lane_of(job)
    entries = sorted([*lanes.get(lane, ()), Queued(job.order, job.job_id)])
    queue = {**index.queue, job.priority: {**lanes, lane: entries}}
    return replace(state, jobs=jobs, index=replace(index, queue=queue))


def _prospect(state: State, job: Job, paper: Round, *, has_victims: bool) -> Prospect:
    if feasible(state, job.shape) is not None or is_beyond_quota(paper.policy, job):
        return Prospect.NEVER
    if job.is_waiting:
        return Prospect.DEPENDS
    if state.hold_on(job) is not None:
        return Prospect.HELD
    if any(isinstance(action, Start) and action.job_id == job.job_id for action in paper.actions):
        return Prospect.STARTS
    if has_victims:
        return Prospect.PREEMPTS
    return Prospect.FOLLOWS if job.job_id in paper.promises else Prospect.WAITS


def is_beyond_quota(policy: Policy, job: Job) -> bool:
    return too_small(policy.quotas, job.project, job.priority_class, job.shape.n_devices) is not None


def _victims(paper: Round, job: Job) -> tuple[Cost, ...]:
    asked = {a.job_id for a in paper.actions if isinstance(a, Preempt) and a.beneficiary == job.job_id}
    if not asked:
        return ()
    pool = candidates(paper.state, now_s=paper.now_s, min_run_s=paper.policy.min_run_s, leaving=paper.leaving)
    return tuple(_cost(candidate) for candidate in pool if candidate.job.job_id in asked)


def _cost(candidate: Candidate) -> Cost:
    job = candidate.job
    return Cost(job_id=job.job_id, priority_class=job.priority_class, lost_s=candidate.lost_s)


def _behind(paper: Round, job: Job) -> tuple[str, ...]:
    """Jobs that come first, wait too, and want devices that this one could use."""
    wanted = paper.usable(job.shape)
    others = (block for block in paper.blocked if block.job_id != job.job_id and block.priority >= job.priority)
    return tuple(
        block.job_id for block in others if overlap(block.lane.shape, paper.usable(block.lane.shape), job.shape, wanted)
    )
