"""Who has to leave so that a blocked job fits: the fewest, the lowest, the least work lost. Pure.

Nobody is asked to leave before the whole gang is proven to fit without them. Victims are added in order of harm until
the gang fits, then those that turn out not to be needed are taken back; since fitting is monotone, each that is left
is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from runtime.model.devices import Masks, placement_masks
from runtime.model.nouns import Attempt, Job, Shape
from runtime.model.state import State
from runtime.model.states import JobState

from .fit import fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A running attempt that may be asked to leave for a strictly higher class."""

    job: Job
    attempt: Attempt
    lost_s: float
    """Device-seconds of work since its last checkpoint, or since its start."""
    mature_at_s: float
    """From then on it may be a victim (minimum run time)."""

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
    available: Mapping[str, int],
    wanted: Mapping[str, int],
    pool: Iterable[Candidate],
    now_s: float,
) -> Search:
    """A minimal set of strictly lower attempts without which the gang fits.

    Args:
        available: Devices it could take without anybody leaving; it does not fit on them alone.
        wanted: All devices it may use at all.
        pool: Candidates in order of harm.
    """
    room = dict(available)
    chosen: list[Candidate] = []
    mature_at_s: float | None = None
    n_missing = shape.n_devices - sum(mask.bit_count() for mask in room.values())
    for candidate in pool:
        if candidate.job.priority >= priority:
            break
        gained = {node: mask & wanted.get(node, 0) for node, mask in candidate.devices.items()}
        n_gained = sum(mask.bit_count() for mask in gained.values())
        if not n_gained:
            continue
        if candidate.mature_at_s > now_s:
            mature_at_s = min(candidate.mature_at_s, mature_at_s or candidate.mature_at_s)
            continue
        chosen.append(candidate)
        n_missing -= n_gained
        for node, mask in gained.items():
            room[node] = room.get(node, 0) | mask
        if n_missing <= 0 and fits(shape, room):
            return Search(victims=_pruned(shape, available, wanted, chosen))
    return Search(mature_at_s=mature_at_s)


def _pruned(
    shape: Shape, available: Mapping[str, int], wanted: Mapping[str, int], chosen: list[Candidate]
) -> tuple[Candidate, ...]:
    """The victims that are needed; those added last are tried first."""
    needed = list(chosen)
    for candidate in reversed(chosen):
        others = [other for other in needed if other is not candidate]
        if fits(shape, with_devices_of(others, available, wanted)):
            needed = others
    return tuple(needed)


def with_devices_of(victims: Iterable[Candidate], available: Mapping[str, int], wanted: Mapping[str, int]) -> Masks:
    """The devices at hand when these have left."""
    room = dict(available)
    for victim in victims:
        for node, mask in victim.devices.items():
            if gained := mask & wanted.get(node, 0):
                room[node] = room.get(node, 0) | gained
    return room


def began_s(attempt: Attempt) -> float:
    """When it started, or was told to."""
    return attempt.ordered_at_s if attempt.started_at_s is None else attempt.started_at_s


def _candidate(job: Job, attempt: Attempt, now_s: float, min_run_s: float) -> Candidate:
    saved_s = began_s(attempt) if attempt.checkpoint_at_s is None else attempt.checkpoint_at_s
    lost_s = 0.0 if attempt.started_at_s is None else max(0.0, now_s - saved_s) * job.shape.n_devices
    return Candidate(
        job=job,
        attempt=attempt,
        lost_s=lost_s,
        mature_at_s=began_s(attempt) + min_run_s,
    )


def _harm(candidate: Candidate) -> tuple[int, bool, float, float, int]:
    job, attempt = candidate.job, candidate.attempt
    is_starting = job.state is JobState.STARTING
    return (job.priority, is_starting, candidate.lost_s, -attempt.ordered_at_s, -job.order)
