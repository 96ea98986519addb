"""What must be true of every decision and every event, written independently of the code under test.

Devices are plain sets of (node, index) here, and everything is computed the slow way.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from runtime.model import apply as apply_module
from runtime.model import codec
from runtime.model.check import check
from runtime.model.estimates import Kind
from runtime.model.events import Recorded
from runtime.model.holds import NodeState
from runtime.model.indexes import Lane, lane_of
from runtime.model.nouns import Job, Needs, Placement, Shape
from runtime.model.state import State
from runtime.model.states import JobState
from runtime.scheduling import fairshare as fairshare_module
from runtime.scheduling import order as order_module
from runtime.scheduling import round as round_module
from runtime.scheduling import schedule as schedule_module
from runtime.scheduling.decision import Decision, Expire, Preempt, Start, TimeOut
from runtime.scheduling.paper import Head
from runtime.scheduling.policy import Policy, ProjectShare, Quota

DeviceSet = frozenset[tuple[str, int]]


class PropertyBroken(AssertionError):
    def __init__(self, name: str, found: object) -> None:
        self.name = name
        super().__init__(f"{name}: {found}")


def require(is_true: bool, name: str, found: object) -> None:
    if not is_true:
        raise PropertyBroken(name, found)


def checked_round(state: State, *, now_s: float, policy: Policy) -> Decision:
    """A decision for which every property holds."""
    before = json.dumps(codec.encode_state(state))
    indexes_before = repr(state.index)
    decision = schedule_module.schedule(state, now_s=now_s, policy=policy)
    is_unchanged = json.dumps(codec.encode_state(state)) == before and repr(state.index) == indexes_before
    require(is_unchanged, "schedule leaves the state unchanged", decision)
    again = schedule_module.schedule(codec.decode_state(json.loads(before)), now_s=now_s, policy=policy)
    require(again == decision, "same input, same decision", (decision, again))
    check_decision(state, decision, now_s=now_s, policy=policy)
    return decision


def check_decision(state: State, decision: Decision, *, now_s: float, policy: Policy) -> None:
    paper = round_module.play(state, now_s=now_s, policy=policy)
    promises = {job_id: p.placements for job_id, p in paper.promises.items()}
    view = _View(state, decision, promises, now_s, policy, paper.heads)
    for preempt in view.preempts:
        _check_victim(view, preempt)
        _check_promise(view, preempt)
    if any(job.shape.needs is not None for job in state.jobs.values()):
        check_given(state, decision)
        _check_wake(view)
        return
    for start in view.starts:
        _check_start(view, start)
    _check_promises(view)
    _check_patience(view)
    _check_needed(view)
    _check_tokens(view)
    _check_heads(view)
    _check_wake(view)


def check_event(live: State, recorded: Iterable[Recorded]) -> None:
    """What must be true after every event: the invariants, and that the stored journal leads to the same state."""
    check(live)
    restored = codec.decode_state(json.loads(json.dumps(codec.encode_state(live))))
    require(restored == live, "a snapshot holds the whole state", (restored, live))
    check(restored)


def check_replay(live: State, recorded: Iterable[Recorded]) -> None:
    replayed = State()
    for entry in recorded:
        stored = json.loads(json.dumps(codec.encode_recorded(entry)))
        apply_module.apply(replayed, codec.decode_recorded(stored))
    require(replayed == live, "replay equals the live state", (replayed, live))


def check_late(live: State, late: Recorded) -> None:
    """A report of an attempt that is over changes nothing."""
    copy = codec.decode_state(codec.encode_state(live))
    apply_module.apply(copy, late)
    copy.last_seq = live.last_seq
    require(copy == live, "a late report changes nothing", late)


class _View:
    """A decision and its state as plain sets."""

    def __init__(
        self,
        state: State,
        decision: Decision,
        promises: Mapping[str, tuple[Placement, ...]],
        now_s: float,
        policy: Policy,
        heads_on_paper: Iterable[Head],
    ) -> None:
        self.heads_on_paper = tuple(heads_on_paper)
        self.state, self.decision, self.now_s, self.policy = state, decision, now_s, policy
        self.starts = [a for a in decision.actions if isinstance(a, Start)]
        self.preempts = [a for a in decision.actions if isinstance(a, Preempt)]
        self.timed_out = {a.job_id for a in decision.actions if isinstance(a, TimeOut)}
        self.expired = {a.job_id for a in decision.actions if isinstance(a, Expire)}
        self.kinds = {(n.node_id, d.index): d.kind for n in state.nodes.values() for d in n.devices}
        self.closed = frozenset(device for device in self.kinds if _takes_no_work(state, *device))
        self.suspect = {node_id for node_id, s in state.standings.items() if s.state is NodeState.SUSPECT}
        self.held = {job.job_id: devices_of(job.attempt.placements) for job in state.jobs.values() if job.attempt}
        self.free = frozenset(self.kinds) - self.closed - frozenset().union(*self.held.values())
        self.vacating = frozenset().union(
            *(held for job_id, held in self.held.items() if self._is_leaving(state.jobs[job_id]))
        )
        self.given = {start.job_id: devices_of(start.placements) for start in self.starts}
        self.promised = {job_id: devices_of(placed) for job_id, placed in promises.items()}
        self.queue = list(self._in_order())
        self.held_back = set(self._held_back())
        self.queue = [job for job in self.queue if job.job_id not in self.held_back]

    def _in_order(self) -> Iterator[Job]:
        """Whoever comes first by what projects hold by then, again and again."""
        pending = [job for job in self.state.jobs.values() if self._may_start(job)]
        held: Counter[tuple[str, int]] = Counter()
        for job in self.state.jobs.values():
            held[job.project, job.priority] += job.shape.n_devices if job.attempt else 0
        while pending:
            first = min(
                pending,
                key=lambda job: (
                    -job.priority,
                    job.submitted_at_s + self._lets_by_s(job) + self.by_share_s(job, held),
                    job.order,
                ),
            )
            pending.remove(first)
            yield first
            if first.job_id in self.given or first.job_id in self.promised:
                held[first.project, first.priority] += first.shape.n_devices

    def by_share_s(self, job: Job, held: Mapping[tuple[str, int], int]) -> float:
        """What a job lets by on account of its project: from what it holds and held, over what it is entitled to."""
        here = {key: n for key, n in held.items() if key[1] >= job.priority}
        ready = {
            each.project for each in self.state.jobs.values() if self._is_ready(each) and each.priority >= job.priority
        }
        rivals = ready | {project for (project, _), n in here.items() if n}
        if len(rivals) == 1 or not self.policy.shares_fairly:
            return 0.0
        shares = {project: self.policy.projects.get(project, ProjectShare()) for project in rivals}
        mine = shares[job.project]
        n_held = sum(n for (project, _), n in here.items() if project == job.project)
        if n_held + job.shape.n_devices <= mine.deserved_devices:
            return 0.0
        rest = max(0, len(self.kinds) - sum(share.deserved_devices for share in shares.values()))
        entitled = mine.deserved_devices + rest * mine.weight / sum(shares[name].weight for name in sorted(shares))
        level = (n_held + self._held_lately(job)) / 2
        excess = level / (level + entitled) if level else 0.0
        return self.policy.fair_share_max_s * (1 + excess) / 2

    def _held_lately(self, job: Job) -> float:
        """Devices that its project held on average of late, in its class and above."""
        mean = 0.0
        for (project, priority), usage in self.state.usages.parts.items():
            if project == job.project and priority >= job.priority:
                half = 0.5 ** (max(0.0, self.now_s - usage.at_s) / 86400.0)
                mean += usage.device_s * math.log(2) / 86400.0 * half + usage.n_devices * (1 - half)
        return mean

    def _held_back(self) -> Iterator[str]:
        """Jobs for which some quota has no room, or which come after one that waits for that room."""
        jobs = self.state.jobs
        counted = [job for job in jobs.values() if job.attempt]
        waits_for: set[Quota] = set()
        stuck: set[Lane] = set()
        for job in self.queue:
            if lane_of(job) in stuck:
                continue  # it waits for one like it, not for the quota
            over = []
            for quota in self.policy.quotas:
                if quota.covers(job.project, job.priority_class):
                    n = sum(o.shape.n_devices for o in counted if quota.covers(o.project, o.priority_class))
                    if n + job.shape.n_devices > quota.max_devices or quota in waits_for:
                        over.append(quota)
            if over:
                if all(
                    job.shape.n_devices <= q.max_devices or not q.covers(job.project, job.priority_class)
                    for q in self.policy.quotas
                ):
                    waits_for.add(over[0])
                yield job.job_id
            elif job.job_id in self.given or job.job_id in self.promised:
                counted.append(job)
            else:
                stuck.add(lane_of(job))

    def expected_s(self, job: Job) -> float | None:
        """The median of what the last jobs like it needed, or of its experiment."""
        for shape in (job.shape, None):
            seen = sorted(self.state.estimates.run_times.get(Kind(job.project, job.experiment, shape), ()))
            if len(seen) >= 3:
                return seen[(len(seen) - 1) // 2]
        return None

    def _lets_by_s(self, job: Job) -> float:
        expected_s = self.expected_s(job)
        if expected_s is None:
            return 0.0
        done_s = 2.0 ** int(math.log2(int(job.done_s))) if job.done_s >= 1 else 0.0
        work_s = _left(expected_s, done_s) * job.shape.n_devices
        return min(self.policy.overtaking * work_s, self.policy.overtaking_max_s)

    def takes_s(self, job: Job) -> float:
        """How long a queued job would hold devices; infinite: nothing is known."""
        expected_s = self.expected_s(job)
        left_s = math.inf if expected_s is None else _left(expected_s, job.done_s)
        return min(left_s, _may_run_s(job) + job.grace_s, max(0.0, _hour_s(job) - self.now_s))

    def back_at_s(self, job: Job, priority: int) -> float:
        """When a job that holds devices gives them to a blocked head of this priority; infinite: nobody knows."""
        attempt = job.attempt
        assert attempt is not None
        began_s = attempt.ordered_at_s if attempt.started_at_s is None else attempt.started_at_s
        if attempt.stop is not None:
            return max(self.now_s, attempt.stop.ordered_at_s + attempt.stop.grace_s)
        if self._is_leaving(job) or any(preempt.job_id == job.job_id for preempt in self.preempts):
            return self.now_s + job.grace_s
        if job.is_preemptible and job.priority < priority:
            return max(self.now_s, began_s + self.policy.min_run_s)
        expected_s = self.expected_s(job) if attempt.expected_s is None else attempt.expected_s
        worked_s = self.now_s - began_s
        ends_s = math.inf if expected_s is None else self.now_s + _left(expected_s, job.done_s + worked_s)
        return max(self.now_s, min(ends_s, began_s + _may_run_s(job) + job.grace_s, _hour_s(job)))

    def start_s(self, head: Job, given: Mapping[str, DeviceSet]) -> float:
        """When a blocked head is expected to fit, if these jobs get these devices; infinite: nobody knows."""
        taken = frozenset().union(*given.values())
        back = dict.fromkeys(self.free - taken, self.now_s)
        for job_id, held in self.held.items():
            at_s = self.back_at_s(self.state.jobs[job_id], head.priority)
            back.update(dict.fromkeys(held - taken, at_s))
        for job_id, devices in given.items():
            job = self.state.jobs[job_id]
            at_s = self.now_s if _is_filler(job, head) else self.now_s + self.takes_s(job)
            back.update(dict.fromkeys(devices, at_s))
        usable = self.usable(head.shape)
        for at_s in sorted(set(back.values())):
            if at_s < math.inf and fits(head.shape, frozenset(d for d in usable if back[d] <= at_s)):
                return at_s
        return math.inf

    def heads(self) -> Iterator[Job]:
        """Of each class, the waiting jobs that no earlier one of the class competes with."""
        found: list[Job] = []
        for job in self.waiting():
            rivals = (head for head in found if head.priority == job.priority)
            if not any(self.usable(head.shape) & self.usable(job.shape) for head in rivals):
                found.append(job)
                yield job

    def _is_leaving(self, job: Job) -> bool:
        return job.state is JobState.STOPPING or job.job_id in self.timed_out

    def _is_ready(self, job: Job) -> bool:
        is_ready = job.state is JobState.QUEUED and job.not_before_s <= self.now_s
        is_ready = is_ready and not any(hold.matches(job) for hold in self.state.holds.values())
        return is_ready and not _waits_for_others(self.state, job)

    def _may_start(self, job: Job) -> bool:
        is_there = self._is_ready(job) and job.job_id not in self.expired
        return is_there and fits(job.shape, self.usable(job.shape))

    def usable(self, shape: Shape) -> DeviceSet:
        of_kind = [device for device, kind in self.kinds.items() if shape.accelerator in (None, kind)]
        of_kind = [d for d in of_kind if d not in self.closed and (shape.n_devices == 1 or d[0] not in self.suspect)]
        least = shape.devices_per_node or 1
        return frozenset(d for d in of_kind if sum(other[0] == d[0] for other in of_kind) >= least)

    def victims_of(self, beneficiary: str) -> list[str]:
        return [preempt.job_id for preempt in self.preempts if preempt.beneficiary == beneficiary]

    def waiting(self) -> Iterator[Job]:
        """Blocked heads and those behind them: neither started nor promised anything."""
        return (job for job in self.queue if job.job_id not in self.given and job.job_id not in self.promised)

    def is_served(self, job_id: str) -> bool:
        stops = (job.attempt.stop for job in self.state.jobs.values() if job.attempt)
        return any(stop is not None and stop.beneficiary == job_id for stop in stops)


def _takes_no_work(state: State, node_id: str, device: int) -> bool:
    standing = state.standings.get(node_id)
    if standing is None:
        return False
    reserved = any(device in reservation.devices for reservation in standing.reservations)
    is_open = standing.state in (NodeState.HEALTHY, NodeState.SUSPECT)
    return not is_open or reserved or device in standing.busy_external


def _waits_for_others(state: State, job: Job) -> bool:
    """Whether others have to end first, or come first in its array."""
    if job.waits_for or job.unmet is not None:
        return True
    place = job.array
    if place is None or place.parallel is None or job.state is not JobState.QUEUED:
        return False
    tasks = [other for other in state.jobs.values() if other.array and other.array.array_id == place.array_id]
    n_left = place.parallel - sum(other.attempt is not None for other in tasks)
    waiting = [other for other in tasks if other.attempt is None and not other.is_waiting]
    on_hold = [other for other in waiting if any(hold.matches(other) for hold in state.holds.values())]
    first = sorted((other.order, other.job_id) for other in waiting if other not in on_hold)[: max(0, n_left)]
    return (job.order, job.job_id) not in first


def devices_of(placements: Iterable[Placement]) -> DeviceSet:
    return frozenset((p.node_id, device) for p in placements for device in p.devices)


def fits(shape: Shape, devices: DeviceSet) -> bool:
    size = shape.devices_per_node or 1
    nodes = {node_id for node_id, _ in devices}
    groups = sum(sum(d[0] == node_id for d in devices) // size for node_id in nodes)
    return shape.n_devices % size == 0 and groups * size >= shape.n_devices


def _check_start(view: _View, start: Start) -> None:
    job = view.state.jobs[start.job_id]
    devices = devices_of(start.placements)
    require(job.job_id not in view.held_back, "no quota is exceeded", start)
    n_listed = sum(len(p.devices) for p in start.placements)
    require(len(devices) == n_listed == job.shape.n_devices, "a gang is whole or absent", start)
    require(fits(job.shape, devices), "a gang is whole or absent", start)
    require(not devices & view.closed, "what takes no new work gets none", start)
    is_held = any(hold.matches(job) for hold in view.state.holds.values())
    require(not is_held, "a job on hold is not started", start)
    is_trusted = not any(node_id in view.suspect for node_id, _ in devices)
    require(is_trusted or job.shape.n_devices == 1, "a suspect node carries no gang", start)
    require(devices <= view.usable(job.shape), "a gang gets what it asked for", start)
    require(devices <= view.free, "no device in two attempts", start)
    others = (given for job_id, given in view.given.items() if job_id != start.job_id)
    require(not any(devices & other for other in others), "no device in two attempts", start)
    require(job in view.queue, "only jobs that may start are started", start)
    require(start.attempt == job.n_attempts + 1, "attempts are numbered", start)
    require(bool(start.reason), "an action has a reason", start)


def check_given(state: State, decision: Decision) -> None:
    """Each start gets the devices that it asked for, all of one kind where it named several."""
    for start in decision.actions:
        if not isinstance(start, Start):
            continue
        shape = state.jobs[start.job_id].shape
        needs = shape.needs or Needs()
        devices = [
            device
            for part in start.placements
            for device in state.nodes[part.node_id].devices
            if device.index in part.devices
        ]
        require(len(devices) == shape.n_devices, "a gang is whole or absent", start)
        kinds = {device.kind for device in devices}
        accepted = {shape.accelerator, *needs.or_accelerators}
        require(shape.accelerator is None or kinds <= accepted, "a gang gets what it asked for", start)
        require(not needs.or_accelerators or len(kinds) == 1, "a gang is of one kind", start)
        require(
            all((device.memory_mb or 0) >= needs.device_memory_mb for device in devices),
            "devices have the memory that was asked for",
            start,
        )


def _check_victim(view: _View, preempt: Preempt) -> None:
    victim, beneficiary = view.state.jobs[preempt.job_id], view.state.jobs[preempt.beneficiary]
    attempt = victim.attempt
    require(victim.priority < beneficiary.priority, "victims are strictly lower than their beneficiary", preempt)
    require(victim.is_preemptible, "victims are preemptible", preempt)
    is_running = victim.state in (JobState.STARTING, JobState.RUNNING) and victim.job_id not in view.timed_out
    require(is_running and attempt is not None, "nobody is asked to leave twice", preempt)
    assert attempt is not None
    began_s = attempt.ordered_at_s if attempt.started_at_s is None else attempt.started_at_s
    require(began_s + view.policy.min_run_s <= view.now_s, "victims had their minimum run time", preempt)
    require(not view.is_served(beneficiary.job_id), "nobody else leaves while victims are leaving", preempt)
    require(len({p.job_id for p in view.preempts}) == len(view.preempts), "nobody is asked to leave twice", preempt)
    require(bool(preempt.reason), "an action has a reason", preempt)


def _check_promise(view: _View, preempt: Preempt) -> None:
    """No job of the same experiment that holds just as good devices and promises less may stay instead."""
    victim, beneficiary = view.state.jobs[preempt.job_id], view.state.jobs[preempt.beneficiary]
    if view.heads_on_paper or victim.worth is None:
        return
    leaving = {each.job_id for each in view.preempts}
    for other in view.state.jobs.values():
        is_like = (other.priority, other.project, other.experiment) == (
            victim.priority,
            victim.project,
            victim.experiment,
        )
        is_out = other.worth is None or other.job_id in leaving or other.state is JobState.STOPPING
        if not is_like or is_out or not _may_leave(view, other, beneficiary):
            continue
        if _equal_devices(view, victim, other) and victim.shape.needs is None and other.shape.needs is None:
            is_least = _promise(victim, view.now_s) <= _promise(other, view.now_s) + 1e-9
            require(is_least, "who promises least leaves first", (preempt, other.job_id))


def _promise(job: Job, now_s: float) -> float:
    assert job.worth is not None and job.attempt is not None  # noqa: PT018
    started = job.attempt.started_at_s
    used_s = (job.done_s + (now_s - started if started is not None else 0.0)) * job.shape.n_devices
    n_doublings = 0 if used_s < job.worth.cost_s else math.floor(math.log2(used_s / job.worth.cost_s)) + 1
    return (job.worth.gain + job.worth.uncertainty) / (job.worth.cost_s * 2**n_doublings - used_s)


def _equal_devices(view: _View, one: Job, other: Job) -> bool:
    """On one and the same node, equally many of one kind, all of which take new work."""
    sides = [view.held[one.job_id], view.held[other.job_id]]
    kinds = [sorted((node, view.kinds[node, index]) for node, index in side) for side in sides]
    return kinds[0] == kinds[1] and len({node for node, _ in kinds[0]}) == 1 and not view.closed & (sides[0] | sides[1])


def _kept(view: _View, head: Job, heads: Mapping[str, Head]) -> DeviceSet:
    """The devices that nobody else may be promised while this one waits."""
    on_paper = heads.get(head.job_id)
    if on_paper is None:
        return frozenset()
    if on_paper.reservation is None:
        return view.usable(head.shape)
    masks = on_paper.reservation.devices.items()
    return frozenset((node, i) for node, mask in masks for i in range(mask.bit_length()) if mask >> i & 1)


def _check_patience(view: _View) -> None:
    """A job comes before all of its class that were submitted later than this bound."""
    bound_s = view.policy.overtaking_max_s + view.policy.fair_share_max_s
    shares = fairshare_module.FairShares(state=view.state, now_s=view.now_s, policy=view.policy)
    held: Counter[tuple[str, int]] = Counter()
    for job in view.state.jobs.values():
        held[job.project, job.priority] += job.shape.n_devices if job.attempt else 0
    for job in view.queue:
        by_share_s = shares.of_class(job.priority).lets_by_s(job.project, job.shape.n_devices)
        later_s = order_module.lets_by_s(view.state, lane_of(job), view.policy) + by_share_s
        require(0.0 <= later_s <= bound_s, "what waits is overtaken for a bounded time", (job.job_id, later_s))
        recounted_s = view.by_share_s(job, held)
        is_same = math.isclose(by_share_s, recounted_s, abs_tol=1e-3)
        require(is_same, "a job lets by what its project's share says", (job.job_id, by_share_s, recounted_s))


def _check_promises(view: _View) -> None:
    victims = frozenset().union(*(view.held[preempt.job_id] for preempt in view.preempts))
    at_hand = view.free | view.vacating | victims
    for job_id, devices in view.promised.items():
        job = view.state.jobs[job_id]
        require(job_id not in view.held_back, "no quota is exceeded", job_id)
        require(fits(job.shape, devices) and devices <= at_hand, "nobody leaves before the whole gang fits", job_id)
        others = [d for other, d in (*view.promised.items(), *view.given.items()) if other != job_id]
        require(not any(devices & other for other in others), "promised devices are kept", job_id)
    beneficiaries = {preempt.beneficiary for preempt in view.preempts}
    require(beneficiaries <= set(view.promised), "nobody leaves before the whole gang fits", beneficiaries)


def _check_needed(view: _View) -> None:
    """Without any one of its victims, the beneficiary would not fit on what it may use."""
    at_hand = view.free | view.vacating
    heads = {head.job.job_id: head for head in view.heads_on_paper}
    waiting: list[Job] = []
    for job in view.queue:
        victims = view.victims_of(job.job_id)
        barred = [_kept(view, head, heads) for head in waiting if not _is_filler(job, head)]
        allowed = view.usable(job.shape) - frozenset().union(*barred)
        for victim in victims:
            others = frozenset().union(*(view.held[other] for other in victims if other != victim))
            is_needed = not fits(job.shape, (at_hand | others) & allowed)
            require(is_needed, "every victim is needed", f"{victim} for {job.job_id}")
        at_hand |= frozenset().union(*(view.held[victim] for victim in victims))
        at_hand -= view.given.get(job.job_id, frozenset()) | view.promised.get(job.job_id, frozenset())
        if job.job_id not in view.given and job.job_id not in view.promised:
            waiting.append(job)


def _may_run_s(job: Job) -> float:
    """How long an attempt may run; infinite: nothing limits it."""
    total_s = math.inf if job.max_total_s is None else job.max_total_s - job.ran_s
    return min(total_s, math.inf if job.timeout_s is None else job.timeout_s)


def _hour_s(job: Job) -> float:
    """By when it has left; infinite: it has no hour."""
    return math.inf if job.finish_by_s is None else job.finish_by_s


def _left(expected_s: float, done_s: float) -> float:
    total_s = max(1.0, expected_s)
    while total_s <= done_s:
        total_s *= 2
    return total_s - done_s


def _check_heads(view: _View) -> None:
    """Without what was given to later ones, no blocked head could be expected to start earlier."""
    given = {**view.given, **view.promised}
    for head in view.heads():
        place = view.queue.index(head)
        later = [job.job_id for job in view.queue[place + 1 :] if job.job_id in given]
        earlier = {job.job_id: given[job.job_id] for job in view.queue[:place] if job.job_id in given}
        undisturbed_s, disturbed_s = view.start_s(head, earlier), view.start_s(head, given)
        require(disturbed_s <= undisturbed_s, "a blocked head is not delayed", f"{head.job_id} by some of {later}")
        has_patience = view.now_s - head.queued_since_s < view.policy.backfill_patience_s
        if has_patience and undisturbed_s < math.inf:
            continue
        for job_id in later:
            delays = given[job_id] & view.usable(head.shape) and not _is_filler(view.state.jobs[job_id], head)
            require(not delays, "a blocked head is not delayed", f"{job_id} before {head.job_id}")
    if not view.queue:
        return
    first = view.queue[0]
    if fits(first.shape, view.free & view.usable(first.shape)):
        require(first.job_id in view.given, "the first in the queue starts when it fits", first.job_id)
    elif not view.is_served(first.job_id):
        lower = [job for job in view.state.jobs.values() if _may_leave(view, job, first)]
        reach = (view.free | view.vacating).union(*(view.held[job.job_id] for job in lower))
        if fits(first.shape, reach & view.usable(first.shape)) and not _is_out_of_tokens(view, first):
            require(first.job_id in view.promised, "the first in the queue gets what lower ones hold", first.job_id)


def _may_leave(view: _View, job: Job, beneficiary: Job) -> bool:
    if job.attempt is None or not job.is_preemptible or job.priority >= beneficiary.priority:
        return False
    began_s = job.attempt.ordered_at_s if job.attempt.started_at_s is None else job.attempt.started_at_s
    return began_s + view.policy.min_run_s <= view.now_s


def _tokens(view: _View, priority_class: str) -> float:
    """What is left of the bucket of a class before the round: full an hour ago, drained and filled since."""
    n_devices = len(view.kinds)
    cap = view.policy.preempt_burst * n_devices
    per_s = view.policy.preempt_per_hour * n_devices / 3600
    past = [one for one in view.state.evictions.get(priority_class, ()) if one.at_s > view.now_s - 3600]
    tokens = cap
    for before, one in zip([None, *past], [*past, None], strict=True):
        at_s = view.now_s if one is None else one.at_s
        tokens = tokens if before is None else min(cap, tokens + (at_s - before.at_s) * per_s)
        tokens -= 0 if one is None else one.n_devices
    return tokens


def _is_out_of_tokens(view: _View, job: Job) -> bool:
    is_highest = job.priority == max(each.priority for each in view.policy.classes.values())
    least = min(1.0, view.policy.preempt_burst * len(view.kinds))
    return not is_highest and _tokens(view, job.priority_class) < least


def _check_tokens(view: _View) -> None:
    """Nobody is asked to leave for a class whose bucket is empty; the highest class has none."""
    asked: dict[str, int] = {}
    for beneficiary in dict.fromkeys(preempt.beneficiary for preempt in view.preempts):
        job = view.state.jobs[beneficiary]
        name = job.priority_class
        if job.priority < max(each.priority for each in view.policy.classes.values()):
            least = min(1.0, view.policy.preempt_burst * len(view.kinds))
            has_some = _tokens(view, name) - asked.get(name, 0) >= least - 1e-9
            require(has_some, "preemptions stay within the bucket of their class", beneficiary)
        asked[name] = asked.get(name, 0) + sum(len(view.held[victim]) for victim in view.victims_of(beneficiary))


def _is_filler(job: Job, head: Job) -> bool:
    return job.is_preemptible and job.priority < head.priority


def _check_wake(view: _View) -> None:
    wake_s = view.decision.next_wake_s
    require(wake_s is None or wake_s > view.now_s, "the next round is in the future", wake_s)
    held = {j.job_id for j in view.state.jobs.values() for hold in view.state.holds.values() if hold.matches(j)}
    held |= {j.job_id for j in view.state.jobs.values() if _waits_for_others(view.state, j)}
    waiting = [job for job in view.state.jobs.values() if job.state is JobState.QUEUED]
    due = [job.not_before_s for job in waiting if job.job_id not in held]
    for job in view.state.jobs.values():
        if job.state is JobState.QUEUED and job.queue_timeout_s is not None and not job.is_waiting:
            due.append(job.queued_since_s + job.queue_timeout_s)
        if job.state is JobState.RUNNING and job.attempt and job.attempt.started_at_s:
            due.append(job.attempt.started_at_s + _may_run_s(job))
        if job.attempt is None or job.attempt.stop is None:
            leave_s = job.attempt.leave_s if job.attempt else None
            grace_s = job.grace_s if leave_s is None or not job.grace_s else max(job.grace_s, min(300, 1.5 * leave_s))
            due.append(_hour_s(job) - 2.0 - grace_s)
    coming = [at_s for at_s in due if view.now_s < at_s < math.inf]
    if coming:
        require(wake_s is not None and wake_s <= min(coming), "a round is due when something is", (wake_s, coming))
