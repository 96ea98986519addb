"""Builders for whole sessions in memory: a task, a scripted runtime, a store in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.task import Task
from agent.waiting import DirectWaiter
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec
from runtime_client.protocol import Runtime


def a_task(**changes: Any) -> Task:
    """A small task over one float `x` with its best at 0.7 and default at 0.2."""
    data: dict[str, Any] = {
        "task": "toy",
        "objective": {"metric": "score", "direction": "maximize"},
        "job": {"command": "train"},
        "space": {
            "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2},
            "kind": {"type": "categorical", "choices": ["a", "b"], "default": "a"},
        },
        "held_out": {"metric": "test_score", "parameters": {"test": True}},
        "budgets": {"trials": 6},
        "seeds": {"fresh": 3},
    }
    return Task.model_validate(data | changes)


def score(spec: JobSpec) -> float:
    """What the toy trains to: a parabola with a little noise that the seed fixes."""
    x = float(spec.parameters["x"])
    noise = ((spec.seed or 0) * 2654435761 % 1000) / 1e5
    return 1.0 - (x - 0.7) ** 2 + noise


def honest(spec: JobSpec) -> FakeOutcome:
    """Logs `score` over four epochs; `test_score` when asked to."""
    final = score(spec)
    curves = {"score": [final * part for part in (0.25, 0.5, 0.75, 1.0)]}
    if spec.parameters.get("test"):
        curves["test_score"] = [final - 0.01]
    return FakeOutcome(curves=curves, duration_s=10.0 + (spec.seed or 0) % 3)


@dataclass(slots=True)
class World:
    """A session with everything around it; `live` is one life of its process."""

    home: Path
    runtime: FakeRuntime
    store: AgentStore
    session_id: str

    def live(self, *, client: Runtime | None = None, **changes: Any) -> SessionState:
        used = client or self.runtime
        given: dict[str, Any] = {
            "store": self.store,
            "connect": lambda: used,
            "open_waiter": lambda runtime, since: DirectWaiter(runtime, since=since),
            "folder": self.home / "sessions",
            "pause": lambda seconds: self.runtime.advance(seconds),
            "monotonic": lambda: self.runtime.now,
            "pid": os.getpid(),
        }
        return run_session(self.session_id, SessionDeps(**(given | changes)))


def a_world(
    home: Path,
    *,
    task: Task | None = None,
    script: Callable[[JobSpec], FakeOutcome] = honest,
    n_devices: int = 2,
    night_s: float | None = None,
    night_id: str | None = None,
) -> World:
    """`night_s`: the session has to be over so long after it began."""
    runtime = FakeRuntime(script, n_devices=n_devices, is_automatic=True)
    store = AgentStore.open(home, clock=lambda: runtime.now)
    finish_by = None if night_s is None else runtime.now + night_s
    session = store.create_session(task or a_task(), finish_by=finish_by, night_id=night_id)
    return World(home=home, runtime=runtime, store=store, session_id=session.session_id)
