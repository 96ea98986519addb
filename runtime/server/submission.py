"""Taking jobs in: which are new, which are known, which are refused and why. Changes nothing but the draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.model.events import JobSubmitted, SessionFenced
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.scheduling.asking import describe_shape
from runtime.scheduling.explain import feasible
from runtime.scheduling.forecast import Forecast, what_if
from runtime.scheduling.policy import Policy
from runtime.scheduling.quotas import describe_quota, too_small
from runtime.store.history import JobRow
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind, JobSpec, Sandbox

from .budget_check import brought_by, check_budgets
from .continuing import Earlier, continued
from .draft import OWNER, Actor, Draft
from .intake import job_from_spec
from .projection import new_job_row
from .references import Names, Past, TokenKey, resolve

LATEST_S = 253_402_300_799.0
"""The last second of the year 9999."""
THIS_JOB = "this job"
"""What a job is called that has no id yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    spec: JobSpec
    spec_json: dict[str, Any]
    """The same as JSON values."""
    run_id: str
    """For its run, if it becomes a new job."""
    position: int = 0
    """Its place among the jobs that were submitted together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    job_id: str
    is_existing: bool
    """The idempotency token was known."""
    spec: JobSpec
    """With ids where it named other jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the store says about a batch of submissions."""

    jobs_by_token: Mapping[TokenKey, JobRow]
    run_ids: frozenset[str]
    """Of the parent runs named: those that exist."""
    earlier: Mapping[str, Earlier] = field(default_factory=dict)
    """The jobs that these go on from: those that exist."""
    past: Past = field(default_factory=lambda: Past(states={}, tasks={}))


@dataclass(slots=True, kw_only=True)
class Fresh:
    """Jobs taken in one transaction, or found to be there."""

    by_token: dict[TokenKey, str] = field(default_factory=dict)
    by_position: dict[int, str] = field(default_factory=dict)
    """In the present submission."""


def token_key(spec: JobSpec) -> TokenKey | None:
    return None if spec.idempotency_token is None else (spec.project, spec.idempotency_token)


def take(draft: Draft, submission: Submission, known: Known, fresh: Fresh, *, number: int, policy: Policy) -> Taken:
    """Take one job in as `j{number}`, or find the earlier one with its token.

    Args:
        fresh: added to.

    Raises:
        Refused: it can never run, or its session was overtaken.
    """
    spec = submission.spec
    earlier_id = earlier_job(spec, known, fresh)
    if earlier_id is not None:
        fresh.by_position[submission.position] = earlier_id
        return Taken(job_id=earlier_id, is_existing=True, spec=spec)
    job, spec = new_job(draft, spec, known, fresh, number=number, policy=policy)
    record(draft, job, spec, run_id=submission.run_id, spec_json=submission.spec_json, fresh=fresh)
    fresh.by_position[submission.position] = job.job_id
    return Taken(job_id=job.job_id, is_existing=False, spec=spec)


def earlier_job(spec: JobSpec, known: Known, fresh: Fresh) -> str | None:
    """The job that was submitted with this token already."""
    key = token_key(spec)
    if key is None:
        return None
    earlier = known.jobs_by_token.get(key)
    return fresh.by_token.get(key) if earlier is None else earlier.job_id


def new_job(
    draft: Draft, spec: JobSpec, known: Known, fresh: Fresh, *, number: int, policy: Policy
) -> tuple[Job, JobSpec]:
    """The job that a spec asks for, and the spec with ids where it names other jobs. Changes nothing.

    Raises:
        Refused: as `take`.
    """
    if spec.array is not None:
        message = "array: this makes an array, not a job; submit it to /v1/arrays (`RuntimeClient.submit_array`)"
        raise refused(ErrorKind.INVALID, "is_array", message, path="array")
    if spec.array_task is not None:
        message = "array_task: the server sets it; to submit an array, give `array`"
        raise refused(ErrorKind.INVALID, "not_to_be_set", message, path="array_task")
    _check_agents(draft.state, spec)
    _check_fence(draft.state, spec)
    _check_parent(spec, known)
    job = job_of(draft.state, spec, number=number, now_s=draft.at_s, policy=policy)
    job = continued(job, spec, known.earlier.get(spec.continues or ""), draft.state)
    why_not = feasible(draft.state, job.shape)
    if why_not is not None:
        raise refused(
            ErrorKind.INVALID, "infeasible", f"it could never start here: it {why_not}", path="compute.num_accelerators"
        )
    _check_sandbox(draft.state, spec)
    _check_quotas(job, policy)
    check_budgets(draft.state, job, spec, now_s=draft.at_s)
    if not spec.depends_on:
        return job, spec
    tokens = {key: row.job_id for key, row in known.jobs_by_token.items()} | fresh.by_token
    names = Names(by_token=tokens, by_position=fresh.by_position, past=known.past)
    job, depends_on = resolve(draft, spec, job, names)
    return job, spec.model_copy(update={"depends_on": depends_on})


def record(draft: Draft, job: Job, spec: JobSpec, *, run_id: str, spec_json: dict[str, Any], fresh: Fresh) -> None:
    """Record a new job, and its session's newer fence."""
    actor = actor_of(spec)
    if spec.session is not None and spec.session.fence > draft.state.fences.get(spec.session.session_id, 0):
        draft.add(SessionFenced(session_id=spec.session.session_id, fence=spec.session.fence), actor)
    for event in brought_by(draft.state, spec):
        draft.add(event, actor)
    if spec.depends_on:
        spec_json = {**spec_json, "depends_on": [one.model_dump(mode="json") for one in spec.depends_on]}
    row = new_job_row(job, run_id=run_id, idempotency_token=spec.idempotency_token, spec=spec_json)
    draft.submit(JobSubmitted(job=job), row, actor)
    key = token_key(spec)
    if key is not None:
        fresh.by_token[key] = job.job_id


