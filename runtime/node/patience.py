"""Work that may hang (a driver, a dead mount), done on a thread of its own with a limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def within(limit_s: float, work: Callable[[], T]) -> T:
    """What `work` returns or raises.

    The thread is a daemon: one that never comes back does not keep the process from ending.

    Raises:
        TimeoutError: it has not come back in time; it is left alone.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            result, error = work(), None
        except BaseException as raised:  # noqa: BLE001 - carried over to the waiting task, which raises it
            result, error = None, raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # The loop is closed: nobody waits any more.

    threading.Thread(target=run, daemon=True, name="patience").start()
    async with asyncio.timeout(limit_s):
        return await answer
