"""Data loaders of torch whose workers leave the notice to the training process. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .stopping import ignore_stop_signal


def shield_workers(loader: Any) -> None:
    """Make the workers of a `DataLoader` ignore SIGTERM; those it starts from now on."""
    while loader is not None:
        if getattr(loader, "num_workers", 0) > 0 and not isinstance(loader.worker_init_fn, _Shielded):
            loader.worker_init_fn = _Shielded(loader.worker_init_fn)
        loader = getattr(loader, "base_dataloader", None)


class _Shielded:
    """A `worker_init_fn` around the script's own; a class, so that it can be pickled."""

    def __init__(self, own: Callable[[int], object] | None) -> None:
        self._own = own

    def __call__(self, worker: int) -> None:
        ignore_stop_signal()
        if self._own is not None:
            self._own(worker)
