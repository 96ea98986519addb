"""What one round must know from the store before it decides: one read for everything that has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from runtime.engines.contract import AttemptKey, Exited
from runtime.store.history import JobRow, jobs_by_token, states_of, tasks_of
from runtime.tracking.ports import Store
from runtime.tracking.queries import runs_by_id
from runtime.tracking.runs import missing_or_non_finite
from runtime_client.models import JobSpec

from .arrays import task_specs
from .catalog import JobCatalog
from .continuing import read_earlier
from .inbox import Item, SubmitArray, SubmitJobs
from .reactor import CriteriaFacts
from .references import Past, TokenKey, named_jobs
from .submission import Known, token_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    known: Known
    criteria: Mapping[AttemptKey, CriteriaFacts] = field(default_factory=dict)
    """By attempt that has exited; those without required metrics are left out."""


async def look_up(store: Store, catalog: JobCatalog, items: Sequence[Item]) -> Found:
    """
    Raises:
        StoreFailed: the store can not be read.
    """
    specs = list(_specs(items))
    tokens, parents = _named(specs)
    jobs, arrays, named_tokens = named_jobs(specs)
    for project, token in named_tokens:
        tokens.setdefault(project, []).append(token)
    exits = {item.key: item.key.job_id for item in items if isinstance(item, Exited)}
    facts = await catalog.of(exits.values()) if exits else {}
    demands = {
        key: facts[job_id] for key, job_id in exits.items() if job_id in facts and facts[job_id].required_metrics
    }
    continues = {spec.continues for spec in specs if spec.continues is not None}
    if not (tokens or parents or demands or jobs or arrays or continues):
        return Found(known=Known(jobs_by_token={}, run_ids=frozenset()))

    def read(connection: sa.Connection) -> Found:
        criteria = {}
        for key, fact in demands.items():
            missing, bad = missing_or_non_finite(connection, fact.run_id, fact.required_metrics)
            criteria[key] = CriteriaFacts(missing_metrics=missing, non_finite_metrics=bad)
        by_token = _jobs(connection, tokens)
        known = Known(
            jobs_by_token=by_token,
            past=_past(connection, {*jobs, *(row.job_id for row in by_token.values())}, arrays),
            earlier=read_earlier(connection, continues),
            run_ids=frozenset(runs_by_id(connection, parents)) if parents else frozenset(),
        )
        return Found(known=known, criteria=criteria)

    return await store.read(read)


async def read_known(store: Store, specs: Sequence[JobSpec]) -> Known:
    """What the store says about jobs that these name.

    Raises:
        StoreFailed: it can not be read.
    """
    jobs, arrays, named_tokens = named_jobs(specs)
    continues = {spec.continues for spec in specs if spec.continues is not None}
    tokens: dict[str, list[str]] = {}
    for project, token in named_tokens:
        tokens.setdefault(project, []).append(token)

    def read(connection: sa.Connection) -> Known:
        by_token = _jobs(connection, tokens)
        ids = {*jobs, *(row.job_id for row in by_token.values())}
        return Known(
            jobs_by_token=by_token,
            run_ids=frozenset(),
            past=_past(connection, ids, arrays),
            earlier=read_earlier(connection, continues),
        )

    is_asked = jobs or arrays or tokens or continues
    return await store.read(read) if is_asked else Known(jobs_by_token={}, run_ids=frozenset())


def _specs(items: Sequence[Item]) -> Iterator[JobSpec]:
    """All that is submitted; of an array, each task."""
    for item in items:
        if isinstance(item, SubmitJobs):
            yield from (submission.spec for submission in item.submissions)
        elif isinstance(item, SubmitArray):
            yield from task_specs(item.submission)


def _named(specs: Sequence[JobSpec]) -> tuple[dict[str, list[str]], list[str]]:
    """Idempotency tokens by project, and parent runs."""
    tokens: dict[str, list[str]] = {}
    parents: list[str] = []
    for spec in specs:
        key = token_key(spec)
        if key is not None:
            tokens.setdefault(key[0], []).append(key[1])
        if spec.mlflow_parent_run_id is not None:
            parents.append(spec.mlflow_parent_run_id)
    return tokens, parents


def _past(connection: sa.Connection, jobs: Iterable[str], arrays: Iterable[str]) -> Past:
    """What has become of those that are named."""
    tasks = tasks_of(connection, arrays)
    states = states_of(connection, jobs)
    for of_array in tasks.values():
        states |= of_array
    return Past(states=states, tasks={array_id: tuple(of_array) for array_id, of_array in tasks.items()})


def _jobs(connection: sa.Connection, tokens: Mapping[str, Sequence[str]]) -> dict[TokenKey, JobRow]:
    found: dict[TokenKey, JobRow] = {}
    for project, wanted in tokens.items():
        for token, row in jobs_by_token(connection, project, wanted).items():
            found[(project, token)] = row
    return found
