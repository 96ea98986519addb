"""When the value of a trial of edited code counts: what an edit could gain by beside being better. Pure.

Training longer, being the luck of one seed, and saying of itself how good it is. What a value is read from, and that it
is a finite number, holds for every trial (`objective`), and so do data and devices (`comparable`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.planner.configuration import configuration_id
from agent.planner.history import History
from agent.planner.standings import once_per_history
from agent.store.views import TrialState, TrialView
from agent.task import Task

START_S = 1.0
"""Seconds by which two starts on a busy machine may differ; they are nobody's gain."""
START_CPU_S = 0.3
"""The same in processor time."""
N_ALIKE = 3
"""Equal values on so many seeds are no chance where the base's all differ."""
N_ALIKE_COARSE = 6
"""The same where the base's are equal now and then: a metric of few steps."""

_CPU = "cpu"
"""Device model of slots without an accelerator."""
Values = Mapping[str, Mapping[int, float]]


class Refusal(StrEnum):
    """Exit reasons of trials of edited code whose values do not count."""

    SELF_REPORTED = "self_reported"
    """No scorer measured it."""
    TRAINED_LONGER = "trained_longer"
    """Much longer than the base."""
    SEED_UNUSED = "seed_unused"
    """The same value whatever the seed: holds for every trial of its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCounted:
    refusal: Refusal
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a training took, in seconds."""

    run_s: float
    cpu_s: float | None
    """Of one core; None: not known."""


def why_not_counted(trial: TrialView, task: Task, history: History) -> NotCounted | None:
    """Why the value of a trial of edited code is worth nothing; None: it counts, as far as is known by now.

    What can not be held against the base yet is judged when the base is known: by `not_counted`.
    """
    if trial.facts.edited is None:
        return None
    if trial.facts.scorer is None:
        text = "what edited code says of itself is no measurement: it has to come from the task's scorer (`score`)"
        return NotCounted(refusal=Refusal.SELF_REPORTED, text=text)
    if not trial.is_at_search_fidelity:  # of another metric, with other parameters, and it decides nothing
        return None
    return _too_slow(trial, task, history) or _seed_unused(trial, task, history)


def not_counted(task: Task, history: History) -> Iterator[tuple[TrialView, NotCounted]]:
    """Measured trials of edited code whose values are found to be worth nothing by now, and why."""
    if task.code is None:
        return
    for trial in history.trials:
        if trial.facts.edited is not None and trial.state is TrialState.MEASURED:
            reason = why_not_counted(trial, task, history)
            if reason is not None:
                yield trial, reason


def is_seed_unused(history: History, configuration: str) -> bool:
    """Whether a configuration was found to give the same value whatever the seed."""
    return any(t.configuration == configuration and t.exit_reason == Refusal.SEED_UNUSED for t in history.trials)


def left_unjudged(trial: TrialView, task: Task) -> str | None:
    """What of a valid trial of edited code was not looked at, and why; None: nothing, or it is no such trial."""
    if trial.facts.edited is None or task.code is None or task.code.max_slowdown is None:
        return None
    if trial.facts.run_seconds is not None:
        return None
    return "its training was interrupted, so how long it took was not held against the base (code.max_slowdown)"


def base_time(trial: TrialView, task: Task, history: History) -> Took | None:
    """Median time of the base code: with the trial's parameters, or with any where it never ran with these.

    None: nothing is known of it yet.
    """
    times = _base_times(task, history)
    own = times.get(configuration_id(trial.params))
    every = own or [took for found in times.values() for took in found]
    if not every:
        return None
    of_processors = [took.cpu_s for took in every if took.cpu_s is not None]
    return Took(
        run_s=statistics.median(took.run_s for took in every),
        cpu_s=statistics.median(of_processors) if of_processors else None,
    )


def _too_slow(trial: TrialView, task: Task, history: History) -> NotCounted | None:
    """By the clock, and by processor time where that is known of both: a busy machine slows the clock alone.

    On an accelerator the clock decides: its own time is none of the processor's.
    """
    most, took = None if task.code is None else task.code.max_slowdown, _took(trial)
    base = None if most is None or took is None else base_time(trial, task, history)
    if most is None or took is None or base is None or took.run_s <= most * base.run_s + START_S:
        return None
    is_known = trial.facts.device_model in (None, _CPU) and took.cpu_s is not None and base.cpu_s is not None
    if is_known and (took.cpu_s or 0.0) <= most * (base.cpu_s or 0.0) + START_CPU_S:
        return None
    text = (
        f"it trained {_told(took, is_known)}, the base {_told(base, is_known)}: more than {most:g} times as long "
        "(code.max_slowdown), so what it gains may be the time alone"
    )
    return NotCounted(refusal=Refusal.TRAINED_LONGER, text=text)


def _seed_unused(trial: TrialView, task: Task, history: History) -> NotCounted | None:
    if is_seed_unused(history, trial.configuration):
        text = "it gave the same value whatever the seed, as its other runs: its luck can not be told from its worth"
        return NotCounted(refusal=Refusal.SEED_UNUSED, text=text)
    values = values_by_seed(task, history)
    own = {**values.get(trial.configuration, {}), **({} if trial.value is None else {trial.seed: trial.value})}
    base = values.get(configuration_id(trial.params)) or max(_of_base(task, history), key=len, default={})
    n_base, n_different = len(base), len(set(base.values()))
    needed = N_ALIKE if n_different == n_base else N_ALIKE_COARSE
    if len(set(own.values())) != 1 or len(own) < needed or n_base < N_ALIKE or n_different < 2:
        return None
    text = (
        f"it gave the same value on {len(own)} seeds, where the base's differ: it does not use its seed, so its luck "
        "can not be told from its worth"
    )
    return NotCounted(refusal=Refusal.SEED_UNUSED, text=text)


@once_per_history
def _base_times(task: Task, history: History) -> dict[str, list[Took]]:
    """Of the base code's measured trials, by configuration."""
    found: dict[str, list[Took]] = {}
    for trial in history.trials:
        is_known = trial.state is TrialState.MEASURED and trial.is_at_search_fidelity
        took = _took(trial)
        if trial.facts.edited is None and is_known and took is not None:
            found.setdefault(trial.configuration, []).append(took)
    return found


def _took(trial: TrialView) -> Took | None:
    facts = trial.facts
    return None if facts.run_seconds is None else Took(run_s=facts.run_seconds, cpu_s=facts.cpu_seconds)


@once_per_history
def values_by_seed(task: Task, history: History) -> Values:
    """Measured values of the objective, by configuration and seed."""
    found: dict[str, dict[int, float]] = {}
    for trial in history.trials:
        if trial.state is TrialState.MEASURED and trial.value is not None and trial.is_at_search_fidelity:
            found.setdefault(trial.configuration, {})[trial.seed] = trial.value
    return found


def _of_base(task: Task, history: History) -> list[Mapping[int, float]]:
    edited = {trial.configuration for trial in history.trials if trial.facts.edited is not None}
    return [values for name, values in values_by_seed(task, history).items() if name not in edited]


def _told(took: Took, has_cpu: bool) -> str:
    text = f"{took.run_s:.3g} s"
    return f"{text} ({took.cpu_s:.3g} s of processor time)" if has_cpu and took.cpu_s is not None else text
