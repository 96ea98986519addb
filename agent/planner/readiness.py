"""Whether a session on a task could succeed, judged by a few trials of its default before a night is spent. Pure."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.planner.held_out import n_looks
from agent.planner.statistics import smallest_detectable
from agent.task import Task

_PREEMPTION_SPREADS = 3.0
"""A resumed run that differs from the undisturbed one by more than so many noises has not gone on where it was."""


class Level(StrEnum):
    PROBLEM = "problem"
    """A session could not succeed."""
    WARNING = "warning"
    """It could, at a price that is said."""
    FACT = "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    level: Level
    code: str
    text: str
    what_to_do: str = ""
    """Empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRun:
    """One trial of the default, measured undisturbed."""

    seed: int
    value: float | None
    note: str | None
    """Why there is no value."""
    run_s: float
    device_seconds: float
    device_memory_mb: int | None = None
    """Peak over all devices; None: not known."""
    host_memory_mb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionTry:
    """The same trial as the first one, made to leave half-way and come back."""

    is_done: bool
    """It left; False: it had ended before."""
    checkpoint_step: int | None
    """Newest checkpoint when it left; None: none."""
    leaving_s: float | None
    """From the notice to its end."""
    outcome: str | None
    """How the attempt that left ended: `preempted` is in order."""
    value: float | None
    """What it came to after it was resumed."""
    note: str | None
    run_s: float
    """Run time of all its attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    can_succeed: bool
    noise: float | None
    """Standard deviation of the default's value between seeds."""
    trial_s: float | None
    trial_device_seconds: float | None
    n_pairs: int | None
    """Pairs of fresh seeds that the budgets leave room for, at most `seeds.max_pairs`; None: also, none are wanted."""
    smallest_gain: float | None
    """That those pairs show with a chance of 80 %; None: not known, or none at all."""
    session_s: float | None
    """Expected wall time of the whole session."""
    findings: tuple[Finding, ...]


def judge(
    task: Task,
    runs: Sequence[TrialRun],
    preemption: PreemptionTry | None,
    *,
    n_slots: int,
    is_other_fidelity: bool = False,
) -> Readiness:
    """What the runs say. `is_other_fidelity`: they did not train as long as a session's trials."""
    findings: list[Finding] = []
    values = [run.value for run in runs if run.value is not None]
    findings += _about_values(task, runs, values)
    noise = plain.stdev(values) if len(values) >= 2 else None
    trial_s = plain.median(run.run_s for run in runs) if values else None
    device_s = plain.median(run.device_seconds for run in runs) if values else None
    n_pairs = smallest = session_s = None
    if trial_s is not None and device_s is not None:
        n_pairs = _n_pairs(task, trial_s, device_s, n_slots) if task.search.confirm else None
        session_s = _session_s(task, trial_s, n_pairs or 0, n_slots)
    if n_pairs is not None and device_s is not None:
        findings += _about_budget(task, n_pairs, device_s)
    if noise is not None and n_pairs is not None:
        smallest = smallest_detectable(noise * math.sqrt(2), n_pairs, task.trust.error_budget / 2) if n_pairs else None
        findings += _about_power(task, noise, n_pairs, smallest)
    findings += _about_preemption(preemption, runs, noise)
    findings += _about_the_task(task, is_other_fidelity)
    return Readiness(
        can_succeed=not any(one.level is Level.PROBLEM for one in findings),
        noise=noise,
        trial_s=trial_s,
        trial_device_seconds=device_s,
        n_pairs=n_pairs,
        smallest_gain=smallest,
        session_s=session_s,
        findings=tuple(findings),
    )


def _about_values(task: Task, runs: Sequence[TrialRun], values: Sequence[float]) -> list[Finding]:
    missing = [run for run in runs if run.value is None]
    found = []
    if missing and not values:
        found.append(
            Finding(
                level=Level.PROBLEM,
                code="no_value",
                text=f"the default gave no {task.objective.metric}: {missing[0].note}",
                what_to_do="mend what this says; correct objective.metric or job.metric_sources if the name is wrong",
            )
        )
    elif missing:
        seeds = ", ".join(str(run.seed) for run in missing)
        found.append(
            Finding(
                level=Level.WARNING,
                code="fails_on_some_seeds",
                text=f"no value with seed {seeds} ({missing[0].note}), but with others",
                what_to_do="make the default train on every seed: pairs without two values are lost",
            )
        )
    if len(values) >= 2 and len(set(values)) == 1:
        found.append(
            Finding(
                level=Level.WARNING,
                code="seed_not_used",
                text=f"{len(values)} seeds gave the same value, {values[0]:.6g}: the script does not use its seed",
                what_to_do="let the script take its seed (--seed, {seed} or NIGHTLAB_SEED); if the training has no "
                "chance in it, one pair says as much as many",
            )
        )
    return found


def _n_pairs(task: Task, trial_s: float, device_s: float, n_slots: int) -> int:
    """Pairs that fit beside the search, within the budgets and `seeds.max_pairs`."""
    n_before = _n_before_pairs(task)
    fits = [float(task.seeds.max_pairs)]
    if task.budgets.device_seconds is not None and device_s > 0:
        fits.append((task.budgets.device_seconds / device_s - n_before) / 2)
    if task.budgets.wall_minutes is not None and trial_s > 0:
        fits.append((task.budgets.wall_minutes * 60 * n_slots / trial_s - n_before) / 2)
    return max(0, math.floor(min(fits)))


