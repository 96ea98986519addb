"""What should happen now: one pure function of the state, the time and the policy.

The rules are in `round` (the order of measures), `order` (who comes first), `fit` (where a gang goes) and `preempt`
(who has to leave). `explain` reads the same round.
"""

from __future__ import annotations

from runtime.model.state import State

from .decision import Decision
from .policy import Policy
from .round import play


def schedule(state: State, *, now_s: float, policy: Policy) -> Decision:
    """Decide one round. Reads the state, never changes it.

    Actions are in the order in which they have to be recorded. The cost follows the number of distinct shapes in the
    queue and of attempts that hold devices, not the number of queued jobs.
    """
    paper = play(state, now_s=now_s, policy=policy)
    return Decision(actions=tuple(paper.actions), next_wake_s=paper.wake_s)
