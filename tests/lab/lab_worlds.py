"""Builders for the lab: a small task, a cluster whose jobs do what a table of courses says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.task import Task
from nightlab.lab.cluster import LabCluster
from nightlab.lab.runtime import SimulatedRuntime
from nightlab.lab.world import Course
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.workload import Costs
from runtime_client.models import JobSpec


def a_task(**changes: Any) -> Task:
    data: dict[str, Any] = {
        "task": "toy",
        "objective": {"metric": "score", "direction": "maximize"},
        "job": {"command": "train"},
        "space": {
            "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2},
            "kind": {"type": "categorical", "choices": ["a", "b"], "default": "a"},
        },
        "budgets": {"trials": 6},
        "seeds": {"fresh": 3},
    }
    return Task.model_validate(data | changes)


def a_course(run_s: float = 100.0, **changes: Any) -> Course:
    return Course(**({"run_s": run_s, "curves": {"score": (0.1, 0.2, 0.3, 0.4)}} | changes))


def a_spec(name: str = "a", **changes: Any) -> JobSpec:
    """A job; `name` goes into its parameters, so that `a_runtime` can tell its course."""
    data: dict[str, Any] = {"experiment_name": "toy", "command": "train", "parameters": {"name": name}}
    return JobSpec.model_validate(data | changes)


def a_runtime(
    courses: Mapping[str, Course] | None = None, *, nodes: str = "1x2", costs: Costs | None = None
) -> SimulatedRuntime:
    known = courses or {}
    cluster = LabCluster(
        parse_nodes(nodes), lambda spec: known.get(str(spec.parameters.get("name")), a_course()), costs=costs
    )
    return SimulatedRuntime(cluster)


def advance(runtime: SimulatedRuntime, seconds: float) -> None:
    runtime.cluster.advance_to(runtime.cluster.now + seconds)
