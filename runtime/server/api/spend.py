"""What was spent, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Query
from starlette.responses import Response

from runtime.server.envelope import answer
from runtime.server.services import Services, Svc
from runtime.server.spending import (
    Account,
    Group,
    Purpose,
    Used,
    Window,
    accounts,
    kinds_of,
    name_by,
    present_seconds,
)
from runtime.store import usage
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind, Spend, SpendBy, SpendRow, SpendSplit

router = APIRouter(prefix="/v1", tags=["spend"])


@router.get("/spend", response_model=Envelope[Spend])
async def spend(services: Svc, since: Annotated[float, Query(ge=0)], by: SpendBy = SpendBy.PROJECT) -> Response:
    """Device time since then (seconds since the epoch), by session, user or project, and what became of it."""
    now_s = services.clock()
    if since >= now_s:
        raise refused(ErrorKind.INVALID, "invalid_value", "since: it is still to come", path="since")
    used = await _used(services, since)
    window = Window(since_s=since, until_s=now_s)
    nodes = services.loop.state.nodes.values()
    present = {(node.node_id, device.index): device.kind for node in nodes for device in node.devices}
    name_of = name_by(Group(by.value), services.loop.orders.user or "owner")
    found = accounts(used, window, kinds_of(used.node_events, present), name_of)
    held_s = sum(account.device_seconds(purpose) for account in found.values() for purpose in Purpose)
    there_s = present_seconds(used.node_events, {node.node_id: len(node.devices) for node in nodes}, window)
    prices = services.config.device_prices
    kinds = frozenset(kind or "unknown" for account in found.values() for kind in account.kinds)
    return answer(
        Spend(
            by=by,
            since=since,
            until=now_s,
            rows=tuple(_row(name, account, prices) for name, account in found.items()),
            idle_device_seconds=max(0.0, there_s - held_s),
            unpriced_kinds=tuple(sorted(kinds - set(prices))) if prices else (),
        )
    )


async def _used(services: Services, since_s: float) -> Used:
    def read(connection: sa.Connection) -> Used:
        rows = usage.attempts_since(connection, since_s)
        of_sessions = [row.job_id for row in rows if row.session_id is not None]
        cut_short = [row.job_id for row in rows if row.outcome is not None]
        return Used(
            attempts=rows,
            replicates=usage.jobs_with_tag(connection, of_sessions, "nightlab.purpose", "replicate"),
            checkpoints=usage.last_checkpoints(connection, cut_short),
            node_events=usage.node_events(connection),
        )

    return await services.store.read(read)


def _row(name: str, account: Account, prices: Mapping[str, float]) -> SpendRow:
    seconds = {purpose.value: account.device_seconds(purpose) for purpose in Purpose}
    cost = {purpose.value: account.cost(purpose, prices) for purpose in Purpose} if prices else None
    return SpendRow(name=name, device_seconds=SpendSplit(**seconds), cost=None if cost is None else SpendSplit(**cost))
