"""Where trials come from, behind one protocol."""

from __future__ import annotations

from typing import Protocol

from agent.planner.history import History, Proposal


class Proposer(Protocol):
    """Same history, same answer: a proposer may keep caches, never hidden state that changes what it says.

    So `tell` only saves work: a proposer that was never told anything finds it all in the history.
    """

    @property
    def name(self) -> str:
        """Goes into `suggested_by` of what it proposes."""
        ...

    def ask(self, history: History, n: int) -> list[Proposal]:
        """At most `n` proposals, best first; fewer when there is nothing left to try."""
        ...

    def tell(self, history: History) -> None:
        """Something in the history has changed: trials were added, ended or withdrawn."""
        ...
