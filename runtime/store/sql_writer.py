"""The writer over SQLAlchemy: one thread that commits, a few threads that read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from .engine import open_engine
from .faults import translated
from .writer import StoreFailed

T = TypeVar("T")
Unit = Callable[[sa.Connection], T]

MAX_BATCH = 256
"""Units in one transaction."""
N_READERS = 4


@dataclass(frozen=True, slots=True)
class _Item:
    unit: Unit[Any]
    future: Future[Any]


class SqlWriter:
    """`Writer` on an engine of `open_engine`, and readers beside it. The engine stays the caller's to dispose.

    Units run in the order of their arrival, on one thread, at most once. A caller cancelled before its unit began
    takes the unit back; later, the unit is kept and nobody is told.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._read_engine = open_engine(engine.url, read_only=True)
        self._readers = ThreadPoolExecutor(max_workers=N_READERS, thread_name_prefix="store-reader")
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._is_open = False
        self._thread = threading.Thread(target=self._serve, name="store-writer", daemon=True)

    def start(self) -> None:
        """Begin to take units; once in the life of a writer."""
        with self._gate:
            self._thread.start()
            self._is_open = True

    def close(self) -> None:
        """Commit what was handed in, then stop. Blocks until that is done; later units are refused."""
        with self._gate:
            was_open, self._is_open = self._is_open, False
            if was_open:
                self._queue.put(None)
        if was_open:
            self._thread.join()
        self._readers.shutdown(wait=True)
        self._read_engine.dispose()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, unit: Unit[T]) -> Future[T]:
        """Queue one unit; the future holds its result after the commit.

        Raises:
            StoreFailed: the writer is not started, or closed.
        """
        future: Future[T] = Future()
        with self._gate:
            if not self._is_open:
                raise StoreFailed("the store is closed")
            self._queue.put(_Item(unit, future))
        return future

    async def write(self, unit: Unit[T]) -> T:
        """See `Writer.write`. An exception of the unit's own comes back as it is."""
        return await asyncio.wrap_future(self.submit(unit))

    def write_blocking(self, unit: Unit[T]) -> T:
        """The same for threads; never call it on the event loop."""
        return self.submit(unit).result()

    async def read(self, read: Unit[T]) -> T:
        """Run a function that only reads; it sees one state, never half a transaction.

        Raises:
            StoreFailed: the database failed, or the function tried to write.
        """
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._readers, self.read_blocking, read)
        except RuntimeError as error:
            raise StoreFailed("the store is closed") from error
        return await reading

    def read_blocking(self, read: Unit[T]) -> T:
        """The same on the calling thread."""
        try:
            with self._read_engine.connect() as connection:
                return read(connection)
        except exc.SQLAlchemyError as error:
            raise translated(error, self._engine.url) from error

    def _serve(self) -> None:
        is_last = False
        while not is_last:
            batch: list[_Item] = []
            item = self._queue.get()
            while item is not None:
                if item.future.set_running_or_notify_cancel():
                    batch.append(item)
                if len(batch) >= MAX_BATCH:
                    break
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            is_last = item is None
            if len(batch) == 1:
                self._commit_one(batch[0])
            elif batch:
                self._commit_many(batch)

    def _commit_one(self, item: _Item) -> None:
        try:
            with self._engine.begin() as connection:
                result = item.unit(connection)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            item.future.set_exception(translated(error, self._engine.url))
        else:
            item.future.set_result(result)

    def _commit_many(self, batch: Sequence[_Item]) -> None:
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            with self._engine.begin() as connection:
                outcomes.extend(self._attempt(connection, item.unit) for item in batch)
        except BaseException as error:  # noqa: BLE001 - the transaction failed: every caller is told
            for item in batch:  # each gets an exception of its own: a shared one would collect their tracebacks
                item.future.set_exception(_lost(error, self._engine.url))
            return
        for item, (result, failure) in zip(batch, outcomes, strict=True):
            if failure is None:
                item.future.set_result(result)
            else:
                item.future.set_exception(failure)

    def _attempt(self, connection: sa.Connection, unit: Unit[Any]) -> tuple[Any, BaseException | None]:
        """Run one unit in a savepoint; its failure is a value while the transaction around it lives."""
        savepoint = connection.begin_nested()
        try:
            result = unit(connection)
            savepoint.commit()
        except BaseException as error:
            if not _is_alive(connection):
                raise
            savepoint.rollback()
            return None, translated(error, self._engine.url)
        return result, None


def _lost(error: BaseException, url: sa.URL) -> BaseException:
    failure = translated(error, url)
    if isinstance(failure, StoreFailed):
        return failure
    lost = StoreFailed(f"the transaction was lost with another unit's failure: {failure!r}")
    lost.__cause__ = failure
    return lost


def _is_alive(connection: sa.Connection) -> bool:
    """Whether the transaction survived an error: a full SQLite or a broken connection may take all of it back."""
    if connection.invalidated:
        return False
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    return driver.info.transaction_status.name in ("INTRANS", "INERROR")
