"""What there is to work with: slots, and what the budgets still allow. Pure."""

from __future__ import annotations

from agent.planner.budget import Spend, caps, seconds_left
from agent.planner.history import History
from agent.planner.plan import n_search_trials
from agent.task import Task

from .table import Table


def capacity(task: Task, history: History, spend: Spend) -> Table:
    """Slots, what is in them, and how long a trial takes."""
    seconds = [
        t.ended_at - t.launched_at for t in history.trials if t.ended_at is not None and t.launched_at is not None
    ]
    mean_s = f"{sum(seconds) / len(seconds):.3g} s" if seconds else "not known yet"
    rows = (
        ("trials at once", str(spend.n_slots)),
        ("in flight", str(len(history.in_flight))),
        ("one trial takes", mean_s),
        ("configurations left to try", str(max(n_search_trials(task) - len(history.search), 0))),
    )
    return Table(name="capacity", columns=("what", "how much"), rows=rows)


def budgets_left(task: Task, spend: Spend) -> Table:
    """Each limit of the task with what is used of it; nobody can raise them from here."""
    rows = [
        (cap.name, f"{cap.used:.6g}", f"{cap.limit:.6g}")
        for cap in caps(task.budgets, spend)
        if cap.limit is not None and cap.name != "trials"
    ]
    left_s = seconds_left(task.budgets, spend)
    note = "" if left_s is None else f"{max(left_s, 0.0) / 60:.0f} minutes are left"
    return Table(name="budgets", columns=("budget", "used", "limit"), rows=tuple(rows), note=note)
