"""`Talk`: the threads in which turns are worked on. What a turn does is elsewhere; what was done stands in the store.

A turn that waits for a person holds no thread. One that was under way when the service went down is ended at the next
start, and says so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from agent.chat import commanded
from agent.chat.entry import AnswerPart, AskPart, ChatState, Entry, EntryKind, TroublePart, Verdict
from agent.chat.grammar import is_command
from agent.chat.hub import Hub
from agent.chat.tool import ChatTool, Desk
from agent.store.chats import AnsweredBefore, Chat, ChatNotFound, ChatStore, TurnOver
from agent.store.faults import DiskFull
from agent.store.store import AgentStore
from runtime_client.client import RuntimeClient
from runtime_client.protocol import Runtime

N_TURNS = 8
"""At work at once; others wait for their turn."""
LOOK_EVERY_S = 1.0
NO_MODEL = "no language model is set up for this chat; the commands work all the same: /help lists them"
RESTARTED = "the service went down in the middle of this turn; say it again"
log = logging.getLogger(__name__)


class Talk:
    def __init__(
        self,
        store: AgentStore,
        home: Path | None,
        hub: Hub,
        *,
        tools: Sequence[ChatTool],
        connect: Callable[[], AbstractContextManager[Runtime]] | None = None,
    ) -> None:
        """
        Args:
            connect: how the runtime is reached; None: as the home's files say.
        """
        self.hub = hub
        self.tools = tuple(tools)
        self._store, self._chats, self._home = store, ChatStore(store), home or Path()
        self._connect = connect or (lambda: RuntimeClient.from_home(self._home, timeout_s=10.0))
        self._workers = ThreadPoolExecutor(max_workers=N_TURNS, thread_name_prefix="chat")
        self._closing = threading.Event()
        self._clockwork: threading.Thread | None = None

    def start(self) -> None:
        """Take up what an earlier service left, and keep deadlines from now on."""
        for chat in self._chats.unfinished():
            if chat.state is ChatState.WORKING:
                self._chats.stop(chat.chat_id, by="nightlab", text=RESTARTED)
        self._clockwork = threading.Thread(target=self._keep_deadlines, name="chat-deadlines", daemon=True)
        self._clockwork.start()

    def model_of(self, chat: Chat) -> str | None:
        """Name of the model that answers in a chat; None: none does, only commands work."""
        return None

    def begin(self, chat_id: str) -> None:
        """Something was said: work on it, on a thread."""
        self.hub.news(chat_id)
        self._workers.submit(self._work, chat_id)

    def answered(self, chat_id: str) -> None:
        """A question was answered: go on."""
        self.begin(chat_id)

    def stop(self, chat_id: str, by: str) -> None:
        """End the turn under way, if there is one.

        Raises:
            ChatNotFound: there is no such chat.
        """
        self._chats.stop(chat_id, by=by, text=f"{by} stopped it")
        self.hub.news(chat_id)

    def close(self) -> None:
        self._closing.set()
        self._workers.shutdown(wait=False, cancel_futures=True)
        self.hub.close()

    def _work(self, chat_id: str) -> None:
        try:
            with suppress(TurnOver):
                self._turn(chat_id)
        except Exception as error:
            log.error("bug in a turn of chat %s", chat_id, exc_info=error)
            said = f"a bug of ours ({type(error).__name__}); the agent service's log has the details"
            with suppress(TurnOver, ChatNotFound, DiskFull):
                self._chats.add(chat_id, EntryKind.TROUBLE, TroublePart(code="bug"), said, ends_turn=True)
        finally:
            self.hub.news(chat_id)

    def _turn(self, chat_id: str) -> None:
        chat, entries = self._chats.chat(chat_id), self._chats.entries(chat_id)
        said = next(one for one in reversed(entries) if one.kind is EntryKind.SAID)
        desk = self._desk(chat)
        if is_command(said.text):
            if entries[-1].kind is EntryKind.SAID:
                commanded.begin(self._chats, desk, said, self.tools, self._store.clock())
            elif entries[-1].kind is EntryKind.ANSWER:
                commanded.go_on(self._chats, desk, _asked(entries), entries[-1], self.tools)
            return
        self._chats.add(chat_id, EntryKind.TROUBLE, TroublePart(code="no_model"), NO_MODEL, ends_turn=True)

    def _desk(self, chat: Chat) -> Desk:
        return Desk(
            store=self._store,
            home=self._home,
            runtime=self._connect,
            chat_id=chat.chat_id,
            session_id=chat.session_id,
            ask_above_device_minutes=10.0,
        )

    def _keep_deadlines(self) -> None:
        while not self._closing.wait(LOOK_EVERY_S):
            with suppress(DiskFull):
                for chat in self._chats.unfinished():
                    if chat.state is ChatState.ASKING:
                        self._expire(chat.chat_id)

    def _expire(self, chat_id: str) -> None:
        last = self._chats.entries(chat_id)[-1]
        if last.kind is not EntryKind.ASK or not isinstance(last.part, AskPart):
            return
        if self._store.clock() >= last.part.expires_at:
            with suppress(AnsweredBefore):
                self._chats.answer(chat_id, last.number, Verdict.EXPIRED, by="nightlab")
            self.answered(chat_id)


def _asked(entries: Sequence[Entry]) -> Entry:
    part = entries[-1].part
    assert isinstance(part, AnswerPart)
    return entries[part.ask - 1]
