"""What tracking needs of the rest of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import sqlalchemy as sa

from runtime.engines.contract import AttemptKey

T = TypeVar("T")


class Store(Protocol):
    """`runtime.store.sql_writer.SqlWriter` is one."""

    async def write(self, unit: Callable[[sa.Connection], T]) -> T:
        """Run one unit in the next transaction; done when it is durable. Raises `StoreFailed`."""
        ...

    async def read(self, read: Callable[[sa.Connection], T]) -> T:
        """Run a function that only reads, on one consistent state. Raises `StoreFailed`."""
        ...


class Fence(Protocol):
    """Asked at every call of a training process; answers from the live state."""

    def is_current(self, key: AttemptKey) -> bool:
        """Whether this attempt still runs (a short grace after its exit is fine)."""
        ...


class Notify(Protocol):
    """Told after the commit, on the event loop; must not block."""

    def __call__(self, job_id: str, run_id: str, keys: frozenset[str]) -> None: ...
