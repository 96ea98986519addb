"""What was spent on what: device-seconds by session, project or user, and their price where one is set. Pure.

Devices count from the order to start until the attempt is proven gone. Up to its last checkpoint an attempt's work is
kept; all of it, when it succeeded or still runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum

from runtime.model.states import AttemptOutcome, JobState, StopCause
from runtime.store.usage import Key, NodeEvent, UseRow

DeviceKinds = Mapping[tuple[str, int], str]
"""By node and index."""
NO_SESSION = "(no session)"


class Purpose(StrEnum):
    """What device time went into."""

    USEFUL = "useful"
    """Work that was kept, or still runs."""
    REPLICATE = "replicate"
    """The same, of jobs that repeat a configuration with a fresh seed."""
    LOST = "lost_to_preemption"
    """After the last checkpoint of an attempt that left for others, a pause, a drain, or at its time limit to go on."""
    FAILED = "failed"
    """Of jobs that failed or were cancelled, and after the last checkpoint of attempts that did not succeed."""


class Group(StrEnum):
    SESSION = "session"
    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    since_s: float
    until_s: float

    def within(self, begin_s: float, end_s: float) -> float:
        """How much of a span lies in the window, in seconds."""
        return max(0.0, min(end_s, self.until_s) - max(begin_s, self.since_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the store says about the use of devices."""

    attempts: Sequence[UseRow]
    replicates: Set[str]
    """Jobs that repeat a configuration with a fresh seed."""
    checkpoints: Mapping[Key, float]
    node_events: Sequence[NodeEvent]


@dataclass(slots=True)
class Account:
    """Device-seconds by purpose and kind of device."""

    seconds: dict[tuple[Purpose, str | None], float] = field(default_factory=dict)

    def add(self, purpose: Purpose, kind: str | None, seconds: float) -> None:
        if seconds > 0:
            self.seconds[(purpose, kind)] = self.seconds.get((purpose, kind), 0.0) + seconds

    def device_seconds(self, purpose: Purpose) -> float:
        return sum(seconds for (of, _), seconds in self.seconds.items() if of is purpose)

    def cost(self, purpose: Purpose, prices: Mapping[str, float]) -> float:
        """At prices per device-hour; kinds without a price cost nothing here and are named by `kinds`."""
        return sum(
            seconds / 3600 * prices.get(kind or "", 0.0)
            for (of, kind), seconds in self.seconds.items()
            if of is purpose
        )

    @property
    def kinds(self) -> frozenset[str | None]:
        return frozenset(kind for _, kind in self.seconds)


def accounts(used: Used, window: Window, kinds: DeviceKinds, name_of: Callable[[UseRow], str]) -> dict[str, Account]:
    """An account for each name, those that used anything."""
    found: dict[str, Account] = {}
    for row in used.attempts:
        account = found.setdefault(name_of(row), Account())
        for purpose, begin_s, end_s in _spans(row, used, window.until_s):
            for placement in row.placements:
                for device in placement.devices:
                    kind = kinds.get((placement.node_id, device))
                    account.add(purpose, kind, window.within(begin_s, end_s))
    return {name: account for name, account in sorted(found.items()) if account.seconds}


def name_by(group: Group, user: str) -> Callable[[UseRow], str]:
    """Whose account an attempt goes to. There is one user: the owner of the server."""
    match group:
        case Group.SESSION:
            return lambda row: row.session_id or NO_SESSION
        case Group.PROJECT:
            return lambda row: row.project
        case Group.USER:
            return lambda row: user


def present_seconds(node_events: Sequence[NodeEvent], present: Mapping[str, int], window: Window) -> float:
    """Device-seconds that nodes were registered for.

    Args:
        present: number of devices of the nodes that are there now; one that the journal has no registration of has
            been there all the time.
    """
    total = 0.0
    counts: dict[str, tuple[int, float]] = {}
    known = {event.node_id for event in node_events if event.devices is not None}
    for event in node_events:
        n_devices, since_s = counts.pop(event.node_id, (0, event.at_s))
        total += n_devices * window.within(since_s, event.at_s)
        if event.devices is not None:
            counts[event.node_id] = (len(event.devices), event.at_s)
    for n_devices, since_s in counts.values():
        total += n_devices * window.within(since_s, window.until_s)
    all_the_time = (n_devices for node_id, n_devices in present.items() if node_id not in known)
    return total + sum(all_the_time) * (window.until_s - window.since_s)


def kinds_of(node_events: Iterable[NodeEvent], present: DeviceKinds) -> DeviceKinds:
    """What each device is, or was when it was last registered."""
    past = {(event.node_id, index): kind for event in node_events for index, kind in event.devices or ()}
    return {**past, **present}


def _spans(row: UseRow, used: Used, now_s: float) -> Iterator[tuple[Purpose, float, float]]:
    """The time of an attempt in parts: what was kept, and what was not."""
    end_s = now_s if row.ended_at is None else row.ended_at
    kept_until_s = row.ordered_at
    if row.outcome in (None, AttemptOutcome.SUCCEEDED):
        kept_until_s = end_s
    elif (row.job_id, row.attempt) in used.checkpoints:
        kept_until_s = min(end_s, used.checkpoints[(row.job_id, row.attempt)])
    yield _purpose_of_kept(row, used), row.ordered_at, kept_until_s
    has_left = row.outcome is AttemptOutcome.PREEMPTED or row.stop_cause is StopCause.RENEW
    yield (Purpose.LOST if has_left else Purpose.FAILED), kept_until_s, end_s


def _purpose_of_kept(row: UseRow, used: Used) -> Purpose:
    if row.state in (JobState.FAILED, JobState.CANCELLED):
        return Purpose.FAILED
    return Purpose.REPLICATE if row.job_id in used.replicates else Purpose.USEFUL
