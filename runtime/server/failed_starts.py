"""Devices on which start after start fails, whoever's they are: kept out of use for a while, with the reason.

In memory alone: what follows from it is an event, and a new server gives each device a new chance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from runtime.model.events import AttemptEnded, DevicesReserved, Event
from runtime.model.holds import Reservation
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason

N_FAILED = 3
N_JOBS = 2
"""Of so many jobs at least: one job alone may have brought its own trouble along."""
WITHIN_S = 60.0
"""All of them, and each this soon after its order."""
OUT_S = 600.0
"""Then the device is tried again."""
BLAMED = frozenset({ExitReason.DEVICE_LOST, ExitReason.DEVICE_UNAVAILABLE, ExitReason.LAUNCHER_UNAVAILABLE})
"""What an attempt can hardly do to itself. An import error on a device says nothing about the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    at_s: float
    job_id: str


@dataclass(slots=True)
class FailedStarts:
    """Changed by the loop alone, one ended attempt at a time."""

    _by_device: dict[tuple[str, int], deque[FailedStart]] = field(default_factory=dict)

    def note(self, state: State, events: Iterable[Event], now_s: float) -> list[Event]:
        """What the ends among these events, not yet applied, mean for the devices they ended on."""
        found: list[Event] = []
        for event in events:
            if isinstance(event, AttemptEnded) and (place := _blamed(state, event, now_s)) is not None:
                found += self._strike(state, place, event, now_s)
        return found

    def _strike(self, state: State, place: tuple[str, int], event: AttemptEnded, now_s: float) -> list[Event]:
        failures = self._by_device.setdefault(place, deque())
        failures.append(FailedStart(at_s=now_s, job_id=event.job_id))
        while failures[0].at_s < now_s - WITHIN_S:
            failures.popleft()
        node_id, device = place
        is_out = device in state.standing(node_id).reserved
        if is_out or len(failures) < N_FAILED or len({failure.job_id for failure in failures}) < N_JOBS:
            return []
        del self._by_device[place]
        words = event.exit_reason.replace("_", " ")
        holder = f"nobody: suspect, {N_FAILED} starts failed there in a row, the last of {event.job_id} ({words})"
        reservation = Reservation(devices=(device,), holder=holder, until_s=now_s + OUT_S)
        return [DevicesReserved(node_id=node_id, reservation=reservation)]


def _blamed(state: State, event: AttemptEnded, now_s: float) -> tuple[str, int] | None:
    """The one accelerator that may be at fault for this end; None: none, or nobody can say which."""
    job = state.jobs.get(event.job_id)
    if job is None or job.attempt is None or job.attempt.number != event.attempt:
        return None
    is_failure = event.outcome in (AttemptOutcome.FAILED, AttemptOutcome.LAUNCH_FAILED)
    if not is_failure or event.exit_reason not in BLAMED or now_s - job.attempt.ordered_at_s > WITHIN_S:
        return None
    places = [(placement.node_id, device) for placement in job.attempt.placements for device in placement.devices]
    if len(places) != 1:
        return None
    node_id, device = places[0]
    kinds = {known.index: known.kind for known in state.nodes[node_id].devices} if node_id in state.nodes else {}
    return None if kinds.get(device, "cpu") == "cpu" else places[0]
