"""How many proposals of a slow proposer are kept ready, so that no device waits for a thought. Pure.

While one call thinks, the devices go on and take trials; so as many must wait as they take in that time, and some more,
since trials do not end at equal distances. More than that would be thought of without the newest values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.planner.history import History, Proposal

SAFETY = 2.0
"""Beyond the mean number of trials taken during a call, so many standard deviations of it wait (Poisson)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A proposal made ahead: a row of the store until it becomes a trial or is dropped."""

    thought_id: int
    proposal: Proposal
    premise: str | None
    """The configuration that led when the call began; None: there was none. Another one now: it is stale."""
    took_s: float
    """How long its call took."""


def n_wanted(history: History, *, n_slots: int, call_s: float | None) -> int:
    """How many proposals should wait.

    Args:
        call_s: How long a call takes; None: none has ended yet.
    """
    seconds = [
        t.ended_at - t.launched_at for t in history.trials if t.ended_at is not None and t.launched_at is not None
    ]
    if call_s is None or not seconds or not sum(seconds):
        return n_slots + 1
    taken = n_slots * call_s * len(seconds) / sum(seconds)
    return math.ceil(taken + SAFETY * math.sqrt(taken)) + 1


def waiting(thoughts: Sequence[Thought], history: History, leader: str | None) -> list[Thought]:
    """Those that nobody has tried, in the order in which they are to be taken: what is stale comes last."""
    tried = {trial.configuration for trial in history.search}
    left = [thought for thought in thoughts if thought.proposal.configuration not in tried]
    return sorted(left, key=lambda thought: (thought.premise != leader, thought.thought_id))


def superfluous(left: Sequence[Thought], leader: str | None, n: int) -> list[Thought]:
    """What is dropped of the waiting ones when more than `n` wait: stale ones alone, oldest first.

    An edit of code is kept: what it was made from is still there, and it cost a whole answer.
    """
    dropped = (t for t in left if t.premise != leader and t.proposal.facts.edited is None)
    stale = sorted(dropped, key=lambda thought: thought.thought_id)
    return stale[: max(len(left) - n, 0)]


def with_waiting(history: History, left: Sequence[Thought]) -> History:
    """The history as if what waits were proposed already: the next call does not think of it again."""
    last = history.trials[-1].number if history.trials else 0
    made = [
        thought.proposal.as_trial(number, trial_id=f"thought-{number}") for number, thought in enumerate(left, last + 1)
    ]
    return replace(history, trials=(*history.trials, *made), search=(*history.search, *made))
