"""Whether an endpoint is fit for a session: each rung tried with a small question that has one right answer.

`try_rungs` makes the calls, `findings` says what they mean (pure).
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
from agent.model_checks import LEAST_PROMPT_TOKENS
from agent.planner.readiness import Finding, Level
from agent.task import Model, Prices

TRIES = 2
"""Of a rung, before it counts as not reached: small models err now and then."""
_RUNS = {"r1": 0.712, "r2": 0.688, "r3": 0.941, "r4": 0.903}
_RIGHT = BestRun(name="r3", accuracy=0.941)
_NOBODY = frozenset(
    {Trouble.UNREACHABLE, Trouble.UNAUTHORIZED, Trouble.UNKNOWN_MODEL, Trouble.FORBIDDEN, Trouble.RATE_LIMITED}
)
"""After these no other rung does better."""
_SLOW_TOKENS_PER_S = 5.0
_MIN_TIMED_TOKENS = 5


class Came(StrEnum):
    RIGHT = "right"
    """The right answer, in the form that was asked for."""
    ASIDE = "aside"
    """The right answer in another form, which can be read as well."""
    WRONG = "wrong"
    UNUSABLE = "unusable"
    """Nothing that can be read as an answer."""
    REFUSED = "refused"
    """The endpoint does not take such a request."""
    SILENT = "silent"
    """No reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RungTried:
    rung: Rung
    came: Came
    n_tries: int
    took_s: float | None
    """Of the last try; None: there was no reply."""
    note: str = ""
    trouble: Trouble | None = None

    @property
    def is_reached(self) -> bool:
        """Answers come that can be used, and are right."""
        return self.came in (Came.RIGHT, Came.ASIDE)


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
        n = 0
        while n < TRIES:
            n += 1
            one = _try(model, question, rung, settings.call_seconds, replies)
            if one.is_reached or one.came in (Came.REFUSED, Came.SILENT):
                break
        tried.append(
            RungTried(rung=rung, came=one.came, n_tries=n, took_s=one.took_s, note=one.note, trouble=one.trouble)
        )
        say(tried[-1])
        if one.trouble in _NOBODY:
            break
    return Tried(tuple(tried), _speed(replies))


def findings(
    tried: Tried,
    settings: Model,
    *,
    context_tokens: int | None,
    prompt_tokens: int,
    names: tuple[str, ...],
    price: Prices | None,
) -> list[Finding]:
    """What it means for a session, and what to do.

    Args:
        context_tokens: What fits into the model; None: not known.
        prompt_tokens: Of the longest question of a session; those of its answer come on top.
        names: Of the models that the endpoint lists; empty: it lists none.
    """
    silent = next((one for one in tried.rungs if one.trouble in _NOBODY), None)
    if silent is not None:
        known = f"; it lists: {', '.join(sorted(names)[:8])}" if names and settings.name not in names else ""
        return [Finding(level=Level.PROBLEM, code=str(silent.trouble), text=f"{silent.note}{known}")]
    found: list[Finding | None] = [
        _rung_finding(tried.rungs, settings),
        _context_finding(settings, context_tokens, prompt_tokens),
    ]
    found += [_speed_finding(tried.speed, settings), _price_finding(price)]
    return [one for one in found if one is not None]


def reached(rungs: tuple[RungTried, ...], settings: Model) -> Rung:
    """The best rung that answers, of those that the task allows."""
    allowed = list(Rung)[list(Rung).index(Rung(settings.rung)) :]
    return next((one.rung for one in rungs if one.is_reached and one.rung in allowed), Rung.NONE)


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

    @property
    def is_reached(self) -> bool:
        return self.came in (Came.RIGHT, Came.ASIDE)


def _try(model: ChatModel, question: Question[BestRun], rung: Rung, call_s: float, replies: list[Reply]) -> _One:
    try:
        reply = _reply(model, question, rung, call_s)
    except ModelError as error:
        came = Came.REFUSED if error.trouble is Trouble.REFUSED else Came.SILENT
        return _One(came, None, str(error), error.trouble)
    replies.append(reply)
    answer = question.read(reply, rung)
    if answer.value is None:
        return _One(Came.UNUSABLE, reply.took_s, "; ".join(answer.problems) or "it chose nothing")
    if answer.value != _RIGHT:
        note = f"{answer.value.name} with {answer.value.accuracy:g}, where {_RIGHT.name} with {_RIGHT.accuracy:g} was right"  # noqa: E501
        return _One(Came.WRONG, reply.took_s, note)
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


