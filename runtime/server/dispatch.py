"""Carries decided orders to the engine, off the loop: in order for each attempt, side by side across attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import chain, repeat
from typing import Any

from runtime.engines.contract import AttemptKey, Engine, LaunchOrder, NodeReport, NotLaunched, StopAttempt
from runtime.model.states import ExitReason, StopCause

log = logging.getLogger(__name__)


PATIENCE_S = 120.0
"""An engine that has not carried out an order by then has failed to."""
PAUSES_S = (0.2, 1.0, 5.0)
"""Before an order to stop is given again; the last one again and again."""


class Dispatcher:
    """A named firewall: an engine that raises or hangs costs one attempt, not the server.

    An order to stop that could not be carried out is given again until it is, or the attempt is over: else whoever
    waits for its devices would wait for ever.
    """

    def __init__(self, engine: Engine, report: Callable[[NodeReport], None], *, patience_s: float = PATIENCE_S) -> None:
        self._engine = engine
        self._report = report
        self._is_closing = asyncio.Event()
        self.is_held: Callable[[AttemptKey], bool] = lambda key: True
        """Whether the attempt still holds devices."""
        self._last_by_key: dict[AttemptKey, asyncio.Task[None]] = {}

    def start(self, order: LaunchOrder, generation: int) -> None:
        self._chain(order.key, self._start(order, generation))

    def stop(self, order: StopAttempt, generation: int) -> None:
        self._chain(order.key, self._stop(order, generation))

    async def drain(self) -> None:
        """Wait until everything handed in has been carried out, or was tried once more; the next server repeats it."""
        self._is_closing.set()
        while self._last_by_key:
            await asyncio.wait(tuple(self._last_by_key.values()))

    def _chain(self, key: AttemptKey, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_after(self._last_by_key.get(key), work))
        self._last_by_key[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def _forget(self, key: AttemptKey, done: asyncio.Task[None]) -> None:
        if self._last_by_key.get(key) is done:
            del self._last_by_key[key]

    async def _start(self, order: LaunchOrder, generation: int) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._engine.start(order, generation)
        except Exception as error:
            log.error("the engine could not start %s", order.key, exc_info=error)
            why = f"no answer within {PATIENCE_S:g} s" if isinstance(error, TimeoutError) else str(error)
            await self._stop(
                StopAttempt(key=order.key, cause=StopCause.CANCEL, reason="its start failed", grace_s=0.0), generation
            )
            self._report(
                NotLaunched(
                    key=order.key,
                    generation=generation,
                    exit_reason=ExitReason.LAUNCHER_UNAVAILABLE,
                    evidence=f"the engine failed: {type(error).__name__}: {why}",
                )
            )

    async def _stop(self, order: StopAttempt, generation: int) -> None:
        for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._engine.stop(order, generation)
            except Exception as error:
                log.error("the engine could not stop %s; it is told again", order.key, exc_info=error)
            else:
                return
            if not self.is_held(order.key) or await self._is_closed_within(pause_s):
                return

    async def _is_closed_within(self, pause_s: float) -> bool:
        try:
            async with asyncio.timeout(pause_s):
                await self._is_closing.wait()
        except TimeoutError:
            return False
        return True


async def _after(before: asyncio.Task[None] | None, work: Coroutine[Any, Any, None]) -> None:
    if before is not None:
        await asyncio.wait((before,))
    await work
