"""What outside agents may read: sessions as small tables, jobs as the runtime tells of them. It changes nothing.

Text that comes from jobs and people is fenced, as in the prompts of our own model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.doctor.signs import signs
from agent.llm.untrusted import fenced
from agent.planner.budget import caps
from agent.planner.configuration import canonical, default_params, space_problems
from agent.planner.proposers.outside import OUTSIDE
from agent.planner.suggested import allowed
from agent.reading.job import diagnosed
from agent.reading.session import read_known
from agent.store.store import AgentStore
from agent.store.views import ParamValue, SessionView
from agent.task import Task
from agent.thinking import tables
from agent.thinking.tables import Table
from runtime_client.models import JobView
from runtime_client.models.views import LIVE_STATES
from runtime_client.protocol import Runtime

N_ROWS = 15
MAX_ROWS = 50
MAX_OUTPUT = 6_000
"""Characters of a job's output."""
_NOTE_CHARACTERS = 4_000


def sessions(store: AgentStore, n: int = N_ROWS) -> list[dict[str, Any]]:
    """The newest sessions, newest first."""
    found = store.sessions()[: _rows(n)]
    return [
        {
            "session": one.session_id,
            "task": one.task_name,
            "state": one.state.value,
            "takes_proposals": _takes_proposals(one),
            "n_trials": one.n_trials,
            "answer": one.result.sentence if one.result is not None else None,
        }
        for one in found
    ]


def session(store: AgentStore, session_id: str, n: int = N_ROWS) -> dict[str, Any]:
    """One session: what is searched, what was found, what is left.

    Raises:
        SessionNotFound: there is none of this id.
    """
    known = read_known(store, session_id)
    view, task, plan, history, spend = known.view, known.task, known.plan, known.history, known.spend
    rows = _rows(n)
    found = [
        tables.best(task, history, rows),
        tables.recent(task, history, rows),
        tables.running(task, history, rows),
        tables.effects(task, history, rows),
        tables.claims(plan.hypotheses, rows),
        tables.failures(task, history, rows),
        tables.capacity(task, history, spend),
    ]
    if task.code is not None:
        found.insert(0, tables.edits(task, history, rows))
    return {
        "session": view.session_id,
        "task": view.task_name,
        "state": view.state.value,
        "takes_proposals": _takes_proposals(view),
        "phase": plan.phase.value,
        "objective": {
            "metric": task.objective.metric,
            "direction": task.objective.direction.value,
            "min_effect": task.objective.min_effect,
        },
        "space": {
            name: {"allowed": allowed(name, task), "default": parameter.default}
            for name, parameter in task.space.items()
        },
        "forbidden": list(task.forbid),
        "code": None
        if task.code is None
        else {"editable": list(task.code.editable), "max_changed_lines": task.code.max_changed_lines},
        "budgets": [cap.words for cap in caps(task.budgets, spend) if cap.limit is not None],
        "answer": view.result.sentence if view.result is not None else None,
        "tables": _as_text(found),
    }


def near(store: AgentStore, session_id: str, params: dict[str, ParamValue], n: int = N_ROWS) -> str:
    """What was tried near a point; parameters that are left out are as in the default configuration.

    Raises:
        SessionNotFound: there is none of this id.
        ValueError: the point lies outside of the space.
    """
    known = read_known(store, session_id)
    task, history = known.task, known.history
    point = {**default_params(task), **params}
    wrong = space_problems(canonical(point, task) | {k: v for k, v in point.items() if k not in task.space}, task)
    if wrong:
        raise ValueError("; ".join(wrong))
    table = tables.near(task, history, canonical(point, task), _rows(n))
    return table.text or "nothing was tried yet"


def proposals(store: AgentStore, session_id: str) -> list[dict[str, Any]]:
    """What became of the proposals from outside, newest first.

    Raises:
        SessionNotFound: there is none of this id.
    """
    store.session(session_id)
    trials = {trial.trial_id: trial for trial in store.trials(session_id)}
    found = []
    for one in reversed(store.suggestions(session_id)):
        if one.arm != OUTSIDE:
            continue
        trial = trials.get(one.trial_id or "")
        found.append(
            {
                "proposal": one.suggestion_id,
                "by": one.suggested_by,
                "params": one.params,
                "edit_of": None if one.edit is None else one.edit.parent,
                "became": one.trial_id or ("refused" if one.note else "waits"),
                "why_not": one.note,
                "state": None if trial is None else trial.state.value,
                "value": None if trial is None else trial.value,
            }
        )
    return found[:MAX_ROWS]


def jobs(runtime: Runtime, state: str | None, n: int = N_ROWS) -> list[dict[str, Any]]:
    """Jobs that wait or run, or those of one state, newest first."""
    return [_job(one) for one in runtime.jobs(states=LIVE_STATES if state is None else (state,), limit=_rows(n))]


def job(runtime: Runtime, job_id: str) -> dict[str, Any]:
    view = runtime.job(job_id)
    last = view.attempts[-1] if view.attempts else None
    return {
        **_job(view),
        "parameters": view.spec.parameters,
        "why": view.state_reason,
        "exit_reason": view.exit_reason,
        "exit_code": None if last is None else last.exit_code,
        "n_attempts": len(view.attempts),
        "n_preemptions": view.n_preemptions,
        "checkpoint_step": view.checkpoint_step,
    }


def output(text: str, job_id: str) -> str:
    return fenced(text, label=f"last output of job {job_id}", limit=MAX_OUTPUT)


def diagnosis(runtime: Runtime, job_id: str) -> dict[str, Any]:
    """Why a job failed, by rules. What of it may quote the job's output is fenced."""
    told = diagnosed(runtime, job_id)
    found = told.found
    quoted = "\n".join((found.cause, *found.evidence))
    return {
        "job": job_id,
        "state": told.view.state,
        "exit_reason": told.evidence.exit_reason,
        "failure": found.failure.value if told.has_failed else "none yet",
        "is_sure": found.is_sure,
        "cause_and_evidence": fenced(quoted, label=f"why job {job_id} failed", limit=MAX_OUTPUT),
        "suggestion": signs().words[found.failure].suggestion,
    }


def _job(view: JobView) -> dict[str, Any]:
    spec = view.spec
    return {
        "job": view.job_id,
        "experiment": spec.experiment_name,
        "state": view.state,
        "priority_class": spec.priority_class,
    }


def _takes_proposals(view: SessionView) -> bool:
    task = Task.model_validate_json(view.task_json)
    return OUTSIDE in task.search.use and view.state.value in ("running", "stopping", "stopped")


def _as_text(found: Sequence[Table]) -> dict[str, str]:
    return {
        one.name: fenced(one.text, label=one.name, limit=_NOTE_CHARACTERS) if one.is_untrusted else one.text
        for one in found
        if one.rows
    }


def _rows(n: int) -> int:
    return min(max(n, 1), MAX_ROWS)
