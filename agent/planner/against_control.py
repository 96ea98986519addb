"""What each proposer has brought against the control arm so far, for every report. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.portfolio import CONTROL
from agent.planner.standings import means_so_far, standings
from agent.store.views import TrialState
from agent.task import Task

CONTROL_ARM = ("default", CONTROL)
"""Who suggests for the control arm: the default configuration, and the sampler that starts from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposerRecord:
    name: str
    n_trials: int
    """Configurations, those in flight included."""
    n_measured: int
    best: float | None
    """Best standing of its configurations, in the metric's units; None: none is measured."""
    gain_over_control: float | None
    """Of its best over the control arm's best, positive is better; None: one of them is not measured."""
    sentence: str


def against_control(history: History, task: Task) -> list[ProposerRecord]:
    """One record a proposer, in the order of their first trials; the control arm's sampler among them."""
    means = {**means_so_far(task, history), **{s.configuration: s.mean for s in standings(task, history)}}
    control = _best(history, task, means, CONTROL_ARM)
    found = []
    for name in dict.fromkeys(t.suggested_by for t in history.search if t.suggested_by != "default"):
        own = [t for t in history.search if t.suggested_by == name]
        n_measured = sum(t.state is TrialState.MEASURED for t in own)
        best = _best(history, task, means, CONTROL_ARM if name == CONTROL else (name,))
        more = None if best is None or control is None else gain(best, control, task.objective.direction)
        value = "nothing measured" if best is None else f"best {task.objective.metric} {best:.4g}"
        against = "" if more is None or name == CONTROL else f", {more:+.3g} against the control arm"
        role = " (control arm, with the default)" if name == CONTROL else ""
        sentence = f"{name}{role}: {len(own)} trials, {n_measured} measured, {value}{against}"
        found.append(
            ProposerRecord(
                name=name,
                n_trials=len(own),
                n_measured=n_measured,
                best=best,
                gain_over_control=more,
                sentence=sentence,
            )
        )
    return found


def _best(history: History, task: Task, means: dict[str, float], names: tuple[str, ...]) -> float | None:
    best: float | None = None
    for trial in history.search:
        value = means.get(trial.configuration)
        if value is None or trial.suggested_by not in names:
            continue
        if best is None or gain(value, best, task.objective.direction) > 0:
            best = value
    return best
