"""Which model answers in a chat, and who pays: the session that it belongs to, by its budgets of tokens and money.

Calls of a chat are rows among the session's own, booked before they are made and corrected after; so neither a session
nor its chats can spend what the other has used, and reports count both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.chat.settings import ChatSettings, ChatSettingsError, chat_settings
from agent.chat.tool import OpenRuntime
from agent.llm.archive import without_secrets
from agent.llm.chat import ChatModel, ModelError, Reply, Request, Trouble
from agent.llm.opening import base_url_of, key_of, open_chat, open_model
from agent.llm.prices import known_price
from agent.llm.redaction import secrets_in
from agent.store.chats import Chat
from agent.store.fenced import AddingWriter
from agent.store.store import AgentStore, SessionNotFound
from agent.task import Budgets, Model, Prices, Task
from agent.tools.errors import ToolError
from agent.tools.jobs import live_jobs
from runtime_client.errors import RuntimeClientError

NONE = (
    "no language model is set up for this chat; the commands work all the same: /help lists them. A model is named by "
    "`model:` in the task of its session, or in chat.yaml in nightlab's home"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A model that can be asked; whoever opened it closes it."""

    model: ChatModel
    settings: Model
    price: Prices | None = None
    """None: unknown."""
    close: Callable[[], None] = lambda: None
    """Ends the calls that are under way, from whatever thread."""


class Models(Protocol):
    def name_of(self, chat: Chat) -> str | None:
        """None: nobody answers, only commands work."""
        ...

    def open(self, chat: Chat) -> Opened:
        """
        Raises:
            ModelError: there is none, or it can not be used; the sentence says what to change.
        """
        ...

    def ask_above_device_minutes(self, chat: Chat) -> float:
        """What costs more is asked about."""
        ...


class ModelsOfChats:
    """Implements `Models`, by the tasks of sessions and by `chat.yaml`."""

    def __init__(
        self, store: AgentStore, home: Path, connect: OpenRuntime, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._store, self._home, self._connect, self._environ = store, home, connect, environ

    def name_of(self, chat: Chat) -> str | None:
        try:
            model = self._settings(chat, self._task(chat))
        except ModelError:
            return None
        return None if model is None else model.name

    def ask_above_device_minutes(self, chat: Chat) -> float:
        """The least where the file can not be read: then all that costs anything is asked about."""
        task = self._task(chat)
        if task is not None:
            return task.autonomy.ask_above_device_minutes
        try:
            return chat_settings(self._home).ask_above_device_minutes
        except ChatSettingsError:
            return 0.0

    def open(self, chat: Chat) -> Opened:
        task = self._task(chat)
        settings = self._settings(chat, task)
        if settings is None:
            raise ModelError(Trouble.UNREACHABLE, NONE)
        base_url = base_url_of(settings, self._environ)
        price = settings.price or known_price(settings.name, base_url)
        if task is None or chat.session_id is None:
            key = key_of(settings, base_url, self._environ)
            plain = open_chat(settings, self._environ)
            secrets = secrets_in(self._environ) | ({key} if key else set())
            return Opened(model=_Silent(plain, frozenset(secrets)), settings=settings, price=price, close=plain.close)
        metered = open_model(
            task.model_copy(update={"model": settings, "budgets": _limits_of_a_model(task.budgets)}),
            self._home / "chats",
            AddingWriter(self._store, chat.session_id),
            running_device_seconds=lambda: self._running_device_seconds(task, str(chat.session_id)),
            environ=self._environ,
        )
        return Opened(model=metered, settings=settings, price=price, close=metered.close)

    def _task(self, chat: Chat) -> Task | None:
        """As it is now, with what people have changed."""
        if chat.session_id is None:
            return None
        try:
            return Task.model_validate_json(self._store.session(chat.session_id).task_json)
        except SessionNotFound:
            return None

    def _settings(self, chat: Chat, task: Task | None) -> Model | None:
        if task is not None and task.model is not None:
            return task.model
        return self._file().model

    def _file(self) -> ChatSettings:
        try:
            return chat_settings(self._home)
        except ChatSettingsError as error:
            raise ModelError(Trouble.UNREACHABLE, str(error)) from error

    def _running_device_seconds(self, task: Task, session_id: str) -> float:
        """Of its unfinished jobs, where their time costs money; none while the runtime is away."""
        if task.budgets.usd_per_device_hour is None or task.budgets.cost_usd is None:
            return 0.0
        now = self._store.clock()
        try:
            with self._connect() as runtime:
                jobs = live_jobs(runtime, session_id)
        except (ToolError, RuntimeClientError):
            return 0.0
        return sum(job.device_seconds(now) for job in jobs.values())


class _Silent:
    """A model that is shown no secrets; nothing of it is booked."""

    def __init__(self, inner: ChatModel, secrets: frozenset[str]) -> None:
        self._inner, self._secrets = inner, secrets

    @property
    def name(self) -> str:
        return self._inner.name

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        return self._inner.complete(without_secrets(request, self._secrets), deadline_s=deadline_s, on_text=on_text)


def _limits_of_a_model(budgets: Budgets) -> Budgets:
    """Time that is used up stops the search; people may still talk about it."""
    return budgets.model_copy(update={"wall_minutes": None, "device_seconds": None})
