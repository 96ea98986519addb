"""The plan as tables of the report: hypotheses with their evidence, the error budget, calibration, looks. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.calibration import calibration
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.planner.hypothesis import Hypothesis, Status
from agent.planner.plan import Plan
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json

from . import wording
from .facts import ReportInput
from .tables import web_address

MAX_LINKS = 16
"""Trials named as evidence of one claim; the rest is counted."""
STATUS_CLASS = {Status.SUPPORTED: "good", Status.REFUTED: "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLink:
    trial: str
    url: str | None
    """Its MLflow run; None: there is none to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    hypothesis_id: str
    statement: str
    acceptance: str
    predicted: str
    status: str
    status_class: str
    evidence: str
    note: str
    links: tuple[EvidenceLink, ...]
    n_more_links: int
    share: str
    """Of the error budget, in percent."""
    brier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTables:
    claims: tuple[ClaimRow, ...]
    error_budget: str
    calibration: str
    looks: str
    revision: int


def newest_plan(facts: ReportInput) -> Plan | None:
    """None: there is no plan yet, or a newer nightlab wrote it."""
    if facts.plan is None:
        return None
    try:
        return plan_from_json(facts.plan.plan_json, facts.task)
    except UnknownPlanVersion:
        return None


def plan_tables(facts: ReportInput) -> PlanTables | None:
    """None: there is no plan that can be read."""
    plan = newest_plan(facts)
    if plan is None:
        return None
    spent = sum(claim.alpha for claim in plan.hypotheses)
    return PlanTables(
        claims=tuple(_row(claim, plan, facts) for claim in plan.hypotheses),
        error_budget=(
            f"{wording.percent(plan.error_budget)} is the chance at most that this session accepts any false claim; "
            f"{wording.plural(len(plan.hypotheses), 'claim')} hold "
            f"{wording.number(100 * spent, digits=3)} % of it"
        ),
        calibration=calibration(plan.hypotheses).words,
        looks=HeldOutLedger.of(facts.task, History.of(facts.trials)).words,
        revision=plan.revision,
    )


def _row(claim: Hypothesis, plan: Plan, facts: ReportInput) -> ClaimRow:
    links = _links(claim, facts)
    said = claim.prediction
    effect = "" if said.effect is None else f", gain {said.effect:+.3g}"
    return ClaimRow(
        hypothesis_id=claim.hypothesis_id,
        statement=claim.statement,
        acceptance=claim.acceptance,
        predicted=f"{wording.percent(said.probability)}{effect}, by {said.made_by}",
        status=claim.status.value,
        status_class=STATUS_CLASS.get(claim.status, "open"),
        evidence=_evidence(claim),
        note=claim.note,
        links=links[:MAX_LINKS],
        n_more_links=max(0, len(links) - MAX_LINKS),
        share=f"{wording.number(100 * claim.alpha, digits=3)} %",
        brier=wording.number(claim.brier, digits=3),
    )


def _evidence(claim: Hypothesis) -> str:
    if claim.n_pairs == 0:
        return wording.NONE
    return (
        f"{wording.number(claim.e_value, digits=3)} of {wording.number(1 / claim.alpha, digits=4)} needed, "
        f"{wording.plural(claim.n_pairs, 'pair')}"
    )


def _links(claim: Hypothesis, facts: ReportInput) -> tuple[EvidenceLink, ...]:
    urls = {job.job_id: web_address(job.mlflow_url) for job in facts.jobs}
    trials = {trial.trial_id: trial for trial in facts.trials}
    known = [trials[trial_id] for trial_id in claim.evidence if trial_id in trials]
    return tuple(EvidenceLink(trial=str(t.number), url=urls.get(t.job_id or "")) for t in known)
