"""The portfolio: several proposers share the slots by what they have brought, and a rubbish one costs little. Pure.

Who gets the next slot follows from the history alone: from which trials each proposer's name stands on, and how those
did. A trial is a success when it came among the best tenth of those before it; old trials count less and less. The
default-seeded sampler is the control arm and keeps its share whatever it brings. A model whose trials clearly beat
those of the others takes what is free, and one whose trials clearly lose gives up what it has (`agent.planner.lead`).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.history import History, Proposal
from agent.planner.lead import Seen, lag, lead
from agent.planner.proposers.protocol import Proposer, is_pending
from agent.planner.repetition import (
    Escalation,
    Remembered,
    Step,
    Tried,
    losers_near,
    stale_after,
)
from agent.planner.standings import means_so_far, n_racing, once_per_history, standings
from agent.store.views import TrialState
from agent.task import Direction, Task

CONTROL = "optuna"
"""Suggests for the control arm; the default configuration, which it starts from, belongs to it."""
MODEL_ARM = "model"
"""Name of the arm of a language model. Only it can lead: a proposer that stays near the leader, as the refiner does,
beats the others without bringing gains."""
RACE_SHARE = 0.3
"""Of the evaluations of the search, at most so much goes to the race."""
_DISCOUNT = 0.96
"""By which a trial counts less for each one after it."""
_WINDOW = 120
"""Trials that count at all."""
_TOP = 0.1
_PRIOR_SLOTS = 3.0
"""Every proposer starts as if it had had so many slots with the success of `_PRIOR_YIELD`."""
_PRIOR_YIELD = 0.2
_FLOOR = 0.02
"""Least share of a proposer: who brings nothing is still asked now and then."""
_SHARPNESS = 1.5
"""Shares go with this power of the yield."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yield:
    """What one proposer has had and brought, recent trials first."""

    slots: float
    """Discounted number of its trials, those in flight included."""
    rate: float
    """Successes per slot of its ended trials, 0 to 1."""
    share: float
    """Of the next slots, 0 to 1; all of them make 1."""


