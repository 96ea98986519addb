"""Which configuration is chosen where code was edited: the best, unless a smaller change does as well. Pure.

Two rules, and whom they passed over is said. A changed line costs `code.per_line`, so the one that is best after that
is ahead. And among edits that do not clearly differ from it the one with the fewest changed lines is taken: the
one-standard-error rule, over the seeds that both ran on where these are three or more. The base code is never taken
for being as simple as can be: whether an edit beats it is what the fresh seeds are asked afterwards.

Source: Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984, section 3.4.3.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.edited import values_by_seed
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.ranking import Ranking
from agent.planner.statistics import Standing
from agent.task import Task

_FEWEST_PAIRS = 3
"""Common seeds from which the error of a difference is taken from the pairs themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    configuration: str
    why: str = ""
    """Whom it was chosen over although that one led, and by which rule; empty: it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    standing: Standing
    n_lines: int
    """Changed against the base; 0: the base itself."""


def choose(task: Task, history: History, ranks: Ranking) -> Choice | None:
    """The configuration that is to be confirmed; None: nothing has a value."""
    if ranks.leader is None:
        return None
    if task.code is None:
        return Choice(configuration=ranks.leader.configuration)
    lines = {t.configuration: 0 if (e := t.facts.edited) is None else e.n_changed for t in history.search}
    sized = [_Sized(standing=s, n_lines=lines.get(s.configuration, 0)) for s in ranks.standings]
    leader = sized[0]
    worth_its_lines = max(sized, key=lambda one: _net_gain(one, leader, task))  # of equals the better standing
    found = _simplest_alike(worth_its_lines, sized, task, history, ranks)
    why = "" if found is leader else _why(found, leader, worth_its_lines, history, task)
    return Choice(configuration=found.standing.configuration, why=why)


def _simplest_alike(best: _Sized, sized: Sequence[_Sized], task: Task, history: History, ranks: Ranking) -> _Sized:
    """Of the edits that are within one standard error of the best: the one with the fewest lines, then the best."""
    if best.n_lines == 0:
        return best
    default = ranks.of(configuration_id(default_params(task)))
    alike = [
        one
        for one in sized
        if 0 < one.n_lines < best.n_lines
        and _apart(one, best, task, history).is_within_error(_price(one, best, task))
        and (default is None or _gain(one.standing, default, task) > 0)
    ]
    return min(alike, key=lambda one: one.n_lines, default=best)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Apart:
    better: float
    """How much better the larger edit is."""
    error: float
    """Standard error of that."""

    def is_within_error(self, price: float) -> bool:
        return self.better - price <= self.error


def _apart(one: _Sized, best: _Sized, task: Task, history: History) -> _Apart:
    """By the seeds that both ran on; with few of these, by what is believed of the two."""
    values = values_by_seed(task, history)
    own, other = (values.get(side.standing.configuration, {}) for side in (one, best))
    gains = [gain(other[seed], own[seed], task.objective.direction) for seed in own.keys() & other.keys()]
    if len(gains) < _FEWEST_PAIRS:
        return _Apart(better=_gain(best.standing, one.standing, task), error=best.standing.sd)
    return _Apart(better=statistics.fmean(gains), error=statistics.stdev(gains) / math.sqrt(len(gains)))


def _price(one: _Sized, best: _Sized, task: Task) -> float:
    """What the further lines of the larger have to bring."""
    assert task.code is not None
    return task.code.per_line * (best.n_lines - one.n_lines)


def _net_gain(one: _Sized, over: _Sized, task: Task) -> float:
    """What is gained after the price of its further lines; negative: lost."""
    return _gain(one.standing, over.standing, task) + _price(one, over, task)


def _gain(one: Standing, over: Standing, task: Task) -> float:
    return gain(one.mean, over.mean, task.objective.direction)


def _why(found: _Sized, leader: _Sized, worth_its_lines: _Sized, history: History, task: Task) -> str:
    by_standing, price = _gain(leader.standing, found.standing, task), _price(found, leader, task)
    n_longer = leader.n_lines - found.n_lines
    over = f"chosen over {_first_trial(history, leader)}, which is {{:.3g}} better and {n_longer} lines longer"
    if found is worth_its_lines or by_standing <= price:
        return f"{over.format(by_standing)}: {n_longer} lines have to bring {price:.3g} (code.per_line)"
    apart = _apart(found, worth_its_lines, task, history)
    priced = f" and the {price:.3g} that these lines have to bring" if price else ""
    said = f"the two can not be told apart (one standard error is {apart.error:.3g}{priced})"
    return f"{over.format(apart.better)}: {said}"


def _first_trial(history: History, one: _Sized) -> str:
    name = one.standing.configuration
    return next((t.trial_id for t in history.search if t.configuration == name), name)
