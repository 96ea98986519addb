"""Rows to views and back. Nothing else knows how a view lies in the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.store.views import (
    ActivityView,
    CodeFound,
    CodeState,
    Expected,
    FinalResult,
    Interval,
    LookView,
    PlanView,
    ProbeFound,
    Promotion,
    Purpose,
    SessionState,
    SessionView,
    SuggestedEdit,
    SuggestionView,
    TrialFacts,
    TrialState,
    TrialView,
    Worth,
)

Row = sa.RowMapping

ORIGIN = ("expected", "prompt", "model", "brief", "edited", "fixes", "rung", "priority_class")
"""Facts of where a trial comes from: they hold whatever becomes of its jobs."""


def session_view(row: Row) -> SessionView:
    return SessionView(
        session_id=row["session_id"],
        task_name=row["task_name"],
        task_json=row["task_json"],
        state=SessionState(row["state"]),
        message=row["message"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        fence=row["fence"],
        pid=row["pid"],
        run_id=row["run_id"],
        hypothesis_run_id=row["hypothesis_run_id"],
        plan_revision=row["plan_revision"],
        n_trials=row["n_trials"],
        device_seconds=row["device_seconds"],
        wall_seconds=row["wall_seconds"],
        tokens=row["tokens"],
        cost_usd=row["cost_usd"],
        report_path=row["report_path"],
        result=result_from_json(row["result"]),
        key=row["key"],
        finish_by=row["finish_by"],
        night_id=row["night_id"],
    )


def trial_view(row: Row | Mapping[str, Any]) -> TrialView:
    return TrialView(
        trial_id=row["trial_id"],
        session_id=row["session_id"],
        number=row["number"],
        configuration=row["configuration"],
        params=row["params"],
        seed=row["seed"],
        purpose=Purpose(row["purpose"]),
        suggested_by=row["suggested_by"],
        why=row["why"],
        state=TrialState(row["state"]),
        job_id=row["job_id"],
        value=row["value"],
        note=row["note"],
        exit_reason=row["exit_reason"],
        device_seconds=row["device_seconds"],
        proposed_at=row["proposed_at"],
        launched_at=row["launched_at"],
        ended_at=row["ended_at"],
        submission=row["submission"],
        is_submitting=row["is_submitting"],
        is_recalled=row["is_recalled"],
        hypothesis=row["hypothesis"],
        is_idle_work=row["is_idle_work"],
        worth=None if row["worth"] is None else Worth(**row["worth"]),
        facts=facts_from_json(row["facts"]),
    )


def suggestion_view(row: Row) -> SuggestionView:
    expected, edit, promotion = row["expected"], row["edit"], row["promotion"]
    read = {
        "promotion": None if promotion is None else Promotion(**promotion),
        "expected": None if expected is None else Expected(**expected),
        "edit": None if edit is None else SuggestedEdit(**edit),
    }
    return SuggestionView(**{**row, **read})


def trial_row(trial: TrialView) -> dict[str, Any]:
    return asdict(trial)


def activity_view(row: Row) -> ActivityView:
    return ActivityView(
        at=row["at"], step=row["step"], text=row["text"], trial_id=row["trial_id"], job_id=row["job_id"]
    )


def plan_view(row: Row) -> PlanView:
    return PlanView(
        revision=row["revision"],
        at=row["at"],
        phase=row["phase"],
        reason=row["reason"],
        plan_json=row["plan_json"],
    )


def look_view(row: Row) -> LookView:
    return LookView(
        look=row["look"],
        at=row["at"],
        metric=row["metric"],
        configuration=row["configuration"],
        trial_id=row["trial_id"],
        value=row["value"],
    )


def result_to_json(result: FinalResult) -> dict[str, Any]:
    return asdict(result)


def result_from_json(data: dict[str, Any] | None) -> FinalResult | None:
    if data is None:
        return None
    intervals = {
        name: Interval(**data[name]) if data.get(name) is not None else None
        for name in ("best_mean", "default_mean", "difference", "estimate")
    }
    code = data.get("code")
    return FinalResult(**{**data, **intervals, "code": None if code is None else _code_found(code)})


def _code_found(stored: dict[str, Any]) -> CodeFound:
    over = stored["over_parent"]
    return CodeFound(
        **{**stored, "state": _code_state(stored["state"]), "over_parent": None if over is None else Interval(**over)}
    )


def _code_state(stored: dict[str, Any]) -> CodeState:
    return CodeState(**{**stored, "files": tuple(stored["files"])})


def facts_from_json(stored: dict[str, Any]) -> TrialFacts:
    """JSON has lists where the facts have tuples; what an earlier nightlab did not know has its default."""
    expected, diagnosis, edited = stored.get("expected"), stored.get("diagnosis"), stored.get("edited")
    probe = stored.get("probe")
    return TrialFacts(
        **{
            **stored,
            "continues": tuple(stored.get("continues", ())),
            "expected": None if expected is None else Expected(**expected),
            "diagnosis": None if diagnosis is None else _diagnosis(diagnosis),
            "edited": None if edited is None else _code_state(edited),
            "reached": tuple((step, value) for step, value in stored.get("reached", ())),
            "probe": None if probe is None else ProbeFound(**probe),
        }
    )


def _diagnosis(stored: dict[str, Any]) -> Diagnosis:
    failure = FailureClass(stored["failure"])
    return Diagnosis(**{**stored, "failure": failure, "evidence": tuple(stored["evidence"])})


def origin_to_json(facts: TrialFacts) -> dict[str, Any] | None:
    """What is known of a trial before it runs; None: nothing."""
    known = {name: value for name, value in asdict(facts).items() if name in ORIGIN and value is not None}
    return known or None
