"""Carries decided orders to the engine, off the loop: in order for each attempt, side by side across attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from runtime.engines.contract import AttemptKey, Engine, LaunchOrder, NodeReport, NotLaunched, StopAttempt
from runtime.model.states import ExitReason, StopCause

log = logging.getLogger(__name__)


class Dispatcher:
    """A named firewall: an engine that raises costs one attempt, not the server."""

    def __init__(self, engine: Engine, report: Callable[[NodeReport], None]) -> None:
        self._engine = engine
        self._report = report
        self._last_by_key: dict[AttemptKey, asyncio.Task[None]] = {}

    def start(self, order: LaunchOrder, generation: int) -> None:
        self._chain(order.key, self._start(order, generation))

    def stop(self, order: StopAttempt, generation: int) -> None:
        self._chain(order.key, self._stop(order, generation))

    async def drain(self) -> None:
        """Wait until everything handed in has been carried out."""
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
            await self._engine.start(order, generation)
        except Exception as error:
            log.error("the engine could not start %s", order.key, exc_info=error)
            await self._stop(
                StopAttempt(key=order.key, cause=StopCause.CANCEL, reason="its start failed", grace_s=0.0), generation
            )
            self._report(
                NotLaunched(
                    key=order.key,
                    generation=generation,
                    exit_reason=ExitReason.LAUNCHER_UNAVAILABLE,
                    evidence=f"the engine failed: {type(error).__name__}: {error}",
                )
            )

    async def _stop(self, order: StopAttempt, generation: int) -> None:
        try:
            await self._engine.stop(order, generation)
        except Exception as error:
            log.error("the engine could not stop %s", order.key, exc_info=error)


async def _after(before: asyncio.Task[None] | None, work: Coroutine[Any, Any, None]) -> None:
    if before is not None:
        await asyncio.wait((before,))
    await work
