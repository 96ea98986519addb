"""The proposers that a task asks for, as one portfolio. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from agent.planner.history import History, Proposal
from agent.planner.portfolio import Portfolio
from agent.planner.proposers.doctor import Doctor, mends
from agent.planner.proposers.on_base import OnBase
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.points import Points
from agent.planner.proposers.protocol import Proposer
from agent.planner.proposers.race import Race
from agent.planner.proposers.random_points import RandomPoints
from agent.planner.proposers.refiner import Refiner
from agent.planner.repetition import Remembered
from agent.task import Task


def chosen_proposers(
    task: Task,
    more: Sequence[Proposer] = (),
    memory: Sequence[Remembered] = (),
    wishes: Callable[[History], Sequence[Proposal]] = lambda history: (),
) -> Portfolio:
    """What `search.use` names, and `more`; where it searches, what failed is mended too.

    Args:
        wishes: replicates that somebody asked for: the race makes them where its rules allow.

    Raises:
        ValueError: the sampler needs a package that is not installed.
    """
    used = set(task.search.use)
    found: list[Proposer] = list(more)
    found += [_shown_alike(task, proposer) for proposer in _of_parameters(task, used)]
    has_race = "replicator" in used and task.search.replicates == 1
    return Portfolio(
        task,
        found,
        Race(task, wishes) if has_race else None,
        memory,
        first=Points(task) if "points" in used else None,
        occasional=(Doctor(task),) if mends(task) else (),
    )


def _of_parameters(task: Task, used: Collection[str]) -> Iterator[Proposer]:
    """Those that know parameters alone; none where there are none."""
    if not task.space:
        return
    if "sampler" in used:
        yield OptunaSampler(task)
    if "refiner" in used:
        yield Refiner(task)
    if "random" in used:
        yield RandomPoints(task)


def _shown_alike(task: Task, proposer: Proposer) -> Proposer:
    return proposer if task.code is None else OnBase(proposer)


def chosen_explorer(task: Task) -> Proposer:
    """Who gives new configurations at once, for slots with nothing else to do."""
    return _shown_alike(task, OptunaSampler(task))
