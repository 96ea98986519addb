"""The rows of a report's tables, ready to be shown: every value is text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.doctor.naming import failure_name
from agent.planner.budget import Spend, cost_usd
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Budgets

from . import wording
from .code_trials import code_in_short, numbers_of
from .facts import ReportInput, best_trial, is_measured
from .timeline import Preemption

AT_ONCE_S = 0.5
"""Seconds away that nobody counts."""
PURPOSE_WORDS = {
    Purpose.SEARCH: "search",
    Purpose.REPLICATE: "fresh seed",
    Purpose.HELD_OUT: "held-out look",
    Purpose.RUNG: "higher rung",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    number: int
    purpose: str
    suggested_by: str
    why: str
    params: tuple[str, ...]
    code: str | None
    """Lines against the base and what it was made from; None: the session edits no code."""
    seed: int
    value: str
    other_metric: str | None
    """What the value is of, where it is not the objective's metric."""
    status: str
    """Empty for a measured trial."""
    job_id: str
    n_attempts: str
    device_time: str
    url: str | None
    is_best: bool
    is_bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    name: str
    spent: str
    limit: str
    share: float | None
    """0 to 1; None without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    reason: str
    count: int
    trials: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRow:
    job_id: str
    trial: str
    beneficiary: str
    gave_way_after: str
    """From the notice to the proof that it had left."""
    checkpoint: str
    came_back: str
    run_id: str


def trial_rows(facts: ReportInput) -> list[TrialRow]:
    jobs = {job.job_id: job for job in facts.jobs}
    best = best_trial(facts)
    numbers = numbers_of(facts)
    rows = []
    for trial in sorted(facts.trials, key=lambda t: t.number):
        job = jobs.get(trial.job_id or "")
        rows.append(
            TrialRow(
                number=trial.number,
                purpose=PURPOSE_WORDS[trial.purpose],
                suggested_by=trial.suggested_by,
                why=trial.why,
                params=tuple(wording.parameter(trial.params.get(name)) for name in facts.task.space),
                code=None if facts.task.code is None else code_in_short(trial, numbers),
                seed=trial.seed,
                value=wording.number(trial.value),
                other_metric=_other_metric(facts, trial),
                status=_status(trial),
                job_id=trial.job_id or wording.NONE,
                n_attempts=wording.NONE if job is None else str(len(job.attempts)),
                device_time=wording.duration(trial.device_seconds) if trial.launched_at is not None else wording.NONE,
                url=None if job is None else web_address(job.mlflow_url),
                is_best=best is not None and trial.trial_id == best.trial_id,
                is_bad=trial.state is TrialState.INVALID,
            )
        )
    return rows


def _other_metric(facts: ReportInput, trial: TrialView) -> str | None:
    held_out = facts.task.held_out
    return held_out.metric if held_out is not None and trial.purpose is Purpose.HELD_OUT else None


def _status(trial: TrialView) -> str:
    match trial.state:
        case TrialState.MEASURED:
            return "" if is_measured(trial) else "not a finite number"
        case TrialState.INVALID:
            return trial.exit_reason or trial.note or "no usable value"
        case TrialState.LAUNCHED:
            return "not finished"
        case TrialState.PROPOSED:
            return "not started"


def web_address(url: str | None) -> str | None:
    """Only a web address becomes a link: the server's answer is no place for `javascript:`."""
    return url if url is not None and url.startswith(("http://", "https://")) else None


def failure_rows(facts: ReportInput) -> list[FailureRow]:
    bad = [t for t in facts.trials if t.state is TrialState.INVALID]
    rows = []
    for reason, count in Counter(failure_name(t) for t in bad).most_common():
        of_reason = [t for t in bad if failure_name(t) == reason]
        rows.append(
            FailureRow(
                reason=reason,
                count=count,
                trials=", ".join(str(t.number) for t in of_reason[:20]) + (" …" if count > 20 else ""),
                note=_what_is_known(of_reason),
            )
        )
    return rows


def _what_is_known(failed: Sequence[TrialView]) -> str:
    """The first note, and what the doctor suggests to change."""
    note = next((t.note for t in failed if t.note), "")
    found = next((t.facts.diagnosis for t in failed if t.facts.diagnosis is not None), None)
    return note if found is None else f"{note}. What to do: {found.suggestion}"


def budget_rows(facts: ReportInput) -> list[BudgetRow]:
    budgets: Budgets = facts.task.budgets
    session = facts.session
    wall_limit = None if budgets.wall_minutes is None else budgets.wall_minutes * 60
    return [
        BudgetRow(
            name="search trials",
            spent=str(session.n_trials),
            limit=str(budgets.trials),
            share=min(1.0, session.n_trials / budgets.trials),
        ),
        _time_row("wall time", session.wall_seconds, wall_limit),
        _time_row("device time", session.device_seconds, budgets.device_seconds),
        *_model_rows(facts),
    ]


def _model_rows(facts: ReportInput) -> list[BudgetRow]:
    """Tokens and money, where any were used or limited."""
    budgets, session = facts.task.budgets, facts.session
    cost = cost_usd(
        budgets,
        Spend(device_seconds=session.device_seconds, wall_seconds=0.0, model_cost_usd=session.cost_usd),
    )
    rows = (("tokens", session.tokens, budgets.tokens, ",.0f"), ("cost in USD", cost, budgets.cost_usd, ".2f"))
    return [
        BudgetRow(
            name=name,
            spent=format(used, form),
            limit="no limit" if limit is None else format(limit, form),
            share=None if limit is None else min(1.0, used / limit),
        )
        for name, used, limit, form in rows
        if used or limit is not None
    ]


def _time_row(name: str, spent_s: float, limit_s: float | None) -> BudgetRow:
    return BudgetRow(
        name=name,
        spent=wording.duration(spent_s),
        limit="no limit" if limit_s is None else wording.duration(limit_s),
        share=None if limit_s is None else min(1.0, spent_s / limit_s),
    )


def preemption_rows(told: tuple[Preemption, ...]) -> list[PreemptionRow]:
    return [
        PreemptionRow(
            job_id=p.job_id,
            trial=wording.NONE if p.trial_number is None else str(p.trial_number),
            beneficiary=p.beneficiary or wording.NONE,
            gave_way_after=wording.NONE if p.left_at is None else wording.duration(p.left_at - p.ordered_at),
            checkpoint="none" if p.checkpoint_step is None else f"step {p.checkpoint_step}",
            came_back=_came_back(p),
            run_id=p.run_id,
        )
        for p in told
    ]


def _came_back(p: Preemption) -> str:
    if p.resumed_attempt is None:
        return "not resumed"
    if p.resumed_at is None or p.left_at is None:
        return f"attempt {p.resumed_attempt}"
    away_s = p.resumed_at - p.left_at
    return f"attempt {p.resumed_attempt}, {'at once' if away_s < AT_ONCE_S else wording.duration(away_s) + ' later'}"
