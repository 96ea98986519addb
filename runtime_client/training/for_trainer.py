"""For the `Trainer` of Hugging Face transformers: a callback that saves when asked to leave, and leaves.

The trainer writes its own checkpoints (weights, optimizer, scheduler, random state, position in the data). Each of
them becomes one of nightlab's, by hard links where the file system has them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .checkpoints import Checkpoints
from .loader_workers import shield_workers
from .metrics import log_metrics
from .process_context import context
from .script import checkpoint, finish_as_preempted
from .stopping import notice, should_stop

PREFIX = "checkpoint-"


def resume_path() -> str | None:
    """For `trainer.train(resume_from_checkpoint=...)`; None: begin from nothing."""
    notice()
    newest = Checkpoints().newest()
    return None if newest is None else str(newest)


class PreemptibleCallback(TrainerCallback):  # type: ignore[misc] # typed only where transformers is installed
    """Give it to `Trainer(callbacks=[...])`. Raises SystemExit(75) at the end of a training that was asked to leave."""

    def __init__(self, *, keep: int = 2, logs_metrics: bool = True) -> None:
        """
        Args:
            keep: how many checkpoints of nightlab's stay; the trainer's own go by `save_total_limit`.
            logs_metrics: whether what the trainer logs goes to the metrics gateway.
        """
        self._keep = keep
        self._logs_metrics = logs_metrics
        self._is_leaving = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        shield_workers(more.get("train_dataloader"))
        if context().is_job and state.is_world_process_zero:
            _remove_later(Path(args.output_dir), state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        if should_stop(state.global_step) and state.global_step < state.max_steps:
            self._is_leaving = True
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        source = Path(args.output_dir, f"{PREFIX}{state.global_step}")

        def link(folder: Path) -> None:
            if state.is_world_process_zero:
                shutil.copytree(source, folder, copy_function=_link_or_copy, dirs_exist_ok=True)

        checkpoint(state.global_step, write=link, keep=self._keep)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any) -> None:
        numbers = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        if self._logs_metrics and numbers and state.is_world_process_zero:
            log_metrics(numbers, step=state.global_step, echo=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._is_leaving:
            finish_as_preempted()


def _remove_later(output_dir: Path, step: int) -> None:
    """Folders of steps that are now done again: the trainer would write into their files, which are linked to."""
    for folder in output_dir.glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX)
        if number.isdigit() and int(number) > step:
            shutil.rmtree(folder)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
