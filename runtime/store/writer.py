"""The one writer: every change of the database goes through it, grouped into few transactions.

A unit of work is a function of a connection. Units that arrive while a commit is under way share the next one
(group commit); each runs in its own savepoint, so that one failing unit does not take the others with it. A
unit's result is handed back only after the commit: what was acknowledged is durable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import sqlalchemy as sa

T = TypeVar("T")


class Writer(Protocol):
    async def write(self, unit: Callable[[sa.Connection], T]) -> T:
        """Run one unit in the next transaction.

        Raises:
            StoreFull: no space left; nothing of the unit was kept.
            StoreRefused: the rows contradict the schema or what is stored; nothing of the unit was kept.
            StoreFailed: the database refused; nothing of the unit was kept.
        """
        ...


class StoreFailed(Exception):
    """The database could not take it."""


class StoreFull(StoreFailed):
    """No space left on the device that holds the database."""


class StoreRefused(StoreFailed):
    """This change is impossible (duplicate, too long, unknown row); trying it again will not help."""


class StoreUnusable(StoreFailed):
    """The database can not be used at all: foreign, damaged, or of another version. The operator must act."""
