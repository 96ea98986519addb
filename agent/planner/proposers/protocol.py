"""Where trials come from, behind one question."""

from __future__ import annotations

from typing import Protocol

from agent.planner.history import History, Proposal


class Proposer(Protocol):
    """Same history, same answer: a proposer may keep caches, never hidden state that changes what it says."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        """At most `n` proposals, best first; fewer when there is nothing left to try."""
        ...
