"""The task file: what a session may do. Everything here is fixed by the researcher; no model can change it.

task: digits
objective: {metric: val_accuracy, direction: maximize}
job: {command: python train.py, args_style: argparse, code_source: {root_path: .}}
space:
  lr: {type: float, low: 1.0e-4, high: 1.0e-1, log: true, default: 1.0e-3}
budgets: {trials: 16}
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agent.code_trials import CodeTrials
from agent.task_fidelity import (
    Constraint,
    Earlier,
    Feasibility,
    FurtherObjective,
    Halving,
    Rung,
)
from agent.task_part import Direction as Direction
from agent.task_part import Finite, Positive, TaskPart
from runtime_client.models import (
    ArgsStyle,
    CodeSource,
    Compute,
    Environment,
    MetricSource,
)
from runtime_client.models.spec import NAME_PATTERN, HangMinutes

BRIEF_CHARACTERS = 20_000
"""Of a research brief at most."""


class ValidRange(TaskPart):
    low: Finite | None = None
    high: Finite | None = None

    @model_validator(mode="after")
    def _in_order(self) -> ValidRange:
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        return self


class Objective(TaskPart):
    metric: str = Field(min_length=1, max_length=250)
    direction: Direction
    kind: Literal["quality", "speed", "memory"] = "quality"
    """What is measured. Speed and memory depend on the machine: their trials run alone (`exclusive`)."""
    valid: ValidRange = ValidRange()
    """Values outside are invalid, never best."""
    min_effect: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Smallest gain that is worth something, in the metric's units; better means better by more than this."""
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
    unit: Literal["steps", "seconds"] = "steps"
    """Seconds of training depend on the machine: such trials run alone (`exclusive`)."""


class HeldOut(TaskPart):
    """A metric that is looked at a counted number of times, after the search."""

    metric: str
    parameters: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Extra parameters that make the job measure it."""
    looks: int = Field(default=1, ge=1)


class Seeds(TaskPart):
    search: int = Field(default=0, ge=0)
    """Seed of every trial in the search."""
    fresh: int = Field(default=8, ge=2, le=1000)
    """Fresh seeds each for the best and the default configuration at the end, before the first look."""
    max_pairs: int = Field(default=30, ge=2, le=10_000)
    """Pairs of fresh seeds at most, where those of `fresh` decide nothing and more may."""
    first_fresh: int = Field(default=1000, ge=0)
    first_racing: int = Field(default=100, ge=0)
    """Seeds of the replicates that are made while the search goes on; never those of the end."""


class DataSource(TaskPart):
    """What a job reads and does not change, so that results on other data are seen to be on other data."""

    path: str
    """File or folder; a relative one is resolved against the folder of the task file."""
    fingerprint: Literal["manifest", "sha256", "label"] = "manifest"
    """manifest: names, sizes and times of change (seconds for terabytes); sha256: the bytes; label: as `label` says."""
    label: str | None = None

    @model_validator(mode="after")
    def _has_label(self) -> DataSource:
        if (self.fingerprint == "label") != (self.label is not None):
            raise ValueError("label is needed with fingerprint: label, and only there")
        return self


class Score(TaskPart):
    """A job of its own that measures the objective after training, on what training left."""

    command: str | tuple[str, ...]
    private: tuple[str, ...] = Field(default=(), max_length=100)
    """Files and folders that no training job gets to see: what measures, and the data that it measures by. A relative
    one is resolved against the folder of the task file."""
    compute: Compute = Compute()
    timeout_minutes: Positive | None = None


class Comparable(TaskPart):
    """Which trials may be compared with each other."""

    across_devices: bool = False
    """Whether values from different accelerator models form a pair."""


class SearchMethod(TaskPart):
    """Who suggests configurations, and how the trials are shared between them."""

    sampler: Literal["tpe", "random", "cmaes", "gp", "qmc", "nsgaii"] = "tpe"
    """Optuna's sampler of the control arm."""
    use: tuple[Literal["sampler", "random", "refiner", "replicator", "points", "model", "coder", "outside"], ...] = (
        "sampler",
        "random",
        "refiner",
        "replicator",
    )
    control_share: float = Field(default=0.25, ge=0, le=1)
    """Least share of the search trials that the default-seeded sampler gets."""
    points: tuple[dict[str, str | int | float | bool], ...] = ()
    """With `points` in `use`: these configurations, in this order; what one does not name has its default."""
    replicates: int = Field(default=1, ge=1, le=1000)
    """Seeds on which every configuration of the search is measured; 1: the search seed alone."""
    confirm: bool = True
    """Whether the best meets the default on fresh seeds at the end."""

    @model_validator(mode="after")
    def _has_a_source(self) -> SearchMethod:
        if not set(self.use) - {"replicator"}:
            names = "sampler, random, refiner, points, model, coder, outside"
            raise ValueError(f"use: nobody suggests new configurations; name one of {names}")
        if ("points" in self.use) != bool(self.points):
            raise ValueError("points: needed with use: [points], and only there")
        return self


class Prices(TaskPart):
    """In US dollars for a million tokens."""

    prompt: float = Field(ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)


