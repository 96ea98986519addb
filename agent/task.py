"""The task file: what a session may do. Everything here is fixed by the researcher; no model can change it.

task: digits
objective: {metric: val_accuracy, direction: maximize}
job: {command: python train.py, args_style: argparse, code_source: {root_path: .}}
space:
  lr: {type: float, low: 1.0e-4, high: 1.0e-1, log: true, default: 1.0e-3}
budgets: {trials: 16}
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runtime_client.models import (
    ArgsStyle,
    CodeSource,
    Compute,
    Environment,
    MetricSource,
)
from runtime_client.models.spec import NAME_PATTERN, HangMinutes

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class TaskPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Direction(StrEnum):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Objective(TaskPart):
    metric: str = Field(min_length=1, max_length=250)
    direction: Direction
    target: Finite | None = None
    """Reached by the incumbent, confirmed: the session ends early. None: no target."""
    read: Literal["last", "best"] = "last"
    """Which value of the curve counts."""


class FloatParameter(TaskPart):
    type: Literal["float"]
    low: Finite
    high: Finite
    log: bool = False
    default: Finite

    @model_validator(mode="after")
    def _in_range(self) -> FloatParameter:
        _check_range(self.low, self.high, self.default, self.log)
        return self


class IntParameter(TaskPart):
    type: Literal["int"]
    low: int
    high: int
    log: bool = False
    default: int

    @model_validator(mode="after")
    def _in_range(self) -> IntParameter:
        _check_range(self.low, self.high, self.default, self.log)
        return self


class CategoricalParameter(TaskPart):
    type: Literal["categorical"]
    choices: tuple[str | int | float | bool, ...] = Field(min_length=1)
    default: str | int | float | bool

    @model_validator(mode="after")
    def _is_choice(self) -> CategoricalParameter:
        if self.default not in self.choices:
            raise ValueError(f"default {self.default!r} is not among the choices {list(self.choices)}")
        return self


def _check_range(low: float, high: float, default: float, log: bool) -> None:
    if low >= high:
        raise ValueError(f"low ({low}) must be below high ({high})")
    if not low <= default <= high:
        raise ValueError(f"default ({default}) must lie between low ({low}) and high ({high})")
    if log and low <= 0:
        raise ValueError(f"low ({low}) must be above 0 on a logarithmic scale")


Parameter = Annotated[FloatParameter | IntParameter | CategoricalParameter, Field(discriminator="type")]


class JobTemplate(TaskPart):
    """The job that carries one trial; parameters and seed are filled in for each."""

    command: str | tuple[str, ...]
    args_style: ArgsStyle = ArgsStyle.NONE
    code_source: CodeSource | None = None
    """A relative `root_path` is resolved against the folder of the task file."""
    compute: Compute = Compute()
    environment: Environment = Environment()
    parameters: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Fixed parameters, passed as they are beside the searched ones."""
    env_variables: dict[str, str] = Field(default_factory=dict)
    metric_sources: tuple[MetricSource, ...] = ()
    timeout_minutes: Positive | None = None
    hang_minutes: HangMinutes = None
    grace_seconds: float = Field(default=30.0, ge=0, le=3600)
    max_retries: int = Field(default=0, ge=0, le=100)


class Fidelity(TaskPart):
    """The parameter that says how much training one trial gets."""

    parameter: str
    value: int | float


class HeldOut(TaskPart):
    """A metric that is looked at a counted number of times, after the search."""

    metric: str
    parameters: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Extra parameters that make the job measure it."""
    looks: int = Field(default=1, ge=1)


class Seeds(TaskPart):
    search: int = Field(default=0, ge=0)
    """Seed of every trial in the search."""
    fresh: int = Field(default=5, ge=2, le=1000)
    """Fresh seeds each for the best and the default configuration at the end."""
    first_fresh: int = Field(default=1000, ge=0)


class Budgets(TaskPart):
    """Hard limits; what is in flight when one is reached is finished, nothing more is started."""

    trials: int = Field(ge=1, le=1_000_000)
    """Distinct configurations in the search, the default included; replicates are not counted."""
    wall_minutes: Positive | None = None
    device_seconds: Positive | None = None


class Task(TaskPart):
    task: str = Field(pattern=NAME_PATTERN, max_length=100)
    description: str = ""
    objective: Objective
    job: JobTemplate
    space: dict[str, Parameter] = Field(min_length=1)
    fidelity: Fidelity | None = None
    held_out: HeldOut | None = None
    seeds: Seeds = Seeds()
    budgets: Budgets
    priority_class: str = "exploratory"
    project: str = Field(default="default", pattern=NAME_PATTERN, max_length=100)
    slots: int | None = Field(default=None, ge=1)
    """Trials in flight at most; None: as many as there are devices."""
    sampler_seed: int = 0
