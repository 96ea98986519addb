"""Proposers that know parameters alone are shown what the unchanged code gave: other code is another function. Pure."""

from __future__ import annotations

from agent.planner.history import History, Proposal
from agent.planner.proposers.protocol import Proposer


class OnBase:
    """Implements `Proposer` over another one."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._last: tuple[History, History] | None = None
        """The history that was seen last, and what of it was shown: several caches know a history by its identity."""

    @property
    def name(self) -> str:
        return self._proposer.name

    def ask(self, history: History, n: int) -> list[Proposal]:
        return self._proposer.ask(self._shown(history), n)

    def tell(self, history: History) -> None:
        self._proposer.tell(self._shown(history))

    def _shown(self, history: History) -> History:
        if self._last is None or self._last[0] is not history:
            self._last = history, history.of_base()
        return self._last[1]
