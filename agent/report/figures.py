"""The plots of a report, each a function from the facts to inline SVG. Empty when there is nothing to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from agent.store.views import TrialView
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter

from . import wording
from .canvas import STAND_IN, clipped, draw, robust_limits
from .facts import ReportInput, best_trial, default_trial, is_measured, replicates
from .progress import measured_in_order, running_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTHING = Markup("")
MAX_CURVES = 60


def best_so_far(facts: ReportInput) -> Markup:
    """Search trials in the order in which they ended, the running best, and the default as a line."""
    ended = measured_in_order(facts.search_trials)
    if not ended:
        return NOTHING
    failed = [t for t in facts.search_trials if t.ended_at is not None and not is_measured(t)]
    values = [t.value or 0.0 for t in ended]
    running = running_best(values, is_maximized=facts.is_maximized)
    default = default_trial(facts)

    def paint(axes: list[Axes]) -> None:
        ax = axes[0]
        limits = robust_limits(values, keep=tuple(running))
        ax.set_ylim(*limits)
        places = range(1, len(values) + 1)
        if default is not None and is_measured(default) and default.value is not None:
            ax.axhline(default.value, color=STAND_IN["default"], lw=1.2, ls=(0, (5, 3)), label="default")
        ax.step([*places, len(values) + 0.5], [*running, running[-1]], where="post", color=STAND_IN["best"], lw=2.2)
        for place, value in zip(places, values, strict=True):
            y, marker = clipped(value, limits)
            ax.plot(place, y, marker, ms=5.5, color=STAND_IN["search"], mec=STAND_IN["paper"], mew=0.8)
        record = running.index(running[-1]) + 1
        ax.plot(record, running[-1], "o", ms=8.5, color=STAND_IN["best"], mec=STAND_IN["paper"], mew=1.2)
        for trial in failed:
            before = sum(1 for t in ended if (t.ended_at or 0.0) <= (trial.ended_at or 0.0))
            ax.plot(before + 0.5, 0.03, "x", ms=6, mew=1.6, color=STAND_IN["bad"], transform=ax.get_xaxis_transform())
        ax.set_xlim(0.4, len(values) + 0.8)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("search trials, in the order in which they ended")
        ax.set_ylabel(facts.task.objective.metric)

    return draw("best", paint, width=8.6, height=3.3)


def seed_comparison(facts: ReportInput) -> Markup:
    """Best and default over the same fresh seeds, pair by pair, and the difference with its interval."""
    result = facts.session.result
    if result is None:
        return NOTHING
    best = replicates(facts, result.best_configuration)
    default = replicates(facts, result.default_configuration)
    seeds = sorted(best.keys() & default.keys())
    if not seeds or result.best_configuration == result.default_configuration:
        return NOTHING

    def paint(axes: list[Axes]) -> None:
        left, right = axes
        for seed in seeds:
            left.plot([0, 1], [default[seed], best[seed]], color=STAND_IN["muted"], lw=1.0, alpha=0.55)
        for place, values, role, mean in (
            (0, default, "default", result.default_mean),
            (1, best, "best", result.best_mean),
        ):
            left.plot([place] * len(seeds), [values[s] for s in seeds], "o", ms=6, color=STAND_IN[role], alpha=0.85)
            if mean is not None:
                side = place + (0.16 if place else -0.16)
                left.plot([side, side], [mean.low, mean.high], color=STAND_IN[role], lw=2.4, solid_capstyle="round")
                left.plot(side, mean.estimate, "D", ms=6.5, color=STAND_IN[role], mec=STAND_IN["paper"])
        left.set_xlim(-0.5, 1.5)
        left.set_xticks([0, 1], ["default", "best found"])
        left.set_ylabel(facts.task.objective.metric)
        left.grid(axis="x", visible=False)
        _paint_difference(right, [best[s] - default[s] for s in seeds], seeds, facts)

    return draw("seeds", paint, width=8.6, height=3.3, columns=2)


def _paint_difference(ax: Axes, differences: list[float], seeds: Sequence[int], facts: ReportInput) -> None:
    result = facts.session.result
    ax.axvline(0.0, color=STAND_IN["default"], lw=1.2, ls=(0, (5, 3)))
    rows = range(1, len(seeds) + 1)
    ax.plot(differences, rows, "o", ms=6, color=STAND_IN["replicate"], alpha=0.85)
    labels = [f"seed {seed}" for seed in seeds]
    if result is not None and result.difference is not None:
        d = result.difference
        ax.plot([d.low, d.high], [0, 0], color=STAND_IN["best"], lw=3.0, solid_capstyle="round")
        ax.plot(d.estimate, 0, "D", ms=7.5, color=STAND_IN["best"], mec=STAND_IN["paper"])
        labels.insert(0, f"mean, {d.confidence:.0%} interval")
        ax.set_yticks([0, *rows], labels)
    else:
        ax.set_yticks(list(rows), labels)
    ax.margins(x=0.15)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("best minus default, same seed")


def parameter_effects(facts: ReportInput) -> Markup:
    """Value against each parameter, over the search trials; edited code is marked, since it is not the parameter's."""
    measured = [t for t in facts.search_trials if is_measured(t)]
    names = list(facts.task.space)
    if not measured or not names:
        return NOTHING
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    best = best_trial(facts)
    limits = robust_limits([t.value or 0.0 for t in measured], keep=() if best is None else (best.value or 0.0,))

    def paint(axes: list[Axes]) -> None:
        for at, ax in enumerate(axes):
            if at >= len(names):
                ax.set_axis_off()
                continue
            _paint_effect(ax, names[at], facts.task.space[names[at]], measured, best, limits)
            if at % columns == 0:
                ax.set_ylabel(facts.task.objective.metric)
            else:
                ax.tick_params(labelleft=False)

    return draw("effects", paint, width=8.6, height=2.35 * rows, rows=rows, columns=columns)


