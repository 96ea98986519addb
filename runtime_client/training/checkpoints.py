"""Saving and restoring: any object that can be pickled, or whatever a function writes into a folder."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import durable, ranks
from .manifest import complete_in, folder_name, is_complete, step_of, steps_in
from .metrics import put_unsent, take_unsent
from .process_context import Context, context

STATE = "state.pickle"

_UNREADABLE = (EOFError, pickle.UnpicklingError)
"""What loading a damaged checkpoint raises. All else (a disk that fails, code that has changed, a file that was never
in it) is the script's end: the checkpoint may be good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A checkpoint that was found."""

    step: int
    folder: Path
    value: Any
    """What was saved, or what `read` made of the folder."""


class Checkpoints:
    """The checkpoints of one job, in one folder. With several ranks, every rank calls; the first one writes."""

    def __init__(self, folder: Path | None = None, *, keep: int = 2, of: Context | None = None) -> None:
        """
        Args:
            folder: None: where nightlab wants them.
            keep: how many complete ones stay; older ones go when a newer one is durable.
            of: the facts of this process; None: as its environment says.

        Raises:
            ValueError: `keep` is below 1.
        """
        if keep < 1:
            raise ValueError(f"keep={keep}: at least the newest checkpoint must stay")
        self._context = of or context()
        self.folder = folder or self._context.checkpoint_dir
        self._keep = keep
        self._is_swept = False

    def save(self, step: int, value: Any = None, *, write: Callable[[Path], object] | None = None) -> Path:
        """Make a checkpoint of `value`, or of what `write` puts into the folder it is given. Durable when it returns.

        Args:
            step: what has been done so far; a higher one is newer. One that was saved already is left as it is.
            write: with `torch.distributed` set up it is called on every rank, each for its own files; else where
                this process is the first rank.

        Raises:
            OSError: it can not be written (a full disk, a quota); the older ones are there still.
        """
        target = self.folder / folder_name(step)
        is_writer = ranks.own_rank(self._context.rank) == 0
        if ranks.any_of(is_writer and is_complete(target)):
            return target
        if ranks.group() is not None and write is not None:
            self._save_together(step, write, is_writer)
        elif is_writer:
            self._sweep_once()
            durable.publish(self.folder, step, lambda folder: _fill(folder, value, write))
            self._retire(step)
        ranks.wait_for_all()
        return target

    def restore(self, *, read: Callable[[Path], Any] | None = None) -> Saved | None:
        """The newest checkpoint that can be read; None: begin from nothing.

        Torn ones are skipped. One that looks whole and can not be read is set aside with a word on standard error,
        and the next older one is tried.

        Args:
            read: makes something of the folder; None: what `save` was given.

        Raises:
            ValueError: there is no `read`, and the checkpoint was made by something that writes files of its own.
        """
        for step, folder in self._candidates():
            try:
                value = (read or _load)(folder)
            except _UNREADABLE as error:
                problem = f"{type(error).__name__}: {error}"
                print(f"nightlab: checkpoint {folder} can not be read ({problem}); it is skipped", file=sys.stderr)
                self._set_aside(folder)
                continue
            put_unsent(folder)
            return Saved(step=step, folder=folder, value=value)
        return None

    def newest(self) -> Path | None:
        """The checkpoint to go on from, for those who read it themselves; None: begin from nothing."""
        return next((folder for _, folder in self._candidates()), None)

    def latest_saved(self) -> Path | None:
        """The newest complete one in the folder, whether or not it was chosen to go on from."""
        return next((folder for _, folder in complete_in(self.folder)), None)

    def _candidates(self) -> list[tuple[int, Path]]:
        """Complete ones to go on from, best first: what nightlab chose, then older ones beside it."""
        chosen = self._context.resume_from
        if chosen is None:
            return []
        chosen_step = step_of(chosen.name)
        if chosen_step is None:  # a folder of another name, given by hand
            return [(0, chosen)] if is_complete(chosen) else []
        return [(step, folder) for step, folder in complete_in(chosen.parent) if step <= chosen_step]

    def _save_together(self, step: int, write: Callable[[Path], object], is_writer: bool) -> None:
        if is_writer:
            self._sweep_once()
            durable.begin(self.folder, step)
        ranks.wait_for_all()
        writing = self.folder / f"{durable.WRITING}{folder_name(step)}"
        write(writing)
        ranks.wait_for_all()
        if is_writer:
            take_unsent(writing)
            durable.finish(self.folder, step)
            self._retire(step)

    def _retire(self, newest: int) -> None:
        """Delete older ones than are to be kept, and torn ones; `newest` has just become durable."""
        older = [(step, folder) for step, folder in steps_in(self.folder) if step < newest]
        kept = [folder for _, folder in older if is_complete(folder)][: self._keep - 1]
        for _, folder in older:
            if folder not in kept:
                durable.remove(folder)

    def _set_aside(self, folder: Path) -> None:
        if self._context.is_job and self._context.is_first_rank and os.access(folder.parent, os.W_OK):
            durable.set_aside(folder)

    def _sweep_once(self) -> None:
        if not self._is_swept:
            self._is_swept = True
            durable.sweep(self.folder)


def _fill(folder: Path, value: Any, write: Callable[[Path], object] | None) -> None:
    if write is not None:
        write(folder)
    else:
        with (folder / STATE).open("wb") as file:
            pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
    take_unsent(folder)


def _load(folder: Path) -> Any:
    if not (folder / STATE).exists():
        raise ValueError(f"{folder} holds no {STATE}: it was saved with `write=`; say how with `restore(read=...)`")
    with (folder / STATE).open("rb") as file:
        return pickle.load(file)
