"""Blocked heads: what is kept for them, and what is left to those that come after them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Set
from math import inf

from runtime.model.devices import Masks
from runtime.model.indexes import Lane
from runtime.model.leaving import grace_of
from runtime.model.nouns import Job

from .fit import fits, uses_amounts
from .paper import Blocked, Head, Round
from .preempt import began_s
from .reserve import Release, Reservation, end_s, overlap, reserve
from .room import Room, Spare


def block(paper: Round, job: Job, lane: Lane, wanted: Masks) -> None:
    has_room = _is_barred(paper, lane) and fits(lane.shape, paper.free.within(lane.shape, wanted))
    behind = next((head.job.job_id for head in heads_of(paper, job)), None) if has_room else None
    paper.blocked.append(
        Blocked(
            job_id=job.job_id,
            priority=job.priority,
            lane=lane,
            behind=behind,
            is_waiting_for_victims=job.job_id in paper.served,
        )
    )
    ahead = [head for head in paper.heads if head.job.priority == job.priority]
    if not any(h.reservation and overlap(h.job.shape, h.wanted, job.shape, wanted) for h in ahead):
        _keep_for(paper, job, wanted)


def _keep_for(paper: Round, job: Job, wanted: Masks) -> None:
    """Make it a head: reserve devices for it, or else bar all that it could use."""
    reservation = reserved_for(paper, job, wanted)
    paper.heads.append(Head(job=job, wanted=wanted, reservation=reservation))
    if reservation is not None:
        paper.reserved_same.append(reservation)
    elif not any(paper.covers(shape, job.shape) for shape in paper.barred_for):
        paper.barred_for.append(job.shape)
        if uses_amounts(job.shape):
            paper.barred_nodes_same |= wanted.keys()
        for node, mask in wanted.items() if job.shape.n_devices else ():
            paper.barred_same[node] = paper.barred_same.get(node, 0) | mask


def reserved_for(paper: Round, job: Job, wanted: Masks) -> Reservation | None:
    """None: no time can be told, or it has waited too long already, or there is nothing to give to others anyway."""
    free = paper.free.within(job.shape, wanted)
    if (
        not (any(free.devices.values()) or free.shares)
        or paper.now_s - job.queued_since_s >= paper.policy.backfill_patience_s
    ):
        return None
    releases = sorted((*_releases(paper, job.priority), *paper.given), key=lambda release: release.at_s)
    return reserve(job, wanted, free, releases, paper.now_s)


def _releases(paper: Round, priority: int) -> Iterator[Release]:
    """What is expected to be given back; lower attempts that may be asked to leave give back when they may."""
    spare = Spare(paper.at_hand, paper.free)
    for job_id in paper.state.index.holding:
        job = paper.state.jobs[job_id]
        attempt = job.attempt
        if attempt is None:
            continue
        if job_id in paper.leaving or job_id in paper.victims:
            yield Release(paper.now_s + grace_of(job), attempt.placements, spare)
        elif job.is_preemptible and job.priority < priority and attempt.stop is None:
            yield Release(max(paper.now_s, began_s(attempt) + paper.policy.min_run_s), attempt.placements)
        elif (at_s := end_s(paper.state, job, attempt, paper.now_s)) is not None:
            yield Release(at_s, attempt.placements, None if attempt.stop is None else spare)


def heads_of(paper: Round, job: Job) -> Iterator[Head]:
    """The blocked heads that a start of this job could delay."""
    for head in paper.heads:
        is_filler = job.is_preemptible and job.priority < head.job.priority
        if not is_filler and overlap(head.job.shape, head.wanted, job.shape, paper.usable(job.shape)):
            yield head


def _is_barred(paper: Round, lane: Lane) -> bool:
    """Whether anything is kept from this lane for the sake of a blocked head."""
    is_above = paper.barred_above or paper.barred_nodes_above or paper.reserved_above
    is_same = paper.barred_same or paper.barred_nodes_same or paper.reserved_same
    return bool(is_same) or (bool(is_above) and not lane.is_preemptible)


def allowed(paper: Round, lane: Lane, room: Room, until_s: float = inf) -> Room:
    """What of this room the lane may use up to that time without delaying a blocked head."""
    if not _is_barred(paper, lane):
        return room
    reservations = _reservations(paper, lane, until_s)
    if lane.shape.n_devices:
        for masks in _masks_kept(paper, lane, reservations):
            room = room.without(masks)
    if uses_amounts(lane.shape):
        room = room.off(_nodes_kept(paper, lane))
        for reservation in reservations:
            room = room.less(reservation.placements)
    return room


def reach(paper: Round, lane: Lane, wanted: Masks) -> Masks:
    """All devices that the lane may use without delaying a blocked head, whoever holds them."""
    if not _is_barred(paper, lane):
        return wanted
    nodes = _nodes_kept(paper, lane) if uses_amounts(lane.shape) else frozenset()
    left = {node: mask for node, mask in wanted.items() if node not in nodes}
    if lane.shape.n_devices:
        for masks in _masks_kept(paper, lane, _reservations(paper, lane, inf)):
            left = {node: rest for node, mask in left.items() if (rest := mask & ~masks.get(node, 0))}
    return left


def _reservations(paper: Round, lane: Lane, until_s: float) -> list[Reservation]:
    found = paper.reserved_same if lane.is_preemptible else [*paper.reserved_same, *paper.reserved_above]
    return [reservation for reservation in found if reservation.at_s < until_s]


def _masks_kept(paper: Round, lane: Lane, reservations: list[Reservation]) -> list[Masks]:
    kept = [paper.barred_same, *(reservation.devices for reservation in reservations)]
    if not lane.is_preemptible:
        kept.append(paper.barred_above)
    return [masks for masks in kept if masks]


def _nodes_kept(paper: Round, lane: Lane) -> Set[str]:
    return paper.barred_nodes_same if lane.is_preemptible else paper.barred_nodes_same | paper.barred_nodes_above
