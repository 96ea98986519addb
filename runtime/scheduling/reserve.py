"""When a job that is blocked can start, and where: from the expected ends of what holds the devices. Pure.

An end is expected as long after its start as like jobs have run, and at the latest at its declared time limit or the
hour by which it has to be over. Where none is known, nothing is: a reservation that needs such an end does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from runtime.model.devices import Masks, placement_masks
from runtime.model.estimates import remaining_s
from runtime.model.nouns import WHOLE, Attempt, Job, Placement, Shape
from runtime.model.state import State

from .fit import place, uses_amounts
from .preempt import began_s
from .room import Room, Spare
from .tally import Tally


class Release(NamedTuple):
    """Devices that are expected to be given back."""

    at_s: float
    placements: tuple[Placement, ...]
    spare: Spare | None = None
    """Of that, what is not promised to others; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is kept for a blocked head: others may have these devices until then."""

    job_id: str
    at_s: float
    placements: tuple[Placement, ...]

    @property
    def devices(self) -> Masks:
        return placement_masks(self.placements)


def run_s(state: State, job: Job) -> float | None:
    """How long the next attempt of a queued job is expected to hold devices; None: nothing is known."""
    expected_s = state.estimates.expected_s(job.project, job.experiment, job.shape)
    known = [] if expected_s is None else [remaining_s(expected_s, job.done_s)]
    if (limit_s := job.limit_s) is not None:
        known.append(limit_s + job.grace_s)
    return min(known, default=None)


def holds_s(state: State, job: Job, now_s: float) -> float | None:
    """The same, if it is started now and leaves by the hour at which it has to be over."""
    takes_s = run_s(state, job)
    if job.finish_by_s is None:
        return takes_s
    left_s = max(0.0, job.finish_by_s - now_s)
    return left_s if takes_s is None else min(takes_s, left_s)


def end_s(state: State, job: Job, attempt: Attempt, now_s: float) -> float | None:
    """When a running attempt is expected to end, not before now; None: nothing is known."""
    if attempt.stop is not None:
        return max(now_s, attempt.stop.ordered_at_s + attempt.stop.grace_s)
    since_s = began_s(attempt)
    expected_s = attempt.expected_s
    if expected_s is None:
        expected_s = state.estimates.expected_s(job.project, job.experiment, job.shape)
    known = []
    if expected_s is not None:
        known.append(now_s + remaining_s(expected_s, job.done_s + max(0.0, now_s - since_s)))
    if (limit_s := job.limit_s) is not None:
        known.append(max(now_s, since_s + limit_s + job.grace_s))
    if job.finish_by_s is not None:
        known.append(max(now_s, job.finish_by_s))
    return min(known, default=None)


def reserve(job: Job, wanted: Masks, free: Room, releases: Iterable[Release], now_s: float) -> Reservation | None:
    """The earliest time at which the whole gang is expected to fit, and its devices then; None: nobody knows when.

    Args:
        wanted: All devices it may use.
        free: What of them nobody holds.
        releases: What is given back, earliest first; all of one time count together.
    """
    tally = Tally(job.shape, free)
    at_s = now_s
    for release in releases:
        if tally.fits and release.at_s > at_s:
            break
        at_s = max(at_s, release.at_s)
        for part in release.placements:
            reach = wanted.get(part.node_id)
            if reach is not None:
                if release.spare is not None and part.device_thousandths == WHOLE:
                    reach &= release.spare.devices(part)
                tally.give(part, reach, release.spare)
    placements = place(job.shape, tally.room)
    if placements is None:
        return None
    return Reservation(job_id=job.job_id, at_s=at_s, placements=placements)


def overlap(one: Shape, usable_by_one: Masks, other: Shape, usable_by_other: Masks) -> bool:
    """Whether two shapes can want the same device, or cores or memory of the same node."""
    if uses_amounts(one) and uses_amounts(other):
        return not usable_by_one.keys().isdisjoint(usable_by_other)
    if not one.n_devices or not other.n_devices:
        return False
    if one.needs is None and other.needs is None:
        if one.accelerator == other.accelerator:
            return True
        if one.accelerator is not None and other.accelerator is not None:
            return False
    return any(mask & usable_by_other.get(node, 0) for node, mask in usable_by_one.items())
