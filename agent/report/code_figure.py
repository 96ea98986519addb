"""The plot of code trials: the value of each, with a line from the code that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from .canvas import STAND_IN, clipped, draw, robust_limits
from .code_trials import edited_trials, parent_of
from .facts import ReportInput, best_trial, is_measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LABELS = 40
"""Trials whose numbers are written beside them; with more, none are."""


def code_tree(facts: ReportInput) -> Markup:
    """Empty where no edited code was measured."""
    edited = [trial for trial in edited_trials(facts) if is_measured(trial)]
    if not edited:
        return Markup("")
    base = [t for t in facts.search_trials if t.facts.edited is None and is_measured(t)]
    refused = [t for t in edited_trials(facts) if t.is_ended and not is_measured(t)]
    best = best_trial(facts)
    values = [t.value or 0.0 for t in (*base, *edited)]
    low, high = robust_limits(values, keep=() if best is None else (best.value or 0.0,))
    limits = low, high + 0.06 * (high - low)  # room for the highest number

    def paint(axes: list[Axes]) -> None:
        ax = axes[0]
        ax.set_ylim(*limits)
        for trial in edited:
            parent = None if trial.facts.edited is None else parent_of(trial.facts.edited, facts)
            if parent is not None and is_measured(parent):
                heights = [clipped(t.value or 0.0, limits)[0] for t in (parent, trial)]
                ax.plot([parent.number, trial.number], heights, color=STAND_IN["muted"], lw=1.0, alpha=0.6, zorder=2)
        for role, trials in (("default", base), ("search", edited)):
            for trial in trials:
                y, marker = clipped(trial.value or 0.0, limits)
                is_best = best is not None and trial.trial_id == best.trial_id
                color, size = (STAND_IN["best"], 9.0) if is_best else (STAND_IN[role], 6.5)
                ax.plot(trial.number, y, marker, ms=size, color=color, mec=STAND_IN["paper"], mew=0.9, zorder=4)
                if len(values) <= MAX_LABELS and role == "search":
                    ax.annotate(
                        str(trial.number),
                        (trial.number, y),
                        textcoords="offset points",
                        xytext=(0, 7),
                        ha="center",
                        fontsize=8.5,
                        color=STAND_IN["muted"],
                    )
        for trial in refused:
            ax.plot(trial.number, 0.03, "x", ms=6, mew=1.6, color=STAND_IN["bad"], transform=ax.get_xaxis_transform())
        ax.margins(x=0.05)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("trial")
        ax.set_ylabel(facts.task.objective.metric)

    return draw("code-tree", paint, width=8.6, height=3.3)
