"""What the API's routes work with: made by `assembly`, found through the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from runtime.engines.contract import Engine
from runtime.store.sql_writer import SqlWriter
from runtime.tracking.mirror import Mirror
from runtime.tracking.spool import Spool

from .config import ServerConfig
from .disk import DiskWatch
from .garbage import GarbageCollector
from .hub import EventHub
from .loop import Loop
from .sse import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    config: ServerConfig
    clock: Callable[[], float]
    started_at: float
    store: SqlWriter
    engine: Engine
    loop: Loop
    hub: EventHub
    disk: DiskWatch
    journal: Journal
    spool: Spool
    mirror: Mirror | None
    """None: no tracking server is configured; records stay here."""
    garbage: GarbageCollector


async def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services), "the app's lifespan makes them before the first request"
    return services


Svc = Annotated[Services, Depends(services_of)]
