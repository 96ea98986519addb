"""The sweep file: what is run again night after night, by when, and what is watched. Data only; no file is read here.

sweep: digits-nightly
task: task.yaml
method: {kind: grid, values: {lr: [1.0e-3, 1.0e-2], hidden: [16, 64]}}
replicates: 3
window: "22:00-07:00"
finish_by: "06:30"
time_zone: Europe/Berlin
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from agent.task import Address, DataSource
from agent.task_part import Positive, TaskPart
from runtime_client.models.spec import NAME_PATTERN

ParamChoice = str | int | float | bool
N_CELLS = 100
"""Cells of a sweep at most."""


class GridMethod(TaskPart):
    """Every combination of the values named; parameters that are not named keep their default."""

    kind: Literal["grid"]
    values: dict[str, Annotated[tuple[ParamChoice, ...], Field(min_length=1)]] = Field(min_length=1)


class ListMethod(TaskPart):
    """These configurations, in this order; what one does not name has its default."""

    kind: Literal["list"]
    points: tuple[dict[str, ParamChoice], ...] = Field(min_length=1)


class RandomMethod(TaskPart):
    """Configurations drawn at random from the task's space; the same ones in every night."""

    kind: Literal["random"]
    trials: int = Field(ge=1, le=1_000_000)


class OptunaMethod(TaskPart):
    """Configurations chosen by one of Optuna's samplers from the values so far."""

    kind: Literal["optuna"]
    trials: int = Field(ge=1, le=1_000_000)
    sampler: Literal["tpe", "random", "cmaes", "gp", "qmc", "nsgaii"] = "tpe"


class AgentMethod(TaskPart):
    """As a research session searches: the task's model beside sampler, refiner and race, shared by what each brings.

    The configurations differ from night to night, so only the default is on every night and can be watched.
    """

    kind: Literal["agent"]
    trials: int = Field(ge=1, le=1_000_000)


Method = Annotated[GridMethod | ListMethod | RandomMethod | OptunaMethod | AgentMethod, Field(discriminator="kind")]


class DataVersion(TaskPart):
    """One version of the data: how the script is told of it, and what of it is pinned."""

    name: str = Field(pattern=NAME_PATTERN, max_length=60)
    parameters: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Fixed parameters of the job beside those of the task."""
    env_variables: dict[str, str] = Field(default_factory=dict)
    data: tuple[DataSource, ...] = ()
    """Instead of the task's `data`, where it is not empty."""


class Matrix(TaskPart):
    """Each combination of these is a cell. Empty: the task alone, the code as it lies there, the data of the task."""

    tasks: tuple[str, ...] = ()
    """Task files, relative to the sweep file; instead of `task`."""
    code: tuple[str, ...] = ()
    """Git branches, tags or commits of the repository that the task's code is in, resolved anew every night."""
    data: tuple[DataVersion, ...] = ()


class SweepBudgets(TaskPart):
    """Hard limits of one night; device time and cost are shared equally by its cells."""

    device_hours: Positive | None = None
    wall_minutes: Positive | None = None
    """Of each cell."""
    tokens: int | None = Field(default=None, ge=1)
    """Of language models, both ways; shared equally by the cells."""
    cost_usd: Positive | None = None
    """Of device time, at `usd_per_device_hour`, and of language models."""
    usd_per_device_hour: Positive | None = None

    @model_validator(mode="after")
    def _has_a_price(self) -> SweepBudgets:
        if self.cost_usd is not None and self.usd_per_device_hour is None:
            raise ValueError("cost_usd needs usd_per_device_hour, the price of a device for an hour")
        return self


class Watch(TaskPart):
    """What is held against the nights before."""

    metric: bool = True
    speed: bool = True
    memory: bool = True
    error_budget: float = Field(default=0.01, gt=0, lt=0.5)
    """Chance of any false alarm in one night, over all its cells and everything watched."""
    slower_by: float = Field(default=0.05, ge=0, lt=10, allow_inf_nan=False)
    """Part of the time of a trial (0.05: five percent) below which a change is none."""
    larger_by: float = Field(default=0.05, ge=0, lt=10, allow_inf_nan=False)
    """The same for memory. For the metric the task's `min_effect` counts."""


Occasion = Literal["finish", "regression", "failure"]


class Notification(Address):
    """Whom to tell, and of what."""

    on: tuple[Occasion, ...] = ("finish", "regression", "failure")


def _class_alias(value: object) -> object:
    return "exploratory" if value == "best_effort" else value


class Sweep(TaskPart):
    sweep: str = Field(pattern=NAME_PATTERN, max_length=60)
    description: str = ""
    task: str | None = None
    """Task file, relative to the sweep file. Its objective, job, seeds and trust are those of every trial."""
    method: Method
    matrix: Matrix = Matrix()
    replicates: int = Field(default=1, ge=1, le=1000)
    """Seeds for each configuration in the search."""
    confirm: bool = True
    """Whether the best meets the default on fresh seeds at the end, as in a research session."""
    priority_class: Annotated[Literal["exploratory", "normal"], BeforeValidator(_class_alias)] = "exploratory"
    project: str | None = Field(default=None, pattern=NAME_PATTERN, max_length=100)
    """None: the task's."""
    slots: int | None = Field(default=None, ge=1)
    """Trials in flight at most, in each cell; None: as many as there are devices."""
    cells_at_once: int = Field(default=4, ge=1, le=N_CELLS)
    """Sessions that run side by side; the others follow in order."""
    budgets: SweepBudgets = SweepBudgets()
    finish_by: str | None = None
    """When nothing may run any more: `07:00`, the next one after the start, or `2026-12-24 07:00`."""
    window: str | None = None
    """The hours in which it may run, `22:00-07:00`; its end is a `finish_by` too."""
    time_zone: str | None = None
    """Of `finish_by` and `window`, by its name in the time zone database; None: this machine's."""
    overlap: Literal["skip", "queue", "replace"] = "skip"
    """What a start does while the night before still runs: nothing, wait for its end, or end it."""
    resume: bool = False
    """Whether what the last night left unfinished at its deadline goes on first."""
    watch: Watch = Watch()
    notify: tuple[Notification, ...] = ()

    @model_validator(mode="after")
    def _has_tasks(self) -> Sweep:
        if (self.task is None) == (not self.matrix.tasks):
            raise ValueError("give task, or matrix.tasks for several, one of them")
        return self
