"""The words of a talk with a language model, and the protocol of everything that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agent.llm.rung import Rung


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a model wants to be called; nothing of it is checked."""

    call_id: str
    name: str
    arguments: str
    """As the model wrote it: JSON where all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""
    call_id: str | None = None
    """Of a tool's answer: the call that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of the arguments, an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySchema:
    """The answer has to be JSON of this shape, where the endpoint can be held to it."""

    name: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    messages: tuple[Message, ...]
    purpose: str
    """What it is for, in the accounts: the name of the prompt, or `check`."""
    prompt_version: str | None = None
    """Hash of the prompt's text; goes into the archive and to each trial that comes of the answer."""
    tools: tuple[Tool, ...] = ()
    must_call: bool = False
    """One of the tools has to be called."""
    schema: ReplySchema | None = None
    max_tokens: int = 1024
    """Of the answer; counted against the budget before the call."""
    temperature: float | None = None
    """None: the endpoint's own."""
    rung: Rung | None = None
    """By which the answer is asked for; goes into the accounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool = False
    """The endpoint told nothing: counted by the length of the texts."""

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    """`max_tokens` cut it."""
    TOOLS = "tools"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    finish: Finish
    model: str
    """As the endpoint names it."""
    took_s: float
    first_token_s: float | None = None
    """From the start of the call; None: it was not streamed."""
    call_id: int | None = None
    """In the accounts; None: nobody keeps any."""


class Outcome(StrEnum):
    """What became of a reply; a call that gave none has its `Trouble` there."""

    USED = "used"
    UNUSABLE = "unusable"
    """It said nothing that was asked for."""


class Trouble(StrEnum):
    """Why there is no reply. What is worth trying again has been tried when it is told."""

    UNREACHABLE = "unreachable"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    TIMED_OUT = "timed_out"
    TOO_LONG = "too_long"
    """The messages do not fit the model's context."""
    REFUSED = "refused"
    """The endpoint does not take such a request (no tools, no schema): one rung lower may do."""
    GARBLED = "garbled"
    """What came was no answer of this protocol, or was cut off."""
    FAILED = "failed"
    """The endpoint failed (5xx)."""
    OVER_BUDGET = "over_budget"
    """The call was not made: it could cost more than is left."""
    FORBIDDEN = "forbidden"
    """The call was not made: real calls are an error here (tests)."""


class ModelError(Exception):
    """There is no reply; `str()` is a sentence that says what to do."""

    def __init__(self, trouble: Trouble, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.status = status
        """HTTP status, where there was one."""


class ChatModel(Protocol):
    """Something that answers. It blocks; a session calls it from a thread of its own."""

    @property
    def name(self) -> str:
        """Of the model, as the task gives it."""
        ...

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        """One answer.

        Args:
            deadline_s: For all tries together, in seconds.
            on_text: Is given each piece of text as it comes.

        Raises:
            ModelError: there is none.
        """
        ...


class Judged(Protocol):
    """Keeps accounts of calls: is told what became of a reply once it has been read.

    Until then a reply counts as used.
    """

    def judge(self, call_id: int, outcome: Outcome, note: str | None = None) -> None:
        """`note` says what was wrong, in a sentence.

        Raises:
            ModelError: it could not be written down.
        """
        ...
