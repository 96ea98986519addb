"""The claim at the end: which fresh seeds the chosen configuration and the default still need. Pure.

The pairs of `seeds.fresh` come first. While they decide nothing and a decision is within reach, more follow, some at
a time; looking at each costs nothing, since the evidence is valid at every look.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from agent.planner.claims import compared, final_pairs
from agent.planner.configuration import configuration_id, default_params
from agent.planner.edited import is_seed_unused
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History, Proposal
from agent.planner.hypothesis import Hypothesis
from agent.planner.objective import gain
from agent.planner.pairing import Paired, is_broken
from agent.planner.parentage import parent_runs, parent_work
from agent.planner.proposers.replicator import Arm, Replicator
from agent.planner.seeds import all_fresh, n_pairs_at_most
from agent.planner.statistics import pairs_needed
from agent.store.views import Purpose, TrialState
from agent.task import Task


def arms(task: Task, history: History, chosen: str | None) -> tuple[Arm, ...]:
    """The sides that are compared: the default, and the chosen configuration once there is one and it is another."""
    params = default_params(task)
    default = Arm(name="default", params=params, configuration=configuration_id(params))
    if chosen is None or chosen == default.configuration:
        return (default,)
    found = next(trial.params for trial in history.search if trial.configuration == chosen)
    return default, Arm(name="best", params=found, configuration=chosen)


def fresh_seeds(task: Task, history: History, sides: Sequence[Arm], claim: Hypothesis) -> list[int]:
    """The fresh seeds that count now, in order.

    A seed on which a side gave no value, or that can not be compared, is dropped for all and replaced by the next one;
    at most twice as many seeds as wanted are ever tried, so a configuration that always fails ends too.
    """
    n = task.seeds.fresh
    if len(sides) == 2:
        n = max(n, _n_pairs_wanted(task, history, sides, claim))
    names = tuple(side.configuration for side in sides)
    usable = [seed for seed in all_fresh(task)[: 2 * n] if not is_broken(task, history, names, seed)]
    return usable[:n]


def confirming_work(task: Task, history: History, chosen: str | None, claim: Hypothesis, n: int) -> list[Proposal]:
    """What the claim at the end still needs: the first pairs, the held-out looks, then the pairs that follow.

    Beside the first pairs, where the chosen one runs edited code, the code that it was made from.

    While nothing is chosen, the default's seeds of the first pairs, which are needed anyway.
    """
    sides = arms(task, history, chosen)
    if chosen is not None and is_seed_unused(history, chosen):  # pairs of it would say nothing
        return _looks(task, history, sides[-1], n)
    seeds = fresh_seeds(task, history, sides, claim)
    first, more = seeds[: task.seeds.fresh], seeds[task.seeds.fresh :]
    work: list[Proposal] = []
    for side in reversed(sides):
        work.extend(Replicator(task, side, first, claim.hypothesis_id).ask(history, n - len(work)))
    if chosen is not None:
        work.extend(_looks(task, history, sides[-1], n - len(work)))
    work.extend(parent_work(task, history, chosen, first, n - len(work)))
    for seed in more:  # seed by seed, so that pairs are whole early
        for side in reversed(sides):
            work.extend(Replicator(task, side, [seed], claim.hypothesis_id).ask(history, n - len(work)))
    return work


def _looks(task: Task, history: History, chosen: Arm, n: int) -> list[Proposal]:
    """What is missing of the held-out looks; a look that failed was a look."""
    ledger = HeldOutLedger.of(task, history)
    wanted = range(len(ledger.looks) + 1, ledger.n_allowed + 1)
    return [
        Proposal(
            params=chosen.params,
            configuration=chosen.configuration,
            seed=task.seeds.first_fresh + look - 1,
            purpose=Purpose.HELD_OUT,
            suggested_by="replicator",
            why=f"look {look} of {ledger.n_allowed} at {ledger.metric}, for the chosen configuration alone",
        )
        for look in list(wanted)[: max(n, 0)]
    ]


def is_confirmed(task: Task, history: History, sides: Sequence[Arm], claim: Hypothesis) -> bool:
    """Whether every side has its value on every seed that counts, and its parent's code has run beside the best.

    Of a configuration that does not use its seed no pair is wanted.
    """
    if is_seed_unused(history, sides[-1].configuration):
        return True
    seeds = fresh_seeds(task, history, sides, claim)
    runs = [history.replicates.get((side.configuration, seed)) for side in sides for seed in seeds]
    beside = [history.replicates.get(one) for one in parent_runs(task, history, sides[-1].configuration, seeds)]
    return all(run is not None and run.state is TrialState.MEASURED for run in runs) and all(
        run is not None and run.is_ended for run in beside
    )


def _n_pairs_wanted(task: Task, history: History, sides: Sequence[Arm], claim: Hypothesis) -> int:
    """As many as there are when they decide or nothing more is within reach; else one more round of `seeds.fresh`."""
    pairs = final_pairs(task, history, sides[-1].configuration, is_over=False)
    n, most = len(pairs.pairs), n_pairs_at_most(task)
    if n < task.seeds.fresh or n >= most:
        return min(n, most)
    if compared(claim, task, pairs).is_decided or not _is_within_reach(task, pairs, claim.alpha, most):
        return n
    return min(n + task.seeds.fresh, most)


def _is_within_reach(task: Task, pairs: Paired, alpha: float, most: int) -> bool:
    """Whether `most` pairs would decide for better with an even chance, if the gain were one standard error larger."""
    gains = [gain(a, b, task.objective.direction) - task.objective.min_effect for a, b in pairs.values]
    noise = statistics.stdev(gains)
    effect = statistics.fmean(gains) + noise / math.sqrt(len(gains))
    needed = pairs_needed(effect, noise, alpha, power=0.5)
    return needed is not None and needed <= most
