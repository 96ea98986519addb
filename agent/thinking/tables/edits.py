"""The tree of edits: which trial was made from which, what it changes, and what came of it. Pure."""

from __future__ import annotations

from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.standings import means_so_far, standings
from agent.store.views import TrialView
from agent.task import Task

from .table import NOTHING, Table, more, number

_BASE = "base"


def edits(task: Task, history: History, n: int) -> Table:
    """The default on the base code, then the best and the newest trials of edited code, in their order."""
    edited = [trial for trial in history.search if trial.facts.edited is not None]
    best = {one.configuration for one in standings(task, history)[: n // 2]}
    chosen = [trial for trial in edited if trial.configuration in best][: n // 2]
    newest = [trial for trial in reversed(edited) if trial not in chosen][: max(n - len(chosen), 0)]
    kept = sorted((*chosen, *newest), key=lambda trial: trial.number)
    first = [trial for trial in history.search[:1] if trial.facts.edited is None]
    means = means_so_far(task, history)
    start = means.get(first[0].configuration) if first else None
    rows = tuple(_row(trial, means.get(trial.configuration), start, task) for trial in (*first, *kept))
    columns = ("trial", "made from", "change", "lines", task.objective.metric, "gain", "outcome")
    note = more(len(edited), len(kept), "edits")
    return Table(name="edits", columns=columns, rows=rows, note=note, is_untrusted=True)


def _row(trial: TrialView, mean: float | None, start: float | None, task: Task) -> tuple[str, ...]:
    code = trial.facts.edited
    better = None if mean is None or start is None else gain(mean, start, task.objective.direction)
    return (
        trial.trial_id,
        NOTHING if code is None else code.parent or _BASE,
        "the code as it was" if code is None else code.summary,
        NOTHING if code is None else f"+{code.added} -{code.removed}",
        number(mean),
        NOTHING if better is None else f"{better:+.4g}",
        _outcome(trial),
    )


def _outcome(trial: TrialView) -> str:
    if not trial.is_ended:
        return "runs" if trial.is_in_flight else "waits"
    return "measured" if trial.value is not None else f"no value: {trial.note or trial.exit_reason or 'not known why'}"
