"""An endpoint tried by each rung, with a small question that has one right answer.

What it means for a session, `agent.thinking.fitness` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import prompts
from agent.llm.chat import ChatModel, ModelError, Reply, Request, Trouble
from agent.llm.check_question import BestRun
from agent.llm.form import Question
from agent.llm.menu import MenuItem
from agent.llm.rung import Rung
from agent.llm.untrusted import fenced
from agent.task import Model

TRIES = 2
"""Of a rung, before its answers count as wrong or as of no use: small models err now and then."""
_RUNS = {"r1": 0.712, "r2": 0.688, "r3": 0.941, "r4": 0.903}
_RIGHT = BestRun(name="r3", accuracy=0.941)
NOBODY = frozenset(
    {Trouble.UNREACHABLE, Trouble.UNAUTHORIZED, Trouble.UNKNOWN_MODEL, Trouble.FORBIDDEN, Trouble.RATE_LIMITED}
)
"""After these no other rung does better."""
_MIN_TIMED_TOKENS = 5
_CALL_S = 120.0
"""For one call, where the settings leave it to the endpoint's pace."""


class Came(StrEnum):
    RIGHT = "right"
    """The right answer, in the form that was asked for."""
    ASIDE = "aside"
    """The right answer in another form, which can be read as well."""
    WRONG = "wrong"
    """Another answer, in a form that can be read: a session can not tell, and takes it."""
    UNUSABLE = "unusable"
    """Nothing that can be read as an answer."""
    REFUSED = "refused"
    """The endpoint does not take such a request."""
    SILENT = "silent"
    """No reply."""


_RIGHT_ONES = frozenset({Came.RIGHT, Came.ASIDE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RungTried:
    rung: Rung
    came: Came
    n_tries: int
    took_s: float | None
    """Of the try that counts; None: there was no reply."""
    note: str = ""
    trouble: Trouble | None = None

    @property
    def is_right(self) -> bool:
        return self.came in _RIGHT_ONES

    @property
    def is_reached(self) -> bool:
        """Answers come that a session takes, be they right or wrong."""
        return self.is_right or self.came is Came.WRONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    first_token_s: float | None
    tokens_per_s: float | None


class Tried(NamedTuple):
    rungs: tuple[RungTried, ...]
    speed: Speed


def try_rungs(model: ChatModel, settings: Model, *, say: Callable[[RungTried], None] = lambda _: None) -> Tried:
    """Ask by each rung, the best first; ends early where nobody answers."""
    question = _question(settings)
    tried: list[RungTried] = []
    replies: list[Reply] = []
    for rung in (Rung.TOOLS, Rung.SCHEMA, Rung.FENCED, Rung.MENU):
        one, n = _tries(model, question, rung, settings.call_seconds or _CALL_S, replies)
        tried.append(
            RungTried(rung=rung, came=one.came, n_tries=n, took_s=one.took_s, note=one.note, trouble=one.trouble)
        )
        say(tried[-1])
        if one.trouble in NOBODY:
            break
    return Tried(tuple(tried), _speed(replies))


def _question(settings: Model) -> Question[BestRun]:
    table = "\n".join(f"{name} {accuracy}" for name, accuracy in _RUNS.items())
    prompt = prompts.load("check").render(runs=fenced(table, label="runs", limit=500))
    menu = tuple(
        MenuItem(text=f"{name} with {value}", gives={"name": name, "accuracy": value}) for name, value in _RUNS.items()
    )
    return Question(
        prompt=prompt, reply=BestRun, menu=menu, max_tokens=settings.max_tokens, temperature=settings.temperature
    )


class _One(NamedTuple):
    came: Came
    took_s: float | None
    note: str = ""
    trouble: Trouble | None = None


def _tries(
    model: ChatModel, question: Question[BestRun], rung: Rung, call_s: float, replies: list[Reply]
) -> tuple[_One, int]:
    """The first right try, else a wrong answer before one that can not be read; and how many tries there were."""
    made: list[_One] = []
    while len(made) < TRIES:
        made.append(_try(model, question, rung, call_s, replies))
        if made[-1].came not in (Came.WRONG, Came.UNUSABLE):
            return made[-1], len(made)
    return next((one for one in made if one.came is Came.WRONG), made[-1]), len(made)


def _try(model: ChatModel, question: Question[BestRun], rung: Rung, call_s: float, replies: list[Reply]) -> _One:
    try:
        reply = _reply(model, question, rung, call_s)
    except ModelError as error:
        came = Came.REFUSED if error.trouble is Trouble.REFUSED else Came.SILENT
        return _One(came, None, str(error), error.trouble)
    replies.append(reply)
    answer = question.read(reply, rung)
    if answer.problems:
        return _One(Came.UNUSABLE, reply.took_s, "; ".join(answer.problems))
    right = f"where {_RIGHT.name} with {_RIGHT.accuracy:g} was right"
    if answer.value is None:
        return _One(Came.WRONG, reply.took_s, f"it chose nothing, {right}")
    if answer.value != _RIGHT:
        return _One(Came.WRONG, reply.took_s, f"{answer.value.name} with {answer.value.accuracy:g}, {right}")
    return _One(Came.RIGHT if answer.as_asked else Came.ASIDE, reply.took_s)


def _reply(model: ChatModel, question: Question[BestRun], rung: Rung, call_s: float) -> Reply:
    """By tools: held to a call, and where that is refused, asked for one."""

    def call(request: Request) -> Reply:
        return model.complete(request, deadline_s=call_s, on_text=lambda _: None)

    try:
        return call(question.request(rung))
    except ModelError as error:
        if error.trouble is not Trouble.REFUSED or rung is not Rung.TOOLS:
            raise
    return call(question.request(rung, must_call=False))


def _speed(replies: list[Reply]) -> Speed:
    """The first token after a question like the one before; tokens after the first, over all answers."""
    firsts = [reply.first_token_s for reply in replies if reply.first_token_s is not None]
    timed = [
        (reply.usage.completion_tokens - 1, reply.took_s - reply.first_token_s)
        for reply in replies
        if reply.first_token_s is not None and reply.usage.completion_tokens > _MIN_TIMED_TOKENS
    ]
    n, seconds = sum(tokens for tokens, _ in timed), sum(took for _, took in timed)
    return Speed(
        first_token_s=max(firsts, default=None),
        tokens_per_s=n / seconds if n and seconds > 0 else None,
    )
