"""For loops in plain torch: steps that resume, save and give way; batches that can be had again by their number."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch

from . import ranks
from .process_context import context
from .random_state import random_state, restore_random_state
from .script import end_step, restore

STATE = "state.pt"


class Stateful(Protocol):
    """A module, an optimizer, a scheduler, a scaler, ..."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any, /) -> Any: ...


class PreemptibleLoop:
    """Numbered steps over named parts, from the newest checkpoint on.

    `step` is the last step done: 0 without a checkpoint. With several ranks every rank has its own loop; the first
    one writes the parts, and each rank gets its own random state back.
    """

    def __init__(self, *, every: int | None = None, keep: int = 2, **parts: Stateful) -> None:
        """Restore the parts.

        Args:
            every: steps between two checkpoints; None: only when asked to leave.
            keep: how many checkpoints stay.
            parts: what makes up the training: `model=model, optimizer=optimizer, scheduler=scheduler`.
        """
        self._every, self._keep, self._parts = every, keep, parts
        self._random: dict[str, Any] | None = None
        self.step = 0
        saved = restore(read=_read)
        if saved is not None:
            self.step = saved.step
            for name, part in parts.items():
                part.load_state_dict(saved.value["parts"][name])
            by_rank = saved.value["random_by_rank"]
            rank = ranks.own_rank(context().rank)
            self._random = by_rank[rank] if rank < len(by_rank) else None

    def steps(self, n_steps: int) -> Iterator[int]:
        """The numbers of the steps that are still to do, up to `n_steps`; after each, save and leave as it is due.

        The random state is put back when the first one is asked for: what making loaders and models took from the
        generators does not matter.
        """
        if self._random is not None:
            restore_random_state(self._random)
        for step in range(self.step + 1, n_steps + 1):
            yield step
            self.step = step
            end_step(step, write=self._write, every=self._every, keep=self._keep)

    def _write(self, folder: Path) -> None:
        states = {name: part.state_dict() for name, part in self._parts.items()}
        random_by_rank = ranks.gathered(random_state())
        if ranks.own_rank(context().rank) == 0:
            torch.save({"parts": states, "random_by_rank": random_by_rank}, folder / STATE)


class BatchOrder:
    """Which examples make up the batch of a step, by its number alone: the position in the data needs no saving.

    Each epoch is a permutation of its own; a last part that is no whole batch is left out. The global generators are
    not touched.
    """

    def __init__(self, n_examples: int, *, batch_size: int, seed: int = 0, rank: int = 0, n_ranks: int = 1) -> None:
        """With `n_ranks` above 1, `batch_size` is that of one rank, and each gets its own part.

        Raises:
            ValueError: there are too few examples for one batch of all ranks.
        """
        self.batches_per_epoch = n_examples // (batch_size * n_ranks)
        if self.batches_per_epoch < 1:
            raise ValueError(f"{n_examples} examples are no whole batch of {batch_size} for each of {n_ranks} ranks")
        self._n_examples, self._batch_size, self._seed = n_examples, batch_size, seed
        self._rank, self._n_ranks = rank, n_ranks
        self._epoch = -1
        self._permutation: list[int] = []

    def __getitem__(self, step: int) -> list[int]:
        """Indexes of the examples of a step, from 1.

        Raises:
            ValueError: below 1. (No IndexError: there is no last step.)
        """
        if step < 1:
            raise ValueError(f"steps are counted from 1, not {step}")
        epoch, batch = divmod(step - 1, self.batches_per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
            self._permutation = torch.randperm(self._n_examples, generator=generator).tolist()
            self._epoch = epoch
        first = batch * self._batch_size * self._n_ranks + self._rank
        return self._permutation[first : first + self._batch_size * self._n_ranks : self._n_ranks]

    def after(self, step: int) -> Iterator[list[int]]:
        """The batches that follow a step, without end: a `batch_sampler` for a `DataLoader`."""
        while True:
            step += 1
            yield self[step]


def _read(folder: Path) -> Any:
    """Raises UnpicklingError for a file that is damaged."""
    path = folder / STATE
    if path.exists() and not zipfile.is_zipfile(path):
        raise pickle.UnpicklingError(f"{path} is no file of torch.save")
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except RuntimeError as error:
        if "PytorchStreamReader" in str(error):
            raise pickle.UnpicklingError(f"{path}: {error}") from error
        raise
