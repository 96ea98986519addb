"""`ModelThinker`: a language model as the slow proposer of a session. It begins calls and never blocks.

What it hands on was checked, and what was refused goes into the next question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.ahead import Thinking
from agent.llm.chat import Trouble
from agent.llm.ladder import Asked, Asker
from agent.llm.menu import MenuItem
from agent.llm.rung import Rung
from agent.planner.history import History
from agent.planner.ranking import ranking
from agent.store.views import TrialFacts
from agent.task import Task
from agent.thinking.beside import Call, Start, in_a_thread
from agent.thinking.checking import Checked, Inquiry, bounded, checked
from agent.thinking.context import Situation, prompt_for
from agent.thinking.ideas import Ideas, ideas_of
from agent.thinking.menu import menu_for

MODEL = "model"
"""Name of the arm, as in `search.use`."""
_COSTS_NOTHING = (Trouble.UNREACHABLE, Trouble.RATE_LIMITED)
"""A question that failed so is put again without anything new; the asker leaves the endpoint alone for a while."""
_PATIENT_SILENCES = 6
"""Questions without an answer, in a row, after which a search without other proposers ends: a quarter of an hour."""
_BY_FORM = (Rung.TOOLS, Rung.SCHEMA)
"""Rungs from which no question falls to a menu at once."""
_NO_ROOM = (
    "the model is not asked: what it has to know does not fit into {limit} tokens beside its answer; raise "
    "model.context_tokens, or lower model.max_tokens"
)


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
        *,
        limit: int,
        refusals: Sequence[str] = (),
        asked_at: float | None = None,
        start: Start = in_a_thread,
    ) -> None:
        """
        Args:
            look: What is known, for the prompt, given the history; may read curves.
            limit: Tokens of a prompt at most.
            refusals: Of the answer before, where an earlier process of this session got it.
            asked_at: When an earlier process asked last, in seconds since the epoch; None: none did.
        """
        assert task.model is not None
        self._task = task
        self._model = task.model
        self._asker = asker
        self._look = look
        self._limit = limit
        self._refusals = tuple(refusals)
        """Of the last answer, by the check alone."""
        self._late: tuple[str, ...] = ()
        """By the session, which took its time; not in any question yet."""
        self._told = self._refusals
        self._asked_at = asked_at
        self._start = start
        self._call: Call[Asked[Ideas]] | None = None
        self._inquiry: Inquiry | None = None
        self._known: tuple[object, ...] | None = None
        """What was known when the last call began."""
        self._said: Said | None = None
        self._has_told_no_room = False
        self._news: list[str] = []

    @property
    def name(self) -> str:
        return MODEL

    @property
    def batch(self) -> int:
        return self._model.batch

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
        known = _known(situation)
        if self._asked_at is not None:
            self._known = None if _is_newer(situation, self._asked_at) else known
            self._asked_at = None
        if known == self._known:
            return
        self._known, self._late = known, ()
        prompt = prompt_for(situation, n, limit=self._limit)
        if prompt is None:
            if not self._has_told_no_room:
                self._news.append(_NO_ROOM.format(limit=self._limit))
            self._has_told_no_room = True
            return
        origin = TrialFacts(prompt=prompt.reference, brief=brief_version(self._task))
        self._inquiry = Inquiry(task=self._task, history=history, n=n, name=self.name, origin=origin)

        def asked() -> Asked[Ideas]:
            menu = self._menu(situation, n)
            shape = ideas_of(self._task, n, may_stop=situation.may_stop)
            return self._asker.ask(prompt, shape, menu, self._model.max_tokens, picks=n)

        self._call = Call(asked, self._start)

    def take(self) -> Thinking:
        assert self._call is not None, "only what was thought can be taken"
        assert self._inquiry is not None
        came, self._call = self._call.came, None
        assert came is not None, "the call is not done"
        if came.value is None:
            text = f"a call of the model broke off, and the session goes on without it: {came.fault}"
            self._said = Said(found=Checked(), model=self._asker.name, text=text)
            return Thinking(proposals=(), took_s=0.0)
        return self._taken(came.value, self._inquiry)

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

    def _taken(self, asked: Asked[Ideas], inquiry: Inquiry) -> Thinking:
        if asked.value is None:
            if asked.trouble in _COSTS_NOTHING:
                self._known = None
            if asked.n_calls > 0:
                self._said = Said(found=Checked(), model=asked.model, text=f"the model suggests nothing: {asked.why}")
            return Thinking(proposals=(), took_s=asked.took_s)
        origin = replace(inquiry.origin, model=asked.model, prompt=asked.prompt)
        found = checked(asked.value, replace(inquiry, origin=origin))
        self._refusals = found.refusals
        text = f"{asked.model} answers after {asked.took_s:.1f} s by {asked.rung}: {_what(found)}"
        self._said = Said(found=found, model=asked.model, text=text)
        return Thinking(proposals=found.proposals, took_s=asked.took_s)

    def _menu(self, situation: Situation, n: int) -> list[MenuItem] | None:
        """Made only where the question may come to it: it costs as much as asking the other proposers."""
        if self._asker.standing.rung in _BY_FORM:
            return None
        return menu_for(self._task, situation.history, n, may_repeat=situation.may_repeat)


def brief_version(task: Task) -> str | None:
    """Changes with every character of the brief; None: there is none."""
    return hashlib.sha256(task.brief.encode()).hexdigest()[:12] if task.brief else None


def _known(situation: Situation) -> tuple[object, ...]:
    """What makes another question worth its tokens when it changes: the leader, ends of trials, words of people."""
    leader = ranking(situation.task, situation.history).leader
    return (
        None if leader is None else leader.configuration,
        sum(1 for trial in situation.history.trials if trial.is_ended),
        len(situation.ideas),
        sum(1 for one in situation.lessons if one.written_by == "doctor"),
    )


def _is_newer(situation: Situation, asked_at: float) -> bool:
    """Whether something was learned since an earlier process asked."""
    ended = [trial.ended_at for trial in situation.history.trials if trial.ended_at is not None]
    return max([*ended, *(idea.at for idea in situation.ideas)], default=asked_at) > asked_at


def _what(found: Checked) -> str:
    n_wishes = sum(1 for proposal in found.proposals if proposal.purpose != "search")
    counts = (
        (len(found.proposals) - n_wishes, "new configurations"),
        (n_wishes, "replicates"),
        (len(found.stops), "trials to end early"),
        (len(found.lessons), "lessons"),
        (len(found.refusals), "refused"),
    )
    return ", ".join(f"{n} {what}" for n, what in counts if n) or "nothing at all"
