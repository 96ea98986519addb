"""Frees disk space: when somebody asks, and from time to time if the policy says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.store.retained import job_files
from runtime.tracking.ports import Store
from runtime_client.models import Garbage, GarbageRequest, GarbageRow

from .config import ServerConfig
from .retention import GOING, Holding, Reason, Rules, clear, survey

log = logging.getLogger(__name__)
GB = 10**9


@dataclass(slots=True, kw_only=True)
class GarbageCollector:
    config: ServerConfig
    store: Store
    clock: Callable[[], float]

    async def collect(self, request: GarbageRequest) -> Garbage:
        """What could go and, unless it is a dry run, it has gone. Jobs are read before folders, so none is too new."""
        jobs = await self.store.read(job_files)
        quota_gb = request.quota_gb if request.quota_gb is not None else self.config.policy.disk_quota_gb or None
        rules = Rules(
            now_s=self.clock(),
            older_than_s=None if request.older_than_days is None else request.older_than_days * 86400,
            quota_bytes=None if quota_gb is None else int(quota_gb * GB),
        )
        found = await asyncio.to_thread(survey, self.config.attempts_dir, jobs, rules)
        done = [] if request.dry_run else await asyncio.to_thread(lambda: list(clear(found)))
        failures = {holding.path: why for holding, why in done if why is not None}
        going = [holding for holding in found if holding.reason in GOING]
        return Garbage(
            is_dry_run=request.dry_run,
            rows=tuple(_rows(found)),
            n_bytes_freed=sum(holding.n_bytes for holding in going if holding.path not in failures),
            failures=tuple(failures.values()),
        )

    async def run(self) -> None:
        """For ever, every `gc_every_hours`; at once returns when that is 0."""
        while (pause_s := self.config.policy.gc_every_hours * 3600) > 0:
            await asyncio.sleep(pause_s)
            freed = await self.collect(GarbageRequest(dry_run=False))
            log.info("freed %d bytes of disk space", freed.n_bytes_freed)
            for failure in freed.failures:
                log.warning("could not be deleted: %s", failure)


def _rows(found: Sequence[Holding]) -> list[GarbageRow]:
    by_reason = {reason: [each for each in found if each.reason is reason] for reason in Reason}
    return [
        GarbageRow(
            reason=reason.value,
            goes=reason in GOING,
            n_folders=len(holdings),
            n_bytes=sum(each.n_bytes for each in holdings),
        )
        for reason, holdings in by_reason.items()
        if holdings
    ]
