"""`ModelThinker`: a language model as a slow proposer of a session. It begins calls and never blocks.

What it is asked for is its errand. What it hands on was checked, and what was refused goes into the next question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.ahead import Thinking
from agent.llm.chat import Trouble
from agent.llm.ladder import Asker
from agent.planner.history import History
from agent.store.views import TrialFacts
from agent.task import Task
from agent.thinking.beside import Call, Start, in_a_thread
from agent.thinking.checking import Checked, Inquiry, bounded
from agent.thinking.context import Situation
from agent.thinking.errand import Answered, Errand

_COSTS_NOTHING = (Trouble.UNREACHABLE, Trouble.RATE_LIMITED)
"""A question that failed so is put again without anything new; the asker leaves the endpoint alone for a while."""
_PATIENT_SILENCES = 6
"""Questions without an answer, in a row, after which a search without other proposers ends: a quarter of an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one call gave, for the session to take up."""

    found: Checked
    model: str
    text: str
    """For the activity: what came, in a sentence."""
    call_id: int | None = None
    """In the accounts."""


class ModelThinker:
    """Implements `agent.ahead.Thinker`."""

    def __init__(
        self,
        task: Task,
        asker: Asker,
        look: Callable[[History], Situation],
        errand: Errand,
        *,
        refusals: Sequence[str] = (),
        asked_at: float | None = None,
        start: Start = in_a_thread,
    ) -> None:
        """
        Args:
            look: What is known, for the prompt, given the history; may read curves.
            errand: What it is asked for.
            refusals: Of the answer before, where an earlier process of this session got it.
            asked_at: When an earlier process asked last, in seconds since the epoch; None: none did.
        """
        self._task = task
        self._asker = asker
        self._look = look
        self._errand = errand
        self._refusals = tuple(refusals)
        """Of the last answer, by the check alone."""
        self._late: tuple[str, ...] = ()
        """By the session, which took its time; not in any question yet."""
        self._told = self._refusals
        self._asked_at = asked_at
        self._start = start
        self._call: Call[Answered] | None = None
        self._n_lost = 0
        """Answers in a row that nothing could be made of."""
        self._known: tuple[object, ...] | None = None
        """What was known when the last call began."""
        self._said: Said | None = None
        self._has_told_no_room = False
        self._news: list[str] = []

    @property
    def name(self) -> str:
        return self._errand.name

    @property
    def batch(self) -> int:
        return self._errand.batch

    @property
    def is_thinking(self) -> bool:
        return self._call is not None

    @property
    def is_done(self) -> bool:
        return self._call is not None and self._call.came is not None

    @property
    def is_pending(self) -> bool:
        """A call is under way, or an endpoint that does not answer is tried again soon."""
        is_away = self._asker.asks_again_at() is not None
        return self.is_thinking or (is_away and self._asker.standing.n_silent <= _PATIENT_SILENCES)

    def begin(self, history: History, n: int) -> None:
        """Ask, unless nothing was learned since the last question, or the endpoint is left alone for now."""
        if self._asker.asks_again_at() is not None:
            return
        situation = replace(self._look(history), refusals=bounded((*self._refusals, *self._late)))
        known = self._errand.known(situation)
        if self._asked_at is not None:
            self._known = None if _is_newer(situation, self._asked_at) else known
            self._asked_at = None
        if known == self._known:
            return
        self._known, self._late = known, ()
        prompt = self._errand.prompt(situation, n)
        if prompt is None:
            if not self._has_told_no_room:
                self._news.append(self._errand.no_room())
            self._has_told_no_room = True
            return
        origin = TrialFacts(prompt=prompt.reference, brief=brief_version(self._task))
        inquiry = Inquiry(task=self._task, history=history, n=n, name=self.name, origin=origin)
        self._call = Call(lambda: self._errand.ask(self._asker, prompt, situation, inquiry), self._start)

    def take(self) -> Thinking:
        assert self._call is not None, "only what was thought can be taken"
        came, self._call = self._call.came, None
        assert came is not None, "the call is not done"
        if came.value is None:
            text = f"a call of the model broke off, and the session goes on without it: {came.fault}"
            self._said = Said(found=Checked(), model=self._asker.name, text=text)
            return Thinking(proposals=(), took_s=0.0)
        return self._taken(came.value)

    def take_said(self) -> Said | None:
        """What the last call that was taken gave, once."""
        said, self._said = self._said, None
        return said

    def take_news(self) -> list[str]:
        """Sentences about the model itself, each once."""
        news, self._news = [*self._asker.take_news(), *self._news], []
        return news

    def refused(self, more: Sequence[str]) -> tuple[str, ...]:
        """All that was not taken of its last answer, but for what was refused of the one before too.

        Args:
            more: what the session refused of it; the next question says that as well.
        """
        self._late = (*self._late, *more)
        said = bounded((*self._refusals, *more))
        new = tuple(one for one in said if one not in self._told)
        self._told = said
        return new

    def _taken(self, answered: Answered) -> Thinking:
        found = answered.found
        if found is None:
            return self._lost(answered)
        self._n_lost = 0
        self._refusals = found.refusals
        self._said = Said(found=found, model=answered.model, text=self._errand.told(answered))
        return Thinking(proposals=found.proposals, took_s=answered.took_s)

    def _lost(self, answered: Answered) -> Thinking:
        if answered.trouble in _COSTS_NOTHING:
            self._known = None
        if answered.objections:
            self._n_lost += 1
            self._refusals = bounded(answered.objections)
            if self._n_lost < self._errand.patience:
                self._known = None
        if answered.n_calls > 0:
            self._said = Said(found=Checked(), model=answered.model, text=self._errand.told(answered))
        return Thinking(proposals=(), took_s=answered.took_s)


def brief_version(task: Task) -> str | None:
    """Changes with every character of the brief; None: there is none."""
    return hashlib.sha256(task.brief.encode()).hexdigest()[:12] if task.brief else None


def _is_newer(situation: Situation, asked_at: float) -> bool:
    """Whether something was learned since an earlier process asked."""
    ended = [trial.ended_at for trial in situation.history.trials if trial.ended_at is not None]
    return max([*ended, *(idea.at for idea in situation.ideas)], default=asked_at) > asked_at
