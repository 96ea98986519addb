"""Which configuration is chosen where code was edited: the best, unless a smaller change does as well. Pure.

Two rules, and whom they passed over is said. A changed line costs `code.per_line`, so the one that is best after that
is ahead. And among edits that do not clearly differ from it the one with the fewest changed lines is taken: the
one-standard-error rule. The base code is never taken for being as simple as can be: whether an edit beats it is what
the fresh seeds are asked afterwards.

Source: Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984, section 3.4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.ranking import Ranking
from agent.planner.statistics import Standing
from agent.task import Task


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
    found = _simplest_alike(worth_its_lines, sized, task, ranks)
    if found is leader:
        return Choice(configuration=leader.standing.configuration)
    return Choice(configuration=found.standing.configuration, why=_why(found, leader, worth_its_lines, history, task))


def _simplest_alike(best: _Sized, sized: Sequence[_Sized], task: Task, ranks: Ranking) -> _Sized:
    """Of the edits that are within one standard error of the best: the one with the fewest lines, then the best."""
    if best.n_lines == 0:
        return best
    default = ranks.of(configuration_id(default_params(task)))
    alike = [
        one
        for one in sized
        if 0 < one.n_lines < best.n_lines
        and _net_gain(one, best, task) >= -best.standing.sd
        and (default is None or _gain(one.standing, default, task) > 0)
    ]
    return min(alike, key=lambda one: one.n_lines, default=best)


def _net_gain(one: _Sized, over: _Sized, task: Task) -> float:
    """What is gained after the price of its further lines; negative: lost."""
    assert task.code is not None
    return _gain(one.standing, over.standing, task) - task.code.per_line * (one.n_lines - over.n_lines)


def _gain(one: Standing, over: Standing, task: Task) -> float:
    return gain(one.mean, over.mean, task.objective.direction)


def _why(found: _Sized, leader: _Sized, worth_its_lines: _Sized, history: History, task: Task) -> str:
    assert task.code is not None
    better = _gain(leader.standing, found.standing, task)
    n_longer = leader.n_lines - found.n_lines
    over = f"chosen over {_first_trial(history, leader)}, which is {better:.3g} better and {n_longer} lines longer"
    price = task.code.per_line * n_longer
    if found is worth_its_lines or better <= price:
        return f"{over}: {n_longer} lines have to bring {price:.3g} (code.per_line)"
    priced = f" and the {price:.3g} that these lines have to bring" if price else ""
    return f"{over}: the two can not be told apart (one standard error is {worth_its_lines.standing.sd:.3g}{priced})"


def _first_trial(history: History, one: _Sized) -> str:
    name = one.standing.configuration
    return next((t.trial_id for t in history.search if t.configuration == name), name)
