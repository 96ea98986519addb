"""Who suggested what, and what it brought: each proposer against the control arm so far. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.portfolio import CONTROL
from agent.planner.ranking import Ranking, ranking
from agent.planner.statistics import Standing

from . import wording
from .facts import ReportInput, is_measured

CONTROL_ARM = ("default", CONTROL)
"""Who suggests for the control arm: the default configuration, and the sampler that starts from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposerRow:
    name: str
    n_trials: int
    n_measured: int
    standing: str
    """Of its best configuration: what is believed of it by all of its values so far."""
    over_default: str
    against_control: str


def proposer_rows(facts: ReportInput) -> tuple[ProposerRow, ...]:
    """In the order of their first trials; the gains are positive for better."""
    history = History.of(facts.trials)
    ranks = ranking(facts.task, History.of(t for t in facts.trials if is_measured(t)))
    default = ranks.of(configuration_id(default_params(facts.task)))
    names = dict.fromkeys(trial.suggested_by for trial in history.search)
    control = _best_of(CONTROL_ARM, ranks, history)
    return tuple(_row(name, facts, history, _best_of((name,), ranks, history), default, control) for name in names)


def _best_of(names: tuple[str, ...], ranks: Ranking, history: History) -> Standing | None:
    own = {trial.configuration for trial in history.search if trial.suggested_by in names}
    return next((s for s in ranks.standings if s.configuration in own), None)


def _row(
    name: str,
    facts: ReportInput,
    history: History,
    best: Standing | None,
    default: Standing | None,
    control: Standing | None,
) -> ProposerRow:
    own = [trial for trial in history.search if trial.suggested_by == name]
    return ProposerRow(
        name=name,
        n_trials=len(own),
        n_measured=sum(is_measured(trial) for trial in own),
        standing=wording.NONE if best is None else wording.number(best.mean),
        over_default=_gain(facts, best, default),
        against_control=wording.NONE if name in CONTROL_ARM else _gain(facts, best, control),
    )


def _gain(facts: ReportInput, one: Standing | None, other: Standing | None) -> str:
    if one is None or other is None:
        return wording.NONE
    return f"{gain(one.mean, other.mean, facts.task.objective.direction):+.4g}"
