"""The question for ideas as numbered choices: configurations that code would suggest itself. Pure.

So a model that can do no more than pick still can only help: whatever it picks is worth a trial.
"""

from __future__ import annotations

from agent.llm.menu import MenuItem
from agent.planner.history import History, Proposal
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.protocol import Proposer
from agent.planner.proposers.random_points import RandomPoints
from agent.planner.proposers.refiner import Refiner
from agent.planner.ranking import ranking
from agent.task import Task
from agent.thinking.tables.trials import params_text

_OF_EACH = 3
"""Choices of one proposer at most."""


def menu_for(task: Task, history: History, n: int, *, may_repeat: bool) -> list[MenuItem]:
    """About twice as many choices as are wanted, from each proposer some, and the leader once more."""
    proposers: tuple[Proposer, ...] = (Refiner(task), OptunaSampler(task), RandomPoints(task))
    of_each = min(_OF_EACH, max(1, n))
    found: dict[str, Proposal] = {}
    for proposer in proposers:
        for proposal in proposer.ask(history, of_each):
            found.setdefault(proposal.configuration, proposal)
    items = [_item(proposal, task) for proposal in found.values()]
    leader = ranking(task, history).leader
    first = None if leader is None else _first_measured(history, leader.configuration)
    if first is not None and may_repeat:
        text = f"measure the best so far ({first}) once more, on another seed"
        items.append(MenuItem(text=text, gives={"again": [{"trial": first, "why": "picked from the menu"}]}))
    return items


def _item(proposal: Proposal, task: Task) -> MenuItem:
    idea = {"parameters": dict(proposal.params), "why": f"picked from what {proposal.suggested_by} would try"}
    text = f"try {params_text(proposal.params, task)} ({proposal.suggested_by}: {proposal.why})"
    return MenuItem(text=text, gives={"trials": [idea]})


def _first_measured(history: History, configuration: str) -> str | None:
    return next((t.trial_id for t in history.search if t.configuration == configuration and t.value is not None), None)
