"""Replicates of the search: every configuration on as many seeds as the task asks for. Pure.

The seeds are the search's own and then those of the race, the same ones in the same order for every configuration, so
that all of them are measured alike: none is repeated because it looked good. A configuration that failed by itself on
its first seed is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from agent.planner import seeds
from agent.planner.history import History, Proposal
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task

_NOT_ITS_OWN = frozenset(
    {
        "address_in_use",
        "cancelled",
        "deadline",
        "device_lost",
        "device_unavailable",
        "disk_full",
        "launcher_unavailable",
        "network_error",
        "node_lost",
        "over_budget",
        "preempted",
        "queue_timeout",
        "refused",
        "sandbox_unavailable",
        "supervisor_lost",
    }
)
"""Exit reasons that say nothing about the configuration: other seeds of it may well give a value."""


def further_seeds(task: Task) -> list[int]:
    """Seeds of every configuration beside that of the search, in order; none where the search measures once."""
    return list(islice(seeds.racing(task), task.search.replicates - 1))


def is_its_own(exit_reason: str | None) -> bool:
    """Whether an end says something about what ran: it was neither the machine's nor somebody else's doing."""
    return exit_reason not in _NOT_ITS_OWN


def is_its_own_failure(trial: TrialView) -> bool:
    """Whether a trial without a value says something about its configuration."""
    return trial.state is TrialState.INVALID and is_its_own(trial.exit_reason)


def due_replicates(task: Task, history: History, n: int) -> list[Proposal]:
    """At most `n` that are missing of configurations whose first trial has ended, in the order of these trials."""
    return list(islice(_missing(task, history, is_first_ended=True), max(n, 0)))


def early_replicates(task: Task, history: History, n: int) -> list[Proposal]:
    """At most `n` of configurations whose first trial is still to end: for slots that have nothing else to do."""
    return list(islice(_missing(task, history, is_first_ended=False), max(n, 0)))


def are_complete(task: Task, history: History) -> bool:
    """Whether every configuration that was searched has all of its values, or will never have them."""
    if any(not trial.is_ended for trial in history.search):
        return False
    if next(_missing(task, history, is_first_ended=True), None) is not None:
        return False
    return not _left(task, history)


def in_flight(task: Task, history: History) -> bool:
    """Whether one of them was submitted, or begun, and has not ended."""
    return any(not trial.is_new for trial in _left(task, history))


def _left(task: Task, history: History) -> list[TrialView]:
    """Proposed or launched, not ended."""
    wanted = set(further_seeds(task))
    return [t for (_, seed), t in history.replicates.items() if seed in wanted and not t.is_ended] if wanted else []


def _missing(task: Task, history: History, *, is_first_ended: bool) -> Iterator[Proposal]:
    wanted = further_seeds(task)
    if not wanted:
        return
    for trial in history.search:
        if trial.is_ended is not is_first_ended or is_its_own_failure(trial):
            continue
        for at, seed in enumerate(wanted, start=2):
            if (trial.configuration, seed) not in history.replicates:
                yield _proposal(task, trial, seed, at)


def _proposal(task: Task, first: TrialView, seed: int, at: int) -> Proposal:
    return Proposal(
        params=dict(first.params),
        configuration=first.configuration,
        seed=seed,
        purpose=Purpose.REPLICATE,
        suggested_by="replicator",
        why=f"replicate {at} of {task.search.replicates} of {first.trial_id}'s configuration, on racing seed {seed}",
    )
