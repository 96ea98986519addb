"""`Talk`: the threads in which turns are worked on. What a turn does is elsewhere; what was done stands in the store.

A turn that waits for a person holds no thread. One that was under way when the service went down is ended at the next
start, and says so.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from agent.chat import commanded
from agent.chat.entry import AskPart, ChatState, EntryKind, ReplyPart, TroublePart, Verdict
from agent.chat.grammar import is_command
from agent.chat.hub import Hub
from agent.chat.models import Models, ModelsOfChats, Opened
from agent.chat.tool import ChatTool, Desk
from agent.chat.turn import Step, next_step, pending, turns
from agent.checkpoints import quiet_environment
from agent.llm.chat import ModelError
from agent.store.chats import AnsweredBefore, Chat, ChatNotFound, ChatStore, TurnBook, TurnOver
from agent.store.faults import DiskFull
from agent.store.store import AgentStore
from runtime_client.client import RuntimeClient
from runtime_client.protocol import Runtime

N_TURNS = 32
"""At work at once; others wait. A turn mostly waits for a model, and no command should wait for one."""
LOOK_EVERY_S = 1.0
NO_MODEL = "no_model"
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
        models: Models | None = None,
    ) -> None:
        """
        Args:
            connect: how the runtime is reached; None: as the home's files say.
            models: which model answers; None: as the tasks of sessions and the home's `chat.yaml` say.
        """
        self.hub = hub
        self.tools = tuple(tools)
        self._store, self._chats, self._home = store, ChatStore(store), home or Path()
        self._connect = connect or (lambda: RuntimeClient.from_home(self._home, timeout_s=10.0))
        self._models = models or ModelsOfChats(store, self._home, self._connect)
        self._workers = ThreadPoolExecutor(max_workers=N_TURNS, thread_name_prefix="chat")
        self._at_work: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._hang_up: dict[str, Callable[[], None]] = {}
        self._closing = threading.Event()
        self._is_warm = False
        self._clockwork: threading.Thread | None = None

    def start(self) -> None:
        """Take up what an earlier service left, and keep deadlines from now on."""
        for chat in self._chats.unfinished():
            if chat.state is ChatState.WORKING:
                self._take_up(chat.chat_id)
        self._clockwork = threading.Thread(target=self._keep_deadlines, name="chat-deadlines", daemon=True)
        self._clockwork.start()

    def model_of(self, chat: Chat) -> str | None:
        """Name of the model that answers in a chat; None: none does, only commands work."""
        name = self._models.name_of(chat)
        if name is not None and not self._is_warm and not self._closing.is_set():
            self._is_warm = True
            self._workers.submit(_warm_up)
        return name

    def begin(self, chat_id: str) -> None:
        """Something was said: work on it, on a thread."""
        self.hub.news(chat_id)
        if not self._closing.is_set():
            self._workers.submit(self._work, chat_id)

    def answered(self, chat_id: str) -> None:
        """A question was answered: go on."""
        self.begin(chat_id)

    def stop(self, chat_id: str, by: str) -> None:
        """End the turn under way, if there is one. What the model has said so far stays; what was done stays done.

        Raises:
            ChatNotFound: there is no such chat.
        """
        written = self.hub.written(chat_id)
        if written:
            with suppress(TurnOver):
                self._chats.add(chat_id, EntryKind.REPLY, ReplyPart(is_cut=True), written, by="model")
        self._chats.stop(chat_id, by=by, text=f"{by} stopped it")
        hang_up = self._hang_up.get(chat_id)
        if hang_up is not None:
            hang_up()
        self.hub.news(chat_id)

    def close(self) -> None:
        """Calls that are under way end; the next service says what became of their turns."""
        self._closing.set()
        for hang_up in list(self._hang_up.values()):
            hang_up()
        self._workers.shutdown(wait=False, cancel_futures=True)
        self.hub.close()

    def _work(self, chat_id: str) -> None:
        """One thread works on a chat at a time; a second one finds what the first has left to do.

        A firewall: a bug in one turn ends that turn, which says so, and no other.
        """
        try:
            with self._at_work[chat_id], suppress(TurnOver):
                self._turn(chat_id)
        except Exception as error:
            if self._closing.is_set():
                return
            log.error("bug in a turn of chat %s", chat_id, exc_info=error)
            said = f"a bug of ours ({type(error).__name__}); the agent service's log has the details"
            with suppress(TurnOver, ChatNotFound, DiskFull):
                self._chats.add(chat_id, EntryKind.TROUBLE, TroublePart(code="bug"), said, ends_turn=True)
        finally:
            self.hub.news(chat_id)

    def _turn(self, chat_id: str) -> None:
        chat, turn = self._chats.chat(chat_id), turns(self._chats.entries(chat_id))[-1]
        if next_step(turn) not in (Step.ASK_MODEL, Step.CALL):
            return
        desk = self._desk(chat)
        book = TurnBook(self._chats, chat_id, turn[0].number, is_closing=self._closing.is_set)
        if is_command(turn[0].text):
            commanded.go_on(book, desk, self.tools)
            return
        if self._models.name_of(chat) is not None:
            quiet_environment()
        try:
            opened = self._models.open(chat)
        except ModelError as error:
            code = NO_MODEL if self._models.name_of(chat) is None else error.trouble.value
            book.add(EntryKind.TROUBLE, TroublePart(code=code), str(error), ends_turn=True)
            return
        with self._hung_up_after(chat_id, opened):
            self._talk(book, desk, opened)

    def _talk(self, book: TurnBook, desk: Desk, opened: Opened) -> None:
        from agent.chat.answering import Answering
        from agent.chat.graph import TurnGraph

        TurnGraph(Answering(book=book, desk=desk, hub=self.hub, opened=opened, tools=self.tools)).go()

    @contextmanager
    def _hung_up_after(self, chat_id: str, opened: Opened) -> Iterator[None]:
        """From now on `stop` and `close` end its calls."""
        self._hang_up[chat_id] = opened.close
        try:
            yield
        finally:
            del self._hang_up[chat_id]
            opened.close()

    def _desk(self, chat: Chat) -> Desk:
        return Desk(
            store=self._store,
            home=self._home,
            runtime=self._connect,
            chat_id=chat.chat_id,
            session_id=chat.session_id,
            ask_above_device_minutes=self._models.ask_above_device_minutes(chat),
        )

    def _take_up(self, chat_id: str) -> None:
        """A turn that an earlier service was at work on: it is ended, for nobody knows whether an action was begun."""
        turn = turns(self._chats.entries(chat_id))[-1]
        found = pending(turn)
        acting = {one.name for one in self.tools if one.acts}
        text = "the service went down in the middle of this turn; say it again"
        if found is not None and found.part.tool in acting:
            text = f"the service went down while {found.part.tool} was due; look whether it was done, then say it again"
        self._chats.stop(chat_id, by="nightlab", text=text)

    def _keep_deadlines(self) -> None:
        """A firewall: what goes wrong at one look is tried again at the next."""
        while not self._closing.wait(LOOK_EVERY_S):
            try:
                for chat in self._chats.unfinished():
                    if chat.state is ChatState.ASKING:
                        self._expire(chat.chat_id)
            except Exception as error:
                log.error("deadlines of chats could not be looked at", exc_info=error)

    def _expire(self, chat_id: str) -> None:
        last = self._chats.entries(chat_id)[-1]
        if last.kind is not EntryKind.ASK or not isinstance(last.part, AskPart):
            return
        if self._store.clock() >= last.part.expires_at:
            with suppress(AnsweredBefore):
                self._chats.answer(chat_id, last.number, Verdict.EXPIRED, by="nightlab")
            self.answered(chat_id)


def _warm_up() -> None:
    """What a first turn would have to wait for: importing takes a second."""
    quiet_environment()
    import agent.chat.graph
    import agent.llm.openai_chat  # noqa: F401