def _n_before_pairs(task: Task) -> int:
    """Evaluations of the search at most, and looks."""
    return task.budgets.trials * task.search.replicates + n_looks(task)


def _session_s(task: Task, trial_s: float, n_pairs: int, n_slots: int) -> float:
    """Search, then as many pairs as there may be: the longest that it takes when slots are free."""
    n_evaluations = _n_before_pairs(task) + 2 * n_pairs
    expected = trial_s * math.ceil(n_evaluations / n_slots)
    limit = task.budgets.wall_minutes
    return expected if limit is None else min(expected, limit * 60)


def _about_budget(task: Task, n_pairs: int, device_s: float) -> list[Finding]:
    if n_pairs >= task.seeds.fresh:
        return []
    level = Level.PROBLEM if n_pairs < 2 else Level.WARNING
    n = task.budgets.trials * task.search.replicates
    return [
        Finding(
            level=level,
            code="budget_too_small",
            text=(
                f"{n} search trials of {device_s:.3g} device-seconds leave room for {n_pairs} pairs "
                f"of fresh seeds; seeds.fresh asks for {task.seeds.fresh}"
            ),
            what_to_do="lower budgets.trials, raise budgets.device_seconds or budgets.wall_minutes, or shorten a trial",
        )
    ]


def _about_power(task: Task, noise: float, n_pairs: int, smallest: float | None) -> list[Finding]:
    if smallest is None:
        return [
            Finding(
                level=Level.PROBLEM,
                code="nothing_detectable",
                text=f"{n_pairs} pairs can not show any gain, however large, at trust.error_budget "
                f"{task.trust.error_budget:g}",
                what_to_do="raise seeds.max_pairs and the budgets, or trust.error_budget",
            )
        ]
    worth = task.objective.min_effect
    if worth and smallest > worth:
        return [
            Finding(
                level=Level.WARNING,
                code="gain_too_small_to_see",
                text=(
                    f"a gain of objective.min_effect ({worth:g}) would mostly be missed: {n_pairs} pairs show "
                    f"{smallest:.3g} and more (noise {noise:.3g})"
                ),
                what_to_do=f"about {math.ceil(n_pairs * (smallest / worth) ** 2)} pairs would show it "
                "(seeds.max_pairs and the budgets), or make one evaluation less noisy",
            )
        ]
    return []


def _about_preemption(preemption: PreemptionTry | None, runs: Sequence[TrialRun], noise: float | None) -> list[Finding]:
    if preemption is None:
        return []
    if not preemption.is_done:
        text = "a trial ends before it can be made to leave: a preemption costs little"
        return [Finding(level=Level.FACT, code="too_short_to_preempt", text=text)]
    if preemption.value is None:
        return [
            Finding(
                level=Level.WARNING,
                code="lost_by_preemption",
                text=f"a trial that was made to leave gave no value afterwards: {preemption.note}",
                what_to_do="make the script go on from its checkpoint (docs/training-scripts.md)",
            )
        ]
    found = [_leaving(preemption, runs)]
    undisturbed = next((run.value for run in runs if run.value is not None), None)
    if undisturbed is not None:
        apart = abs(preemption.value - undisturbed)
        if apart > max(_PREEMPTION_SPREADS * (noise or 0.0), 1e-9 * abs(undisturbed)):
            found.append(
                Finding(
                    level=Level.WARNING,
                    code="resumes_wrongly",
                    text=f"after a preemption the same seed gave {preemption.value:.6g} instead of {undisturbed:.6g}",
                    what_to_do="save and restore all of the training's state: optimizer, schedule, random state, step",
                )
            )
    return found


def _leaving(preemption: PreemptionTry, runs: Sequence[TrialRun]) -> Finding:
    plain_s = next((run.run_s for run in runs if run.value is not None), 0.0)
    extra = max(preemption.run_s - plain_s, 0.0)
    if preemption.checkpoint_step is None:
        return Finding(
            level=Level.WARNING,
            code="no_checkpoint",
            text=f"a trial that is made to leave has no checkpoint and starts from nothing; it cost {extra:.3g} s",
            what_to_do="checkpoint with the training SDK (docs/training-scripts.md); short trials may do without",
        )
    return Finding(
        level=Level.FACT,
        code="resumes",
        text=(
            f"it left within {preemption.leaving_s or 0:.3g} s, and went on from its checkpoint of step "
            f"{preemption.checkpoint_step}; the preemption cost {extra:.3g} s"
        ),
    )


def _about_the_task(task: Task, is_other_fidelity: bool) -> list[Finding]:
    found = []
    if is_other_fidelity:
        text = "these trials did not train as long as those of a session will: time, memory and noise will be others"
        found.append(Finding(level=Level.FACT, code="other_fidelity", text=text))
    if not task.data:
        found.append(
            Finding(
                level=Level.FACT,
                code="data_unpinned",
                text="the task names no data: a change of it would not be noticed",
                what_to_do="name it: data: [{path: ...}]",
            )
        )
    if task.model is not None and not {"model", "coder"} & set(task.search.use):
        text = f"the model {task.model.name!r} is asked only why trials fail, where no rule tells"
        what = "to let it suggest, add model to search.use"
        found.append(Finding(level=Level.FACT, code="model_diagnoses_only", text=text, what_to_do=what))
    if task.score is None:
        text = "the values are what the script says of itself: the task has no scorer"
        found.append(Finding(level=Level.FACT, code="self_reported", text=text))
    return found