class Portfolio:
    """Implements `Proposer`, from a list of proposers in the order in which equals are asked."""

    def __init__(
        self,
        task: Task,
        proposers: Sequence[Proposer],
        race: Proposer | None = None,
        memory: Sequence[Remembered] = (),
        *,
        first: Proposer | None = None,
        occasional: Sequence[Proposer] = (),
    ) -> None:
        """
        Args:
            occasional: arms that are there only while they have something, and otherwise change nothing.
            first: asked before all others, and believed: what it gives is refused only where it is equal to another.
        """
        self._task = task
        self._first = first
        self._proposers = tuple(proposers)
        self._occasional = tuple(occasional)
        self._race = race
        self._memory = tuple(memory)
        self._tried = Tried(task)
        self._said: tuple[Escalation, ...] = ()

    @property
    def name(self) -> str:
        return "portfolio"

    @property
    def escalations(self) -> tuple[Escalation, ...]:
        """What the last `ask` had to do because nothing new came; a cache of what it found in the history."""
        return self._said

    def tell(self, history: History) -> None:
        for proposer in self._proposers:
            proposer.tell(history)

    def ask(self, history: History, n: int) -> list[Proposal]:
        """New configurations and replicates of the race; fewer than `n` when nobody has anything new."""
        found: list[Proposal] = []
        said: list[Escalation] = self._stale(history) if n > 0 and self._proposers else []
        while len(found) < n:
            proposal = self._listed(history) or self._replicate(history) or self._explore(history, said)
            if proposal is None:
                break
            found.append(proposal)
            number = (history.trials[-1].number if history.trials else 0) + 1
            history = history.after([proposal.as_trial(number, trial_id=f"proposed-{number}")])
        self._said = tuple(said)
        return found

    def _listed(self, history: History) -> Proposal | None:
        return next(iter(self._first.ask(history, 1)), None) if self._first is not None else None

    def _replicate(self, history: History) -> Proposal | None:
        if self._race is None:
            return None
        n_racing_now = n_racing(self._task, history)
        if n_racing_now + 1 > RACE_SHARE * (len(history.search) + n_racing_now + 1):
            return None
        return next(iter(self._race.ask(history, 1)), None)

    def _explore(self, history: History, said: list[Escalation]) -> Proposal | None:
        self._tried.follow(history.search)
        exhausted = {e.surface for e in said if e.step is Step.SWITCH_SURFACE}
        for proposer in self._in_order(history):
            if proposer.name in exhausted:
                continue
            asked = proposer.ask(history, 1)
            objections = [self._tried.objection(p.params, p.facts.edited) for p in asked]
            for proposal, objection in zip(asked, objections, strict=True):
                if objection is None:
                    return proposal
            is_silent = proposer in self._occasional or is_pending(proposer)
            if (objections or history.search) and not is_silent:
                said.append(_switch(proposer.name, [o for o in objections if o]))
        if history.search and all(t.is_ended for t in history.trials) and not any(map(is_pending, self._proposers)):
            reason = self._nothing_left()
            said.append(Escalation(step=Step.STOP, surface="search", reason=reason))
        return None

    def _nothing_left(self) -> str:
        if not self._proposers:
            return "every point that the task lists was tried"
        names = ", ".join(p.name for p in self._proposers)
        return f"none of {names} has a configuration that was not tried"

    def _in_order(self, history: History) -> list[Proposer]:
        """Those that are most behind their share first."""
        present = [*self._proposers, *(p for p in self._occasional if p.ask(history, 1))]
        found = yields(self._task, history, [p.name for p in present])
        total = sum(y.slots for y in found.values()) + 1
        return sorted(present, key=lambda p: -(found[p.name].share * total - found[p.name].slots))

    def _stale(self, history: History) -> list[Escalation]:
        since = n_since_success(self._task, history)
        limit = stale_after(self._task)
        if since < limit:
            return []
        reason = f"the last {since} measured configurations brought none among the best"
        said = []
        leader = standings(self._task, history)[0].configuration
        params = next(t.params for t in history.search if t.configuration == leader)
        losers = losers_near(self._task, params, self._memory)
        if losers:
            known = ", ".join(loser.trial_id for loser in losers[:5])
            told = f"{reason}; earlier sessions tried {len(losers)} configurations near the leader in vain: {known}"
            said.append(Escalation(step=Step.QUERY_MEMORY, surface="search", reason=told))
        if since >= 2 * limit:
            told = f"{reason}; an idea from outside may help: nightlab research suggest"
            said.append(Escalation(step=Step.ASK, surface="search", reason=told))
        return said


def escalations_of(proposer: Proposer) -> tuple[Escalation, ...]:
    """What a proposer had to do because nothing new came; nothing where it is no portfolio."""
    return proposer.escalations if isinstance(proposer, Portfolio) else ()


def yields(task: Task, history: History, names: Sequence[str]) -> dict[str, Yield]:
    """Slots, success and share of each proposer by the discounted history."""
    slots = dict.fromkeys(names, 0.0)
    ended, hits = dict(slots), dict(slots)
    recent = history.search[-_WINDOW:]
    success = successes(task, history)
    for age, trial in enumerate(reversed(recent)):
        if trial.suggested_by not in slots:
            continue
        weight = _DISCOUNT**age
        slots[trial.suggested_by] += weight
        if trial.is_ended:
            ended[trial.suggested_by] += weight
            hits[trial.suggested_by] += weight * success.get(trial.trial_id, False)
    prior = _PRIOR_SLOTS * _PRIOR_YIELD
    rates = {name: (hits[name] + prior) / (ended[name] + _PRIOR_SLOTS) for name in names}
    seen = _seen(task, history) if MODEL_ARM in rates else ()
    shares = _led(_shares(rates, task.search.control_share), lead(seen), task.search.control_share)
    shares = _lagging(shares, lag(seen))
    return {name: Yield(slots=slots[name], rate=rates[name], share=shares[name]) for name in names}


