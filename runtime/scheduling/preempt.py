"""Who has to leave so that a blocked job fits: the fewest, the lowest, the least work lost, the least promising. Pure.

Nobody is asked to leave before the whole gang is proven to fit without them. Victims are added in order of harm until
the gang fits, then those that turn out not to be needed are taken back; since fitting is monotone, each that is left
is needed. At last jobs that promise less than others of their experiment stand in for those (`worth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from runtime.model.devices import Masks, placement_masks
from runtime.model.nouns import Attempt, Job, Shape
from runtime.model.state import State
from runtime.model.states import JobState

from .fit import fits, uses_amounts
from .room import Room
from .tally import Tally
from .worth import Promising, exchanged, group_of, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A running attempt that may be asked to leave for a strictly higher class."""

    job: Job
    attempt: Attempt
    lost_s: float
    """Device-seconds: the work since its last checkpoint, or its start, and another start as long as this one took.

    A job without devices counts as one."""
    mature_at_s: float
    """From then on it may be a victim (minimum run time)."""
    value: float | None = None
    """What it promises for each device-second that it still costs; None: nobody said."""
    instead_of: str | None = None
    """The job of its experiment that promises more and would have left else."""

    @property
    def devices(self) -> Masks:
        return placement_masks(self.attempt.placements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search for victims found."""

    victims: tuple[Candidate, ...] = ()
    """Empty: there is no set of victims that makes it fit now."""
    mature_at_s: float | None = None
    """When an attempt that is too young now may become a victim; None: there is none."""


def candidates(state: State, *, now_s: float, min_run_s: float, leaving: Set[str]) -> list[Candidate]:
    """All attempts that may be asked to leave, in order of harm: lowest class, started ones, least lost, youngest."""
    found = []
    for job_ids in state.index.movable.values():
        for job_id in job_ids:
            job = state.jobs[job_id]
            if job.attempt is not None and job_id not in leaving:
                found.append(_candidate(job, job.attempt, now_s, min_run_s))
    return sorted(found, key=_harm)


def may_gain(state: State, priority: int) -> bool:
    """Whether anybody holds devices who may be asked to leave for this priority: else no search is needed."""
    return any(lower < priority for lower in state.index.movable)


def choose_victims(
    shape: Shape,
    priority: int,
    available: Room,
    wanted: Masks,
    pool: Iterable[Candidate],
    now_s: float,
) -> Search:
    """A minimal set of strictly lower attempts without which the gang fits.

    Args:
        available: What it could take without anybody leaving; it does not fit on that alone.
        wanted: All devices it may use at all.
        pool: Candidates in order of harm.
    """
    pool = tuple(pool)
    tally = Tally(shape, available)
    chosen: list[Candidate] = []
    mature_at_s: float | None = None
    for candidate in pool:
        if candidate.job.priority >= priority:
            break
        if not _helps(shape, candidate, wanted):
            continue
        if candidate.mature_at_s > now_s:
            mature_at_s = min(candidate.mature_at_s, mature_at_s or candidate.mature_at_s)
            continue
        chosen.append(candidate)
        for part in candidate.attempt.placements:
            if part.node_id in wanted:
                tally.give(part, wanted[part.node_id])
        if tally.fits:
            needed = _pruned(shape, available, wanted, chosen)
            return Search(victims=_least_promising(shape, available, wanted, needed, pool, now_s))
    return Search(mature_at_s=mature_at_s)


def _helps(shape: Shape, candidate: Candidate, wanted: Masks) -> bool:
    """Whether it holds anything that this shape could use."""
    if shape.n_devices and any(mask & wanted.get(node, 0) for node, mask in candidate.devices.items()):
        return True
    parts = candidate.attempt.placements
    return uses_amounts(shape) and any((p.cpu_milli or p.memory_mb) and p.node_id in wanted for p in parts)


def _pruned(shape: Shape, available: Room, wanted: Masks, chosen: list[Candidate]) -> tuple[Candidate, ...]:
    """The victims that are needed; those added last are tried first."""
    needed = list(chosen)
    for candidate in reversed(chosen):
        others = [other for other in needed if other is not candidate]
        if fits(shape, with_room_of(others, available, wanted)):
            needed = others
    return tuple(needed)


def _least_promising(
    shape: Shape,
    available: Room,
    wanted: Masks,
    needed: tuple[Candidate, ...],
    pool: Iterable[Candidate],
    now_s: float,
) -> tuple[Candidate, ...]:
    """The victims, where jobs that promise less than others of their experiment stand in for those."""
    promising = {victim.job.job_id: victim for victim in needed if victim.value is not None}
    groups = {group_of(victim.job) for victim in promising.values()}
    if not groups:
        return needed
    others = {
        candidate.job.job_id: candidate
        for candidate in pool
        if candidate.value is not None
        and group_of(candidate.job) in groups
        and candidate.job.job_id not in promising
        and candidate.mature_at_s <= now_s
        and _helps(shape, candidate, wanted)
    }
    by_id = promising | others

    def is_enough(leaving: frozenset[str]) -> bool:
        all_leaving = [v for v in needed if v.value is None] + [by_id[job_id] for job_id in sorted(leaving)]
        return fits(shape, with_room_of(all_leaving, available, wanted))

    stands_in = exchanged(_promising(promising.values()), _promising(others.values()), is_enough)
    if not stands_in:
        return needed
    still = set(stands_in.values())
    stand_ins = [replace(by_id[key], instead_of=None if first in still else first) for first, key in stands_in.items()]
    told = [victim for victim in needed if victim.job.job_id not in stands_in] + stand_ins
    by_promise = sorted(told, key=lambda c: -1.0 if c.value is None else c.value)
    return _pruned(shape, available, wanted, by_promise)


def _promising(candidates: Iterable[Candidate]) -> list[Promising]:
    return [
        Promising(key=c.job.job_id, group=group_of(c.job), value=c.value, n_devices=c.job.shape.n_devices)
        for c in candidates
        if c.value is not None
    ]


def with_room_of(victims: Iterable[Candidate], available: Room, wanted: Masks) -> Room:
    """The room at hand when these have left."""
    room = available.copy()
    for victim in victims:
        for part in victim.attempt.placements:
            if part.node_id in wanted:
                room.give(part, wanted[part.node_id])
    return room


def began_s(attempt: Attempt) -> float:
    """When it started, or was told to."""
    return attempt.ordered_at_s if attempt.started_at_s is None else attempt.started_at_s


def _candidate(job: Job, attempt: Attempt, now_s: float, min_run_s: float) -> Candidate:
    saved_s = began_s(attempt) if attempt.checkpoint_at_s is None else attempt.checkpoint_at_s
    lost_s = 0.0
    if attempt.started_at_s is not None:
        restart_s = attempt.started_at_s - attempt.ordered_at_s
        lost_s = (max(0.0, now_s - saved_s) + restart_s) * max(1, job.shape.n_devices)
    return Candidate(
        job=job,
        attempt=attempt,
        lost_s=lost_s,
        mature_at_s=began_s(attempt) + min_run_s,
        value=value_of(job, attempt, now_s),
    )


def _harm(candidate: Candidate) -> tuple[int, bool, float, float, int]:
    job, attempt = candidate.job, candidate.attempt
    is_starting = job.state is JobState.STARTING
    return (job.priority, is_starting, candidate.lost_s, -attempt.ordered_at_s, -job.order)
