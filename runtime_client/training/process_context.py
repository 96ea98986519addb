"""What a training process is told about itself: the one place of the training SDK that reads the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Facts of one process. Outside nightlab: no job, attempt 1, one rank."""

    job_id: str | None
    """None: this process is no job of nightlab."""
    attempt: int
    """Which execution of the job, from 1."""
    seed: int | None
    hyperparameters: Path | None
    """YAML file with the parameters."""
    checkpoint_dir: Path
    """The same folder for all attempts of a job. Outside nightlab a new one for each process, made when first used."""
    resume_from: Path | None
    """The newest complete checkpoint; None: begin from nothing."""
    preempt_file: Path | None
    """When it exists, the process is asked to leave; it may hold the time at which the process is killed."""
    stack_file: Path | None
    """Where, with the process's number appended, a process that hangs may write its stacks."""
    deadline_at: float | None
    """Seconds since the epoch when the run time of this attempt is over; None: no limit."""
    rank: int
    n_ranks: int
    """Processes that train together. A process that no rank was given to trains alone, on however many devices."""
    local_rank: int
    node_rank: int
    n_nodes: int
    tracking_url: str | None
    """The metrics gateway; None: metrics go nowhere."""
    tracking_token: str | None

    @property
    def is_job(self) -> bool:
        return self.job_id is not None

    @property
    def is_first_rank(self) -> bool:
        """Whether this is the process that writes checkpoints."""
        return self.rank == 0

    def seconds_left(self) -> float | None:
        """Until the run time is over or, once asked to leave, until the kill; never below 0. None: no limit."""
        ends = [at for at in (self.deadline_at, self._kill_at()) if at is not None]
        return max(0.0, min(ends) - time.time()) if ends else None

    def _kill_at(self) -> float | None:
        try:
            return None if self.preempt_file is None else float(self.preempt_file.read_text())
        except (FileNotFoundError, ValueError):  # not asked; asked without a time
            return None


@cache
def context() -> Context:
    """The facts of this process, read from its environment when first asked.

    Raises:
        ValueError: a variable holds what it can not hold; the text names it.
    """
    return context_from(os.environ, default_dir=_own_folder())


def context_from(environ: Mapping[str, str], *, default_dir: Path) -> Context:
    """The facts that these variables state.

    Args:
        default_dir: the checkpoint folder where none is named.

    Raises:
        ValueError: as for `context`.
    """
    job_id = environ.get("NIGHTLAB_JOB_ID") or None
    has_rank = bool(environ.get("RANK"))
    folder = _path(environ, "NIGHTLAB_CHECKPOINT_DIR")
    return Context(
        job_id=job_id,
        attempt=_whole(environ, "NIGHTLAB_ATTEMPT", 1),
        seed=_whole(environ, "NIGHTLAB_SEED", 0) if environ.get("NIGHTLAB_SEED") else None,
        hyperparameters=_path(environ, "HYPERPARAMETERS_PATH"),
        checkpoint_dir=folder or default_dir,
        resume_from=_path(environ, "NIGHTLAB_RESUME_FROM"),
        preempt_file=_path(environ, "NIGHTLAB_PREEMPT_FILE"),
        stack_file=_path(environ, "NIGHTLAB_STACK_FILE"),
        deadline_at=_seconds(environ, "NIGHTLAB_DEADLINE"),
        rank=_whole(environ, "RANK", 0),
        n_ranks=_whole(environ, "WORLD_SIZE", 1) if has_rank else 1,
        local_rank=_whole(environ, "LOCAL_RANK", 0),
        node_rank=_whole(environ, "NODE_RANK", 0),
        n_nodes=_whole(environ, "NUM_NODES", 1),
        tracking_url=environ.get("MLFLOW_TRACKING_URI") if job_id else None,
        tracking_token=environ.get("MLFLOW_TRACKING_TOKEN") if job_id else None,
    )


def _own_folder() -> Path:
    return Path("checkpoints", f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}").absolute()


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    text = environ.get(name)
    return Path(text) if text else None


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}={text!r} in the environment is no whole number; unset it, or give one")
    return int(text)


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} in the environment is no time in seconds; unset it") from None
