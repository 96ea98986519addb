"""Where trials come from, behind one protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Slow(Protocol):
    """A proposer whose answers come later than they are asked for."""

    @property
    def is_pending(self) -> bool:
        """Something may still come without anything else happening: that it has nothing now is no end."""
        ...


def is_pending(proposer: Proposer) -> bool:
    """Whether a proposer that has nothing may have something later, though nothing else happens."""
    return isinstance(proposer, Slow) and proposer.is_pending
