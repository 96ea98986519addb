"""A session of the lab whose process dies at a chosen write to the store or to the runtime, and the life after it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from lab_worlds import a_task

from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView, TrialView
from agent.waiting import DirectWaiter
from nightlab.lab.background import Background
from nightlab.lab.cluster import LabCluster
from nightlab.lab.runtime import SimulatedRuntime
from nightlab.lab.synthetic import SyntheticWorld
from nightlab.lab.world import Course
from runtime.simulator.cluster import parse_nodes
from runtime_client.models import JobSpec

WRITES = ("submit_many", "cancel", "create_run", "update_run", "log_artifact")
"""What a session asks the runtime to write; each is a point before it was sent, and one after it was done."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, nothing runs after it."""


@dataclass(slots=True)
class Points:
    """Counts the points at which a process may die, and dies at one of them."""

    dies_at: int | None = None
    n: int = 0
    kinds: list[str] = field(default_factory=list)

    def reach(self, kind: str) -> None:
        self.n += 1
        self.kinds.append(kind)
        if self.n == self.dies_at:
            raise Killed


class CountingRuntime:
    """The runtime as one process of a session sees it."""

    def __init__(self, runtime: SimulatedRuntime, points: Points) -> None:
        self._runtime = runtime
        self._points = points

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._runtime, name)
        if name not in WRITES:
            return method

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._points.reach(f"before {name}")
            answer = method(*args, **kwargs)
            self._points.reach(f"after {name}")
            return answer

        return call


@contextmanager
def counted_commits(engine: sa.Engine, points: Points) -> Iterator[None]:
    """Each transaction of the store is a point: it is lost when the process dies there."""

    def before(_connection: sa.Connection) -> None:
        points.reach("commit")

    sa.event.listen(engine, "commit", before)
    try:
        yield
    finally:
        sa.event.remove(engine, "commit", before)


@dataclass(slots=True)
class KillWorld:
    """A cluster with urgent work of others, that goes on whatever becomes of the session's process."""

    home: Path
    runtime: SimulatedRuntime
    session_id: str = "s1"
    beside: AgentStore | None = None
    """The store as others see it while a process lives; opening one anew is dear."""

    def life(self, points: Points) -> SessionState | None:
        """One process: opens everything anew; None: it was killed."""
        store, self.beside = self._store(), self._store()
        client: Any = CountingRuntime(self.runtime, points)
        deps = SessionDeps(
            store=store,
            connect=lambda: client,
            open_waiter=lambda runtime, since: DirectWaiter(runtime, since=since),
            folder=self.home / "sessions",
            pause=lambda seconds: self.runtime.cluster.advance_to(self.runtime.cluster.now + seconds),
            monotonic=lambda: self.runtime.cluster.now,
            pid=os.getpid(),
        )
        try:
            with counted_commits(store.engine, points):
                return run_session(self.session_id, deps)
        except Killed:
            return None
        finally:
            store.close()
            self.beside.close()
            self.beside = None

    @property
    def has_ended(self) -> bool:
        """Asked while a process lives, for only then time passes."""
        assert self.beside is not None
        return self.beside.session(self.session_id).ended_at is not None

    def left(self) -> tuple[SessionView, list[TrialView]]:
        """What the store says."""
        store = self._store()
        try:
            return store.session(self.session_id), store.trials(self.session_id)
        finally:
            store.close()

    def _store(self) -> AgentStore:
        return AgentStore.open(self.home, clock=lambda: self.runtime.cluster.now)


def a_kill_world(home: Path, *, n_trials: int) -> KillWorld:
    task = a_task(
        budgets={"trials": n_trials},
        held_out={"metric": "test_score", "looks": 1},
        seeds={"fresh": 4},
    )
    world, background = SyntheticWorld("coarse", task), Background(every_s=150.0, run_s=100.0, n_devices=1)

    def course(spec: JobSpec) -> Course:
        return world.course(spec, 0) if spec.session is not None else background.course(spec)

    runtime = SimulatedRuntime(LabCluster(parse_nodes("1x3"), course), is_automatic=True)
    made = KillWorld(home=home, runtime=runtime)
    store = made._store()
    store.create_session(task)
    store.close()
    background.arrive(runtime.cluster, lambda: made.has_ended)
    return made
