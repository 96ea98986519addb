"""The output of ended attempts as artifacts of their runs: `logs/attempt_<n>/...`, bounded, through the outbox.

Done one after the other beside the loop. What can not be kept now (a full disk, a crash in between) is still in the
attempt's folder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import sqlalchemy as sa

from runtime.engines.contract import MAIN_STREAM, AttemptKey, Engine
from runtime.store import history
from runtime.store.writer import StoreFailed
from runtime.tracking.ports import Store
from runtime.tracking.recording import push
from runtime.tracking.spool import Spool

from .logs import MOST_RANKS

log = logging.getLogger(__name__)

MAIN_BYTES = 8 * 2**20
RANK_BYTES = 2**20
_HEAD_PART = 4
"""A quarter of what is kept is the head."""


@dataclass(slots=True, kw_only=True)
class LogArtifacts:
    engine: Engine
    store: Store
    spool: Spool
    wake: Callable[[], None]
    """Told when the outbox has grown."""
    _waiting: asyncio.Queue[tuple[AttemptKey, str | None]] = field(default_factory=asyncio.Queue)

    def ended(self, keys: Iterable[AttemptKey]) -> None:
        """Keep the output of these attempts, soon."""
        for key in keys:
            self._waiting.put_nowait((key, None))

    def stacks(self, key: AttemptKey, text: str) -> None:
        """Keep where the processes of an attempt were."""
        self._waiting.put_nowait((key, text))

    async def run(self) -> None:
        while True:
            key, stacks = await self._waiting.get()
            try:
                await self._keep(key, stacks)
            except (OSError, StoreFailed) as error:
                log.warning("the output of %s is not kept as an artifact: %s", key, error)

    async def _keep(self, key: AttemptKey, stacks: str | None) -> None:
        texts = await self._outputs(key) if stacks is None else {"stacks.txt": stacks.encode()}
        files = {
            f"logs/attempt_{key.attempt}/{name}": await asyncio.to_thread(self.spool.put, content)
            for name, content in texts.items()
            if content
        }

        def unit(connection: sa.Connection) -> None:
            row = history.get_job(connection, key.job_id)
            if row is None:
                return
            for path, file in files.items():
                push(connection, row.run_id, "artifact", {"path": path, "file": file})

        if files:
            await self.store.write(unit)
            self.wake()

    async def _outputs(self, key: AttemptKey) -> dict[str, bytes]:
        names = (await self.engine.log_streams(key))[: 2 * MOST_RANKS + 1]
        return {file_name(name): await self._ends(key, name) for name in names}

    async def _ends(self, key: AttemptKey, stream: str) -> bytes:
        """The whole of a stream, or its head and its tail."""
        most = MAIN_BYTES if stream == MAIN_STREAM else RANK_BYTES
        size = (await self.engine.read_log(key, 0, 0, stream)).size
        if size <= most:
            return (await self.engine.read_log(key, 0, most, stream)).content
        head = (await self.engine.read_log(key, 0, most // _HEAD_PART, stream)).content
        tail = (await self.engine.read_log(key, size - (most - len(head)), most, stream)).content
        return head + b"\n[nightlab: %d bytes of output are not here]\n" % (size - len(head) - len(tail)) + tail


def file_name(stream: str) -> str:
    """`output.log`, `rank_3.log`, `rank_3.err.log`."""
    return "output.log" if stream == MAIN_STREAM else f"rank_{stream}.log"