@once_per_history
def _seen(task: Task, history: History) -> tuple[Seen, ...]:
    """The recent measured trials, those of the model and those of the others."""
    loss, seen = _losses(task, history), []
    for age, trial in enumerate(reversed(history.search[-_WINDOW:])):
        if trial.state is TrialState.MEASURED and trial.configuration in loss:
            is_ours = trial.suggested_by == MODEL_ARM
            seen.append(Seen(loss=loss[trial.configuration], weight=_DISCOUNT**age, is_arms=is_ours))
    return tuple(seen)


def _losses(task: Task, history: History) -> dict[str, float]:
    """Of each measured configuration by its standing, less is better."""
    sign = -1.0 if task.objective.direction is Direction.MAXIMIZE else 1.0
    means = {**means_so_far(task, history), **{s.configuration: s.mean for s in standings(task, history)}}
    return {configuration: sign * mean for configuration, mean in means.items()}


@once_per_history
def successes(task: Task, history: History) -> dict[str, bool]:
    """Of each recent measured search trial, whether it came among the best tenth of all before it, by standing."""
    loss = _losses(task, history)
    measured = [t for t in history.search if t.state is TrialState.MEASURED and t.configuration in loss]
    n_old = max(len(measured) - _WINDOW, 0)
    before = sorted([loss[t.configuration] for t in measured[:n_old]])
    found = {}
    for trial in measured[n_old:]:
        value = loss[trial.configuration]
        n_top = math.ceil(_TOP * (len(before) + 1))
        found[trial.trial_id] = len(before) < n_top or value < before[n_top - 1]
        insort(before, value)
    return found


def n_since_success(task: Task, history: History) -> int:
    """Measured search trials since the last success."""
    found = list(successes(task, history).values())
    return next((n for n, is_success in enumerate(reversed(found)) if is_success), len(found))


def _shares(rates: dict[str, float], control_share: float) -> dict[str, float]:
    """Each gets its floor; the rest is shared by the yields."""
    if not rates:
        return {}
    floors = {name: control_share if name == CONTROL else _FLOOR for name in rates}
    rest = max(1.0 - sum(floors.values()), 0.0)
    powers = {name: rate**_SHARPNESS for name, rate in rates.items()}
    total, whole = sum(powers.values()), max(sum(floors.values()), 1.0)
    return {name: floors[name] / whole + rest * powers[name] / total for name in rates}


def _led(shares: dict[str, float], led: float, control_share: float) -> dict[str, float]:
    """The model takes the part `led` of what the others have beyond the control's share and the floors."""
    if led == 0.0:
        return shares
    floors = {n: control_share if n == CONTROL else _FLOOR for n in shares}
    given = {n: led * max(s - floors[n], 0.0) for n, s in shares.items() if n != MODEL_ARM}
    return {n: s + sum(given.values()) if n == MODEL_ARM else s - given.get(n, 0.0) for n, s in shares.items()}


def _lagging(shares: dict[str, float], lagged: float) -> dict[str, float]:
    """The model gives the part `lagged` of what it has beyond its floor to the others, in proportion to theirs."""
    others = sum(share for name, share in shares.items() if name != MODEL_ARM)
    if lagged == 0.0 or others == 0.0:
        return shares
    given = lagged * max(shares[MODEL_ARM] - _FLOOR, 0.0)
    return {n: s - given if n == MODEL_ARM else s * (1.0 + given / others) for n, s in shares.items()}


def _switch(name: str, objections: list[str]) -> Escalation:
    seen = f": {objections[0]}" if objections else ""
    return Escalation(
        step=Step.SWITCH_SURFACE, surface=name, reason=f"{name} has nothing new{seen}; its slots go to the others"
    )
