"""All that a home knows of one trial: the agent's row, its job, what its attempt ran with, its code.

The runtime need not be up: what only it knows is missing then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.planner.plan_text import plan_from_json
from agent.planner.trial_search import Shelf
from agent.store.store import AgentStore
from agent.store.views import TrialView
from agent.task import Task
from runtime_client.client import RuntimeClient
from runtime_client.errors import NotFound, RuntimeClientError
from runtime_client.home import CODE_FOLDER
from runtime_client.models import JobView
from runtime_client.snapshot import archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the last attempt ran with; empty where its folder is gone or on another machine."""

    python: str | None = None
    python_version: str | None = None
    packages: tuple[str, ...] = ()
    """`name==version`, sorted."""
    devices: tuple[str, ...] = ()
    """Device models, `cpu` for slots."""
    code_snapshot: str | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    trial: TrialView
    task: Task
    job: JobView | None
    """None: never launched, or the runtime is not up or no longer knows it."""
    score_job: JobView | None = None
    """The job that measured it after its training; None: the script reported its own value, or as `job`."""
    provenance: Provenance
    siblings: tuple[TrialView, ...]
    """All trials of its configuration in its session, itself among them."""

    @property
    def code(self) -> str | None:
        """Digest of the code snapshot that it ran; None: it ran in the folder itself, or that is not known."""
        source = self.job.spec.code_source if self.job is not None else None
        return self.trial.facts.code or (source.snapshot_id if source else None) or self.provenance.code_snapshot

    @property
    def device_model(self) -> str | None:
        models = sorted(set(self.provenance.devices))
        return self.trial.facts.device_model or ("mixed" if len(models) > 1 else next(iter(models), None))


def read_record(store: AgentStore, home: Path, trial_id: str, client: RuntimeClient | None) -> TrialRecord:
    """
    Raises:
        TrialNotFound: there is none of that id.
    """
    trial = store.trial(trial_id)
    task = Task.model_validate_json(store.session(trial.session_id).task_json)
    siblings = [t for t in store.trials(trial.session_id) if t.configuration == trial.configuration]
    return TrialRecord(
        trial=trial,
        task=task,
        job=_job(client, trial.job_id),
        score_job=_job(client, trial.facts.score_job_id),
        provenance=read_provenance(home, trial.job_id),
        siblings=tuple(siblings),
    )


def connected(home: Path) -> RuntimeClient | None:
    """A client of this home's runtime; None: it is not up."""
    try:
        client = RuntimeClient.from_home(home, timeout_s=5.0)
    except RuntimeClientError:
        return None
    try:
        client.info()
    except RuntimeClientError:
        client.close()
        return None
    return client


def read_provenance(home: Path, job_id: str | None) -> Provenance:
    """Of the newest attempt of a job that left one."""
    folder = home / "attempts" / (job_id or "")
    if job_id is None or not folder.is_dir():
        return Provenance()
    numbers = sorted((int(one.name) for one in folder.iterdir() if one.name.isdecimal()), reverse=True)
    for number in numbers:
        try:
            found: dict[str, Any] = json.loads((folder / str(number) / "provenance.json").read_text())
        except (OSError, ValueError):
            continue
        return Provenance(
            python=found.get("python"),
            python_version=found.get("python_version"),
            packages=tuple(found.get("packages") or ()),
            devices=tuple(found.get("devices") or ()),
            code_snapshot=found.get("code_snapshot"),
            command=tuple(found.get("command") or ()),
        )
    return Provenance()


def manifest_of(home: Path, snapshot_id: str | None) -> archive.Manifest | None:
    """The list of a snapshot's files; None: there is no snapshot, or it was removed."""
    if snapshot_id is None:
        return None
    try:
        return archive.read(home / CODE_FOLDER, snapshot_id)
    except archive.SnapshotMissing:
        return None


def shelves(store: AgentStore) -> list[Shelf]:
    """Every session as a search looks at it."""
    return [shelf_of(store, one.session_id) for one in store.sessions()]


def shelf_of(store: AgentStore, session_id: str) -> Shelf:
    session = store.session(session_id)
    task = Task.model_validate_json(session.task_json)
    plans = store.plans(session_id)
    hypotheses = plan_from_json(plans[-1].plan_json, task).hypotheses if plans else ()
    return Shelf(
        task=task,
        trials=store.trials(session_id),
        suggestions=store.suggestions(session_id),
        best_configuration=session.result.best_configuration if session.result else None,
        verdict=session.result.verdict if session.result else None,
        hypotheses={one.hypothesis_id: one.statement for one in hypotheses},
    )


def _job(client: RuntimeClient | None, job_id: str | None) -> JobView | None:
    if client is None or job_id is None:
        return None
    try:
        return client.job(job_id)
    except NotFound:
        return None
