"""What a report is made from: a session's rows, its jobs, their metrics. Frozen; gathered by `gather`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.planner.seeds import is_fresh
from agent.store.views import (
    ActivityView,
    LookView,
    ModelCallView,
    PlanView,
    Purpose,
    SessionView,
    TrialState,
    TrialView,
)
from agent.task import Direction, Task
from runtime_client.models import JobView, MetricPoint, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    session: SessionView
    task: Task
    trials: tuple[TrialView, ...]
    activity: tuple[ActivityView, ...] = ()
    looks: tuple[LookView, ...] = ()
    """The ledger of the held-out metric."""
    plan: PlanView | None = None
    """The newest revision of the plan; None: there is none yet."""
    jobs: tuple[JobView, ...] = ()
    """The session's jobs, and those that its jobs were preempted for."""
    nodes: tuple[NodeView, ...] = ()
    points: Mapping[str, tuple[MetricPoint, ...]] = field(default_factory=dict)
    """Metrics by job id, in the order of arrival; a job may be missing."""
    model_calls: tuple[ModelCallView, ...] = ()
    """Of the session's language model, oldest first."""
    mlflow_url: str | None = None
    """Where the session's MLflow run is shown."""
    patch: bytes | None = None
    """What the best code changes, as a patch; None: it is the base, or could not be read."""
    patch_problem: str = ""
    """Why it could not be read."""
    made_at: float
    """Seconds since the epoch."""

    @property
    def is_maximized(self) -> bool:
        return self.task.objective.direction is Direction.MAXIMIZE

    @property
    def search_trials(self) -> tuple[TrialView, ...]:
        """In the order of their numbers."""
        return tuple(sorted((t for t in self.trials if t.purpose is Purpose.SEARCH), key=lambda t: t.number))

    @property
    def n_devices(self) -> int:
        return sum(len(node.devices) for node in self.nodes)


def is_measured(trial: TrialView) -> bool:
    """It has a value that can be compared."""
    return trial.state is TrialState.MEASURED and trial.value is not None and math.isfinite(trial.value)


def best_trial(facts: ReportInput) -> TrialView | None:
    """The search trial of the session's best configuration, or the one with the best single value so far."""
    measured = [t for t in facts.search_trials if is_measured(t)]
    result = facts.session.result
    chosen = [t for t in measured if result is not None and t.configuration == result.best_configuration]
    if chosen or not measured:
        return chosen[0] if chosen else None
    sign = -1.0 if facts.is_maximized else 1.0
    return min(measured, key=lambda t: (sign * (t.value or 0.0), t.number))


def default_trial(facts: ReportInput) -> TrialView | None:
    """The search trial that ran the default configuration."""
    return next((t for t in facts.search_trials if t.suggested_by == "default"), None)


def replicates(facts: ReportInput, configuration: str) -> dict[int, float]:
    """Value by seed of a configuration's replicates with fresh seeds; those of the race are no part of the end."""
    return {
        t.seed: t.value
        for t in facts.trials
        if t.purpose is Purpose.REPLICATE
        and t.configuration == configuration
        and is_fresh(facts.task, t.seed)
        and is_measured(t)
        and t.value is not None
    }
