"""Parts of the task file from a small probe to the big run: what ends early, what is re-tested, what is known before.

halving: {factor: 3, first: 1}
ladder: [{name: full, fidelity: 100, devices: 8, priority_class: normal}]
also: [{metric: tokens_per_s, direction: maximize}]
constraints: [{metric: latency_ms, at_most: 30}]
feasibility: {probe: {parameters: {max_steps: 20}, timeout_minutes: 2}, memory: {limit_mb: 80000}}
earlier: {mlflow: [{experiment: digits}]}
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from agent.task_part import Direction, Finite, Positive, TaskPart
from runtime_client.models.spec import NAME_PATTERN

Metric = Annotated[str, Field(min_length=1, max_length=250)]


class Halving(TaskPart):
    """Trials of the search that are weak for how far they have come are ended, and free their device at once."""

    factor: float = Field(default=3.0, gt=1, le=100, allow_inf_nan=False)
    """At each milestone one in so many goes on; milestones lie so many times further apart each."""
    first: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Step of the objective's curve at which trials are compared first."""


class Rung(TaskPart):
    """More training, on more devices: where what survives the rung below meets the default again, on fresh seeds."""

    name: str = Field(pattern=NAME_PATTERN, max_length=60)
    fidelity: int | float
    """Value of the parameter of `fidelity`."""
    devices: int | None = Field(default=None, ge=1)
    """None: as many as a trial of the search has."""
    priority_class: str | None = None
    """None: the task's."""
    survivors: int = Field(default=2, ge=1, le=100)
    """Configurations that come up from the rung below, beside the default."""
    seeds: int = Field(default=3, ge=2, le=1000)
    """Fresh seeds of each of them and of the default."""
    timeout_minutes: Positive | None = None
    """None: that of the task's job."""
    promote: Literal["run", "ask", "hand"] = "run"
    """run: it begins by itself; ask: a person approves it first; hand: only `nightlab research promote` begins it."""


class FurtherObjective(TaskPart):
    """What is wanted beside the objective: the session tells which configurations are best in some mix of them."""

    metric: Metric
    direction: Direction


class Constraint(TaskPart):
    """What a configuration has to hold to be chosen, whatever its objective."""

    metric: Metric
    at_least: Finite | None = None
    at_most: Finite | None = None

    @model_validator(mode="after")
    def _has_one_side(self) -> Constraint:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give at_least or at_most, one of them")
        return self

    @property
    def words(self) -> str:
        """`latency_ms <= 30`."""
        if self.at_most is not None:
            return f"{self.metric} <= {self.at_most:g}"
        return f"{self.metric} >= {self.at_least:g}"


class Probe(TaskPart):
    """A short job before a configuration's first launch: it learns memory and the time of a step."""

    parameters: dict[str, str | int | float | bool] = Field(min_length=1)
    """Over those of the trial: what makes it short."""
    timeout_minutes: Positive = 5.0


class MemoryLimit(TaskPart):
    metric: Metric | None = None
    """That the job logs, in megabytes; None: the peak of its processes on this machine."""
    limit_mb: Positive | None = None
    """None: what the job asks for in `compute`, if it does."""


class Feasibility(TaskPart):
    """Launches that are predicted to end out of memory or out of time are not made."""

    probe: Probe | None = None
    """None: it is learned from trials that ended alone."""
    memory: MemoryLimit = MemoryLimit()


class EarlierRuns(TaskPart):
    """Runs of an MLflow experiment, whoever made them."""

    experiment: str = Field(min_length=1, max_length=500)
    tracking_uri: str | None = None
    """None: nightlab's own MLflow."""


class Earlier(TaskPart):
    """What was measured before on this task. What ran the same code, data and scorer is evidence; the rest is not."""

    sessions: bool = True
    """Own earlier sessions of the same task."""
    mlflow: tuple[EarlierRuns, ...] = Field(default=(), max_length=20)
