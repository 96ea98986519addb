"""What a job is asked to be: the submission format.

Field names follow Databricks AI Runtime's workload files where they fit, so that those load with at most
warnings. Where a name of theirs is known to hurt, ours differs: `queue_timeout_minutes` and `timeout_minutes`
are two fields, and `max_retries` is 0 by default.
"""

from __future__ import annotations

import math
import posixpath
import re
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from .graph import MAX_DEPENDENCIES, ArraySpec, ArrayTask, DependsOn, read_dependencies
from .wire import JsonObject, Wire

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$"


def _off(value: Any) -> Any:
    """YAML reads a bare `off` as false."""
    if value is True:
        raise ValueError("give minutes, or `off`")
    return "off" if value is False else value


Minutes = Annotated[float, Field(gt=0, le=60 * 24 * 366, allow_inf_nan=False)]


def _listed(value: Any) -> Any:
    """A list of device models is the same as their names with `|` between them."""
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
        return "|".join(value)
    return value


HangMinutes = Annotated[Minutes | Literal["off"] | None, BeforeValidator(_off)]


class ArgsStyle(StrEnum):
    """How `parameters` (and the seed) reach an unchanged script."""

    NONE = "none"
    """Only by placeholders `{lr}` in the command and by the file at HYPERPARAMETERS_PATH."""
    ARGPARSE = "argparse"
    """`--lr 0.001 --use-bias` appended (true flags bare, false ones left out, `_` kept)."""
    HYDRA = "hydra"
    """`lr=0.001 optim.name=adam` appended (nested maps become dotted)."""
    ENV = "env"
    """`LR=0.001` in the environment (upper case, nested maps joined by `__`)."""
    YAML = "yaml"
    """`--config PATH` appended, where PATH is the YAML file at HYPERPARAMETERS_PATH."""


class OnTimeout(StrEnum):
    """What becomes of a job whose attempt has run for `timeout_minutes`."""

    END = "end"
    """It has failed."""
    RESUME = "resume"
    """It is asked to checkpoint, and goes on as a new attempt; costs no retry, and is no preemption."""


class Compute(Wire):
    """What the job runs on. A gang starts whole or not at all."""

    num_accelerators: int = Field(default=1, ge=1, le=65536)
    """Devices in all. A device is an accelerator, or one CPU slot on a machine without."""
    accelerator_type: Annotated[str | None, BeforeValidator(_listed)] = Field(default=None, max_length=400)
    """Model name such as `H100`, or the form `GPU_8xH100`; None takes any device.

    `H100|A100`, or a list of names, takes any of them, best first; all devices of a gang are of one model.
    """
    accelerator_memory_gb: float | None = Field(default=None, gt=0, le=2**20, allow_inf_nan=False)
    """The least memory of each accelerator, in GB (10^9 bytes); None: however much it has."""
    accelerator_share: float | None = Field(default=None, ge=0.001, le=1, allow_inf_nan=False)
    """The part of one accelerator that it takes (0.5): others may have the rest. Counted, not enforced."""
    cpus: float | None = Field(default=None, ge=0.001, le=65536, allow_inf_nan=False)
    """Cores for each accelerator, or for each group of `GPU_8xH100`. None: none are set aside for it."""
    memory_gb: float | None = Field(default=None, gt=0, le=2**20, allow_inf_nan=False)
    """Memory of the node, in GB, for each accelerator or group. None: none is set aside for it."""
    exclusive: bool = False
    """Nothing else on its accelerators, nor on the cores that belong to them: for work whose result is a time."""

    @model_validator(mode="after")
    def _share_is_of_one(self) -> Compute:
        if self.accelerator_share is None or self.accelerator_share == 1:
            return self
        if self.num_accelerators != 1:
            raise ValueError(
                f"accelerator_share: only a job of one accelerator takes a share; it asks for {self.num_accelerators}"
            )
        if self.exclusive:
            raise ValueError("accelerator_share: an exclusive job has its accelerator alone; leave one of them out")
        return self


