"""Trials without a value, by how they ended. Pure."""

from __future__ import annotations

from agent.doctor.naming import failure_name
from agent.planner.history import History
from agent.store.views import TrialState, TrialView
from agent.task import Task

from .table import Table, more
from .trials import params_text

_IDS_SHOWN = 3


def failures(task: Task, history: History, n: int) -> Table:
    """One row for each way of ending, the most frequent first: how often, which trials, the newest one's note."""
    groups: dict[str, list[TrialView]] = {}
    for trial in history.search:
        if trial.state is TrialState.INVALID:
            groups.setdefault(failure_name(trial), []).append(trial)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = tuple(
        (
            reason,
            str(len(trials)),
            " ".join(t.trial_id for t in trials[-_IDS_SHOWN:]),
            params_text(trials[-1].params, task),
            trials[-1].note or "",
        )
        for reason, trials in ordered[:n]
    )
    columns = ("ended as", "trials", "newest", "parameters of the newest", "its note")
    note = more(len(ordered), len(rows), "ways of ending")
    return Table(name="failures", columns=columns, rows=rows, note=note, is_untrusted=True)
