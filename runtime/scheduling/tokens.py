"""How often a class may have others give up devices: a token bucket, in devices. Pure.

Each class below the highest has a bucket. It holds so many tokens as `preempt_burst` times the devices there are, and
fills at `preempt_per_hour` times the devices. Each device that is given up costs one. While there is one token, a whole
gang may be asked for, so the bucket may be overdrawn: large gangs are not starved, only made to wait longer afterwards.
The highest class pays nothing: it neither waits for tokens nor takes them from others.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from runtime.model.evictions import WINDOW_S, Eviction
from runtime.model.nouns import Job
from runtime.model.state import State

from .policy import Policy


def ready_s(state: State, job: Job, policy: Policy, now_s: float, *, n_now: int = 0) -> float:
    """From when on others may be asked to leave for this job; not before now.

    Args:
        n_now: devices that its class has asked for in this round already.
    """
    if not pays(job, policy):
        return now_s
    past = (one for one in state.evictions.get(job.priority_class, ()) if now_s - one.at_s < WINDOW_S)
    n_devices = state.n_devices
    cap, per_s = policy.preempt_burst * n_devices, policy.preempt_per_hour * n_devices / 3600.0
    missing = min(1.0, cap) - (level(past, cap, per_s, now_s) - n_now)
    if missing <= 0:
        return now_s
    return now_s + min(missing / per_s if per_s else inf, WINDOW_S)


def pays(job: Job, policy: Policy) -> bool:
    """Whether its class is limited: all but the highest are."""
    return job.priority < max(each.priority for each in policy.classes.values())


def level(past: Iterable[Eviction], cap: float, per_s: float, now_s: float) -> float:
    """Tokens in the bucket now; it was full before the first of these."""
    tokens, at_s = cap, now_s
    for number, one in enumerate(past):
        tokens = tokens - one.n_devices if number == 0 else min(cap, tokens + per_s * (one.at_s - at_s)) - one.n_devices
        at_s = one.at_s
    return min(cap, tokens + per_s * (now_s - at_s))
