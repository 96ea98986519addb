"""Agents of other people as one proposer: what they proposed from outside waits here for slots of its own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.planner.history import History, Proposal
from agent.planner.plan import n_open
from agent.planner.proposers.person import PrepareEdit, answers, is_waiting, refusals
from agent.store.views import SuggestionView
from agent.task import Task

OUTSIDE = "outside"
"""All outside agents share one arm: its yield is that of whatever comes in from outside."""


class Outside:
    """Implements `Proposer`."""

    def __init__(
        self, task: Task, ideas: Callable[[], Sequence[SuggestionView]], edits: PrepareEdit | None = None
    ) -> None:
        """
        Args:
            ideas: Gives all suggestions to the session; those of this arm that wait are what it proposes.
            edits: Makes the code of those that edit it; None: the session changes no code.
        """
        self._task = task
        self._edits = edits
        self._ideas = ideas

    @property
    def name(self) -> str:
        return OUTSIDE

    @property
    def is_pending(self) -> bool:
        """Where nobody else suggests anything new, the session waits for it; see `proposers.protocol.Slow`."""
        return not set(self._task.search.use) - {OUTSIDE, "replicator"}

    def ask(self, history: History, n: int) -> list[Proposal]:
        """What waits and is still worth a trial, oldest first."""
        found = answers(waiting_from_outside(self._ideas()), self._task, history, max(n, 0), self._edits)
        return [answer.proposal for answer in found if answer.proposal is not None]

    def tell(self, history: History) -> None:
        """Nothing is kept."""


def waiting_from_outside(ideas: Sequence[SuggestionView]) -> list[SuggestionView]:
    return [idea for idea in ideas if idea.arm == OUTSIDE and is_waiting(idea)]


def refused_from_outside(
    ideas: Sequence[SuggestionView], task: Task, history: History, edits: PrepareEdit | None = None
) -> dict[int, str]:
    """What can not be tried, by number, and why: at once, so that whoever proposed it can think again."""
    waiting = waiting_from_outside(ideas)
    if OUTSIDE not in task.search.use:
        why = "the task takes nothing from outside agents; let it, with outside in search.use of the task file"
        return {idea.suggestion_id: why for idea in waiting}
    room = len(waiting) if n_open(task, history) else 0
    return refusals(answers(waiting, task, history, room, edits))


def suggestions_behind(
    proposals: Sequence[Proposal],
    ideas: Sequence[SuggestionView],
    task: Task,
    history: History,
    edits: PrepareEdit | None = None,
) -> list[int | None]:
    """Which idea each proposal was made of; None: of none from outside."""
    found = answers(waiting_from_outside(ideas), task, history, len(ideas), edits)
    numbers = {one.proposal.configuration: one.suggestion_id for one in found if one.proposal is not None}
    return [numbers.get(one.configuration) if one.suggested_by == OUTSIDE else None for one in proposals]