class LaunchMode(StrEnum):
    """How an attempt's process is started; what it does is the same."""

    AUTO = "auto"
    """Warm where a fork server for its environment is ready and the command allows it, else cold."""
    COLD = "cold"
    """The command is executed."""
    WARM = "warm"
    """As auto, but a fork server that is being prepared is waited for, a short while."""


class Environment(Wire):
    """Whose Python, and where."""

    python: str | None = None
    """Absolute path of a Python interpreter; its folder goes first on PATH. None: the server's default PATH."""
    preload: tuple[str, ...] | None = None
    """Modules to have imported already in a warm start. None: those that the script imports at its top."""

    @field_validator("preload")
    @classmethod
    def _are_modules(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if not all(part.isidentifier() for part in name.split(".")):
                raise ValueError(f"preload: {name!r} is no name of a module (`numpy`, `sklearn.linear_model`)")
        return value


class SnapshotMode(StrEnum):
    """Which state of the code a job runs."""

    AUTO = "auto"
    """As it was at submission: the client takes a snapshot, and the job works in a copy of its own."""
    OFF = "off"
    """As it is when the job starts, in the folder itself."""


class CodeSource(Wire):
    """The code a job runs from."""

    root_path: str
    """Absolute folder. It is the working directory, unless there is a snapshot: then a copy of it is."""
    snapshot: SnapshotMode = SnapshotMode.OFF
    snapshot_limit_mb: int = Field(default=64, ge=1, le=4096)
    """What git ignores does not count: it is linked, not copied."""
    left_out: tuple[str, ...] = Field(default=(), max_length=100)
    """Files and folders that are no part of the snapshot, relative to `root_path`: neither copied nor linked."""
    snapshot_id: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Filled in by the client when it has taken the snapshot."""

    @field_validator("snapshot", mode="before")
    @classmethod
    def _yaml_words(cls, value: object) -> object:
        """In YAML 1.1, `off` is the truth value false."""
        return {False: SnapshotMode.OFF, True: SnapshotMode.AUTO}[value] if isinstance(value, bool) else value


class StdoutPattern(Wire):
    """Metrics from printed lines, by a regular expression with named groups."""

    kind: Literal["stdout_pattern"] = "stdout_pattern"
    pattern: str
    """Either groups `name` and `value`, or one group per metric (`loss (?P<loss>\\S+)`); `step` is optional."""

    @field_validator("pattern")
    @classmethod
    def _has_metrics(cls, value: str) -> str:
        compile_pattern(value)
        return value


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Raises ValueError when it is no pattern, or has no group that could be a metric."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"metric pattern {pattern!r}: {error}") from error
    groups = set(compiled.groupindex)
    if not groups - {"step"} or ("name" in groups) != ("value" in groups):
        raise ValueError(
            f"metric pattern {pattern!r} needs named groups: either `name` and `value`, or one per metric, "
            r"such as `loss (?P<loss>\S+)`"
        )
    return compiled


class JsonLines(Wire):
    """Metrics from JSON objects, one a line: numeric fields are metrics, `step` (or `epoch`) is the step."""

    kind: Literal["json_lines"] = "json_lines"
    path: str | None = None
    """File relative to the working directory; None reads standard output (lines that are not JSON are skipped)."""


class TensorBoardFiles(Wire):
    """Metrics from TensorBoard event files (scalars)."""

    kind: Literal["tensorboard"] = "tensorboard"
    path: str
    """Folder relative to the working directory (searched below it); may hold `{job_id}`."""


MetricSource = Annotated[StdoutPattern | JsonLines | TensorBoardFiles, Field(discriminator="kind")]


class SuccessCriteria(Wire):
    """What must be true at exit 0 for the job to have succeeded."""

    required_metrics: tuple[str, ...] = ()
    """Each must have been logged at least once, and its last value must be finite."""


class SessionFence(Wire):
    """Which research session submits, and its fencing number: the server refuses an older one."""

    session_id: str = Field(pattern=NAME_PATTERN, max_length=100)
    fence: int = Field(ge=1, lt=2**63)
    device_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The budget of the session, set with its first submission; one that is there already stays."""


class Worth(Wire):
    """What a job is expected to bring. Decides only which of the jobs of one experiment leaves first (`preempt`)."""

    gain: float = Field(ge=0, allow_inf_nan=False)
    """Expected gain, in the units of the experiment's objective."""
    uncertainty: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Standard deviation of that gain."""
    cost_s: float = Field(gt=0, allow_inf_nan=False)
    """Expected device-seconds."""


def _check_json(value: Any, path: str) -> None:
    """Raises ValueError for what JSON has no form for, and would lose on the way."""
    if isinstance(value, dict):
        for name, below in value.items():
            _check_json(below, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            _check_json(below, f"{path}.{index}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path.lstrip('.')}: {value} is no number of JSON; write it as text ('{value}')")
    elif value is not None and not isinstance(value, str | int | float):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ValueError(f"{path.lstrip('.')}: {value!r} is a {kind}; give a number, a text, a truth value or None")


class Sandbox(StrEnum):
    """How far a job's processes are shut off from the machine that they run on."""

    NONE = "none"
    """As any program of the user that nightlab runs as."""
    USER = "user"
    """As `none`, but without a way to more rights (no setuid programs) and without core dumps."""
    SEALED = "sealed"
    """In a box of its own: for code that nobody has read. See docs/sandbox.md."""


class Network(StrEnum):
    """What a sealed job reaches."""

    NONE = "none"
    """The metrics gateway, and itself."""
    OPEN = "open"
    """Whatever the machine reaches."""


class Limits(Wire):
    """What a sealed job may use at most."""

    memory_bytes: int | None = Field(default=None, ge=2**26, le=2**50)
    """None: `compute.memory_gb` where that is given, else three quarters of the machine's."""
    processes: int = Field(default=1024, ge=2, le=2**20)
    """Threads count too."""
    open_files: int = Field(default=4096, ge=32, le=2**20)
    disk_bytes: int = Field(default=8 * 2**30, ge=2**20, le=2**50)
    """Of its writable folders together; also the size of its /tmp, as far as memory goes."""


class JobSpec(Wire):
    """One job as submitted."""

    experiment_name: str = Field(pattern=NAME_PATTERN, max_length=100)
    command: str | tuple[str, ...]
    """Shell text, or an argument vector. `{lr}` and `{seed}` are filled in from `parameters` and `seed`."""
    compute: Compute = Compute()
    environment: Environment = Environment()
    code_source: CodeSource | None = None
    """None: an empty scratch folder is the working directory."""
    parameters: JsonObject = Field(default_factory=dict)
    """Written to the file named by HYPERPARAMETERS_PATH, and passed as `args_style` says."""
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    args_style: ArgsStyle = ArgsStyle.NONE
    env_variables: dict[str, str] = Field(default_factory=dict)
    launch: LaunchMode = LaunchMode.AUTO
    sandbox: Sandbox = Sandbox.USER
    """Where it can not be had, the job does not start."""
    readable: tuple[str, ...] = Field(default=(), max_length=200)
    """Absolute paths that a sealed job may read, besides its code, its Python and the libraries of the system."""
    network: Network = Network.NONE
    """Of a sealed job."""
    limits: Limits = Limits()
    """Of a sealed job."""

    priority_class: str = "normal"
    preemptible: bool | None = None
    """None: as the priority class says."""
    project: str = Field(default="default", pattern=NAME_PATTERN, max_length=100)
    max_retries: int = Field(default=0, ge=0, le=1000)
    """New attempts after the job's own failure. Preemption and node loss never cost one."""
    queue_timeout_minutes: Minutes | None = None
    timeout_minutes: Minutes | None = None
    """Run time of one attempt."""
    on_timeout: OnTimeout = OnTimeout.END
    max_total_minutes: Minutes | None = None
    """Run time of all attempts together; then the job has failed, whatever `on_timeout` says."""
    finish_by: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds since the epoch, by when nothing of it may run or wait any more: what runs then is asked to checkpoint
    and leave in time, and the job ends as cancelled, with exit reason `deadline`. None: no such hour."""
    continues: str | None = Field(default=None, max_length=64)
    """An ended job of the same experiment: the first attempt goes on from its newest checkpoint, if there is one."""
    depends_on: tuple[DependsOn, ...] = Field(default=(), max_length=MAX_DEPENDENCIES)
    """What has to end first. Short forms: `[j3, j4]`, or `{j3: ok, j4: any}`."""
    array: ArraySpec | None = None
    """Set: not one job, but an array of them."""
    array_task: ArrayTask | None = None
    """Set by the server on a task of an array."""
    hang_minutes: HangMinutes = None
    """Without output, metric and checkpoint for so long it is stopped as hung. None: learned from its own rhythm."""
    grace_seconds: float = Field(default=30.0, ge=0, le=3600)
    """Between the preempt notice and the kill."""
    worth: Worth | None = None
    """None: when jobs of one experiment have to leave, the work that is lost decides alone."""

    metric_sources: tuple[MetricSource, ...] = ()
    """For scripts that do not log with MLflow."""
    success: SuccessCriteria = SuccessCriteria()

    mlflow_run_name: str | None = Field(default=None, max_length=250)
    mlflow_parent_run_id: str | None = None
    """A run id of ours (`RunView.run_id`)."""
    tags: dict[str, str] = Field(default_factory=dict)

    session: SessionFence | None = None
    idempotency_token: str | None = Field(default=None, min_length=1, max_length=128)
    """The same token in the same project returns the existing job instead of a second one."""

    @field_validator("depends_on", mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        return read_dependencies(value)

    @field_validator("command")
    @classmethod
    def _command_not_empty(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not value or (isinstance(value, str) and not value.strip()):
            raise ValueError("the command is empty")
        return value

    @field_validator("parameters")
    @classmethod
    def _parameters_are_json(cls, value: JsonObject) -> JsonObject:
        _check_json(value, "")
        return value

    @field_validator("priority_class")
    @classmethod
    def _aliases(cls, value: str) -> str:
        name = value.lower()
        return "exploratory" if name == "best_effort" else name

    @model_validator(mode="after")
    def _resumes_from_a_limit(self) -> JobSpec:
        if self.on_timeout is OnTimeout.RESUME and self.timeout_minutes is None:
            raise ValueError("on_timeout: resume needs timeout_minutes, the run time after which an attempt resumes")
        return self

    @field_validator("readable")
    @classmethod
    def _readable_are_absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith("/") or "\0" in path or posixpath.normpath(path) in ("/", "//"):
                raise ValueError(f"readable: {path!r}: give absolute paths of folders or files below /")
        return value

    @model_validator(mode="after")
    def _only_sealed_is_limited(self) -> JobSpec:
        given = [name for name in ("readable", "network", "limits") if name in self.model_fields_set]
        if self.sandbox is not Sandbox.SEALED and any(getattr(self, n) != _UNLIMITED[n] for n in given):
            raise ValueError(
                f"{', '.join(given)}: only a sealed job is held to it; say `sandbox: sealed`, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _reserved_names(self) -> JobSpec:
        taken = sorted(n for n in self.env_variables if n.startswith(("NIGHTLAB_", "MLFLOW_TRACKING_")))
        if taken:
            raise ValueError(f"env_variables: {', '.join(taken)}: these names are set by nightlab; choose others")
        return self


_UNLIMITED = MappingProxyType({"readable": (), "network": Network.NONE, "limits": Limits()})

__all__ = [
    "NAME_PATTERN",
    "ArgsStyle",
    "CodeSource",
    "Compute",
    "Environment",
    "HangMinutes",
    "JobSpec",
    "JsonLines",
    "LaunchMode",
    "Limits",
    "MetricSource",
    "Network",
    "OnTimeout",
    "Sandbox",
    "SessionFence",
    "SnapshotMode",
    "StdoutPattern",
    "SuccessCriteria",
    "TensorBoardFiles",
    "Worth",
]
