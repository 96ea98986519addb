"""Asking a model for an answer of a known shape, by the best rung on which it gives one.

The shell around `standing` (which rung, when not at all) and `form` (what is sent and read): it makes the calls, tells
the accounts what became of them, and keeps sentences about its steps for whoever asks. Calls block; nothing is raised.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from agent.llm.chat import ChatModel, Judged, ModelError, Outcome, Reply, Request, Trouble
from agent.llm.form import Beside, Question
from agent.llm.menu import MenuItem
from agent.llm.pace import N_CALLS, patience_s
from agent.llm.rung import Rung
from agent.llm.shape import T
from agent.llm.standing import RUNGS, Standing, Steps, Tried, after, stood
from agent.llm.turn import Ended, Turn
from agent.task import Model
from prompts import Rendered

_MAX_NEWS = 50
_NOT_ASKED = "the model is not asked for now: nothing usable came on any rung that this question has"
_SILENCES: dict[Trouble | None, str] = {
    Trouble.UNREACHABLE: "its endpoint could not be reached",
    Trouble.UNAUTHORIZED: "its endpoint does not take the key; check model.key_env or model.key_file",
    Trouble.UNKNOWN_MODEL: "its endpoint does not know it; check model.name",
    Trouble.RATE_LIMITED: "its endpoint takes no more calls for now",
    Trouble.TIMED_OUT: "it gave no answer in time; model.call_seconds gives it more",
    Trouble.TOO_LONG: "the prompt did not fit its context; check model.context_tokens",
    Trouble.OVER_BUDGET: "the budget for models is used up",
    Trouble.FAILED: "its endpoint failed",
}
_WORDS = {
    Rung.TOOLS: "tool calls",
    Rung.SCHEMA: "a JSON schema",
    Rung.FENCED: "a block of JSON",
    Rung.MENU: "numbered choices",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a model is asked."""

    call_s: float | None = None
    """For one question with all its calls, in seconds; None: by how long its calls take (`agent.llm.pace`)."""
    max_tokens: int = 1024
    """Of one answer."""
    temperature: float | None = None
    steps: Steps = field(default_factory=Steps)


