"""What each project is entitled to, and how long its jobs let those of others by for what it had beyond that. Pure.

Two phases: each project first gets what it deserves, then the rest of the devices is shared by weight among the
projects that want or hold any. A job that keeps its project within what it deserves lets nobody by. Others let later
ones by for a time that grows with what their project holds and lately held, over what it is entitled to; it is bounded,
so that waiting is.

In each class only what is held or wanted there and above counts. Who is served in a class therefore never depends on
lower work, which the class itself starts and stops: else a filler could change the order by starting, be asked to
leave for it, change it back by leaving, and so on for ever. With one project it is the same for all, and changes
nothing.

Source: the two phases are those of KAI Scheduler's proportion plugin; a bounded age in place of its queue order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runtime.model.indexes import Delayed
from runtime.model.state import State

from .policy import DEFAULT_SHARE, Policy

AFTER_ALL = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One project in a class, before the round gives it anything."""

    deserved: int
    entitled: float
    """Devices: what it deserves, and its part of the rest."""
    n_held: int
    """Devices it holds in this class and above."""
    lately: float
    """Devices it held there on average of late."""


@dataclass(slots=True, kw_only=True)
class FairShares:
    """The standings of a round, and what it has given so far. Classes are asked from the highest down."""

    state: State
    now_s: float
    policy: Policy
    given: dict[str, int] = field(default_factory=dict)
    """Devices given and promised in this round, by project."""

    def give(self, project: str, n_devices: int) -> None:
        self.given[project] = self.given.get(project, 0) + n_devices

    def of_class(self, priority: int) -> ClassShares:
        by_project = standings(self.state, priority, self.now_s, self.policy)
        return ClassShares(by_project=by_project, given=self.given, policy=self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShares:
    """The standings in one class."""

    by_project: Mapping[str, Standing]
    """Empty: there is nothing to share."""
    given: Mapping[str, int]
    """As the round goes on."""
    policy: Policy

    def lets_by_s(self, project: str, n_wanted: int) -> float:
        """For how long a job that wants so many devices lets later ones of its class by, on account of its project."""
        standing = self.by_project.get(project)
        if standing is None:
            return 0.0
        n_held = standing.n_held + self.given.get(project, 0)
        if n_held + n_wanted <= standing.deserved:
            return 0.0
        level = (n_held + standing.lately) / 2.0
        beyond = level / (level + standing.entitled) if level else 0.0
        return self.policy.fair_share_max_s * (0.5 + 0.5 * beyond)


def standings(state: State, priority: int, now_s: float, policy: Policy) -> dict[str, Standing]:
    """Of the projects that want devices now, or hold some, in a class or above; empty: it is one project at most."""
    if not policy.shares_fairly:
        return {}
    wanting, n_held, lately = _wanting(state, priority, now_s), dict[str, int](), dict[str, float]()
    for usage in state.usages.parts.values():
        if usage.priority >= priority:
            n_held[usage.project] = n_held.get(usage.project, 0) + usage.n_devices
            lately[usage.project] = lately.get(usage.project, 0.0) + usage.mean_devices(now_s)
    projects = sorted(wanting | {project for project, n in n_held.items() if n})
    if len(projects) < 2:
        return {}
    shares = {project: policy.projects.get(project, DEFAULT_SHARE) for project in projects}
    rest = max(0, state.n_devices - sum(share.deserved_devices for share in shares.values()))
    weights = sum(share.weight for share in shares.values())
    return {
        project: Standing(
            deserved=share.deserved_devices,
            entitled=share.deserved_devices + rest * share.weight / weights,
            n_held=n_held.get(project, 0),
            lately=lately.get(project, 0.0),
        )
        for project, share in shares.items()
    }


def _wanting(state: State, priority: int, now_s: float) -> set[str]:
    queues = (lanes for at, lanes in state.index.queue.items() if at >= priority)
    late = (state.jobs[entry.job_id] for entry in due_entries(state.index.delayed, now_s))
    return {lane.project for lanes in queues for lane in lanes} | {j.project for j in late if j.priority >= priority}


def due_entries(delayed: Sequence[Delayed], now_s: float) -> Sequence[Delayed]:
    """Those whose back-off is over; they are in order."""
    return delayed[: bisect_left(delayed, Delayed(now_s, AFTER_ALL, ""))]


def describe_share(project: str, standing: Standing) -> str:
    """`project vision holds 4 devices in this class and above, lately 3.2 on average; it is entitled to 6.0`."""
    noun = "device" if standing.n_held == 1 else "devices"
    deserved = f", of which it deserves {standing.deserved} first" if standing.deserved else ""
    return (
        f"project {project} holds {standing.n_held} {noun} in this class and above, lately {standing.lately:.1f} on "
        f"average; it is entitled to {standing.entitled:.1f}{deserved}"
    )
