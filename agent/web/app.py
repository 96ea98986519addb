"""`create_app`: the API over an open store, as an ASGI app."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI

from agent.chat.hub import Hub
from agent.chat.talk import Talk
from agent.chat.tools import ALL
from agent.store.journal import Journal
from agent.store.store import AgentStore
from agent.web import chats, control, session_routes, trial_routes
from agent.web.envelope import install
from agent.web.events import Pulse
from agent.web.guard import Guard
from agent.web.keys import Keys
from agent.web.page_files import BUILT, PageFiles
from agent.web.routes import router
from agent.web.safe_headers import SafeHeaders
from agent.web.trial_reading import Connect
from runtime_client.client import RuntimeClient
from runtime_client.models import API_VERSION

RUNTIME_ANSWERS_IN_S = 10.0


def create_app(
    store: AgentStore,
    keys: Keys,
    home: Path | None = None,
    *,
    talk: Talk | None = None,
    connect: Connect | None = None,
    page: Path = BUILT,
) -> FastAPI:
    """The app; whoever makes it keeps the store open and closes it.

    Args:
        home: where sessions keep edited code; None: none of it can be shown.
        talk: what works on the turns of chats; None: one is made. Whoever makes the app starts and closes it, as
            `app.state.talk`.
        connect: how the runtime is reached; None: as the home's files say.
        page: the folder of the built web page; it need not exist.
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
    app.state.talk = talk or Talk(store, home, Hub(), tools=ALL, connect=connect)
    app.state.connect = connect or (lambda: RuntimeClient.from_home(home or Path(), timeout_s=RUNTIME_ANSWERS_IN_S))
    app.state.pulse = Pulse(Journal(store).newest)
    install(app)
    app.include_router(router)
    app.include_router(control.router)
    app.include_router(chats.router)
    app.include_router(session_routes.router)
    app.include_router(trial_routes.router)
    app.include_router(trial_routes.runs)
    app.add_middleware(PageFiles, folder=page)
    app.add_middleware(Guard, keys=keys)
    app.add_middleware(SafeHeaders)
    return app