def _check_sandbox(state: State, spec: JobSpec) -> None:
    """One node that can seal is enough."""
    if spec.sandbox is not Sandbox.SEALED or not state.nodes:
        return
    whys = {node_id: node.why_not_sealed for node_id, node in sorted(state.nodes.items())}
    if None not in whys.values():
        told = "; ".join(f"{node_id}: {why}" for node_id, why in whys.items())
        raise refused(ErrorKind.INVALID, "sandbox_unavailable", f"no node can seal it: {told}", path="sandbox")


def _check_quotas(job: Job, policy: Policy) -> None:
    quota = too_small(policy.quotas, job.project, job.priority_class, job.shape.n_devices)
    if quota is not None:
        raise refused(
            ErrorKind.OVER_BUDGET,
            "over_quota",
            f"it could never start: {describe_quota(quota)}, and it asks for {describe_shape(job.shape)}; "
            "ask for fewer, or have the quota raised (`nightlab policy` shows it)",
            path="compute.num_accelerators",
        )


def job_of(state: State, spec: JobSpec, *, number: int, now_s: float, policy: Policy) -> Job:
    """The job that a spec asks for, if it says nothing that can not be.

    Raises:
        Refused: it does.
    """
    _check_paths(spec)
    _check_start(spec)
    _check_hour(spec, now_s)
    kinds = (kind for masks in state.index.kinds.values() for kind in masks if kind is not None)
    return job_from_spec(spec, number=number, now_s=now_s, policy=policy, kinds=kinds)