def asking(model: Model) -> Asking:
    """As the task says it."""
    return Asking(
        call_s=model.call_seconds,
        max_tokens=model.max_tokens,
        temperature=model.temperature,
        steps=Steps(best=Rung(model.rung)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[T]):
    """What came of a question."""

    value: T | None
    """None: nothing that can be used; `why` says the reason."""
    rung: Rung
    """By which it was answered, or asked last; `NONE`: it was not asked."""
    why: str
    """A sentence; empty where there is a value."""
    prompt: str
    """As `name@version`."""
    prompt_version: str
    model: str
    """As its endpoint names it, where it answered."""
    took_s: float
    n_calls: int
    trouble: Trouble | None = None
    """Why there was no reply to the last call."""
    as_asked: bool = True
    """The answer came in the form of its rung, not in another one that could be read too."""
    objections: tuple[str, ...] = ()
    """Of the review, to the last answer, which had the right form; there is no value then."""


class Asker:
    """Questions to one model. May be called from several threads; they share its standing."""

    def __init__(
        self,
        model: ChatModel,
        settings: Asking | None = None,
        *,
        judged: Judged | None = None,
        past: Sequence[Tried] = (),
        took_s: Iterable[float] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        """
        Args:
            judged: The accounts, which are told which replies could not be used.
            past: What became of the calls of this session before, the oldest first.
            took_s: How long they took, in seconds.
            now: Seconds since the epoch.
        """
        self._model = model
        self._settings = settings or Asking()
        self._judged = judged
        self._now = now
        self._lock = threading.Lock()
        self._standing = stood(self._settings.steps, past)
        self._took_s = deque(took_s, maxlen=N_CALLS)
        self._news: deque[str] = deque(maxlen=_MAX_NEWS)
        self._forces_calls = True
        """The endpoint is asked to hold the model to a tool call; False once that was refused and asking alone did."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def standing(self) -> Standing:
        with self._lock:
            return self._standing

    def take_news(self) -> list[str]:
        """Sentences about steps down and up and about silence, each once, the oldest first."""
        with self._lock:
            news = list(self._news)
            self._news.clear()
        return news

    def asks_again_at(self) -> float | None:
        """Before this instant a question would not be sent; None: it would be."""
        until = self.standing.wait_until(self._settings.steps)
        return None if until is None or until <= self._now() else until

    def ask(
        self,
        prompt: Rendered,
        reply: type[T],
        menu: Sequence[MenuItem] | None = None,
        max_tokens: int | None = None,
        *,
        picks: int = 4,
        beside: Beside | None = None,
        review: Callable[[T], Sequence[str]] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Asked[T]:
        """One question: an answer that can not be used is asked for once more, then by a worse rung, once.

        Args:
            menu: The question as numbered choices; at least two, else it has no such form.
            max_tokens: Of one answer; None: as in the settings.
            picks: Choices at most, where the menu takes several.
            beside: A field that may stand outside of the JSON.
            review: What is wrong with an answer of the right form, in sentences for the model, which then answers once
                more, by the same rung.
        """
        question = Question(
            prompt=prompt,
            reply=reply,
            menu=tuple(menu or ()),
            picks=picks,
            max_tokens=min(max_tokens or self._settings.max_tokens, self._settings.max_tokens),
            temperature=self._settings.temperature,
            beside=beside,
        )
        began, before = self._now(), self.standing
        turn = Turn(
            question,
            lambda request, left_s: self._complete(request, left_s, on_text),
            self._record,
            now=self._now,
            call_s=self._patience_s(),
            must_call=self._forces_calls,
            review=review,
        )
        ended = self._silent(before, began) or self._taken(turn, before, began)
        asked = Asked(
            value=None if ended.answer is None else ended.answer.value,
            rung=ended.rung,
            why=_why(ended),
            prompt=prompt.reference,
            prompt_version=prompt.version,
            model=ended.model or self.name,
            took_s=max(0.0, self._now() - began),
            n_calls=turn.n_calls,
            trouble=ended.trouble,
            as_asked=ended.answer is not None and ended.answer.as_asked,
            objections=ended.objections,
        )
        self._tell(before, asked.why)
        return asked

    def _silent(self, standing: Standing, now: float) -> Ended[T] | None:
        """Nothing is sent while the endpoint is left alone."""
        until = standing.wait_until(self._settings.steps)
        if until is None or now >= until:
            return None
        why = f"not asked for another {until - now:.0f} s: {_SILENCES.get(standing.silence, 'it gave no answer')}"
        return Ended(answer=None, rung=Rung.NONE, trouble=standing.silence, why=why, model=None)

    def _taken(self, turn: Turn[T], standing: Standing, now: float) -> Ended[T]:
        rung = standing.next_rung(self._settings.steps, now, has_menu=turn.has_menu)
        if rung is Rung.NONE:
            return Ended(answer=None, rung=rung, trouble=None, why=_NOT_ASKED, model=None)
        ended = turn.take(rung)
        if ended.rung is Rung.TOOLS and ended.answer is not None:
            self._forces_calls = turn.must_call
        return ended

    def _patience_s(self) -> float:
        with self._lock:
            return patience_s(self._settings.call_s, tuple(self._took_s))

    def _complete(self, request: Request, left_s: float, on_text: Callable[[str], None] | None) -> Reply:
        began = self._now()
        try:
            return self._model.complete(request, deadline_s=left_s, on_text=on_text)
        finally:
            with self._lock:
                self._took_s.append(max(0.0, self._now() - began))

    def _record(self, tried: Tried, reply: Reply | None, note: str | None) -> None:
        with self._lock:
            self._standing = after(self._standing, tried, self._settings.steps)
        if tried.outcome is not Outcome.UNUSABLE or self._judged is None or reply is None:
            return
        if reply.call_id is None:
            return
        try:
            self._judged.judge(reply.call_id, tried.outcome, note)
        except ModelError as error:  # What is wrong with the store, the session learns at its own next write.
            with self._lock:
                self._news.append(f"model {self.name}: {error}")

    def _tell(self, before: Standing, why: str) -> None:
        after_it, news = self.standing, []
        if after_it.rung is not before.rung:
            news.append(f"model {self.name}: {_step(before.rung, after_it.rung, why)}")
        if after_it.n_silent and not before.n_silent:
            wait_s = (after_it.wait_until(self._settings.steps) or after_it.silent_at) - after_it.silent_at
            news.append(
                f"model {self.name}: no answer ({why}); asked again after {wait_s:.0f} s, then ever more seldom"
            )
        if before.n_silent and not after_it.n_silent:
            news.append(f"model {self.name}: answers again")
        with self._lock:
            self._news.extend(news)


def _why(ended: Ended[T]) -> str:
    if ended.answer is None or ended.answer.value is not None:
        return "" if ended.answer is not None else ended.why
    return ended.why or "it wants none of the choices"


def _step(before: Rung, after_it: Rung, why: str) -> str:
    if after_it is Rung.NONE:
        return f"not asked for now, the session goes on without it: {why or 'its answers can not be used'}"
    if RUNGS.index(after_it) < RUNGS.index(before):
        return f"asked by {_WORDS[after_it]} again"
    reason = why or "it gave nothing usable that way, or its endpoint does not take it"
    return f"asked by {_WORDS[after_it]} from now on, no longer by {_WORDS[before]}: {reason}"
