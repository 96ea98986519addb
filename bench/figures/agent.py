"""Figures of the research loop."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore
from agent.task import Task
from agent.waiting import DirectWaiter, Interest, Wake
from bench.figure import Figure, median_of, quartiles
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec
from runtime_client.protocol import Runtime


def step_ms(quick: bool) -> Figure:
    """One wake-up of the graph without a model: from an event to the next wait, in a whole session.

    The runtime is in memory, so its own time is not in the figure; the agent's store and the graph's checkpoints are
    real files.
    """
    samples = _whole_session(n_trials=40 if quick else 150)
    return Figure(
        id="agent.step_ms",
        value=median_of(samples),
        unit="ms",
        control=None,
        n=len(samples),
        spread=quartiles(samples),
        note="whole session on 8 devices in memory; store and checkpoints on disk; spread: quartiles",
    )


class _Stopwatch:
    """A waiter that measures what happens between two waits."""

    def __init__(self, inner: DirectWaiter, samples: list[float]) -> None:
        self._inner = inner
        self._samples = samples
        self._woken_at: float | None = None

    def wait(self, interest: Interest) -> Wake:
        if self._woken_at is not None:
            self._samples.append((time.perf_counter() - self._woken_at) * 1000)
        wake = self._inner.wait(interest)
        self._woken_at = time.perf_counter() if wake.is_event else None
        return wake

    def close(self) -> None:
        self._inner.close()


def _whole_session(*, n_trials: int) -> list[float]:
    task = Task.model_validate(
        {
            "task": "bench",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": {
                "lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True, "default": 1e-3},
                "width": {"type": "int", "low": 16, "high": 512, "default": 64},
                "kind": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
            },
            "budgets": {"trials": n_trials},
        }
    )
    samples: list[float] = []
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        home = Path(folder)
        runtime = FakeRuntime(_trained, n_devices=8, is_automatic=True)
        store = AgentStore.open(home, clock=lambda: runtime.now)
        session = store.create_session(task)

        def open_waiter(inner: Runtime, since: int) -> _Stopwatch:
            return _Stopwatch(DirectWaiter(inner, since=since), samples)

        deps = SessionDeps(
            store=store,
            connect=lambda: runtime,
            open_waiter=open_waiter,
            folder=home / "sessions",
            pause=runtime.advance,
            monotonic=lambda: runtime.now,
            pid=os.getpid(),
        )
        run_session(session.session_id, deps)
        n_measured = sum(trial.value is not None for trial in store.trials(session.session_id))
    if n_measured < n_trials:
        raise RuntimeError(f"only {n_measured} of {n_trials} trials were measured")
    return samples


def _trained(spec: JobSpec) -> FakeOutcome:
    value = -abs(float(spec.parameters["lr"]) - 0.01) + ((spec.seed or 0) % 97) / 1e4
    return FakeOutcome(curves={"score": [value * part for part in (0.5, 0.8, 1.0)]}, duration_s=60.0 + value)
