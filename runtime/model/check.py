"""The invariants, as a function that every test runs after every event. Pure and slow on purpose.

Everything derived is computed anew from jobs and nodes, in the plainest way, and compared.
"""

from __future__ import annotations

from math import log2

from .amounts import check_amounts, index_amounts
from .errors import InvariantViolation
from .holds import CLOSED, NodeState, Standing
from .indexes import ArrayLine, Deadline, Delayed, Hour, Indexes, Lane, Queued
from .leaving import Experiment
from .nouns import WHOLE, Attempt, Job
from .state import State
from .states import HOLDING, JobState


def check(state: State) -> None:
    """Verify that the state can be true.

    Raises:
        InvariantViolation: the first rule that does not hold, and what was found.
    """
    for job_id, job in state.jobs.items():
        _check_job(state, job_id, job)
    _check_devices(state)
    check_amounts(state)
    _check_indexes(state)
    for node_id, node in state.nodes.items():
        _require(state, node.node_id == node_id, "a node is filed under its id", f"{node.node_id} under {node_id}")
        indexes = [device.index for device in node.devices]
        _require(state, len(set(indexes)) == len(indexes), "device indexes of a node differ", f"{node_id}: {indexes}")
    _require(state, set(state.recent) <= set(state.jobs), "only live jobs have recent events", str(set(state.recent)))
    for key, hold in state.holds.items():
        _require(state, hold.key == key, "a hold is filed under its selector", f"{hold.key} under {key}")
    for key, budget in state.budgets.items():
        _require(state, budget.key == key, "a budget is filed under its key", f"{budget.key} under {key}")
    _require(state, min(state.spent.values(), default=0.0) >= 0, "nobody has used less than nothing", str(state.spent))
    live = {job.array.array_id for job in state.jobs.values() if job.array is not None}
    _require(state, state.spoiled <= live, "only arrays with live tasks are spoiled", str(state.spoiled - live))
    for node_id, standing in state.standings.items():
        _require(state, standing.node_id == node_id, "a standing is filed under its node", node_id)
        _require(state, not standing.is_plain, "a standing says something", node_id)
        reserved = standing.reserved
        _require(state, len(set(reserved)) == len(reserved), "no device is reserved twice", f"{node_id}: {reserved}")
    _check_usages(state)
    orders = [job.order for job in state.jobs.values()]
    _require(state, len(set(orders)) == len(orders), "no two jobs share a place in the order", str(sorted(orders)))


def _check_usages(state: State) -> None:
    held: dict[tuple[str, int], int] = {}
    for job in state.jobs.values():
        if job.attempt is not None and job.shape.n_devices:
            key = (job.project, job.priority)
            held[key] = held.get(key, 0) + job.shape.n_devices
    known = state.usages.parts
    _require(state, set(held) <= set(known), "usage knows every project that holds", str(set(held) - set(known)))
    for key, usage in known.items():
        filed = (usage.project, usage.priority)
        _require(state, filed == key, "usage is filed under its project and priority", f"{filed} at {key}")
        _require(state, usage.device_s >= 0.0, "usage is not negative", f"{key}: {usage.device_s}")
        n_held = held.get(key, 0)
        _require(state, usage.n_devices == n_held, "usage knows what is held", f"{key}: {usage.n_devices}, {n_held}")


def _check_job(state: State, job_id: str, job: Job) -> None:
    attempt = job.attempt
    _require(state, job.job_id == job_id, "a job is filed under its id", f"{job.job_id} under {job_id}", job_id)
    _require(state, not job.state.is_ended, "ended jobs leave the state", f"{job_id} is {job.state}", job_id)
    holds = "a job holds devices exactly while starting, running or stopping"
    _require(state, (attempt is not None) == (job.state in HOLDING), holds, f"{job_id} is {job.state}", job_id)
    is_within = job.max_total_s is None or job.attempt is not None or job.ran_s < job.max_total_s
    _require(state, is_within, "a job that has used up its running time has ended", job_id, job_id)
    awaited = [dependency.on for dependency in job.waits_for if not _is_live(state, dependency.on)]
    _require(state, not awaited, "a job waits for what is live", f"{job_id}: {awaited}", job_id)
    _require(
        state, job.state is JobState.QUEUED or not job.is_waiting, "what waits for others is queued", job_id, job_id
    )
    counts = (job.n_attempts, job.n_retries, job.n_preemptions, job.n_stalled)
    _require(state, min(counts) >= 0, "counts are not negative", f"{job_id}: {counts}", job_id)
    _require(
        state,
        job.n_retries <= job.max_retries,
        "no more retries than allowed",
        f"{job_id}: {job.n_retries} of {job.max_retries}",
        job_id,
    )
    if attempt is not None:
        _check_attempt(state, job, attempt)


