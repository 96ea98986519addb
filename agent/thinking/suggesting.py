"""The errand of the arm `model`: new points of the space, wishes for replicates, lost trials, lessons."""

from __future__ import annotations

from dataclasses import replace

from agent.llm.ladder import Asker
from agent.llm.menu import MenuItem
from agent.llm.rung import Rung
from agent.planner.ranking import ranking
from agent.task import Task
from agent.thinking.checking import Checked, Inquiry, checked
from agent.thinking.context import Situation, prompt_for
from agent.thinking.errand import Answered, answered
from agent.thinking.ideas import ideas_of
from agent.thinking.menu import menu_for
from prompts import Rendered

MODEL = "model"
"""Name of the arm, as in `search.use`."""
_BY_FORM = (Rung.TOOLS, Rung.SCHEMA)
"""Rungs from which no question falls to a menu at once."""
_NO_ROOM = (
    "the model is not asked: what it has to know does not fit into {limit} tokens beside its answer; raise "
    "model.context_tokens, or lower model.max_tokens"
)


class Suggesting:
    """Implements `Errand`."""

    name = MODEL
    patience = 0

    def __init__(self, task: Task, limit: int) -> None:
        """
        Args:
            limit: Tokens of a prompt at most.
        """
        assert task.model is not None
        self._task = task
        self._model = task.model
        self._limit = limit

    @property
    def batch(self) -> int:
        return self._model.batch

    def known(self, situation: Situation) -> tuple[object, ...]:
        """The leader, ends of trials, words of people."""
        situation = _of_base(situation)
        leader = ranking(situation.task, situation.history).leader
        return (
            None if leader is None else leader.configuration,
            sum(1 for trial in situation.history.trials if trial.is_ended),
            len(situation.ideas),
            sum(1 for one in situation.lessons if one.written_by == "doctor"),
        )

    def prompt(self, situation: Situation, n: int) -> Rendered | None:
        return prompt_for(_of_base(situation), n, limit=self._limit)

    def no_room(self) -> str:
        return _NO_ROOM.format(limit=self._limit)

    def ask(self, asker: Asker, prompt: Rendered, situation: Situation, inquiry: Inquiry) -> Answered:
        menu = self._menu(asker, _of_base(situation), inquiry.n)
        shape = ideas_of(self._task, inquiry.n, may_stop=situation.may_stop)
        asked = asker.ask(prompt, shape, menu, self._model.max_tokens, picks=inquiry.n)
        if asked.value is None:
            return answered(asked, None)
        origin = replace(inquiry.origin, model=asked.model, prompt=asked.prompt)
        return answered(asked, checked(asked.value, replace(inquiry, origin=origin)))

    def told(self, answered: Answered) -> str:
        if answered.found is None:
            return f"the model suggests nothing: {answered.why}"
        return f"{answered.model} answers after {answered.took_s:.1f} s by {answered.rung}: {_what(answered.found)}"

    def _menu(self, asker: Asker, situation: Situation, n: int) -> list[MenuItem] | None:
        """Made only where the question may come to it: it costs as much as asking the other proposers."""
        if asker.standing.rung in _BY_FORM:
            return None
        return menu_for(self._task, situation.history, n, may_repeat=situation.may_repeat)


def _of_base(situation: Situation) -> Situation:
    """As parameters alone are seen: what edited code gave is another function of them."""
    return replace(situation, history=situation.history.of_base())


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
