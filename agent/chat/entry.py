"""The lines of a chat. They are the only truth of it: its state and what a model is shown are derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Cell = str | int | float | bool | None


class EntryKind(StrEnum):
    SAID = "said"
    """By a person; it begins a turn."""
    REPLY = "reply"
    """By the model; `ends_turn` where it calls no tool beside it."""
    CALL = "call"
    """A tool is called, by the model or by a person's slash command."""
    RESULT = "result"
    """What came of a call."""
    ASK = "ask"
    """A person has to agree before this is done."""
    ANSWER = "answer"
    """The first answer to an `ask`, by a person or by its deadline."""
    TROUBLE = "trouble"
    """Why the turn can not go on, and what to do; it ends the turn."""
    STOPPED = "stopped"
    """The turn was ended from outside: by a person, or since the service went down."""


class ChatState(StrEnum):
    IDLE = "idle"
    """The next word is a person's."""
    WORKING = "working"
    """A turn is under way."""
    ASKING = "asking"
    """A turn waits for a person to agree."""


class Verdict(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    EXPIRED = "expired"
    """Nobody answered by the deadline: as denied."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cite(Part):
    kind: Literal["session", "trial", "job", "run"]
    id: str


class ReplyPart(Part):
    cites: tuple[Cite, ...] = ()
    """What the text names and what exists."""
    unknown: tuple[str, ...] = ()
    """What looks like an id in the text, and is none of anything that exists."""
    model: str | None = None
    first_token_s: float | None = None
    took_s: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is not known."""
    is_cut: bool = False
    """The model's answer broke off; this is what had come."""


class CallPart(Part):
    call_id: str
    """No other call of the chat has it."""
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Table(Part):
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Series(Part):
    name: str
    points: tuple[tuple[float, float | None], ...]
    """x, y; None is a gap."""


class Plot(Part):
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]


class ResultPart(Part):
    call_id: str
    tool: str
    is_error: bool = False
    table: Table | None = None
    plot: Plot | None = None


class Victim(Part):
    """A job that would be preempted or cancelled."""

    job_id: str
    what: str
    """For a person: whose, and what it does."""
    lost_s: float | None = None
    """Work that it would do again, in seconds; None: not known."""


class AskPart(Part):
    call_id: str
    tool: str
    arguments: dict[str, Any]
    device_seconds: float | None = None
    """What it is expected to use; None: not known, or nothing."""
    cost_usd: float | None = None
    victims: tuple[Victim, ...] = ()
    why: str
    """Why a person is asked."""
    expires_at: float
    """Seconds since the epoch; nobody's answer counts from then on."""


class AnswerPart(Part):
    ask: int
    """Number of the entry that asked."""
    answer: Verdict
    note: str | None = None


class TroublePart(Part):
    code: str


class NothingPart(Part):
    pass


Content = ReplyPart | CallPart | ResultPart | AskPart | AnswerPart | TroublePart | NothingPart
PARTS: dict[EntryKind, type[Content]] = {
    EntryKind.SAID: NothingPart,
    EntryKind.REPLY: ReplyPart,
    EntryKind.CALL: CallPart,
    EntryKind.RESULT: ResultPart,
    EntryKind.ASK: AskPart,
    EntryKind.ANSWER: AnswerPart,
    EntryKind.TROUBLE: TroublePart,
    EntryKind.STOPPED: NothingPart,
}


class Entry(Part):
    number: Annotated[int, Field(ge=1)]
    """From 1 in each chat, without gaps."""
    at: float
    """Seconds since the epoch."""
    kind: EntryKind
    by: str
    """Who: a person's name, the model's, or `nightlab`."""
    text: str
    """Untrusted: people, models and jobs wrote it."""
    ends_turn: bool
    content: dict[str, Any]
    """As the part of its kind in `PARTS`."""

    @property
    def part(self) -> Content:
        return PARTS[self.kind].model_validate(self.content)


def state_of(entries: Sequence[Entry]) -> ChatState:
    """Of a chat by its entries, or by the last one alone."""
    if not entries or entries[-1].ends_turn:
        return ChatState.IDLE
    return ChatState.ASKING if entries[-1].kind is EntryKind.ASK else ChatState.WORKING
