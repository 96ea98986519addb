"""What slots do that have nothing else to do: replicate the best and its challengers, then explore. Pure.

Idle work is exploratory whatever the class of its task, bounded by `idle.max_share` and by the budgets, and gives way:
its least valuable trials are cut short for wanted ones. It ends when the search is closed, since a choice that is
made gains nothing from it, and when one more replicate would move the choice by less than `WORTH_IT` of the noise of
one evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.planner import seeds
from agent.planner.budget import Spend, device_seconds_left, mean_device_seconds, n_confirming
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.planner.plan import Plan, n_open, n_search_trials
from agent.planner.proposers.protocol import Proposer
from agent.planner.worth import Belief, Outlook, after_one_more, outlook, worth_of_replicate, worth_of_search
from agent.store.views import ParamValue, Purpose, TrialView, Worth
from agent.task import Task

WORTH_IT = 0.02
"""Expected gain of a replicate, in noises of one evaluation, below which it is not made."""
N_CHALLENGERS = 4
"""The best standing configurations that are replicated beside the default."""


def idle_work(plan: Plan, task: Task, history: History, n: int, *, spend: Spend, explorer: Proposer) -> list[Proposal]:
    """At most `n` trials for slots that would be idle, the most wanted first; fewer: nothing more is worth it.

    Args:
        n: slots that have nothing else to do.
        explorer: gives new configurations at once, where the search's own proposers are slow.
    """
    if plan.search_closed is not None or plan.spent is not None:
        return []
    n = min(n, _n_affordable(task, history, spend))
    known = outlook(task, history)
    if n < 1 or known is None:
        return []
    may_replicate = task.idle.replicate and task.search.replicates == 1  # else each is replicated in any case
    work = _replicates(task, history, known, n) if may_replicate else []
    if task.idle.explore and len(work) < n:
        work += _explored(task, history, known, n - len(work), explorer)
    return work


def to_cut(history: History, n_slots: int, n_wanted: int) -> list[TrialView]:
    """Idle trials in flight that give way to wanted ones: the least valuable for their cost first.

    Args:
        n_wanted: wanted trials in flight or about to be.
    """
    idle = [trial for trial in history.in_flight if trial.is_idle_work and not trial.is_recalled]
    n = max(min(n_wanted + len(idle) - n_slots, len(idle)), 0)
    return sorted(idle, key=lambda trial: (_value(trial.worth), -trial.number))[:n]


def _value(worth: Worth | None) -> float:
    return 0.0 if worth is None else (worth.gain + worth.uncertainty) / worth.cost_s


def _n_affordable(task: Task, history: History, spend: Spend) -> int:
    """Idle trials that `idle.max_share` and the budgets have room for."""
    cost_s = mean_device_seconds(history)
    if cost_s is None:
        return 0
    idle = [trial for trial in history.trials if trial.is_idle_work]
    all_s = _used_s(history.trials, cost_s)
    idle_s = _used_s(idle, cost_s)
    share = task.idle.max_share
    # idle_s + n * cost_s <= share * (all_s + n * cost_s)
    room = float("inf") if share >= 1 else (share * all_s - idle_s) / ((1 - share) * cost_s)
    left_s = device_seconds_left(task.budgets, spend)
    if left_s is not None:
        n_search = max(n_search_trials(task) - len(history.search), 0) * task.search.replicates
        n_needed = n_search + n_confirming(task)
        room = min(room, left_s / cost_s - n_needed - len(history.in_flight) - len(history.ready))
    return int(min(max(room, 0.0), 10_000))


def _used_s(trials: Iterable[TrialView], cost_s: float) -> float:
    """Device-seconds of trials, those that have not ended at what they are expected to need."""
    return sum(trial.device_seconds if trial.is_ended else cost_s for trial in trials)


def _replicates(task: Task, history: History, known: Outlook, n: int) -> list[Proposal]:
    params = {trial.configuration: trial.params for trial in history.search}
    default = configuration_id(default_params(task))
    beliefs = dict(known.beliefs)
    racers = [name for name in dict.fromkeys((*list(beliefs)[:N_CHALLENGERS], default)) if name in beliefs]
    taken = {key for key in history.replicates if seeds.is_racing(task, key[1])}
    for racing, _ in sorted(key for key in taken if not history.replicates[key].is_ended):
        beliefs = _expecting(beliefs, racing, known.noise)
    work: list[Proposal] = []
    while len(work) < n:
        now = replace(known, beliefs=beliefs)
        worths = {name: worth_of_replicate(now, name) for name in racers if _next_seed(task, taken, name) is not None}
        if not worths or known.noise <= 0:
            break
        name = max(worths, key=lambda each: (worths[each].gain, each))
        if worths[name].gain < WORTH_IT * known.noise:
            break
        seed = _next_seed(task, taken, name)
        assert seed is not None
        for side in dict.fromkeys((name, default)):
            if (side, seed) not in taken and side in beliefs and len(work) < n:
                work.append(
                    _replicate(params[side], side, seed, worths.get(side, worths[name]), is_best=side == known.best)
                )
                taken.add((side, seed))
                beliefs = _expecting(beliefs, side, known.noise)
    return work


def _expecting(beliefs: dict[str, Belief], name: str, noise: float) -> dict[str, Belief]:
    """As if one more value of it were there already, where its trial is only under way."""
    if name not in beliefs:
        return beliefs
    return beliefs | {name: replace(beliefs[name], sd=after_one_more(beliefs[name].sd, noise))}


def _next_seed(task: Task, taken: set[tuple[str, int]], name: str) -> int | None:
    """The first racing seed that it has not run on; None: it has run on as many as one claim may take."""
    for index, seed in enumerate(seeds.racing(task)):
        if index >= seeds.n_pairs_at_most(task):
            return None
        if (name, seed) not in taken:
            return seed
    return None


def _replicate(params: dict[str, ParamValue], name: str, seed: int, worth: Worth, *, is_best: bool) -> Proposal:
    what = "the best so far" if is_best else "a challenger"
    return Proposal(
        params=params,
        configuration=name,
        seed=seed,
        purpose=Purpose.REPLICATE,
        suggested_by="replicator",
        why=f"idle time: replicate {what} on racing seed {seed}, where one more value tells most",
        is_idle_work=True,
        worth=worth,
    )


def _explored(task: Task, history: History, known: Outlook, n: int, explorer: Proposer) -> Sequence[Proposal]:
    """New configurations; they count against `budgets.trials` as any other."""
    room = min(n, n_open(task, history))
    worth = worth_of_search(known)
    return [
        replace(proposal, is_idle_work=True, worth=worth, why=f"idle time: explore: {proposal.why}")
        for proposal in (explorer.ask(history, room) if room > 0 else [])
    ]
