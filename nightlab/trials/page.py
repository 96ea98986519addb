"""Trials for a person: one whole, or many in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent.planner.trial_search import Found, Shelf, standing
from agent.store.views import TrialView
from nightlab.output import ago, duration, print_table, print_words
from nightlab.session_page import setting, shown

from .record import TrialRecord


def found_data(found: Found) -> dict[str, Any]:
    return {
        **asdict(found.trial),
        "task_name": found.task_name,
        "metric": found.metric,
        "gain_over_default": found.gain_over_default,
        "verdict": found.verdict,
    }


def print_found(found: Sequence[Found]) -> None:
    rows = [
        (
            one.trial.trial_id,
            one.trial.state.value,
            one.task_name,
            "" if one.trial.value is None else f"{one.trial.value:.6g}",
            "" if one.gain_over_default is None else f"{one.gain_over_default:+.4g}",
            one.verdict,
            setting(one.trial),
            ago(one.trial.proposed_at),
            one.trial.note or one.trial.why,
        )
        for one in found
    ]
    columns = ("trial", "state", "task", "#value", "#gain", "against default", "parameters", "proposed", "note")
    print_table(columns, rows, state_column=1)


def record_data(record: TrialRecord, shelf: Shelf) -> dict[str, Any]:
    job = record.job
    return {
        "trial": asdict(record.trial),
        "metric": record.task.objective.metric,
        "verdict": standing(shelf, record.trial),
        "hypothesis": (shelf.hypotheses or {}).get(record.trial.hypothesis or ""),
        "code": record.code,
        "device_model": record.device_model,
        "provenance": asdict(record.provenance),
        "job": None if job is None else job.model_dump(mode="json", exclude={"spec": {"env_variables", "session"}}),
        "mlflow_url": None if job is None else job.mlflow_url,
    }


def print_record(record: TrialRecord, shelf: Shelf) -> None:
    trial = record.trial
    value = "no value" if trial.value is None else f"{record.task.objective.metric} = {trial.value:.6g}"
    print(f"{trial.trial_id} {trial.state.value}: {value}")
    for name, text in _lines(record, shelf):
        print_words(f"  {name:12} {text}")


def _lines(record: TrialRecord, shelf: Shelf) -> list[tuple[str, str]]:
    trial, facts, worth = record.trial, record.trial.facts, record.trial.worth
    hypothesis = (shelf.hypotheses or {}).get(trial.hypothesis or "")
    lines = [
        ("session", f"{trial.session_id} ({record.task.task})"),
        ("parameters", " ".join(f"{name}={shown(one)}" for name, one in trial.params.items())),
        ("edited", _edited(trial)),
        ("seed", f"{trial.seed} ({trial.purpose.value}{', idle time' if trial.is_idle_work else ''})"),
        ("suggested by", f"{trial.suggested_by}: {trial.why}"),
        ("vs default", standing(shelf, trial)),
        ("tests", f"{trial.hypothesis}: {hypothesis}" if hypothesis else ""),
        ("worth", f"gain {worth.gain:.3g} +- {worth.uncertainty:.2g} for {duration(worth.cost_s)}" if worth else ""),
        ("note", trial.note or ""),
        ("partial", f"{facts.partial_value:.6g} at step {facts.partial_step}" if facts.partial_value else ""),
        ("device", record.device_model or "not known"),
        ("code", record.code[:12] if record.code else "not pinned (no snapshot)"),
        ("scorer", f"{(facts.scorer or '')[:12]} ({facts.scorer_reach})" if facts.scorer_reach else ""),
        ("data", facts.data[:60] if facts.data else "unpinned"),
        ("python", record.provenance.python_version or record.provenance.python or "not known"),
        ("took", duration(trial.device_seconds) + " of device time"),
        ("job", trial.job_id or "none"),
        ("mlflow", (record.job.mlflow_url or "") if record.job is not None else ""),
    ]
    return [(name, text) for name, text in lines if text]


def _edited(trial: TrialView) -> str:
    edited = trial.facts.edited
    if edited is None:
        return ""
    said = f": {edited.summary}" if edited.summary else ""
    return f"{edited.size}, made from {edited.parent or 'the base'}, branch {edited.branch}{said}"
