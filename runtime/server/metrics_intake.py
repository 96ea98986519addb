"""Metrics that an engine found in a job's output: recorded before anything else of the same round is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.engines.contract import MetricsRead
from runtime.model.state import State
from runtime.tracking.ports import Store
from runtime.tracking.runs import record_points
from runtime_client.models import EventView

from .catalog import JobCatalog
from .hub import EventHub
from .inbox import Item


@dataclass(slots=True, kw_only=True)
class MetricsIntake:
    store: Store
    catalog: JobCatalog
    hub: EventHub
    clock: Callable[[], float]

    async def record(self, state: State, items: Sequence[Item]) -> list[Item]:
        """Write the metrics among the items, in one unit; return the other items.

        Words of an attempt that does not hold devices any more are dropped: it has been judged.

        Raises:
            StoreFailed: nothing was written.
        """
        found = [item for item in items if isinstance(item, MetricsRead) and _is_current(state, item)]
        rest: list[Item] = [item for item in items if not isinstance(item, MetricsRead)]
        if not found:
            return rest
        facts = await self.catalog.of(item.key.job_id for item in found)
        now_s = self.clock()

        def unit(connection: sa.Connection) -> list[frozenset[str]]:
            return [
                record_points(connection, facts[item.key.job_id].run_id, item.key.attempt, item.points, now_s)
                for item in found
            ]

        names = await self.store.write(unit)
        self.hub.publish(
            metrics_logged(item.key.job_id, facts[item.key.job_id].run_id, keys, now_s)
            for item, keys in zip(found, names, strict=True)
        )
        return rest


def metrics_logged(job_id: str | None, run_id: str, keys: frozenset[str], at_s: float) -> EventView:
    """A passing event: it is not journalled and can not be replayed."""
    return EventView(
        seq=None,
        type="metrics_logged",
        at=at_s,
        actor="gateway",
        job_id=job_id,
        data={"job_id": job_id, "run_id": run_id, "keys": sorted(keys)},
    )


def _is_current(state: State, item: MetricsRead) -> bool:
    job = state.jobs.get(item.key.job_id)
    return job is not None and job.attempt is not None and job.attempt.number == item.key.attempt
