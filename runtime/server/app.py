"""The HTTP door: `create_app` makes it, `serve` runs it in this process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

from runtime.engines.contract import Engine
from runtime.engines.local import LocalEngine
from runtime.tracking.gateway import gateway_router
from runtime_client.models import API_VERSION

from .api import arrays, budgets, events, garbage, jobs, logs, operator, overview, runs, spend
from .assembly import Parts, open_services
from .config import ServerConfig
from .envelope import install
from .guard import Guard
from .keys import Keys, open_keys
from .metrics_intake import metrics_logged
from .services import Services
from .serving import serve_app
from .steady_clock import SteadyClock


def create_app(
    config: ServerConfig, *, engine: Engine | None = None, clock: Callable[[], float] | None = None
) -> FastAPI:
    """The server as an ASGI app; its lifespan opens the store and the engine, and closes them.

    Makes the home folder and the key files where they are missing.

    Args:
        engine: None: the local engine with `config.devices`.
        clock: seconds since the epoch; None: a `SteadyClock`.
    """
    config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    keys = open_keys(config.token_path, config.secret_path)
    used = engine or LocalEngine(
        home=config.home,
        attempts_dir=config.attempts_dir,
        devices=config.devices,
        environ=dict(os.environ),
        log_cap_bytes=config.policy.log_cap_mb * 2**20,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        def on_broken() -> None:
            app.state.on_broken()

        def on_parted() -> None:
            app.state.on_parted()

        parts = Parts(
            config=config,
            keys=keys,
            engine=used,
            clock=clock or SteadyClock(),
            on_broken=on_broken,
            on_parted=on_parted,
        )
        async with open_services(parts) as services:
            app.state.services = services
            app.include_router(_gateway(services, keys))
            yield

    app = FastAPI(
        title="nightlab runtime",
        version=str(API_VERSION),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.on_broken = app.state.on_parted = _nobody_listens
    app.state.keys = keys
    install(app)
    for part in (overview, jobs, arrays, logs, runs, events, operator, budgets, garbage, spend):
        app.include_router(part.router)
    app.add_middleware(Guard, config=config, keys=keys)
    return app


def _gateway(services: Services, tokens: Keys) -> APIRouter:
    """The MLflow calls that jobs make."""

    def notify(job_id: str, run_id: str, keys: frozenset[str]) -> None:
        services.hub.publish([metrics_logged(job_id, run_id, keys, services.clock())])

    return gateway_router(
        store=services.store,
        secret=tokens.attempt_secret,
        is_owner=tokens.is_owner,
        fence=services.loop,
        notify=notify,
        clock=services.clock,
        spool_dir=services.config.spool_dir,
        mirror=services.mirror,
        max_artifact_bytes=services.config.max_artifact_bytes,
    )


def serve(config: ServerConfig) -> None:
    """Run the server until it is told to stop (SIGTERM, SIGINT); running attempts go on without it.

    Raises:
        SystemExit: 2 when it can not start (the reason is printed), 1 when the loop gave up.
    """
    serve_app(config, create_app)


def _nobody_listens() -> None:
    """What happens when the loop ends by itself in an app that nobody serves: nothing."""