def _paint_effect(
    ax: Axes,
    name: str,
    parameter: Parameter,
    measured: Sequence[TrialView],
    best: TrialView | None,
    limits: tuple[float, float],
) -> None:
    choices = list(parameter.choices) if isinstance(parameter, CategoricalParameter) else []
    places = {t.trial_id: _place(t, name, choices) for t in measured}
    if isinstance(parameter, CategoricalParameter):
        ax.set_xticks(range(len(choices)), [str(c) for c in choices])
        ax.set_xlim(-0.6, len(choices) - 0.4)
        ax.axvline(choices.index(parameter.default), color=STAND_IN["default"], lw=1.0, ls=(0, (5, 3)))
    else:
        set_range(ax, parameter, [p for p in places.values() if p is not None])
        ax.axvline(float(parameter.default), color=STAND_IN["default"], lw=1.0, ls=(0, (5, 3)))
    for trial in measured:
        place = places[trial.trial_id]
        if place is None:
            continue
        y, marker = clipped(trial.value or 0.0, limits)
        is_best = best is not None and trial.trial_id == best.trial_id
        role = "best" if is_best else "search" if trial.facts.edited is None else "other"
        size = 8.5 if is_best else 5.5
        ax.plot(place, y, marker, ms=size, color=STAND_IN[role], mec=STAND_IN["paper"], mew=0.8, zorder=3 + is_best)
    ax.set_ylim(*limits)
    ax.set_title(name if len(name) <= 28 else name[:27] + "…", fontsize=9.5, loc="left")


def set_range(ax: Axes, parameter: FloatParameter | IntParameter, places: Sequence[float]) -> None:
    """The axis shows the whole space and what was tried beyond it, with a little room on both sides."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = float(parameter.low), float(parameter.high)
    for end in (low, high):
        if min(places) < low or max(places) > high:
            ax.axvline(end, color=STAND_IN["muted"], lw=1.0, ls=(0, (1, 2)))
    low, high = min(low, *places), max(high, *places)
    if not parameter.log:
        ax.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
        return
    room = (high / low) ** 0.04
    ax.set_xscale("log")
    ax.set_xlim(low / room, high * room)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 100 else (1.0, 2.0, 5.0), numticks=5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _at: wording.number(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _place(trial: TrialView, name: str, choices: list[str | int | float | bool]) -> float | None:
    """Where on the axis; None for a trial that lacks the parameter. Equal choices are spread a little, by number."""
    value = trial.params.get(name)
    if value is None:
        return None
    if not choices:
        return float(value) if isinstance(value, int | float) else None
    return choices.index(value) + ((trial.number * 7) % 11 - 5) * 0.035 if value in choices else None


def learning_curves(facts: ReportInput) -> Markup:
    """The objective over the steps of the search trials; the best and the default stand out."""
    metric = facts.task.objective.metric
    best, default = best_trial(facts), default_trial(facts)
    special = {t.trial_id: role for t, role in ((default, "default"), (best, "best")) if t is not None}
    curves = []
    for trial in facts.search_trials:
        logged = [p for job_id in trial.trained_by for p in facts.points.get(job_id, ())]
        points = [p for p in logged if p.key == metric and p.value is not None]
        by_step = {p.step: p.value for p in points if p.value is not None}
        if len(by_step) > 1:
            curves.append((trial, sorted(by_step.items())))
    if not curves:
        return NOTHING
    shown = [c for c in curves if c[0].trial_id in special] + [c for c in curves if c[0].trial_id not in special]
    shown = shown[:MAX_CURVES]

    def paint(axes: list[Axes]) -> None:
        ax = axes[0]
        for trial, curve in shown:
            role = special.get(trial.trial_id)
            steps, values = zip(*curve, strict=True)
            if role is None:
                ax.plot(steps, values, color=STAND_IN["search"], lw=1.0, alpha=0.35)
            else:
                ax.plot(steps, values, color=STAND_IN[role], lw=2.2, label=role, zorder=4)
        later = [v for _, curve in shown for s, v in curve if s >= curve[-1][0] * 0.15]
        keep = tuple(curve[-1][1] for trial, curve in shown if trial.trial_id in special)
        ax.set_ylim(*robust_limits(later, keep=keep))
        ax.legend(loc="best", fontsize=9)
        ax.set_xlabel("step")
        ax.set_ylabel(metric)

    return draw("curves", paint, width=8.6, height=3.3)
