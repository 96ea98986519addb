"""Worlds with a trap in them: what a configuration is truly worth is known, and so is every way to be fooled.

Each trap is a whole session in memory: the real graph, the real store, the shipped fake runtime. A trap's test also
shows that it is one: a naive rule, written out beside it, falls in on the same trials.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from agent_worlds import World, a_task, a_world

from agent.store.views import FinalResult, ParamValue, Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

NOISE = 0.05
"""Standard deviation of one evaluation, where a world has noise."""
SEARCH_SEED = 0
"""The default of `seeds.search`."""
DEFAULT_X = 0.2


def trap_task(**changes: Any) -> Task:
    """One float `x` in 0 to 1, default 0.2; no held-out metric; enough fresh seeds for a strong effect to show."""
    given: dict[str, Any] = {
        "space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": DEFAULT_X}},
        "held_out": None,
        "budgets": {"trials": 12},
        "seeds": {"fresh": 8, "max_pairs": 16},
    }
    return a_task(**(given | changes))


def noise(*key: object) -> float:
    """One standard normal draw, fixed by its key."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return float(np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal())


def x_of(spec: JobSpec) -> float:
    return float(spec.parameters["x"])


def measured(spec: JobSpec, value: float, *, metric: str = "score") -> FakeOutcome:
    """A job that logs one value at the end of a rising curve and ends well."""
    return FakeOutcome(curves={metric: [value - 0.2, value - 0.1, value]}, duration_s=10.0 + (spec.seed or 0) % 3)


def scripted(value: Callable[[float, int], float], *, metric: str = "score") -> Callable[[JobSpec], FakeOutcome]:
    """Jobs whose metric is a function of `x` and the seed."""
    return lambda spec: measured(spec, value(x_of(spec), spec.seed or 0), metric=metric)


def ended(home: Path, script: Callable[[JobSpec], FakeOutcome], *, task: Task | None = None) -> World:
    """A session that has run to its end; its state is the caller's to judge."""
    world = a_world(home, task=task or trap_task(), script=script)
    world.live()
    return world


def result_of(world: World) -> FinalResult:
    session = world.store.session(world.session_id)
    assert session.state is SessionState.FINISHED, session.message
    assert session.result is not None
    return session.result


def trials_of(world: World, *purposes: Purpose) -> list[TrialView]:
    found = world.store.trials(world.session_id)
    return [trial for trial in found if not purposes or trial.purpose in purposes]


def search_values(world: World) -> dict[float, float]:
    """What the search measured, by `x`."""
    return {
        number(trial.params["x"]): trial.value
        for trial in trials_of(world, Purpose.SEARCH)
        if trial.state is TrialState.MEASURED and trial.value is not None
    }


def number(value: ParamValue) -> float:
    assert isinstance(value, int | float)
    return float(value)


def text_of(world: World) -> str:
    return "\n".join(line.text for line in world.store.activity(world.session_id, limit=2000))


def naive_keep_if_better(values: Sequence[float], baseline: float) -> float | None:
    """What keep-if-better calls an improvement: the greatest value above the baseline on one seed each."""
    above = [value for value in values if value > baseline]
    return max(above) if above else None


def all_finite(world: World) -> bool:
    """Whether every measured trial has a finite value."""
    kept = [trial.value for trial in trials_of(world) if trial.state is TrialState.MEASURED]
    return all(value is not None and math.isfinite(value) for value in kept)
