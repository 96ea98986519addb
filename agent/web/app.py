"""`create_app`: the API over an open store, as an ASGI app."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI

from agent.store.journal import Journal
from agent.store.store import AgentStore
from agent.web import control
from agent.web.envelope import install
from agent.web.events import Pulse
from agent.web.guard import Guard
from agent.web.keys import Keys
from agent.web.routes import router
from agent.web.session_routes import router as session_router
from runtime_client.models import API_VERSION


def create_app(store: AgentStore, keys: Keys, home: Path | None = None) -> FastAPI:
    """The app; whoever makes it keeps the store open and closes it.

    Args:
        home: where sessions keep edited code; None: none of it can be shown.
    """
    app = FastAPI(
        title="nightlab agent",
        version=str(API_VERSION),
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.store = store
    app.state.home = home
    app.state.pulse = Pulse(Journal(store).newest)
    install(app)
    app.include_router(router)
    app.include_router(control.router)
    app.include_router(session_router)
    app.add_middleware(Guard, keys=keys)
    return app