class Model(TaskPart):
    """The language model that suggests, behind any OpenAI-compatible endpoint; its budget is in `budgets`."""

    name: str = Field(min_length=1, max_length=200)
    """As the endpoint calls it."""
    base_url: str | None = None
    """None: the environment's `OPENAI_BASE_URL`, else OpenAI's own."""
    key_env: str = "OPENAI_API_KEY"
    """Variable that holds the key. No key at all is right for many local servers."""
    key_file: str | None = None
    """File that holds the key; goes before the variable. A relative path is the task file's."""
    rung: Literal["tools", "schema", "fenced", "menu"] = "tools"
    """The best way of answering that it is asked for; the session steps down from there by itself."""
    context_tokens: int | None = Field(default=None, ge=512)
    """What fits into the model; None: 8,192 are assumed. `nightlab model check` tells what the endpoint says."""
    max_tokens: int = Field(default=1024, ge=64)
    """Of one answer."""
    call_seconds: Positive | None = None
    """For one answer with all its tries; None: 240 at first, more where the endpoint proves slow, 900 at most."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    batch: int = Field(default=4, ge=1, le=50)
    """Trials that one answer suggests at most."""
    outside_space: bool = False
    """Whether it, and an outside agent, may suggest numbers beyond the ranges of `space`, within bounds. How far those
    are asked about first, `autonomy.outside_space` says."""
    price: Prices | None = None
    """None: as in the list of known prices, else unknown: then `budgets.cost_usd` does not count it, and says so."""


Freedom = Literal["propose", "ask", "run"]
"""propose: a person approves each; ask: a person approves what costs more than the threshold; run: it just does."""


class Autonomy(TaskPart):
    """What the session does by itself. Unanswered questions never hold it up: the rest goes on meanwhile."""

    trials: Freedom = "run"
    """Trials that a model or an outside agent suggests."""
    outside_space: Freedom = "propose"
    """Trials with values beyond the ranges of the space."""
    code: Freedom = "run"
    """Trials of code that a model or an outside agent has edited, each edit once."""
    fixes: Freedom = "run"
    """Trials that change something because a trial failed."""
    early_stops: Freedom = "run"
    """Ending a running trial because a model says that it is lost."""
    ask_above_device_minutes: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """With `ask`: what one action is expected to cost before a person is asked."""
    answer_within_minutes: Positive = 30.0
    unanswered: Literal["approve", "deny"] = "deny"
    """What counts when nobody has answered by then."""


class Address(TaskPart):
    """Whom to tell. The address is one of Apprise's: mailto://, slack://, json://..."""

    url: str | None = None
    url_file: str | None = None
    """A file with the address in its first line, relative to the file that names it: for addresses that hold a
    secret."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("give url or url_file, one of them")
        return self


SessionEvent = Literal["approval", "stalled", "budget", "ended"]
"""approval: a person is asked; stalled: nothing has moved for long; budget: most of one is used; ended: it is over."""


class SessionNotification(Address):
    """Whom to tell of a session, and of what."""

    on: tuple[SessionEvent, ...] = ("approval", "stalled", "budget", "ended")


class Idle(TaskPart):
    """What slots are used for that have nothing else to do; always as exploratory jobs."""

    replicate: bool = True
    explore: bool = True
    max_share: float = Field(default=0.5, ge=0, le=1)
    """Of the device-seconds of the session, at most so much goes to idle work."""


class Trust(TaskPart):
    """How sure a claim must be."""

    error_budget: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance that a whole session makes any false claim of better, however often it looks."""


class Budgets(TaskPart):
    """Hard limits; what is in flight when one is reached is finished, nothing more is started."""

    trials: int = Field(ge=1, le=1_000_000)
    """Distinct configurations in the search, the default included; replicates are not counted."""
    wall_minutes: Positive | None = None
    device_seconds: Positive | None = None
    tokens: int | None = Field(default=None, ge=1)
    """Of language models, both ways."""
    cost_usd: Positive | None = None
    """Of language models, and of device time where the task gives `usd_per_device_hour`."""
    usd_per_device_hour: Positive | None = None


class Task(TaskPart):
    task: str = Field(pattern=NAME_PATTERN, max_length=100)
    description: str = ""
    objective: Objective
    job: JobTemplate
    space: dict[str, Parameter] = Field(default_factory=dict)
    """May be left out where `code` lets trials change the code."""
    code: CodeTrials | None = None
    """Trials that change the training code; None: parameters alone are searched."""
    fidelity: Fidelity | None = None
    halving: Halving | None = None
    """None: every trial is run to its end."""
    ladder: tuple[Rung, ...] = Field(default=(), max_length=10)
    """Above the search, lowest rung first."""
    also: tuple[FurtherObjective, ...] = Field(default=(), max_length=10)
    """Objectives beside the first, about which alone claims are made."""
    constraints: tuple[Constraint, ...] = Field(default=(), max_length=20)
    feasibility: Feasibility | None = None
    earlier: Earlier = Earlier()
    held_out: HeldOut | None = None
    seeds: Seeds = Seeds()
    budgets: Budgets
    search: SearchMethod = SearchMethod()
    model: Model | None = None
    brief: str | None = Field(default=None, max_length=BRIEF_CHARACTERS)
    """What the researcher wants said to the model: goals, directions not to take, known facts. In the file, the name of
    a text file; here, its text. It can never widen what the session may do."""
    forbid: tuple[str, ...] = Field(default=(), max_length=100)
    """Conditions on parameters, as `lr > 0.1 and optimizer = sgd`: what one of them covers is not tried, by nobody."""
    autonomy: Autonomy = Autonomy()
    notify: tuple[SessionNotification, ...] = ()
    idle: Idle = Idle()
    trust: Trust = Trust()
    comparable: Comparable = Comparable()
    data: tuple[DataSource, ...] = ()
    score: Score | None = None
    priority_class: str = "exploratory"
    project: str = Field(default="default", pattern=NAME_PATTERN, max_length=100)
    slots: int | None = Field(default=None, ge=1)
    """Trials in flight at most; None: as many as there are devices."""
    sampler_seed: int = 0
