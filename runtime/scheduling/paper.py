"""The paper on which a round is played: what is left of the devices, and what has been decided so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.model.devices import KindMasks, Masks, placement_masks
from runtime.model.indexes import Lane
from runtime.model.nouns import Job, Placement, Shape
from runtime.model.state import State

from .decision import Action
from .fairshare import FairShares
from .fit import fits, includes, is_gang, place, usable
from .fragments import Typical, typical_of
from .policy import Policy, Quota
from .preempt import Candidate, candidates
from .reserve import Release, Reservation
from .room import Room, empty_room


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A job that will fit once others are gone; its devices are kept for it."""

    placements: tuple[Placement, ...]
    victims: tuple[str, ...]
    """Asked to leave for it in this round; empty: what it waits for was leaving already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The first job of a lane that can neither start nor be promised anything."""

    job_id: str
    priority: int
    lane: Lane
    behind: str | None
    """The blocked head that it would delay, where there would be room but for that; None: there is no room."""
    is_waiting_for_victims: bool
    """Attempts are leaving for it already, so nobody else is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A blocked job that what comes after it must not delay."""

    job: Job
    wanted: Masks
    """All devices it could ever use."""
    reservation: Reservation | None
    """None: nothing may start on any of them."""


@dataclass(slots=True, kw_only=True)
class Round:
    """The paper: what is left of the devices, and what has been decided so far."""

    state: State
    now_s: float
    policy: Policy
    free: Room
    """What nobody holds and nobody is promised."""
    at_hand: Room
    """That, and what is being left and not promised to anybody."""
    leaving: frozenset[str]
    """Jobs that reached their time limit in this round."""
    served: frozenset[str]
    """Jobs for whom attempts are leaving already."""
    actions: list[Action] = field(default_factory=list)
    promises: dict[str, Promise] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    given: list[Release] = field(default_factory=list)
    """Devices given in this round, and when they are expected back; without those of which nothing is known."""
    victims: set[str] = field(default_factory=set)
    """Who is asked to leave in this round."""
    in_use: dict[tuple[str, str], int]
    """Devices held, by project and priority class, with those given and promised in this round."""
    fair: FairShares
    """What projects are entitled to, and hold."""
    over_quota: dict[Lane, Quota] = field(default_factory=dict)
    """What holds a lane back."""
    closed: set[Quota] = field(default_factory=set)
    """Quotas for whose room a job waits: what comes after it must not take it."""
    failed: dict[tuple[Shape, bool], float] = field(default_factory=dict)
    """What did not fit anywhere, and how long it was expected to run: what runs longer does not fit either."""
    barred_same: Masks = field(default_factory=dict)
    """Devices that blocked heads of the present class could use."""
    barred_nodes_same: set[str] = field(default_factory=set)
    """Nodes whose cores and memory they could use."""
    barred_for: list[Shape] = field(default_factory=list)
    """Their shapes; those whose devices another one bars already are left out."""
    barred_above: Masks = field(default_factory=dict)
    """Devices that blocked heads of higher classes could use."""
    barred_nodes_above: set[str] = field(default_factory=set)
    reserved_same: list[Reservation] = field(default_factory=list)
    reserved_above: list[Reservation] = field(default_factory=list)
    """For heads of the present class, and of higher ones."""
    asked_for: dict[str, int] = field(default_factory=dict)
    """Devices that others are asked to give up in this round, by the priority class that gets them."""
    throttled: dict[str, float] = field(default_factory=dict)
    """Jobs for which others are not asked to leave before then, since their class asked for so much lately."""
    wake_s: float | None = None
    _typical: tuple[Typical | None] | None = None
    _pool: list[Candidate] | None = None

    def pool(self) -> list[Candidate]:
        """Who may still be asked to leave, in order of harm."""
        if self._pool is None:
            self._pool = candidates(self.state, now_s=self.now_s, min_run_s=self.policy.min_run_s, leaving=self.leaving)
        return self._pool

    def leave(self, victims: frozenset[str]) -> None:
        """Take those out of the pool who were asked."""
        self.victims |= victims
        self._pool = [candidate for candidate in self.pool() if candidate.job.job_id not in victims]

    def usable(self, shape: Shape) -> Masks:
        """The devices it may use at all; none when the gang could not even run if all that take work were empty."""
        index = self.state.index
        memo = index.usable_by_shape
        found = memo.get(shape)
        if found is None:
            found = usable(shape, self._offered_to(shape), index)
            memo[shape] = found = found if fits(shape, empty_room(index, found)) else {}
        return found

    def _offered_to(self, shape: Shape) -> Mapping[str, KindMasks]:
        index = self.state.index
        if not index.suspect or not is_gang(shape):
            return index.offered
        return {node: masks for node, masks in index.offered.items() if node not in index.suspect}

    def typical(self) -> Typical | None:
        """The work at hand, where it asks for more than whole devices."""
        if self._typical is None:
            alive = self.state.index.n_alive
            is_plain = all(shape.needs is None for shape in alive)
            self._typical = (None if is_plain else typical_of(alive, {shape: self.usable(shape) for shape in alive}),)
        return self._typical[0]

    def place(self, shape: Shape, available: Room) -> tuple[Placement, ...] | None:
        """Where it goes; suspect nodes are used only where it does not fit without them. None: it does not fit."""
        suspect = self.state.index.suspect
        if suspect:
            trusted = place(shape, available.off(suspect), self.typical())
            if trusted is not None:
                return trusted
        return place(shape, available, self.typical())

    def place_elsewhere(self, job: Job, available: Room) -> tuple[Placement, ...] | None:
        """As `place`, but first without the nodes that it failed on without fault, then without the devices."""
        if job.avoid:
            bad = placement_masks(job.avoid)
            for preferred in (available.off(bad), available.without(bad)):
                placements = self.place(job.shape, preferred)
                if placements is not None:
                    return placements
        return self.place(job.shape, available)

    def covers(self, shape: Shape, other: Shape) -> bool:
        """Whether every device that `other` could use is one that `shape` could use."""
        is_for_other_alone = bool(self.state.index.suspect) and is_gang(shape) and not is_gang(other)
        return includes(shape, other) and not is_for_other_alone

    def wake_at(self, at_s: float | None) -> None:
        """Ask for a round at that time, unless one is due earlier or the time is past."""
        if at_s is not None and at_s > self.now_s and (self.wake_s is None or at_s < self.wake_s):
            self.wake_s = at_s
