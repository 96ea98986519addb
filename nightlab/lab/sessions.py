"""Whole sessions in the lab: the agent's own loop and store around a `SimulatedRuntime`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.checkpoints import quiet_environment
from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.store.views import SessionView, TrialView
from agent.task import Task
from runtime.model.nouns import Node
from runtime.scheduling.policy import Policy
from runtime.simulator.workload import Costs
from runtime_client.models import JobSpec, JobView
from runtime_client.protocol import Runtime

from .background import Background
from .cluster import LabCluster
from .runtime import SimulatedRuntime
from .stage import Actor, Stage
from .world import Course, World

DepsChange = Callable[[SessionDeps, Actor], SessionDeps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """On what, and beside what, the sessions of a lab run."""

    task: Task
    world: World
    nodes: Sequence[Node]
    policy: Policy = field(default_factory=Policy)
    costs: Costs = field(default_factory=Costs)
    background: Background | None = None
    """Urgent work of others; None: the sessions are alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A session that has ended, with all that it left."""

    draw: int
    session: SessionView
    trials: tuple[TrialView, ...]
    jobs: tuple[JobView, ...]
    span_s: float
    """From its first submission to its end, in virtual seconds."""


def live_together(
    setting: Setting, draws: Sequence[int], home: Path, *, change: DepsChange | None = None
) -> list[Lived]:
    """Run a session for each draw, all on one cluster, to their ends.

    Args:
        home: An empty folder for the agent's store and the graphs' checkpoints.
        change: What is to be different in what surrounds a session.

    Raises:
        LabError: they can not go on.
    """
    quiet_environment()
    draw_of: dict[str, int] = {}
    cluster = LabCluster(
        setting.nodes,
        lambda spec: _course(setting, draw_of, spec),
        policy=setting.policy,
        costs=setting.costs,
    )
    runtime = SimulatedRuntime(cluster)
    store = AgentStore.open(home, clock=lambda: cluster.now)
    stage = Stage(cluster)
    try:
        for draw in draws:
            task = setting.task.model_copy(update={"sampler_seed": setting.task.sampler_seed + draw})
            session = store.create_session(task)
            draw_of[session.session_id] = draw
            stage.add(session.session_id, session_life(store, runtime, stage, session.session_id, home, change))
        if setting.background is not None:
            setting.background.arrive(cluster, lambda: _all_ended(store))
        stage.run()
        return [_lived(store, runtime, session_id, draw) for session_id, draw in draw_of.items()]
    finally:
        store.close()


def live_alone(setting: Setting, draw: int, home: Path, *, change: DepsChange | None = None) -> Lived:
    """Run one session on a cluster of its own."""
    return live_together(setting, [draw], home, change=change)[0]


def session_life(
    store: AgentStore,
    runtime: Runtime,
    stage: Stage,
    session_id: str,
    home: Path,
    change: DepsChange | None = None,
) -> Callable[[Actor], None]:
    """What a process of a session does."""

    def live(actor: Actor) -> None:
        deps = SessionDeps(
            store=store,
            connect=lambda: runtime,
            open_waiter=lambda _runtime, _since: actor,
            folder=home / "sessions",
            should_leave=lambda: stage.is_leaving,
            pause=actor.pause,
            monotonic=lambda: stage.cluster.now,
            pid=os.getpid(),
        )
        run_session(session_id, deps if change is None else change(deps, actor))

    return live


def _course(setting: Setting, draw_of: dict[str, int], spec: JobSpec) -> Course:
    if spec.session is not None:
        return setting.world.course(spec, draw_of[spec.session.session_id])
    assert setting.background is not None, "without sessions only the background submits"
    return setting.background.course(spec)


def _all_ended(store: AgentStore) -> bool:
    return all(session.ended_at is not None for session in store.sessions())


def _lived(store: AgentStore, runtime: SimulatedRuntime, session_id: str, draw: int) -> Lived:
    session = store.session(session_id)
    jobs = tuple(runtime.jobs(session_id=session_id, limit=1_000_000))
    ended = session.ended_at or runtime.cluster.now
    return Lived(
        draw=draw,
        session=session,
        trials=tuple(store.trials(session_id)),
        jobs=jobs,
        span_s=ended - min((job.submitted_at for job in jobs), default=ended),
    )
