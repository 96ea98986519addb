"""Processes that train together: `torch.distributed` where the script has set it up. Never imports torch itself."""

from __future__ import annotations

import sys
from typing import Any


def group() -> Any | None:
    """`torch.distributed` when it is initialised for more than one process; None: this process is alone."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed if distributed.get_world_size() > 1 else None


def any_of(flag: bool) -> bool:
    """Whether it is true on at least one rank; the same answer on all. Every rank must ask."""
    distributed = group()
    if distributed is None:
        return flag
    votes = sys.modules["torch"].tensor([int(flag)], device=_device(distributed))
    distributed.all_reduce(votes, op=distributed.ReduceOp.MAX)
    return bool(votes.item())


def wait_for_all() -> None:
    distributed = group()
    if distributed is not None:
        distributed.barrier()


def gathered(value: Any) -> list[Any]:
    """One value of each rank, in order of rank, on all of them. Every rank must ask."""
    distributed = group()
    if distributed is None:
        return [value]
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, value)
    return found


def own_rank(default: int) -> int:
    distributed = group()
    return default if distributed is None else int(distributed.get_rank())


def _device(distributed: Any) -> str:
    """Where the backend wants its tensors."""
    backends = str(distributed.get_backend())
    return "cuda" if "nccl" in backends and "gloo" not in backends else "cpu"
