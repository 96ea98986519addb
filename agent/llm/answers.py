"""What an endpoint answers, whole or in pieces, read with forbearance and within bounds. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.llm.chat import Finish, Request, ToolCall, Usage
from agent.llm.counting import estimated_usage

MAX_CHARS = 200_000
"""Of one answer, text and arguments together: what is beyond is cut off, and the answer counts as cut."""
MAX_CALLS = 64
"""Tool calls of one answer."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Function(_Part):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _Call(_Part):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _TextPart(_Part):
    text: str | None = None


class _Said(_Part):
    """A message, or a piece of one."""

    content: str | list[_TextPart] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Choice(_Part):
    index: int = 0
    message: _Said | None = None
    delta: _Said | None = None
    finish_reason: str | None = None


class _Usage(_Part):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class Piece(_Part):
    """A whole completion, or one piece of a streamed one."""

    choices: list[_Choice] = Field(default_factory=list)
    usage: _Usage | None = None
    model: str | None = None


class Unreadable(ValueError):
    """It is no answer of this protocol."""


def read_piece(data: object) -> Piece:
    """
    Raises:
        Unreadable: it has another shape.
    """
    try:
        return Piece.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise Unreadable(f"{where}: {first['msg']}") from error


class _OpenCall:
    """A tool call that grows."""

    def __init__(self, call_id: str | None) -> None:
        self.call_id = call_id
        self.name = ""
        self.arguments: list[str] = []


class Answer:
    """Joins pieces to an answer; never holds more than `MAX_CHARS`."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._texts: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._n_chars = 0
        self._usage: _Usage | None = None
        self._refused = False
        self._finish_word: str | None = None
        self.model: str | None = None
        self.is_cut = False
        """It was longer than is taken; the rest need not be read."""

    @property
    def has_ended(self) -> bool:
        """The endpoint said that it is whole."""
        return self._finish_word is not None

    @property
    def is_empty(self) -> bool:
        return not self._texts and not self._calls

    def add(self, piece: Piece) -> None:
        self.model = piece.model or self.model
        self._usage = piece.usage or self._usage
        for choice in piece.choices:
            if choice.index != 0:
                continue
            said = choice.delta or choice.message
            if said is not None:
                self._add_said(said)
            self._finish_word = choice.finish_reason or self._finish_word

    def usage(self, request: Request) -> Usage:
        """As the endpoint told it, else estimated."""
        if self._usage is None or self._usage.prompt_tokens + self._usage.completion_tokens == 0:
            return estimated_usage(request, self.text, self.tool_calls)
        return Usage(prompt_tokens=self._usage.prompt_tokens, completion_tokens=self._usage.completion_tokens)

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(call_id=call.call_id or f"call-{at + 1}", name=call.name, arguments="".join(call.arguments))
            for at, call in enumerate(self._calls.values())
        )

    @property
    def finish(self) -> Finish:
        if self.is_cut or self._finish_word in ("length", "max_tokens"):
            return Finish.LENGTH
        if self._refused or self._finish_word == "content_filter":
            return Finish.FILTERED
        return Finish.TOOLS if self._calls else Finish.STOP

    def _add_said(self, said: _Said) -> None:
        self._refused = self._refused or bool(said.refusal)
        text = self._bounded(said.text or said.refusal or "")
        if text:
            self._texts.append(text)
            if self._on_text is not None:
                self._on_text(text)
        for call in said.tool_calls or ():
            self._add_call(call)

    def _add_call(self, call: _Call) -> None:
        """Endpoints that give no index send whole calls, or go on with the last one."""
        index = call.index
        if index is None:
            is_next = call.id is not None or call.function.name is not None or not self._calls
            index = len(self._calls) if is_next else max(self._calls)
        if index not in self._calls:
            if len(self._calls) >= MAX_CALLS:
                self.is_cut = True
                return
            self._calls[index] = _OpenCall(call.id)
        grown = self._calls[index]
        grown.call_id = grown.call_id or call.id
        grown.name = grown.name or self._bounded(call.function.name or "")
        grown.arguments.append(self._bounded(_as_text(call.function.arguments)))

    def _bounded(self, text: str) -> str:
        room = MAX_CHARS - self._n_chars
        if len(text) > room:
            self.is_cut = True
            text = text[: max(room, 0)]
        self._n_chars += len(text)
        return text


def _as_text(arguments: str | dict[str, object] | None) -> str:
    """Ollama's own servers give an object where the protocol has a text."""
    return json.dumps(arguments) if isinstance(arguments, dict) else arguments or ""