def _rung_finding(rungs: tuple[RungTried, ...], settings: Model) -> Finding:
    best = reached(rungs, settings)
    if best is Rung.NONE:
        silent = next((one for one in rungs if one.came is Came.SILENT), None)
        why = f": {silent.note}" if silent is not None else ""
        return Finding(
            level=Level.PROBLEM,
            code="no_rung",
            text=f"no rung gave the right answer{why}; a session would go on without this model",
            what_to_do="look at the rungs above; a larger model, or one that was tuned to follow instructions, may do",
        )
    text = f"it answers by {best.value}"
    if best is Rung.MENU:
        what = "it can only pick from choices that code has made; ask for the JSON schemas of your server, or a larger model"  # noqa: E501
        return Finding(level=Level.WARNING, code="menu", text=f"{text} alone", what_to_do=what)
    return Finding(level=Level.FACT, code="rung", text=f"{text}; a session begins there and steps down by itself")


def _context_finding(settings: Model, context_tokens: int | None, prompt_tokens: int) -> Finding:
    worst = prompt_tokens + 2 * settings.max_tokens
    made_of = f"a question of {prompt_tokens:,}, its answer, and the answer once more, of {settings.max_tokens:,} each"
    if context_tokens is None:
        return Finding(
            level=Level.WARNING,
            code="context_unknown",
            text=f"the endpoint does not say how much fits into the model; the worst case is {worst:,} tokens ({made_of})",  # noqa: E501
            what_to_do="give model.context_tokens",
        )
    if context_tokens >= worst:
        text = f"{context_tokens:,} tokens fit into the model; the worst case is {worst:,} ({made_of})"
        return Finding(level=Level.FACT, code="context", text=text)
    text = f"{context_tokens:,} tokens fit into the model, and the worst case is {worst:,} ({made_of})"
    if context_tokens - 2 * settings.max_tokens < LEAST_PROMPT_TOKENS:
        what = "let the server keep a longer context (llama.cpp: -c, vLLM: --max-model-len, Ollama: num_ctx), or lower model.max_tokens"  # noqa: E501
        return Finding(level=Level.PROBLEM, code="context_too_small", text=text, what_to_do=what)
    what = f"give model.context_tokens: {context_tokens}, so that questions are shortened to fit; or a longer context at the server"  # noqa: E501
    level = Level.FACT if settings.context_tokens is not None else Level.WARNING
    return Finding(level=level, code="context_small", text=text, what_to_do=what if level is Level.WARNING else "")


def _speed_finding(speed: Speed, settings: Model) -> Finding | None:
    if speed.tokens_per_s is None:
        return None
    first = (
        "" if speed.first_token_s is None else f"the first word comes after {speed.first_token_s:.1f} s at most, then "
    )
    answer_s = (speed.first_token_s or 0.0) + settings.max_tokens / speed.tokens_per_s
    text = (
        f"{first}{speed.tokens_per_s:.0f} tokens a second: an answer of {settings.max_tokens:,} takes {answer_s:.0f} s"
    )
    if answer_s > settings.call_seconds:
        what = f"raise model.call_seconds to {2 * answer_s:.0f} or more, or lower model.max_tokens"
        return Finding(
            level=Level.WARNING,
            code="slow",
            text=f"{text}, and model.call_seconds allows {settings.call_seconds:g}",
            what_to_do=what,
        )
    return Finding(level=Level.FACT, code="speed", text=text)


def _price_finding(price: Prices | None) -> Finding:
    if price is None:
        return Finding(
            level=Level.FACT,
            code="price_unknown",
            text="its price is not known: budgets.cost_usd would not count it",
            what_to_do="give model.price (0 for one's own), or limit it by budgets.tokens",
        )
    text = f"{price.prompt:g} $ for a million tokens of questions, {price.completion:g} $ of answers"
    return Finding(level=Level.FACT, code="price", text=text)
