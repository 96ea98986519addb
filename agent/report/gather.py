"""Collects what a report needs, from the agent's store and the runtime."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from agent.store.views import ActivityView, LookView, ModelCallView, PlanView, SessionView, TrialView
from agent.task import Task
from runtime_client.errors import NotFound
from runtime_client.models import JobView, MetricPoint
from runtime_client.protocol import Runtime

from .code_patch import with_patch
from .facts import ReportInput

MAX_JOBS_WITH_METRICS = 500
PAGE = 500


class SessionReader(Protocol):
    """What is read of the agent's store."""

    def session(self, session_id: str) -> SessionView: ...

    def trials(self, session_id: str) -> Sequence[TrialView]: ...

    def activity(self, session_id: str, limit: int = ...) -> Sequence[ActivityView]: ...

    def looks(self, session_id: str) -> Sequence[LookView]: ...

    def plans(self, session_id: str) -> Sequence[PlanView]: ...


def gather_report_input(
    store: SessionReader,
    client: Runtime,
    session_id: str,
    *,
    model_calls: Sequence[ModelCallView],
    home: Path | None = None,
) -> ReportInput:
    """Everything that a report needs.

    Args:
        home: the home that has the session's edited code; None: its patch is not shown.

    Raises:
        RuntimeClientError: the runtime does not answer.
    """
    session = store.session(session_id)
    jobs = session_jobs(client, session_id)
    plans = store.plans(session_id)
    jobs += [job for job in beneficiaries(client, jobs) if job.job_id not in {j.job_id for j in jobs}]
    facts = ReportInput(
        session=session,
        task=Task.model_validate_json(session.task_json),
        trials=tuple(store.trials(session_id)),
        activity=tuple(store.activity(session_id, limit=2000)),
        looks=tuple(store.looks(session_id)),
        plan=plans[-1] if plans else None,
        jobs=tuple(jobs),
        nodes=tuple(client.nodes()),
        points=_points(client, jobs),
        model_calls=tuple(model_calls),
        mlflow_url=None if session.run_id is None else run_url(client, session.run_id),
        made_at=time.time(),
    )
    return facts if home is None else with_patch(facts, home)


def session_jobs(client: Runtime, session_id: str) -> list[JobView]:
    """All of them, oldest first."""
    found: list[JobView] = []
    before: str | None = None
    while True:
        page = client.jobs(session_id=session_id, limit=PAGE, before=before)
        found.extend(page)
        if len(page) < PAGE:
            return found[::-1]
        before = page[-1].job_id


def beneficiaries(client: Runtime, jobs: Sequence[JobView]) -> list[JobView]:
    """The jobs that attempts of these were preempted for."""
    wanted = dict.fromkeys(a.beneficiary for job in jobs for a in job.attempts if a.beneficiary is not None)
    found = []
    for job_id in wanted:
        try:
            found.append(client.job(job_id))
        except NotFound:
            continue
    return found


def _points(client: Runtime, jobs: Sequence[JobView]) -> dict[str, tuple[MetricPoint, ...]]:
    started = [job for job in jobs if job.attempts][:MAX_JOBS_WITH_METRICS]
    return {job.job_id: tuple(client.metrics(job.job_id)) for job in started}


def run_url(client: Runtime, run_id: str) -> str | None:
    try:
        return client.run(run_id).mlflow_url
    except NotFound:
        return None