def _check_attempt(state: State, job: Job, attempt: Attempt) -> None:
    job_id = job.job_id
    _require(
        state,
        attempt.number == job.n_attempts,
        "the attempt that holds devices is the newest",
        f"{job_id}: #{attempt.number} of {job.n_attempts}",
        job_id,
    )
    is_stopping = job.state is JobState.STOPPING
    _require(
        state, is_stopping == (attempt.stop is not None), "a job is stopping exactly when asked to", job_id, job_id
    )
    if job.state is JobState.RUNNING:
        _require(state, attempt.started_at_s is not None, "a running attempt has a start time", job_id, job_id)
    n_devices = sum(len(set(placement.devices)) for placement in attempt.placements)
    _require(
        state,
        n_devices == job.shape.n_devices,
        "a gang is whole or absent",
        f"{job_id} asked for {job.shape.n_devices} devices and holds {n_devices}",
        job_id,
    )
    rank = 0
    needs = job.shape.needs
    for placement in attempt.placements:
        n_groups = len(placement.devices) // (job.shape.devices_per_node or 1) if placement.devices else 1
        found = f"{job_id}: {placement}"
        taken = WHOLE if needs is None else needs.device_thousandths
        _require(state, placement.device_thousandths == taken, "an attempt gets the share it asked for", found, job_id)
        if needs is not None:
            n_given = (placement.cpu_milli, placement.memory_mb)
            is_enough = n_given[0] >= n_groups * needs.cpu_milli and n_given[1] >= n_groups * needs.memory_mb
            _require(state, is_enough, "an attempt gets the cores and memory it asked for", found, job_id)
        _require(state, placement.first_rank == rank, "ranks follow each other", f"{job_id}: {placement}", job_id)
        rank += len(placement.devices)
        per_node = job.shape.devices_per_node
        _require(
            state,
            per_node is None or len(placement.devices) % per_node == 0,
            "each node carries whole groups",
            f"{job_id}: {len(placement.devices)} devices on {placement.node_id}, groups of {per_node}",
            job_id,
        )


def _check_devices(state: State) -> None:
    taken: dict[tuple[str, int], str] = {}
    for job in state.jobs.values():
        for placement in job.attempt.placements if job.attempt else ():
            node = state.nodes.get(placement.node_id)
            there = {device.index: device.kind for device in node.devices} if node else {}
            for device in placement.devices:
                name = f"{placement.node_id}:{device}"
                _require(state, device in there, "placements are on existing devices", name, job.job_id)
                wanted = job.shape.accelerator
                others = () if job.shape.needs is None else job.shape.needs.or_accelerators
                fits = wanted is None or there[device] in (wanted, *others)
                _require(state, fits, "a job holds the kind of device it asked for", f"{name}: {wanted}", job.job_id)
                if placement.device_thousandths < WHOLE:
                    continue
                other = taken.setdefault((placement.node_id, device), job.job_id)
                rule = "no device in two attempts"
                _require(state, other == job.job_id, rule, f"{name} in {other} and {job.job_id}", job.job_id)


def _check_indexes(state: State) -> None:
    expected = recompute_indexes(state)
    for name in (
        "free",
        "kinds",
        "offered",
        "suspect",
        "held",
        "waiting",
        "dependents",
        "doomed",
        "arrays",
        "queue",
        "delayed",
        "deadlines",
        "holding",
        "in_use",
        "accounts",
        "stopping",
        "movable",
        "limits",
        "hours",
        "hours_in_order",
        "used_shares",
        "used_cpu",
        "used_memory",
        "n_alive",
        "grounds",
    ):
        kept, slow = getattr(state.index, name), getattr(expected, name)
        _require(state, kept == slow, f"index `{name}` equals its recomputation", f"kept {kept}, should be {slow}")


