"""Nights of a sweep in virtual time: a real sweep file, the agent's own nights and sessions, its store, the scheduler.

Pretended are the clock, the jobs, the machine that may sleep or lose everything, a cron that starts what is due while
the machine is awake, and the agent service, which gives every running night and session a life when it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path

from agent.checkpoints import quiet_environment
from agent.frontdoors.nightly import night_deps
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView, TrialView
from agent.sweeps.beginning import begin_night
from agent.sweeps.prepare import prepare_night
from agent.sweeps.running import run_night
from agent.sweeps.starts import missed_starts, next_starts
from agent.sweeps.views import NightState, NightView
from agent.task_file import load_task
from runtime.model.nouns import Node
from runtime.scheduling.policy import Policy
from runtime.simulator.workload import Costs
from runtime_client.models import JobSpec, JobView
from runtime_client.protocol import Runtime

from .cluster import LabCluster
from .people import PersonsJob, course_of, submit_all, waits_by_name
from .runtime import SimulatedRuntime
from .sessions import session_life
from .stage import Actor, Stage
from .world import Course

LONG_LOOK_S = 600.0
"""A night looks again after so long where nothing of it changes; at its hour and when a session ends, at once."""
CRON_S = 60.0
"""A start that is so late was slept through: cron makes up for nothing."""

RuntimeChange = Callable[[SimulatedRuntime], Runtime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From an instant to another, seconds since the epoch."""

    begin: float
    end: float

    def has(self, at: float) -> bool:
        return self.begin <= at < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """A cluster over some days: who works on it, and what befalls it."""

    span: Span
    nodes: Sequence[Node]
    people: Sequence[PersonsJob] = ()
    sleeps: Sequence[Span] = ()
    """When the machine is suspended."""
    kills: Sequence[Span] = ()
    """When everything is killed, and when it is up again."""
    policy: Policy = field(default_factory=Policy)
    costs: Costs = field(default_factory=Costs)

    def begin(self, course: Callable[[JobSpec], Course]) -> LabCluster:
        """The cluster at the beginning of these days, with everything to come but what is killed."""
        cluster = LabCluster(
            self.nodes,
            lambda spec: course_of(spec) if spec.session is None else course(spec),
            policy=self.policy,
            costs=self.costs,
            start_at=self.span.begin,
        )
        submit_all(cluster, self.people)
        for sleep in self.sleeps:
            cluster.plan(sleep.begin, partial(cluster.suspend, sleep.end))
        return cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    """A sweep that cron starts."""

    file: Path
    cron: str
    zone: tzinfo
    """Of cron: the machine's."""
    course: Callable[[JobSpec], Course]
    """What a trial's job does."""
    by_hand: Sequence[float] = ()
    """Starts beside those of cron, at any time."""
    change: RuntimeChange = lambda runtime: runtime
    """What is to be different in the runtime that nights and sessions see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivedNights:
    """All that these days left."""

    nights: tuple[NightView, ...]
    """Oldest first, with their cells; also those that were skipped."""
    sessions: tuple[SessionView, ...]
    trials: tuple[TrialView, ...]
    jobs: tuple[JobView, ...]
    """Of the sessions, oldest first."""
    missed: tuple[float, ...]
    """Starts that did not come, as `nightlab sweep list` tells them."""
    waits: Mapping[str, float]
    """Seconds that each job of people waited for its start."""
    said: tuple[str, ...]
    """What the nights and their starts wrote into their logs."""


def live_nights(days: Days, nightly: Nightly, home: Path) -> LivedNights:
    """Live through the days.

    Args:
        home: An empty folder, for the agent's store and the pages.

    Raises:
        LabError: nothing goes on.
        SweepError: the sweep file can not be used.
    """
    quiet_environment()
    cluster = days.begin(nightly.course)
    store = AgentStore.open(home, clock=lambda: cluster.now)
    try:
        machine = _Machine(days, nightly, SimulatedRuntime(cluster), store, home)
        machine.live()
        return machine.left()
    finally:
        store.close()


def live_without_nights(days: Days) -> Mapping[str, float]:
    """How long people wait in the same days when there is no sweep: seconds by the name of the job."""
    cluster = days.begin(course_of)
    for kill in days.kills:
        cluster.plan(kill.begin, partial(cluster.kill_all, kill.end))
    cluster.advance_to(days.span.end)
    return waits_by_name(cluster)


class _Machine:
    """Cron, the agent service, and the processes that they start."""

    def __init__(self, days: Days, nightly: Nightly, runtime: SimulatedRuntime, store: AgentStore, home: Path) -> None:
        self._days = days
        self._nightly = nightly
        self._runtime = runtime
        self._seen = nightly.change(runtime)
        self._cluster = runtime.cluster
        self._store = store
        self._nights = NightStore(store)
        self._home = home
        self._stage = Stage(runtime.cluster)
        self._starts: dict[str, Actor] = {}
        """Living processes of `nightlab sweep run`, by a name of the start."""
        self._of_nights: dict[str, Actor] = {}
        self._of_sessions: dict[str, Actor] = {}
        self._said: list[str] = []
        self._started: list[float] = []
        for kill in days.kills:
            self._cluster.plan(kill.begin, partial(self._kill_all, kill.end))

    def live(self) -> None:
        self._stage.add("cron", self._cron)
        self._stage.run()

    def left(self) -> LivedNights:
        sessions = tuple(self._store.sessions())
        found = [self._nights.night(one.night_id) for one in self._nights.nights(self._sweep_name())]
        span, nightly = self._days.span, self._nightly
        missed = missed_starts(nightly.cron, nightly.zone, span.begin, span.end, started=self._started)
        jobs = [job for one in sessions for job in self._runtime.jobs(session_id=one.session_id, limit=1_000_000)]
        return LivedNights(
            nights=tuple(sorted(found, key=lambda night: night.number)),
            sessions=sessions,
            trials=tuple(trial for one in sessions for trial in self._store.trials(one.session_id)),
            jobs=tuple(sorted(jobs, key=lambda job: job.submitted_at)),
            missed=tuple(missed),
            waits=waits_by_name(self._cluster),
            said=tuple(self._said),
        )

    def _sweep_name(self) -> str:
        return prepare_night(self._nightly.file, read_task=load_task, now=self._cluster.now).sweep.sweep

    # Cron.

    def _cron(self, actor: Actor) -> None:
        span, nightly = self._days.span, self._nightly
        n_days = int((span.end - span.begin) // 3600.0) + 1
        due = [at for at in next_starts(nightly.cron, nightly.zone, span.begin, n_days) if at < span.end]
        for at in sorted([*due, *nightly.by_hand]):
            actor.pause(max(at - self._cluster.now, 0.0))
            if self._cluster.now - at < CRON_S:
                self._started.append(self._cluster.now)
                self._process(self._starts, f"start {at:.0f}", self._sweep_run)
        actor.pause(span.end - self._cluster.now)

    def _sweep_run(self, actor: Actor) -> None:
        """As `nightlab sweep run` does, up to where it follows the night."""

        def pause(seconds: float) -> None:
            self._wake(self._of_nights)
            is_near = any(night.state is NightState.STOPPING for night in self._running())
            actor.pause(seconds if is_near else LONG_LOOK_S)

        prepared = prepare_night(self._nightly.file, read_task=load_task, now=self._cluster.now)
        begin_night(self._nights, prepared, pause=pause, say=self._said.append)
        self._keep_alive()

    # The agent service.

    def _keep_alive(self) -> None:
        for night_id in self._nights.runnable():
            self._process(self._of_nights, night_id, partial(self._night, night_id))
        for session_id in self._store.runnable():
            live = session_life(self._store, self._seen, self._stage, session_id, self._home)
            self._process(self._of_sessions, session_id, live)

    def _process(self, living: dict[str, Actor], name: str, live: Callable[[Actor], None]) -> None:
        if name in living:
            return

        def until_it_ends(actor: Actor) -> None:
            try:
                live(actor)
            finally:
                if living.get(name) is actor:
                    del living[name]
                    self._wake(self._of_nights, self._starts)

        living[name] = self._stage.add(name, until_it_ends)

    def _wake(self, *living: dict[str, Actor]) -> None:
        """Have them look again at once."""
        for actor in (actor for some in living for actor in some.values()):
            actor.wake_at(self._cluster.now)

    def _kill_all(self, until_s: float) -> None:
        for living in (self._starts, self._of_nights, self._of_sessions):
            for actor in living.values():
                actor.kill()
            living.clear()
        self._cluster.kill_all(until_s)
        self._keep_alive()

    # Nights.

    def _running(self) -> list[NightView]:
        return [self._nights.night(night_id) for night_id in self._nights.runnable()]

    def _night(self, night_id: str, actor: Actor) -> None:
        deps = night_deps(
            self._home,
            self._store,
            connect=lambda: self._seen,
            say=self._said.append,
            should_leave=lambda: self._stage.is_leaving,
            pause=partial(self._night_waits, actor, night_id),
        )
        run_night(night_id, deps)

    def _night_waits(self, actor: Actor, night_id: str, seconds: float) -> None:
        """As long as it asks for where something is about to change; else until something does, or its hour comes."""
        self._keep_alive()
        night = self._nights.night(night_id)
        stopping = [cell.session_id for cell in night.cells if self._is_stopping(cell.session_id)]
        for session_id in stopping:
            if session_id in self._of_sessions:
                self._of_sessions[session_id].wake_at(self._cluster.now)
        left_s = LONG_LOOK_S if night.finish_by is None else night.finish_by - self._cluster.now
        is_near = bool(stopping) or night.state is NightState.STOPPING or left_s <= 0.0
        actor.pause(seconds if is_near else min(left_s, LONG_LOOK_S))

    def _is_stopping(self, session_id: str | None) -> bool:
        return session_id is not None and self._store.session(session_id).state is SessionState.STOPPING
