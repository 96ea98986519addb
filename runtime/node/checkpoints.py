"""Which checkpoints count: those that are complete, by the form that the training SDK and other writers share."""

from __future__ import annotations

from pathlib import Path

from runtime_client.training.manifest import is_complete, steps_in


def newest_complete(checkpoint_dir: Path, *, known: int | None = None) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint; None when there is none. Torn ones are skipped.

    Args:
        known: a step that was found complete before, and is not looked through again.
    """
    for step, folder in steps_in(checkpoint_dir):
        if step == known or is_complete(folder):
            return step, folder
    return None
