"""How long a question to a model may take, from how long the calls before it took. Pure.

Nothing waits for a model, so a slow endpoint is given time; what is lost by too short a deadline is the whole answer.
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST_S = 240.0
"""As long as no call has shown that more is needed."""
LONGEST_S = 900.0
N_CALLS = 5
"""The newest calls count, those without an answer too: what has sped up is believed to be quick again."""
_CALLS_OF_A_QUESTION = 3.0
"""The question, the same once more, and a last resort by another form."""


def patience_s(said_s: float | None, took_s: Sequence[float]) -> float:
    """Seconds for one question with all its calls.

    Args:
        said_s: What the task allows (`model.call_seconds`); None: it leaves it to what the endpoint needs.
        took_s: Of calls before, in seconds, the oldest first.
    """
    if said_s is not None:
        return said_s
    slowest_s = max(took_s[-N_CALLS:], default=0.0)
    return min(max(FIRST_S, _CALLS_OF_A_QUESTION * slowest_s), LONGEST_S)
