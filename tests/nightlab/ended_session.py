"""A home in which a whole session has run to its end, on a scripted runtime in memory."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.task import Task
from agent.waiting import DirectWaiter
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec

TASK = {
    "task": "toy",
    "description": "warmup of the optimizer",
    "objective": {"metric": "score", "direction": "maximize"},
    "job": {"command": "train"},
    "space": {
        "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2},
        "kind": {"type": "categorical", "choices": ["a", "b"], "default": "a"},
    },
    "budgets": {"trials": 6},
    "seeds": {"fresh": 3},
}


def ended_session(home: Path) -> None:
    """Session s1 of `home`."""
    runtime = FakeRuntime(_parabola, is_automatic=True)
    with closing(AgentStore.open(home, clock=lambda: runtime.now)) as store:
        session = store.create_session(Task.model_validate(TASK))
        deps = SessionDeps(
            store=store,
            connect=lambda: runtime,
            open_waiter=lambda client, since: DirectWaiter(client, since=since),
            folder=home / "sessions",
            pause=runtime.advance,
            monotonic=lambda: runtime.now,
            pid=os.getpid(),
        )
        run_session(session.session_id, deps)


def _parabola(spec: JobSpec) -> FakeOutcome:
    noise = ((spec.seed or 0) * 2654435761 % 1000) / 1e5
    return FakeOutcome(curves={"score": [1.0 - (float(spec.parameters["x"]) - 0.7) ** 2 + noise]})
