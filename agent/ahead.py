"""Proposals made ahead by a proposer that is slow (a model): it thinks while jobs run, and nothing ever waits for it.

`Ahead` is a `Proposer` to the planner, and its answers come from rows of the store, so a session that was killed goes
on with what was thought already. One call at a time runs beside the session; when it is done the session is woken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent.planner import configuration
from agent.planner.backlog import Thought, n_wanted, superfluous, waiting, with_waiting
from agent.planner.history import History, Proposal
from agent.planner.plan import n_search_trials
from agent.planner.ranking import ranking
from agent.store.shelf import Shelf
from agent.store.views import Purpose, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """What a call gave."""

    proposals: tuple[Proposal, ...]
    took_s: float


class Thinker(Protocol):
    """A slow source of proposals. It starts calls and never blocks."""

    @property
    def name(self) -> str: ...

    @property
    def batch(self) -> int:
        """The most that one call suggests."""
        ...

    @property
    def is_thinking(self) -> bool:
        """A call has begun and was not taken yet."""
        ...

    @property
    def is_done(self) -> bool:
        """`take` has something."""
        ...

    @property
    def is_pending(self) -> bool:
        """A call is under way, or will be soon, whatever else happens."""
        ...

    def begin(self, history: History, n: int) -> None:
        """Start a call for at most `n` proposals, or none where nothing new is known since the last one.

        What waits already is in the history, as proposed.
        """
        ...

    def take(self) -> Thinking:
        """What the call that is done gave, once."""
        ...


class Ahead:
    """Implements `Proposer` over a `Thinker` and a shelf of what it thought of."""

    def __init__(self, task: Task, thinker: Thinker, shelf: Shelf, n_slots: Callable[[], int]) -> None:
        self._task = task
        self._thinker = thinker
        self._shelf = shelf
        self._n_slots = n_slots
        self._premise: str | None = None
        """Of the call that runs."""

    @property
    def name(self) -> str:
        return self._thinker.name

    @property
    def has_news(self) -> bool:
        """A call is done: worth a wake-up."""
        return self._thinker.is_done

    @property
    def is_pending(self) -> bool:
        """More may come though no trial ends: see `agent.planner.proposers.protocol.Slow`."""
        return self._thinker.is_pending

    def ask(self, history: History, n: int) -> list[Proposal]:
        """What waits, at most `n`; never thinks."""
        return [thought.proposal for thought in self._waiting(history)[: max(n, 0)]]

    def wishes(self, history: History) -> list[Proposal]:
        """Replicates that it asked for, were not made yet, and whose premise still holds."""
        leader = self._leader(history)
        return [
            thought.proposal
            for thought in self._shelf.thoughts(self.name)
            if thought.proposal.purpose is Purpose.REPLICATE
            and thought.premise == leader
            and (thought.proposal.configuration, thought.proposal.seed) not in history.replicates
        ]

    def tell(self, history: History) -> None:
        """Shelve what a call gave, and begin the next one when too little waits."""
        wanted = n_wanted(history, n_slots=self._n_slots(), call_s=self._call_s())
        if self._thinker.is_done:
            self._shelve(history, wanted)
        left = self._waiting(history)
        room = n_search_trials(self._task) - len(history.search) - len(left)
        n = min(self._thinker.batch, room)
        if not self._thinker.is_thinking and n > 0 and len(left) < wanted:
            self._premise = self._leader(history)
            self._thinker.begin(with_waiting(history, left), n)

    def _shelve(self, history: History, wanted: int) -> None:
        """Keep what is new and lies in the space; older thoughts with another premise make room for it."""
        given = self._thinker.take()
        shelved = [thought.proposal for thought in self._shelf.thoughts(self.name)]
        tried = (*history.search, *history.replicates.values())
        known = {_key(trial) for trial in tried} | {_key(proposal) for proposal in shelved}
        kept: dict[tuple[object, ...], Proposal] = {}
        for proposal in given.proposals:
            if not configuration.problems(proposal.params, self._task) and _key(proposal) not in known:
                kept.setdefault(_key(proposal), proposal)
        self._shelf.put(self.name, list(kept.values()), premise=self._premise, took_s=given.took_s)
        self._shelf.drop(superfluous(self._waiting(history), self._leader(history), wanted))

    def _waiting(self, history: History) -> list[Thought]:
        left = waiting(self._shelf.thoughts(self.name), history, self._leader(history))
        return [one for one in left if not configuration.problems(one.proposal.params, self._task)]

    def _leader(self, history: History) -> str | None:
        leader = ranking(self._task, history).leader
        return None if leader is None else leader.configuration

    def _call_s(self) -> float | None:
        """The mean of what the calls behind the shelved thoughts took."""
        took = [thought.took_s for thought in self._shelf.thoughts(self.name)]
        return sum(took) / len(took) if took else None


def _key(one: Proposal | TrialView) -> tuple[object, ...]:
    """What makes it the same as another one: of a replicate its seed too."""
    if one.purpose is Purpose.SEARCH:
        return one.purpose, one.configuration
    return one.purpose, one.configuration, one.seed
