"""The race: while the search goes on, the best by standing are measured again where that may change who leads. Pure.

All configurations run on the same racing seeds in the same order, and so does the default, so that every one of them
forms pairs with it. How many evaluations go to the race in all is the portfolio's to say.

Source: Gupta and Miescke, Bayesian look ahead one-stage sampling allocations, 1996 (expected gain of a change of
mind), with the posterior of `agent.planner.statistics.correction`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from agent.planner import seeds
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.planner.standings import means_so_far, params_of, standings
from agent.planner.statistics.correction import Standing
from agent.planner.surrogate import Belief, expected_gain
from agent.store.views import ParamValue, Purpose
from agent.task import Direction, Task

FEWEST = 6
"""Measured configurations before which nobody is raced: the leader of a few is soon another."""
MOST = 8
"""Racing seeds of one configuration at most: what is left is the final claim's to find out."""
_WORTH = 0.02
"""Where no change of mind promises more than this part of the noise, nobody is raced."""
_N_LEARNT = 3
"""Racing values from which the noise is known well enough to say so."""


class Race:
    """Implements `Proposer`: replicates only."""

    def __init__(self, task: Task, wishes: Callable[[History], Sequence[Proposal]] = lambda history: ()) -> None:
        """
        Args:
            wishes: replicates that somebody asked for and that were not made yet; they go first where they form pairs.
        """
        self._task = task
        self._wishes = wishes
        self._sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0

    @property
    def name(self) -> str:
        return "replicator"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        ranked = standings(self._task, history)
        if len(ranked) < FEWEST:
            return []
        params = params_of(history)
        n_racing = _n_racing(self._task, history)
        found = self._granted(history, n_racing, n)
        for _ in range(n - len(found)):
            chosen = self._next(ranked, n_racing, history)
            if chosen is None:
                break
            name, why = chosen
            seed = next_seed(self._task, history, name, skip=found)
            n_racing[name] = n_racing.get(name, 0) + 1
            found.append(self._proposal(params[name], name, seed, why))
        return found

    def _granted(self, history: History, n_racing: dict[str, int], n: int) -> list[Proposal]:
        """Wishes about measured configurations that have not run on more seeds than the default, so that pairs form."""
        default = configuration_id(default_params(self._task))
        found: list[Proposal] = []
        for wish in self._wishes(history):
            name = wish.configuration
            has_room = n_racing.get(name, 0) < MOST
            is_paired = name == default or n_racing.get(name, 0) <= n_racing.get(default, 0)
            if len(found) < n and has_room and is_paired and self._is_measured(history, name):
                found.append(wish)
                n_racing[name] = n_racing.get(name, 0) + 1
        return found

    def _next(self, ranked: tuple[Standing, ...], n_racing: dict[str, int], history: History) -> tuple[str, str] | None:
        leader = ranked[0]
        if not n_racing:
            return leader.configuration, "the leader of the search, measured again: one value may be luck"
        default = configuration_id(default_params(self._task))
        of_default = n_racing.get(default, 0)
        if of_default + 1 < n_racing.get(leader.configuration, 0) and self._is_measured(history, default):
            return default, "the default on the seed of the leader, so that the two form a pair"
        rival, worth = self._rival(ranked, n_racing)
        if rival is None:
            return None
        noise = float(np.median([s.sd * np.sqrt(s.n) for s in ranked[:10]]))
        enough = max(_WORTH * noise, self._gain_of_search(ranked, history))
        if sum(n_racing.values()) >= _N_LEARNT and worth <= enough:
            return None
        of_leader, of_rival = (n_racing.get(name, 0) for name in (leader.configuration, rival))
        if of_leader <= of_rival and of_leader < MOST:
            return leader.configuration, "the leader, measured again beside its closest rival"
        if of_rival < MOST:
            return rival, "the configuration that most likely beats the leader, measured again"
        return None

    def _rival(self, ranked: tuple[Standing, ...], n_racing: dict[str, int]) -> tuple[str | None, float]:
        """Who promises most over the leader, and how much."""
        leader = ranked[0]
        others = [s for s in ranked[1:] if n_racing.get(s.configuration, 0) < MOST]
        if not others:
            return None, 0.0
        mean = np.array([self._sign * s.mean for s in others])
        sd = np.sqrt(np.array([s.sd**2 + leader.sd**2 for s in others]) + 1e-24)
        worth = expected_gain(Belief(mean=mean, sd=sd), self._sign * leader.mean)
        at = int(np.argmax(worth)) if float(worth.max()) > 0 else 0
        return others[at].configuration, float(worth[at])

    def _gain_of_search(self, ranked: tuple[Standing, ...], history: History) -> float:
        """By how much one more search trial has moved the lead on average, over the later half of the search.

        An evaluation goes where it promises more: to the search while that still finds, then to the race.
        """
        means = {s.configuration: self._sign * s.mean for s in ranked}
        found = [means[t.configuration] for t in history.search if t.configuration in means]
        half = len(found) // 2
        return (max(found) - max(found[:half])) / (len(found) - half) if half else 0.0

    def _is_measured(self, history: History, configuration: str) -> bool:
        return configuration in means_so_far(self._task, history)

    def _proposal(self, params: dict[str, ParamValue], name: str, seed: int, why: str) -> Proposal:
        return Proposal(
            params=dict(params),
            configuration=name,
            seed=seed,
            purpose=Purpose.REPLICATE,
            suggested_by=self.name,
            why=f"{why} (racing seed {seed})",
        )


def next_seed(task: Task, history: History, configuration: str, *, skip: list[Proposal]) -> int:
    """The first racing seed that a configuration has not run on."""
    taken = {p.seed for p in skip if p.configuration == configuration}
    for seed in seeds.racing(task):
        if seed not in taken and (configuration, seed) not in history.replicates:
            return seed
    raise AssertionError("racing seeds have no end")


def _n_racing(task: Task, history: History) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, seed in history.replicates:
        if seeds.is_racing(task, seed):
            found[name] = found.get(name, 0) + 1
    return found
