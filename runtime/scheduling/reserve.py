"""When a job that is blocked can start, and where: from the expected ends of what holds the devices. Pure.

An end is expected as long after its start as like jobs have run, and at the latest at its declared time limit. Where
neither is known, nothing is: a reservation that needs such an end does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from runtime.model.devices import Masks, placement_masks
from runtime.model.estimates import remaining_s
from runtime.model.nouns import Attempt, Job, Placement, Shape
from runtime.model.state import State

from .fit import n_groups, place
from .preempt import began_s


class Release(NamedTuple):
    """Devices that are expected to be given back."""

    at_s: float
    placements: tuple[Placement, ...]
    left_to: Masks | None = None
    """Of these devices, those that are not promised to others; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is kept for a blocked head: others may have these devices until then."""

    job_id: str
    at_s: float
    devices: Masks


def run_s(state: State, job: Job) -> float | None:
    """How long the next attempt of a queued job is expected to hold devices; None: nothing is known."""
    expected_s = state.estimates.expected_s(job.project, job.experiment, job.shape)
    known = [] if expected_s is None else [remaining_s(expected_s, job.done_s)]
    if (limit_s := job.limit_s) is not None:
        known.append(limit_s + job.grace_s)
    return min(known, default=None)


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
    return min(known, default=None)


def reserve(job: Job, wanted: Masks, free: Masks, releases: Iterable[Release], now_s: float) -> Reservation | None:
    """The earliest time at which the whole gang is expected to fit, and its devices then; None: nobody knows when.

    Args:
        wanted: All devices it may use.
        free: Those of them that nobody holds.
        releases: What is given back, earliest first; all of one time count together.
    """
    unit = job.shape.devices_per_node or 1
    room = dict(free)
    n_missing = n_groups(job.shape) - sum(mask.bit_count() // unit for mask in room.values())
    at_s = now_s
    for release in releases:
        if n_missing <= 0 and release.at_s > at_s:
            break
        at_s = max(at_s, release.at_s)
        for node, mask in placement_masks(release.placements).items():
            left = mask if release.left_to is None else mask & release.left_to.get(node, 0)
            if gained := left & wanted.get(node, 0):
                before = room.get(node, 0)
                room[node] = before | gained
                n_missing -= room[node].bit_count() // unit - before.bit_count() // unit
    placements = place(job.shape, room)
    if placements is None:
        return None
    return Reservation(job_id=job.job_id, at_s=at_s, devices=placement_masks(placements))


def overlap(one: Shape, usable_by_one: Masks, other: Shape, usable_by_other: Masks) -> bool:
    """Whether two shapes can want the same device."""
    if one.accelerator == other.accelerator:
        return True
    if one.accelerator is not None and other.accelerator is not None:
        return False
    return any(mask & usable_by_other.get(node, 0) for node, mask in usable_by_one.items())