def recompute_indexes(state: State) -> Indexes:
    """The indexes from nothing but jobs and nodes."""
    slow = Indexes()
    held = {
        (placement.node_id, device)
        for job in state.jobs.values()
        if job.attempt is not None
        for placement in job.attempt.placements
        for device in (*placement.devices, *placement.kept)
    }
    index_amounts(slow, state)
    for node_id, node in state.nodes.items():
        standing = state.standing(node_id)
        closed = _closed_devices(standing)
        is_closed = standing.state in CLOSED
        offered = [d for d in node.devices if not is_closed and d.index not in closed]
        if standing.state is NodeState.SUSPECT:
            slow.suspect.add(node_id)
        free = [d.index for d in offered if (node_id, d.index) not in held]
        slow.free[node_id] = sum(2**i for i in free)
        by_kind: dict[str | None, int] = {None: sum(2**d.index for d in node.devices)}
        for kind in {d.kind for d in node.devices}:
            by_kind[kind] = sum(2**d.index for d in node.devices if d.kind == kind)
        slow.kinds[node_id] = by_kind
        slow.offered[node_id] = {kind: sum(2**d.index for d in offered if kind in (None, d.kind)) for kind in by_kind}
    _index_arrays(slow, state)
    for job in sorted(state.jobs.values(), key=lambda job: job.order):
        for account in {f"project {job.project}", f"session {job.session_id}"} - {"session None"}:
            slow.accounts.setdefault(account, {})[job.job_id] = None
        if job.finish_by_s is not None:
            slow.hours.setdefault(_hour(job, job.finish_by_s), set()).add(job.job_id)
        if job.state in HOLDING:
            slow.holding.add(job.job_id)
            if job.shape.n_devices:
                key = (job.project, job.priority_class)
                slow.in_use[key] = slow.in_use.get(key, 0) + job.shape.n_devices
            _index_holder(slow, job)
        elif job.waits_for or job.unmet is not None:
            slow.waiting.add(job.job_id)
            slow.doomed |= {job.job_id} if job.unmet is not None else set()
            for dependency in job.waits_for:
                slow.dependents.setdefault(dependency.on, set()).add(job.job_id)
        elif _is_on_hold(state, job):
            slow.held.add(job.job_id)
        elif _is_held_back(slow, job):
            pass
        elif job.not_before_s > state.clock_s:
            slow.delayed.append(Delayed(job.not_before_s, job.order, job.job_id))
        else:
            lanes = slow.queue.setdefault(job.priority, {})
            lanes.setdefault(_lane(job), []).append(Queued(job.order, job.job_id))
        if job.state is JobState.QUEUED and job.queue_timeout_s is not None and job.job_id not in slow.waiting:
            slow.deadlines.append(Deadline(job.queued_since_s + job.queue_timeout_s, job.job_id))
    slow.delayed.sort()
    slow.deadlines.sort()
    slow.limits.sort()
    slow.hours_in_order = sorted(slow.hours)
    return slow


def _is_live(state: State, name: str) -> bool:
    return name in state.jobs or any(job.array and job.array.array_id == name for job in state.jobs.values())


def _is_on_hold(state: State, job: Job) -> bool:
    return any(hold.matches(job) for hold in state.holds.values())


def _index_arrays(slow: Indexes, state: State) -> None:
    """Of each array: who is ready, and how many of those may be in the queue."""
    for job in sorted(state.jobs.values(), key=lambda job: job.order):
        if job.array is not None:
            line = slow.arrays.setdefault(job.array.array_id, ArrayLine(parallel=job.array.parallel))
            line.n_live += 1
            line.n_holding += job.state in HOLDING
            if job.state is JobState.QUEUED and not job.is_waiting and not _is_on_hold(state, job):
                line.ready.append(Queued(job.order, job.job_id))
    for line in slow.arrays.values():
        n_ready = len(line.ready)
        line.n_open = n_ready if line.parallel is None else min(n_ready, max(0, line.parallel - line.n_holding))


def _is_held_back(slow: Indexes, job: Job) -> bool:
    """Whether as many tasks of its array as may start come first."""
    line = slow.arrays[job.array.array_id] if job.array is not None else None
    return line is not None and Queued(job.order, job.job_id) not in line.ready[: line.n_open]


def _closed_devices(standing: Standing) -> set[int]:
    reserved = {device for reservation in standing.reservations for device in reservation.devices}
    return reserved | set(standing.busy_external)


def _lane(job: Job) -> Lane:
    done_s = 0.0 if job.done_s < 1 else 2.0 ** int(log2(int(job.done_s)))
    return Lane(job.shape, job.is_preemptible, job.project, job.experiment, done_s)


def _hour(job: Job, finish_by_s: float) -> Hour:
    leave_s = 0.0 if job.attempt is None or job.attempt.leave_s is None else job.attempt.leave_s
    return Hour(
        earliest_s=finish_by_s - 2.0 - max(300.0, job.grace_s),
        finish_by_s=finish_by_s,
        grace_s=job.grace_s,
        experiment=Experiment(job.project, job.experiment),
        is_held=job.state in HOLDING,
        leave_s=leave_s,
    )


def _index_holder(slow: Indexes, job: Job) -> None:
    if job.state is JobState.STOPPING:
        slow.stopping.add(job.job_id)
    elif job.is_preemptible:
        slow.movable.setdefault(job.priority, set()).add(job.job_id)
    started_at_s = job.attempt.started_at_s if job.attempt else None
    if job.state is JobState.RUNNING and started_at_s is not None:
        left_s = [] if job.max_total_s is None else [max(0.0, job.max_total_s - job.ran_s)]
        limits = [*left_s, *([] if job.timeout_s is None else [job.timeout_s])]
        slow.limits += [Deadline(started_at_s + min(limits), job.job_id)] if limits else []


def _require(state: State, is_true: bool, rule: str, found: str, job_id: str | None = None) -> None:
    if not is_true:
        recent = state.recent.get(job_id, ()) if job_id else ()
        raise InvariantViolation(rule=rule, found=found, job_id=job_id, recent=recent)
