"""Plays the server and the world around it: rounds, events, and whatever may happen, chosen by numbers from outside.

Every event and every decision is checked on the way (`core_properties`). The numbers come from Hypothesis or from a
seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core_accounts import check_counts
from core_language import Journal, job, node
from core_properties import check_event, check_late, check_replay, checked_round, require

from runtime.model import outcome
from runtime.model.dependencies import unmet_endings
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    DevicesBusySeen,
    DevicesReserved,
    DevicesUnreserved,
    Event,
    HoldLifted,
    HoldPlaced,
    JobEnded,
    JobSubmitted,
    NodeJoined,
    NodeLeft,
    NodeStateSet,
    Recorded,
    SessionFenced,
    StopOrdered,
    Then,
)
from runtime.model.holds import Hold, HoldScope, NodeState, Reservation
from runtime.model.nouns import Job
from runtime.model.state import State, holders
from runtime.model.states import AttemptOutcome, ExitReason, JobState, OnTimeout, StopCause
from runtime.scheduling.explain import explain, feasible
from runtime.scheduling.finishing import events_from_hours
from runtime.scheduling.intent import event_of
from runtime.scheduling.policy import Policy, ProjectShare, Quota

Pick = Callable[[int], int]
"""A number from 0 to n - 1."""

SHAPES: tuple[dict[str, object], ...] = (
    {"n_devices": 1},
    {"n_devices": 1},
    {"n_devices": 2},
    {"n_devices": 2},
    {"n_devices": 3},
    {"n_devices": 5},
    {"n_devices": 1, "kind": "H100"},
    {"n_devices": 2, "kind": "H100", "per_node": 2},
    {"n_devices": 4, "kind": "H100", "per_node": 2},
    {"n_devices": 99},
)
NODES = {"a": "4xH100", "b": "3xH100", "c": "2"}
QUOTAS = (Quota(max_devices=3, project="vision"), Quota(max_devices=4, priority_class="exploratory"))
SHARES = {"vision": ProjectShare(deserved_devices=2, weight=3.0)}
WORTHS = (None, (0.01, 100.0), (0.02, 100.0), (0.5, 30.0), (0.02, 60.0))
"""Gain and cost in device-seconds."""
CLASSES = ("exploratory", "exploratory", "exploratory", "normal", "critical")


@dataclass
class World:
    pick: Pick
    policy: Policy
    journal: Journal = field(default_factory=Journal)
    now_s: float = 1000.0
    n_jobs: int = 0
    n_generations: int = 0
    over: list[tuple[str, int]] = field(default_factory=list)
    """Attempts that have ended."""
    wake_s: float | None = None
    used_s: float = 0.0
    """Device-seconds of attempts that have ended."""

    @property
    def state(self) -> State:
        return self.journal.state

    def record(self, event: Event) -> None:
        before = self.state.jobs.get(event.job_id) if isinstance(event, AttemptEnded) else None
        self.journal.record(event, self.now_s)
        check_event(self.state, self.journal.recorded)
        if before is not None and before.attempt is not None and self.state.jobs.get(before.job_id) is not before:
            n_devices = sum(len(placement.devices) for placement in before.attempt.placements)
            self.used_s += n_devices * (self.now_s - before.attempt.ordered_at_s)
        charged_s = sum(seconds for name, seconds in self.state.spent.items() if name.startswith("project "))
        require(abs(charged_s - self.used_s) < 1e-6, "all device time is charged to a project, once", charged_s)

    def choose(self, jobs: list[Job]) -> Job | None:
        return jobs[self.pick(len(jobs))] if jobs else None

    def jobs_in(self, *states: JobState) -> list[Job]:
        return [job for job in self.state.jobs.values() if job.state in states]

    def round(self) -> int:
        """Schedule and record; the number of actions."""
        n_lapsed = 0
        while lapses := self._lapses():
            n_lapsed += len(lapses)
            for lapse in lapses:
                self.record(lapse)
        decision = checked_round(self.state, now_s=self.now_s, policy=self.policy)
        for action in decision.actions:
            self.record(event_of(action))
        self.wake_s = decision.next_wake_s
        return n_lapsed + len(decision.actions)

    def _lapses(self) -> list[JobEnded | StopOrdered]:
        """What has become true of jobs; each is named once."""
        found: dict[str, JobEnded | StopOrdered] = {}
        for event in (*unmet_endings(self.state), *events_from_hours(self.state, self.now_s)):
            found.setdefault(event.job_id, event)
        return list(found.values())


def submit(world: World) -> None:
    world.n_jobs += 1
    priority = CLASSES[world.pick(len(CLASSES))]
    new = job(
        f"j{world.n_jobs}",
        priority=priority,
        is_preemptible=(None, None, None, True, False)[world.pick(5)],
        submitted_at=world.now_s,
        max_retries=world.pick(3),
        timeout_s=(None, None, None, 50.0)[world.pick(4)],
        on_timeout=(OnTimeout.END, OnTimeout.RESUME, OnTimeout.RESUME)[world.pick(3)],
        max_total_s=(None, None, None, 120.0)[world.pick(4)],
        queue_timeout_s=(None, None, None, 200.0)[world.pick(4)],
        project=("default", "default", "vision")[world.pick(3)],
        worth=WORTHS[world.n_jobs % len(WORTHS)],
        **SHAPES[world.pick(len(SHAPES))],  # type: ignore[arg-type]
    )
    world.record(JobSubmitted(job=new))


def submit_idle_work(world: World) -> None:
    world.n_jobs += 1
    worth = WORTHS[1 + world.pick(len(WORTHS) - 1)]
    new = job(f"j{world.n_jobs}", priority="exploratory", submitted_at=world.now_s, worth=worth)
    world.record(JobSubmitted(job=new))


def report_start(world: World) -> None:
    found = world.choose(world.jobs_in(JobState.STARTING, JobState.STARTING, JobState.STOPPING))
    if found is not None:
        world.record(AttemptStarted(job_id=found.job_id, attempt=found.n_attempts, pid=1))


def report_checkpoint(world: World) -> None:
    found = world.choose(world.jobs_in(JobState.RUNNING, JobState.STOPPING))
    if found is not None:
        step = (found.checkpoint_step or 0) + world.pick(3)
        world.record(CheckpointSeen(job_id=found.job_id, attempt=found.n_attempts, step=step))


def report_exit(world: World) -> None:
    found = world.choose(world.jobs_in(JobState.RUNNING, JobState.STOPPING))
    if found is None or found.attempt is None:
        return
    facts = outcome.ExitFacts(
        stop=found.attempt.stop.cause if found.attempt.stop else None,
        exit_code=(0, 0, 1, 75, 93, -9, None)[world.pick(7)],
        missing_metrics=((), (), ("loss",))[world.pick(3)],
        device_fault=(None, None, "XID 79")[world.pick(3)],
    )
    end(world, found, outcome.classify(facts), facts.exit_code)


def report_not_launched(world: World) -> None:
    found = world.choose(world.jobs_in(JobState.STARTING))
    if found is not None:
        reason = (ExitReason.BAD_PYTHON, ExitReason.LAUNCHER_UNAVAILABLE)[world.pick(2)]
        end(world, found, outcome.classify_unlaunched(None, reason, "no"))


def end(world: World, found: Job, ending: outcome.Ending, exit_code: int | None = None) -> None:
    what = outcome.disposition(found, ending.outcome, ending.reason, now_s=world.now_s, policy=world.policy)
    world.over.append((found.job_id, found.n_attempts))
    world.record(
        AttemptEnded(
            job_id=found.job_id,
            attempt=found.n_attempts,
            outcome=ending.outcome,
            exit_reason=what.exit_reason,
            exit_code=exit_code,
            evidence=ending.evidence,
            then=what.then,
            end_state=what.end_state,
            not_before_s=what.not_before_s,
        )
    )
    check_counts(world.state, world.journal.recorded)
    is_there = found.job_id in world.state.jobs
    require(is_there == (what.then is not Then.END), "ended jobs leave the state", found.job_id)
    if is_there:
        n_met = world.state.jobs[found.job_id].n_infrastructure
        require(n_met <= world.policy.max_infrastructure_retries, "free retries are bounded", (found.job_id, n_met))


def cancel(world: World) -> None:
    found = world.choose(list(world.state.jobs.values()))
    if found is None or world.pick(2):
        return
    if found.attempt is None:
        world.record(
            JobEnded(
                job_id=found.job_id, end_state=JobState.CANCELLED, exit_reason=ExitReason.CANCELLED, reason="asked"
            )
        )
    else:
        stop(world, found, StopCause.CANCEL)


def stop(world: World, found: Job, cause: StopCause) -> None:
    world.record(
        StopOrdered(
            job_id=found.job_id, attempt=found.n_attempts, cause=cause, reason="test", beneficiary=None, grace_s=1.0
        )
    )


def hang(world: World) -> None:
    found = world.choose(world.jobs_in(JobState.RUNNING))
    if found is not None:
        stop(world, found, StopCause.HANG)


def lose_node(world: World) -> None:
    ids = sorted(world.state.nodes)
    if not ids or world.pick(3):
        return
    node_id = ids[world.pick(len(ids))]
    for found in holders(world.state, node_id):
        cause = found.attempt.stop.cause if found.attempt and found.attempt.stop else None
        end(world, found, outcome.classify_lost(cause, "node gone"))
    generation = world.state.nodes[node_id].generation
    world.record(NodeLeft(node_id=node_id, generation=generation, reason="silent"))


def join_node(world: World) -> None:
    """A node comes, or registers again with its attempts still running."""
    node_id = sorted(NODES)[world.pick(len(NODES))]
    world.n_generations += 1
    world.record(NodeJoined(node=node(node_id, NODES[node_id], generation=world.n_generations)))


def pass_time(world: World) -> None:
    steps = (1.0, 10.0, 100.0)
    which = world.pick(4)
    if which < 3:
        world.now_s += steps[which]
    elif world.wake_s is not None:
        world.now_s = max(world.now_s, world.wake_s)


def report_late(world: World) -> None:
    if not world.over:
        return
    job_id, attempt = world.over[world.pick(len(world.over))]
    reports: tuple[Event, ...] = (
        AttemptStarted(job_id=job_id, attempt=attempt, pid=1),
        CheckpointSeen(job_id=job_id, attempt=attempt, step=10_000),
        StopOrdered(
            job_id=job_id, attempt=attempt, cause=StopCause.CANCEL, reason="late", beneficiary=None, grace_s=1.0
        ),
        AttemptEnded(
            job_id=job_id,
            attempt=attempt,
            outcome=AttemptOutcome.FAILED,
            exit_reason=ExitReason.CODE_ERROR,
            exit_code=1,
            evidence=None,
            then=Then.END,
            end_state=JobState.FAILED,
        ),
    )
    event = reports[world.pick(len(reports))]
    at_s = world.state.clock_s
    late = Recorded(seq=world.state.last_seq + 1, at_s=at_s, actor="test", on_behalf_of=None, project=None, event=event)
    check_late(world.state, late)


def fence(world: World) -> None:
    world.record(SessionFenced(session_id="s1", fence=1 + world.pick(5)))


HOLDS = (
    (HoldScope.ALL, None),
    (HoldScope.CLASS, "exploratory"),
    (HoldScope.CLASS, "normal"),
    (HoldScope.PROJECT, "default"),
)


def pause(world: World) -> None:
    scope, name = HOLDS[world.pick(len(HOLDS))]
    world.record(
        HoldPlaced(hold=Hold(scope=scope, name=name, reason="test", placed_at_s=world.now_s, placed_by="test"))
    )
    for found in world.jobs_in(JobState.STARTING, JobState.RUNNING):
        if world.state.hold_on(found) is not None:
            stop(world, found, StopCause.PAUSE)


def unpause(world: World) -> None:
    for scope, name in HOLDS:
        if world.pick(2):
            world.record(HoldLifted(scope=scope, name=name))


def mark_node(world: World) -> None:
    node_id = sorted(NODES)[world.pick(len(NODES))]
    state = (*NodeState, NodeState.HEALTHY, NodeState.HEALTHY)[world.pick(len(NodeState) + 2)]
    world.record(NodeStateSet(node_id=node_id, state=state, reason="test"))
    if state is NodeState.DRAINING:
        for found in holders(world.state, node_id):
            if found.state is not JobState.STOPPING:
                stop(world, found, StopCause.DRAIN)


def reserve(world: World) -> None:
    """Devices that may not even be there; or an end of such reservations."""
    node_id = sorted(NODES)[world.pick(len(NODES))]
    devices = ((0,), (1, 2), (0, 3))[world.pick(3)]
    if world.pick(2):
        held = Reservation(devices=devices, holder="alice", until_s=world.now_s + 50)
        world.record(DevicesReserved(node_id=node_id, reservation=held))
    else:
        world.record(DevicesUnreserved(node_id=node_id, devices=devices, reason="test"))


def see_foreign_use(world: World) -> None:
    node_id = sorted(NODES)[world.pick(len(NODES))]
    world.record(DevicesBusySeen(node_id=node_id, devices=((), (), (1,), (0, 2))[world.pick(4)]))


def clear_the_way(world: World) -> None:
    """Everything that people put in the way of work is taken back."""
    for hold in tuple(world.state.holds.values()):
        world.record(HoldLifted(scope=hold.scope, name=hold.name))
    for standing in tuple(world.state.standings.values()):
        world.record(NodeStateSet(node_id=standing.node_id, state=NodeState.HEALTHY, reason=""))
        world.record(DevicesUnreserved(node_id=standing.node_id, devices=standing.reserved, reason="test"))
        world.record(DevicesBusySeen(node_id=standing.node_id, devices=()))
    require(not world.state.standings and not world.state.holds, "what is taken back is gone", world.state)


Command = Callable[[World], None]
COMMANDS: tuple[Command, ...] = (
    submit,
    submit,
    submit,
    submit,
    report_start,
    report_start,
    report_start,
    report_checkpoint,
    report_exit,
    report_exit,
    report_exit,
    report_not_launched,
    cancel,
    hang,
    lose_node,
    join_node,
    pass_time,
    pass_time,
    report_late,
    fence,
)
IDLE_WORK_COMMANDS = (submit_idle_work, submit_idle_work, submit_idle_work, report_start, pass_time)
OPERATOR_COMMANDS = (pause, unpause, unpause, mark_node, mark_node, reserve, see_foreign_use)


def begin(pick: Pick, policy: Policy | None) -> World:
    chosen = Policy(
        min_run_s=(0.0, 0.0, 20.0)[pick(3)],
        quotas=((), QUOTAS)[pick(2)],
        projects=({}, SHARES)[pick(2)],
        fair_share_max_s=(604800.0, 100.0, 0.0)[pick(3)],
    )
    world = World(pick=pick, policy=policy or chosen)
    for node_id in NODES:
        world.n_generations += 1
        world.record(NodeJoined(node=node(node_id, NODES[node_id], generation=world.n_generations)))
    return world


def run(
    pick: Pick,
    n_commands: int,
    policy: Policy | None = None,
    *,
    has_operator: bool = False,
    more: Sequence[Command] = (),
) -> World:
    """A random life, every step of it checked, until every job that can has ended.

    Args:
        has_operator: whether somebody pauses, drains, reserves, and at the end takes all of it back.
        more: further commands.
    """
    world = begin(pick, policy)
    commands = (*COMMANDS, *(OPERATOR_COMMANDS if has_operator else ()), *more)
    for _ in range(n_commands):
        commands[world.pick(len(commands))](world)
        if world.pick(3):
            world.round()
    for job_id in world.state.jobs:
        explain(world.state, job_id, now_s=world.now_s, policy=world.policy)
    check_replay(world.state, world.journal.recorded)
    clear_the_way(world)
    drain(world)
    check_replay(world.state, world.journal.recorded)
    return world


def drain(world: World) -> None:
    """Nothing new arrives, everything that runs succeeds: every feasible job must end."""
    limit = 6 * len(world.state.jobs) + 20
    for _ in range(limit):
        n_actions = world.round()
        for found in world.jobs_in(JobState.STARTING):
            world.record(AttemptStarted(job_id=found.job_id, attempt=found.n_attempts, pid=1))
        moved = settle(world)
        if n_actions or moved:
            continue
        if world.wake_s is None:
            break
        world.now_s = world.wake_s
    left = [found for found in world.state.jobs.values() if _can_run(world, found)]
    require(not left, "every feasible job ends", [found.job_id for found in left])


def _can_run(world: World, found: Job) -> bool:
    """Whether it fits, and all that it waits for do."""
    if feasible(world.state, found.shape) is not None or not _has_quota(world, found):
        return False
    names = {dependency.on for dependency in found.waits_for}
    others = (
        job for job in world.state.jobs.values() if job.job_id in names or (job.array and job.array.array_id in names)
    )
    return all(_can_run(world, other) for other in others)


def _has_quota(world: World, found: Job) -> bool:
    covering = [q for q in world.policy.quotas if q.covers(found.project, found.priority_class)]
    return all(found.shape.n_devices <= quota.max_devices for quota in covering)


def settle(world: World) -> int:
    """End the oldest attempt that runs, and all that are leaving; how many."""
    over = [*world.jobs_in(JobState.STOPPING), *world.jobs_in(JobState.RUNNING)[:1]]
    for found in over:
        cause = found.attempt.stop.cause if found.attempt and found.attempt.stop else None
        exit_code = 0 if cause is None else 75
        end(world, found, outcome.classify(outcome.ExitFacts(stop=cause, exit_code=exit_code)))
    return len(over)
