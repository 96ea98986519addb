"""The calls for one question: refused forms are left, an unusable answer is asked for once more, then by a worse rung.
An answer of the right form that whoever asks objects to is asked for again in the same form.

Knows nothing of other questions; what became of each call is told to whoever keeps the standing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol

from agent.llm.chat import ModelError, Outcome, Reply, Request, Trouble
from agent.llm.form import Answer, Question
from agent.llm.rung import Rung
from agent.llm.shape import T
from agent.llm.standing import Tried, below, may_be_the_form

MAX_CALLS = 7
"""For one question, at the worst: refusals on the way down, a repair, a last resort."""
MAX_REVIEWS = 3
"""Answers of the right form that are looked at; what is wrong with the last one is told."""
_LEAST_S = 1.0
"""With less of its time left, no further call is made for a question."""


class Record(Protocol):
    """Is told what became of a call: without a reply where there was none; `note` says what was wrong."""

    def __call__(self, tried: Tried, reply: Reply | None, note: str | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[T]):
    """How a question ended."""

    answer: Answer[T] | None
    """None: the last call got no reply, or none was made."""
    rung: Rung
    """Of the last call."""
    trouble: Trouble | None
    why: str
    """What was wrong, in a sentence; empty where nothing was."""
    model: str | None
    """As the endpoint names it."""
    objections: tuple[str, ...] = ()
    """Of the review, to an answer of the right form."""

    @property
    def is_over(self) -> bool:
        """No other form could do better: there is an answer, or nobody answers."""
        if self.answer is not None:
            return not self.answer.problems
        return self.trouble is not Trouble.REFUSED and not may_be_the_form(self.rung, self.trouble)


class Turn(Generic[T]):
    """One question. `take` is called once."""

    def __init__(
        self,
        question: Question[T],
        complete: Callable[[Request, float], Reply],
        record: Record,
        *,
        now: Callable[[], float],
        call_s: float,
        must_call: bool,
        review: Callable[[T], Sequence[str]] | None = None,
    ) -> None:
        """
        Args:
            complete: Makes a call, with seconds that it may take.
            call_s: For all calls together.
            must_call: Whether the endpoint is asked to hold the model to a tool call.
            review: What is wrong with an answer of the right form, in sentences for the model; None: nothing is.
        """
        self._review = review
        self._question = question
        self._complete = complete
        self._record = record
        self._now = now
        self._call_s = call_s
        self._began = now()
        self.must_call = must_call
        """False once holding it to a call was refused."""
        self.n_calls = 0
        self._slowest_s = 0.0
        """Of its calls so far."""

    @property
    def has_menu(self) -> bool:
        return bool(self._question.menu)

    def take(self, rung: Rung) -> Ended[T]:
        """Begin by this rung, and end with the first answer that can be used, or with the last call that is due."""
        fault: Answer[T] | None = None
        is_last = False
        n_reviews = 0
        ended: Ended[T] = Ended(answer=None, rung=rung, trouble=None, why="there was no time to ask", model=None)
        while rung is not Rung.NONE and self.n_calls < MAX_CALLS and self._left_s() >= _LEAST_S:
            ended = self._reviewed(self._call(rung, fault))
            if ended.is_over:
                return ended
            if ended.objections:
                n_reviews += 1
                if n_reviews == MAX_REVIEWS:
                    return ended
                fault, is_last = ended.answer, False
            elif ended.trouble is Trouble.REFUSED:
                gives_way = rung is Rung.TOOLS and self._give_way()
                rung, fault = rung if gives_way else below(rung, has_menu=self.has_menu), None
            elif fault is None and self._is_worth_repair(ended, rung):
                fault = ended.answer
            elif is_last:
                return ended
            else:
                rung, fault, is_last = self._last_resort(rung), None, True
        return ended

    def _is_worth_repair(self, ended: Ended[T], rung: Rung) -> bool:
        """Not where the time would be up before the last resort, which more often gives an answer than a repair."""
        if ended.answer is None or not ended.answer.can_repair:
            return False
        return self._last_resort(rung) is Rung.NONE or self._left_s() >= 2 * self._slowest_s

    def _call(self, rung: Rung, fault: Answer[T] | None) -> Ended[T]:
        began = self._now()
        try:
            return self._called(rung, fault)
        finally:
            self._slowest_s = max(self._slowest_s, self._now() - began)

    def _called(self, rung: Rung, fault: Answer[T] | None) -> Ended[T]:
        request = self._question.request(rung, fault=fault, must_call=self.must_call)
        self.n_calls += 1
        try:
            reply = self._complete(request, self._left_s())
        except ModelError as error:
            self._record(Tried(rung=rung, outcome=error.trouble, at=self._now()), None, str(error))
            return Ended(answer=None, rung=rung, trouble=error.trouble, why=str(error), model=None)
        answer = self._question.read(reply, rung)
        outcome = Outcome.UNUSABLE if answer.problems else Outcome.USED
        why = "; ".join(answer.problems)
        self._record(Tried(rung=rung, outcome=outcome, at=self._now()), reply, why or None)
        return Ended(answer=answer, rung=rung, trouble=None, why=why, model=reply.model)

    def _reviewed(self, ended: Ended[T]) -> Ended[T]:
        if self._review is None or ended.answer is None or ended.answer.value is None:
            return ended
        objections = tuple(self._review(ended.answer.value))
        if not objections:
            return ended
        refused = replace(ended.answer, value=None, problems=objections)
        return replace(ended, answer=refused, why="; ".join(objections), objections=objections)

    def _give_way(self) -> bool:
        """Whether to ask by tools once more, without holding the model to a call; the first time only."""
        was_held, self.must_call = self.must_call, False
        return was_held

    def _last_resort(self, rung: Rung) -> Rung:
        """A menu where there is one, else the next rung down."""
        if self._question.menu:
            return Rung.MENU if rung is not Rung.MENU else Rung.NONE
        return below(rung, has_menu=False)

    def _left_s(self) -> float:
        return self._call_s - max(0.0, self._now() - self._began)
