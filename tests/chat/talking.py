"""A chat with a scripted model and tools that record what they do: import what a test module needs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent.chat.entry import AskPart, ChatState, Entry, EntryKind
from agent.chat.hub import Hub
from agent.chat.models import Models, Opened
from agent.chat.talk import Talk
from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.llm.chat import ChatModel
from agent.llm.scripted import Said, Scripted, ScriptedModel, called
from agent.store.chats import Chat, ChatStore
from agent.store.store import AgentStore
from agent.task import Model
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec

WAIT_S = 30.0
CANCEL = called("cancel_job", '{"job": "j1"}')


class OfJob(BaseModel):
    model_config = ConfigDict(extra="forbid")
    job: str


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Logs:
    """Reads what the test has put there as a job's output."""

    name = "read_logs"
    description = "The last lines of a job's output."
    arguments = OfJob
    slash = None
    acts = False

    def __init__(self) -> None:
        self.text = "epoch 1 loss 0.5"
        self.error: Exception | None = None

    def read(self, desk: Desk, arguments: OfJob) -> Result:
        if self.error is not None:
            raise self.error
        return Result(text=self.text)

    def foresee(self, desk: Desk, arguments: OfJob) -> Foreseen:
        raise AssertionError

    def act(self, desk: Desk, arguments: OfJob, by: str) -> Result:
        raise AssertionError


class Cancel:
    """Records what it was made to do."""

    name = "cancel_job"
    description = "Ask a job to end."
    arguments = OfJob
    slash = Slash(name="cancel", usage="/cancel JOB", summary="cancel a job", parse=lambda words: {"job": words[0]})
    acts = True

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.foreseen = Foreseen(what="cancel job j1", asks=True, why="it ends work", device_seconds=10.0)
        self.lasts = threading.Event()
        self.lasts.set()

    def read(self, desk: Desk, arguments: OfJob) -> Result:
        raise AssertionError

    def foresee(self, desk: Desk, arguments: OfJob) -> Foreseen:
        return self.foreseen

    def act(self, desk: Desk, arguments: OfJob, by: str) -> Result:
        self.lasts.wait(WAIT_S)
        self.done.append((arguments.job, by))
        return Result(text=f"{arguments.job} is cancelled")


@dataclass(slots=True)
class ModelFor:
    """Implements `Models`: the same model in every chat."""

    model: ChatModel
    settings: Model = Model(name="scripted")  # noqa: RUF009
    close: Callable[[], None] = lambda: None

    def name_of(self, chat: Chat) -> str | None:
        return self.model.name

    def open(self, chat: Chat) -> Opened:
        return Opened(model=self.model, settings=self.settings, close=self.close)

    def ask_above_device_minutes(self, chat: Chat) -> float:
        return 10.0


@dataclass(slots=True)
class Room:
    """One chat, `c1`, and what is around it."""

    store: AgentStore
    home: Path
    now: list[float]
    runtime: FakeRuntime = field(default_factory=lambda: FakeRuntime(lambda _: FakeOutcome()))
    logs: Logs = field(default_factory=Logs)
    cancel: Cancel = field(default_factory=Cancel)
    hub: Hub = field(default_factory=Hub)
    chat_id: str = "c1"

    @property
    def chats(self) -> ChatStore:
        return ChatStore(self.store)

    @property
    def entries(self) -> list[Entry]:
        return self.chats.entries(self.chat_id)

    @property
    def kinds(self) -> list[str]:
        return [one.kind.value for one in self.entries]

    @contextmanager
    def talk(self, models: Models) -> Iterator[Talk]:
        made = Talk(
            self.store, self.home, self.hub, tools=(self.logs, self.cancel), connect=self._connect, models=models
        )
        made.start()
        try:
            yield made
        finally:
            made.close()

    @contextmanager
    def scripted(self, *script: Scripted, **settings: Any) -> Iterator[tuple[Talk, ScriptedModel]]:
        model = ScriptedModel(script)
        with self.talk(ModelFor(model, Model(name="scripted", **settings))) as talk:
            yield talk, model

    @contextmanager
    def _connect(self) -> Iterator[FakeRuntime]:
        yield self.runtime

    def say(self, talk: Talk, text: str, *, by: str = "ann", within_s: float = WAIT_S) -> None:
        """And wait until the turn is over or asks."""
        self.chats.say(self.chat_id, text, by=by)
        talk.begin(self.chat_id)
        self.settle(within_s=within_s)

    def settle(self, *, within_s: float = WAIT_S) -> None:
        ends_at = time.monotonic() + within_s
        while self.chats.chat(self.chat_id).state is ChatState.WORKING:
            assert time.monotonic() < ends_at, self.entries
            time.sleep(0.005)

    def asked(self) -> tuple[int, AskPart]:
        """The newest question."""
        last = self.entries[-1]
        assert last.kind is EntryKind.ASK, self.entries
        assert isinstance(last.part, AskPart)
        return last.number, last.part

    def submit_job(self) -> str:
        return self.runtime.submit(JobSpec(experiment_name="toy", command="train")).job_id


def made_room(store: AgentStore, home: Path, now: list[float], session_id: str | None = None) -> Room:
    ChatStore(store).make(session_id, by="ann")
    return Room(store=store, home=home, now=now)


def several(*calls: Said) -> Said:
    """One answer that makes several calls."""
    made = [replace(call, call_id=f"x{at}") for at, one in enumerate(calls) for call in one.tool_calls]
    return Said(tool_calls=tuple(made))


def texts(entries: Sequence[Entry], kind: EntryKind) -> list[str]:
    return [one.text for one in entries if one.kind is kind]
