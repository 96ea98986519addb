"""The live state of the runtime: what is queued, what runs where, which nodes there are. Pure.

It has one owner, who changes it by `apply` alone. The items in it are frozen and replaced. Ended jobs are not here;
they live in the history tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .budgets import Budget, accounts_of
from .devices import count, placement_masks
from .estimates import Estimates
from .evictions import Eviction
from .holds import AgentsStop, Hold, Standing
from .indexes import Indexes
from .leaving import Leaving
from .nouns import Job, Node
from .states import JobState
from .usage import Usages

N_RECENT = 6
"""Events remembered per job for error messages."""


@dataclass(slots=True, kw_only=True)
class State:
    jobs: dict[str, Job] = field(default_factory=dict)
    """Live jobs by id."""
    nodes: dict[str, Node] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    """Newest fencing number by session; older ones are refused."""
    holds: dict[str, Hold] = field(default_factory=dict)
    """By selector; matching jobs are not started."""
    agents_stop: AgentsStop | None = None
    """Set: no session may submit."""
    budgets: dict[str, Budget] = field(default_factory=dict)
    """By `session s1` or `project p`."""
    spent: dict[str, float] = field(default_factory=dict)
    """Device-seconds that ended attempts used, of every session and project."""
    evictions: dict[str, tuple[Eviction, ...]] = field(default_factory=dict)
    """Devices that others gave up lately, by the priority class that they were asked for, oldest first."""
    spoiled: set[str] = field(default_factory=set)
    """Arrays with live tasks of which a task has ended, and not well."""
    standings: dict[str, Standing] = field(default_factory=dict)
    """By node, also of nodes that are away; those that say nothing are left out."""
    last_seq: int = 0
    """Sequence number of the last applied event."""
    clock_s: float = 0.0
    """The latest time that an applied event carried; seconds since the epoch."""
    recent: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The last few events of each live job, in words."""
    estimates: Estimates = field(default_factory=Estimates)
    """How long jobs like those that ended have run."""
    leaving: Leaving = field(default_factory=Leaving)
    """How long attempts took to leave after a notice."""
    usages: Usages = field(default_factory=Usages)
    """What each project held of late."""
    index: Indexes = field(default_factory=Indexes)

    def put_job(self, job: Job) -> None:
        """Add a job, or replace it, and keep the indexes in step."""
        old = self.jobs.get(job.job_id)
        if old is not None:
            self.index.remove_job(old, self.clock_s)
        else:
            for account in accounts_of(job):
                self.index.accounts.setdefault(account, {})[job.job_id] = None
        self.jobs[job.job_id] = job
        self.index.add_job(job, self.clock_s, is_held=self.hold_on(job) is not None)
        self._settle_array(job)

    def drop_job(self, job_id: str) -> None:
        job = self.jobs.pop(job_id)
        self.index.remove_job(job, self.clock_s)
        self.recent.pop(job_id, None)
        for account in accounts_of(job):
            self.index.drop_from_account(account, job_id)
        self._settle_array(job)

    def _settle_array(self, job: Job) -> None:
        if job.array is not None:
            self.index.settle_array(job.array.array_id, self.jobs, self.clock_s)

    def is_there(self, name: str) -> bool:
        """Whether this job, or a task of this array, is live."""
        return name in self.jobs or name in self.index.arrays

    def put_node(self, node: Node) -> None:
        self.nodes[node.node_id] = node
        held = 0
        for job in holders(self, node.node_id):
            held |= _held_on(job, node.node_id)
        standing = self.standing(node.node_id)
        self.index.set_node(node, held=held, closed=standing.closed(node), is_suspect=standing.is_suspect)

    def drop_node(self, node_id: str) -> None:
        del self.nodes[node_id]
        self.index.remove_node(node_id)

    def hold_on(self, job: Job) -> Hold | None:
        """The first hold that matches a job; None: nobody holds it."""
        return next((hold for hold in self.holds.values() if hold.matches(job)), None)

    def put_hold(self, hold: Hold) -> None:
        self.holds[hold.key] = hold
        self._sort_held()

    def drop_hold(self, key: str) -> None:
        if self.holds.pop(key, None) is not None:
            self._sort_held()

    def _sort_held(self) -> None:
        """Move queued jobs between the queue and those that are held."""
        for job_id, job in self.jobs.items():
            is_held = self.hold_on(job) is not None
            is_sorted = (job_id in self.index.held) == is_held or job.is_waiting
            if job.state is JobState.QUEUED and not is_sorted:
                self.index.remove_job(job, self.clock_s)
                self.index.add_job(job, self.clock_s, is_held=is_held)
                self._settle_array(job)

    def standing(self, node_id: str) -> Standing:
        return self.standings.get(node_id) or Standing(node_id=node_id)

    def put_standing(self, standing: Standing) -> None:
        if standing.is_plain:
            self.standings.pop(standing.node_id, None)
        else:
            self.standings[standing.node_id] = standing
        node = self.nodes.get(standing.node_id)
        if node is not None:
            self.put_node(node)

    def advance(self, at_s: float) -> None:
        """Move the clock forward (never back) and let jobs whose back-off is over into the queue."""
        self.clock_s = max(self.clock_s, at_s)
        self.index.promote(self.jobs, self.clock_s)

    @property
    def n_devices(self) -> int:
        return sum(len(node.devices) for node in self.nodes.values())

    @property
    def n_devices_free(self) -> int:
        return count(self.index.free)

    @property
    def n_queued(self) -> int:
        return len(self.jobs) - len(self.index.holding)

    @property
    def n_running(self) -> int:
        """Jobs that hold devices."""
        return len(self.index.holding)


def holders(state: State, node_id: str) -> list[Job]:
    """Jobs whose attempt holds something of this node, in order of submission."""
    found = [job for job_id in state.index.holding if _is_on(job := state.jobs[job_id], node_id)]
    return sorted(found, key=lambda job: job.order)


def holder_of(state: State, node_id: str, device: int) -> Job | None:
    """Who holds a device, or the first to hold a share of it; None: it is free."""
    for job in holders(state, node_id):
        if _held_on(job, node_id) >> device & 1:
            return job
    return None


def displaced(state: State, node: Node) -> list[Job]:
    """Jobs that hold devices which a new registration of this node no longer has.

    Their attempts must be ended before the registration can be applied.
    """
    old = state.nodes.get(node.node_id)
    if old is None:
        return []
    kinds = {device.index: device.kind for device in node.devices}
    gone = 0
    for device in old.devices:
        if kinds.get(device.index) != device.kind:
            gone |= 1 << device.index
    return [job for job in holders(state, node.node_id) if _held_on(job, node.node_id) & gone]


def _is_on(job: Job, node_id: str) -> bool:
    return job.attempt is not None and any(part.node_id == node_id for part in job.attempt.placements)


def _held_on(job: Job, node_id: str) -> int:
    if job.attempt is None:
        return 0
    return placement_masks(job.attempt.placements).get(node_id, 0)
