"""For the `Trainer` of Lightning: a callback that saves, gives way and leaves; a logger for the metrics gateway."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback
from lightning.pytorch.loggers import Logger

from . import ranks
from .checkpoints import Checkpoints
from .loader_workers import shield_workers
from .metrics import flush_metrics, log_metrics
from .random_state import random_state, restore_random_state
from .script import checkpoint, finish_as_preempted
from .stopping import notice, should_stop

STATE = "lightning.ckpt"
RANDOM = "random-states.pickle"


def resume_path() -> str | None:
    """For `trainer.fit(..., ckpt_path=...)`; None: begin from nothing."""
    notice()
    newest = Checkpoints().newest()
    return None if newest is None else str(newest / STATE)


class PreemptibleCallback(Callback):  # type: ignore[misc] # typed only where lightning is installed
    """Give it to `Trainer(callbacks=[...])`. Raises SystemExit(75) at the end of a fit that was asked to leave.

    Lightning keeps neither the random state nor the position in the data. The random state is kept here; batches are
    the same again when their order follows from the step (`for_torch.BatchOrder`), or the loader keeps its position.
    """

    def __init__(self, *, every: int | None = None, keep: int = 2) -> None:
        """
        Args:
            every: optimizer steps between two checkpoints; None: only when asked to leave.
            keep: how many stay.
        """
        self._every, self._keep = every, keep
        self._seen_step = 0
        self._random: dict[str, Any] | None = None
        self._is_leaving = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._seen_step = trainer.global_step
        shield_workers(trainer.train_dataloader)
        path = None if trainer.ckpt_path is None else Path(trainer.ckpt_path).with_name(RANDOM)
        if path is not None and path.exists():
            by_rank = pickle.loads(path.read_bytes())
            self._random = by_rank[trainer.global_rank] if trainer.global_rank < len(by_rank) else None

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Before the first step, after the loaders took their seeds."""
        if self._random is not None:
            restore_random_state(self._random)
            self._random = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step
        if step == self._seen_step:
            return  # gradients are still being accumulated
        self._seen_step = step
        self._is_leaving = should_stop(step) and step != trainer.max_steps
        if self._is_leaving or (self._every is not None and step % self._every == 0):
            checkpoint(step, write=lambda folder: _write(trainer, folder), keep=self._keep)
        if self._is_leaving:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._is_leaving:
            finish_as_preempted()


class MetricsLogger(Logger):  # type: ignore[misc] # typed only where lightning is installed
    """Give it to `Trainer(logger=...)`: what the module logs goes to the metrics gateway."""

    @property
    def name(self) -> str:
        return "nightlab"

    @property
    def version(self) -> str:
        return "0"

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        numbers = {name: value for name, value in metrics.items() if name != "epoch"}
        if numbers:
            log_metrics(numbers, step=step or 0)

    def log_hyperparams(self, params: Any, *more: Any, **named: Any) -> None:
        """Nothing: the parameters of a job are recorded when it is submitted."""

    def finalize(self, status: str) -> None:
        flush_metrics(1.0)


def _write(trainer: Any, folder: Path) -> None:
    trainer.save_checkpoint(folder / STATE)
    by_rank = ranks.gathered(random_state())
    if trainer.is_global_zero:
        (folder / RANDOM).write_bytes(pickle.dumps(by_rank))