def foretell(
    state: State, spec: JobSpec, known: Known, *, number: int, now_s: float, policy: Policy
) -> tuple[Job, Forecast]:
    """The job that would be submitted, and what the next round would do about it. Changes nothing.

    Of an array, the first task.

    Raises:
        Refused: as a submission would be; but what could never start is foretold.
    """
    _check_agents(state, spec)
    _check_fence(state, spec)
    job = job_of(state, spec, number=number, now_s=now_s, policy=policy).but(job_id=THIS_JOB)
    job = continued(job, spec, known.earlier.get(spec.continues or ""), state)
    check_budgets(state, job, spec, now_s=now_s)
    if spec.depends_on:
        tokens = {key: row.job_id for key, row in known.jobs_by_token.items()}
        names = Names(by_token=tokens, by_position={}, past=known.past)
        job, _ = resolve(Draft(state=state, at_s=now_s), spec, job, names)
    return job, what_if(state, job, now_s=now_s, policy=policy)


def actor_of(spec: JobSpec) -> Actor:
    if spec.session is None:
        return OWNER
    return Actor(name=f"session:{spec.session.session_id}", on_behalf_of=OWNER.name)


def _check_agents(state: State, spec: JobSpec) -> None:
    stop = state.agents_stop
    if spec.session is not None and stop is not None:
        raise refused(
            ErrorKind.CONFLICT,
            "agents_stopped",
            f"sessions may not submit now: all agents were stopped ({stop.reason}); "
            "a person allows them again with: nightlab allow --all-agents",
            path="session",
            retryable=True,
        )


def _check_fence(state: State, spec: JobSpec) -> None:
    if spec.session is None:
        return
    newest = state.fences.get(spec.session.session_id, 0)
    if spec.session.fence < newest:
        raise refused(
            ErrorKind.CONFLICT,
            "stale_session",
            f"session {spec.session.session_id} goes on elsewhere: fence {spec.session.fence} was overtaken by "
            f"{newest}; this process must stop submitting",
            path="session.fence",
        )


def _check_paths(spec: JobSpec) -> None:
    """Paths must be absolute; whether they exist is the node's to say."""
    named = {
        "environment.python": spec.environment.python,
        "code_source.root_path": None if spec.code_source is None else spec.code_source.root_path,
    }
    for path, value in named.items():
        if value is not None and not Path(value).is_absolute():
            raise refused(ErrorKind.INVALID, "not_absolute", f"{path}: {value!r} is not an absolute path", path=path)


def _check_start(spec: JobSpec) -> None:
    """What no operating system starts: NUL in a command or an environment, names with `=`."""
    for name in spec.env_variables:
        if not name or "=" in name or "\0" in name:
            message = f"env_variables: {name[:80]!r} can not be the name of an environment variable"
            raise refused(ErrorKind.INVALID, "invalid_value", message, path="env_variables")
    words = {
        "command": "".join(spec.command),
        "env_variables": "".join(spec.env_variables.values()),
        "environment.python": spec.environment.python or "",
        "code_source.root_path": "" if spec.code_source is None else spec.code_source.root_path,
    }
    for path, text in words.items():
        if "\0" in text:
            raise refused(ErrorKind.INVALID, "invalid_value", f"{path}: it holds a NUL character", path=path)


def _check_hour(spec: JobSpec, now_s: float) -> None:
    """The hour by which it has to be over lies before us, and is a time of day at all."""
    if spec.finish_by is None:
        return
    if spec.finish_by > LATEST_S:
        message = f"finish_by: {spec.finish_by:g} lies behind the year 9999; give seconds since the epoch"
        raise refused(ErrorKind.INVALID, "invalid_value", message, path="finish_by")
    if spec.finish_by <= now_s:
        message = (
            f"finish_by: {spec.finish_by:.0f} was {now_s - spec.finish_by:.0f} s ago, so nothing of it could run; "
            "give a later time, or leave it out"
        )
        raise refused(ErrorKind.INVALID, "deadline_passed", message, path="finish_by")


def _check_parent(spec: JobSpec, known: Known) -> None:
    parent = spec.mlflow_parent_run_id
    if parent is not None and parent not in known.run_ids:
        raise refused(
            ErrorKind.INVALID,
            "unknown_run",
            f"mlflow_parent_run_id: there is no run {parent!r} here; give a run_id of this runtime",
            path="mlflow_parent_run_id",
        )
