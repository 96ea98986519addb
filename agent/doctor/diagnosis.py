"""What is found out about a job that failed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    OUT_OF_DEVICE_MEMORY = "out_of_device_memory"
    OUT_OF_MEMORY = "out_of_memory"
    DIVERGED = "diverged"
    """NaN or infinite values."""
    NO_METRIC = "no_metric"
    """It ended well and reported nothing that counts."""
    IMPORT = "import"
    MISSING_FILE = "missing_file"
    PERMISSION = "permission"
    ARGUMENTS = "arguments"
    """The script does not take what it was given."""
    SHAPE = "shape"
    """Sizes, types or indexes of arrays do not fit each other."""
    ASSERTION = "assertion"
    """A check of the script itself did not hold."""
    CHECKPOINT = "checkpoint"
    """What it goes on from can not be read, or does not fit."""
    DISK_FULL = "disk_full"
    STORAGE = "storage"
    """The file system failed: a stale handle, an input/output error."""
    NETWORK = "network"
    DISTRIBUTED = "distributed"
    """Ranks did not find each other, or one of them was lost."""
    TIME_LIMIT = "time_limit"
    HANG = "hang"
    DEVICE = "device"
    """The accelerator or its driver failed, or there was none."""
    MACHINE = "machine"
    """Its node, or what watches it there, was lost."""
    STOPPED = "stopped"
    """It did not fail: ended by a person, a budget, an hour, or what it waited for."""
    KILLED = "killed"
    """Ended by a signal that the runtime did not send."""
    CODE = "code"
    """An error of the script that is none of the above."""
    UNKNOWN = "unknown"
    """Could not tell."""


BY_RULES = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    failure: FailureClass
    evidence: tuple[str, ...]
    """Lines that say so, the root first; from the job's output, the attempt's record, or the metrics."""
    cause: str
    """In a sentence; suspected where `is_sure` is False."""
    suggestion: str
    """What to change, in a sentence."""
    change: dict[str, str | int | float | bool | None] | None = None
    """The same as parameters of the task, where that says it; None: it does not, or it is not known."""
    is_sure: bool = False
    made_by: str = BY_RULES
    """Or the model's name."""
    prompt: str | None = None
    """Of a model: the prompt, as `name@version`."""
    signature: str | None = None
    """Of a model: alike failures share it, and are not asked about again."""
