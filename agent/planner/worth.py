"""What a trial is expected to bring, and how sure that is: one number for idle work to be ordered by. Pure.

A new configuration may improve on the best, a replicate may change which configuration is believed to be the best:
both are the expected positive part of a normal quantity.

Source: expected improvement (Mockus, 1975); knowledge gradient for independent normal beliefs (Frazier, Powell,
Dayanik, A knowledge-gradient policy for sequential information collection, SIAM J. Control Optim. 47(5), 2008).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import ndtr

from agent.planner import seeds
from agent.planner.budget import mean_device_seconds
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.statistics import pooled_noise, standing
from agent.store.views import Purpose, TrialState, Worth
from agent.task import Task

_N_OF_LATE = 20
"""Search trials by which the next one is judged."""
_FEWEST = 3
_N_JUDGED = 64
"""The best configurations by their values, about which it is asked which is the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed of one configuration's mean, in gains: larger is better."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known, put so that the next trial can be judged."""

    beliefs: Mapping[str, Belief]
    """By configuration, the best first."""
    noise: float
    """Standard deviation of one evaluation; guessed from the search's spread while nothing was repeated."""
    of_late: Belief
    """What a new configuration gave of late."""
    cost_s: float
    """Device-seconds of one trial."""

    @property
    def best(self) -> str:
        return next(iter(self.beliefs))


def outlook(task: Task, history: History) -> Outlook | None:
    """None: too little is measured to judge anything by."""
    cost_s = mean_device_seconds(history)
    of_late = _of_late(task, history)
    if cost_s is None or of_late is None:
        return None
    direction = task.objective.direction
    values = _values(task, history)
    noise = pooled_noise(values, direction)
    guessed = of_late.sd / 2 if noise is None else noise
    beliefs = {
        each.configuration: Belief(
            mean=gain(each.mean, 0.0, direction), sd=each.sd if noise else guessed / math.sqrt(each.n)
        )
        for each in standing(values, direction)
    }
    return Outlook(beliefs=beliefs, noise=guessed, of_late=of_late, cost_s=cost_s)


def worth_of(task: Task, history: History, purpose: Purpose) -> Worth | None:
    """What one more wanted trial brings; None: too little is measured to say.

    A look at a new configuration: by how much it may improve on the best. A trial on a fresh seed, or a held-out look,
    which the answer needs: the lead over the default that is to be proven.
    """
    cost_s = mean_device_seconds(history)
    of_late = _of_late(task, history)
    best = history.best(task.objective.direction)
    if cost_s is None or of_late is None or best is None or best.value is None:
        return None
    value = gain(best.value, 0.0, task.objective.direction)
    match purpose:
        case Purpose.SEARCH:
            return _positive_part(of_late.mean - value, of_late.sd, cost_s)
        case Purpose.REPLICATE | Purpose.HELD_OUT | Purpose.RUNG:
            first = history.search[0].value
            lead = 0.0 if first is None else value - gain(first, 0.0, task.objective.direction)
            return _positive_part(lead, of_late.sd, cost_s)


def worth_of_search(known: Outlook) -> Worth:
    """Of a configuration that nobody tried: by how much it may improve on the best."""
    best = known.beliefs[known.best]
    return _positive_part(known.of_late.mean - best.mean, math.hypot(known.of_late.sd, best.sd), known.cost_s)


def worth_of_replicate(known: Outlook, configuration: str) -> Worth:
    """Of one more value of a known configuration: by how much the choice of the best may get better."""
    belief = known.beliefs.get(configuration, known.of_late)
    others = [other.mean for name, other in known.beliefs.items() if name != configuration]
    behind = abs(belief.mean - max(others, default=belief.mean))
    return _positive_part(-behind, moves(belief.sd, known.noise), known.cost_s)


def moves(sd: float, noise: float) -> float:
    """Standard deviation of the change in what is believed that one more value brings."""
    return sd * sd / math.hypot(sd, noise) if sd > 0 else 0.0


def after_one_more(sd: float, noise: float) -> float:
    """Standard deviation of the belief after one more value."""
    return sd * noise / math.hypot(sd, noise) if sd > 0 else 0.0


def _positive_part(mean: float, sd: float, cost_s: float) -> Worth:
    """Mean and standard deviation of max(X, 0) for a normal X."""
    if sd <= 0:
        return Worth(gain=max(mean, 0.0), uncertainty=0.0, cost_s=cost_s)
    z = mean / sd
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    below = float(ndtr(z))
    first = max(mean * below + sd * density, 0.0)
    second = (mean * mean + sd * sd) * below + mean * sd * density
    return Worth(gain=first, uncertainty=math.sqrt(max(second - first * first, 0.0)), cost_s=cost_s)


def _of_late(task: Task, history: History) -> Belief | None:
    late: list[float] = []
    for trial in reversed(history.search):
        if trial.state is TrialState.MEASURED and trial.value is not None:
            late.append(gain(trial.value, 0.0, task.objective.direction))
        if len(late) == _N_OF_LATE:
            break
    if len(late) < _FEWEST:
        return None
    mean = math.fsum(late) / len(late)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in late) / (len(late) - 1))
    return Belief(mean=mean, sd=spread)


def _values(task: Task, history: History) -> dict[str, list[float]]:
    """Search and racing values of the default, of what was repeated and of the best others, by configuration."""
    direction = task.objective.direction
    searched = [
        (t.configuration, t.value) for t in history.search if t.state is TrialState.MEASURED and t.value is not None
    ]
    raced = [
        (name, t.value)
        for (name, seed), t in history.replicates.items()
        if t.state is TrialState.MEASURED and t.value is not None and seeds.is_racing(task, seed)
    ]
    best = sorted(searched, key=lambda each: -gain(each[1], 0.0, direction))[:_N_JUDGED]
    judged = {name for name, _ in (*best, *raced, *searched[:1])}
    found: dict[str, list[float]] = {}
    for name, value in (*searched, *raced):
        if name in judged:
            found.setdefault(name, []).append(value)
    return found
