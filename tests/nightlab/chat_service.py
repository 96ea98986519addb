"""The agent service's API of a home on loopback, as commands find it, in this process."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import uvicorn

from agent.chat.entry import EntryKind, ReplyPart
from agent.chat.hub import Hub
from agent.chat.talk import Talk
from agent.chat.tools import ALL
from agent.store.chats import ChatStore, TurnOver
from agent.store.store import AgentStore
from agent.web.address import port_before, write_address
from agent.web.app import create_app
from agent.web.keys import open_keys
from nightlab.services.settings import ServiceFiles
from nightlab.services.state import Phase, ServicePhase, ServiceState, SupervisorState, locked


class Told(Talk):
    """Answers what is no command with `reply`, a word at a time, once `may_go_on` is set."""

    reply = "the best of s1 is s1-t1"
    may_go_on: threading.Event

    def begin(self, chat_id: str) -> None:
        chats = ChatStore(self._store)
        said = chats.entries(chat_id)[-1]
        if said.kind is not EntryKind.SAID or said.text.startswith("/"):
            super().begin(chat_id)
            return
        self.hub.news(chat_id)
        threading.Thread(target=self._write, args=(chats, chat_id), daemon=True).start()

    def _write(self, chats: ChatStore, chat_id: str) -> None:
        for word in self.reply.split(" "):
            self.hub.text(chat_id, f"{word} ")
        self.may_go_on.wait(30)
        if self._closing.is_set():
            return
        with suppress(TurnOver):
            chats.add(chat_id, EntryKind.REPLY, ReplyPart(model="told"), self.reply, by="told", ends_turn=True)
            self.hub.news(chat_id)


@contextmanager
def told_home(home: Path) -> Iterator[None]:
    """A home whose supervisor is up, and whose agent service is this process."""
    files = ServiceFiles(home)
    files.folder.mkdir(parents=True, exist_ok=True)
    one = ServiceState(
        phase=ServicePhase.RUNNING, pid=os.getpid(), process_started_at=None, n_restarts=0, last_exit=None
    )
    state = SupervisorState(pid=os.getpid(), started_at=0.0, phase=Phase.RUNNING, services={"agent": one})
    files.state.write_text(json.dumps(asdict(state)))
    with locked(files.supervisor_lock):
        yield


@contextmanager
def chat_service(home: Path) -> Iterator[Told]:
    """Serve within the block, at the port that the home had before."""
    store = AgentStore.open(home)
    talk = Told(store, home, Hub(), tools=ALL)
    talk.may_go_on = threading.Event()
    app = create_app(store, open_keys(home), home, talk=talk)
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port_before(home) or 0,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    talk.start()
    write_address(home, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    try:
        yield talk
    finally:
        server.should_exit = True
        talk.close()
        talk.may_go_on.set()
        app.state.pulse.close()
        thread.join(timeout=10)
        store.close()
