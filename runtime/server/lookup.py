"""What one round must know from the store before it decides: one read for everything that has arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from runtime.engines.contract import AttemptKey, Exited
from runtime.store.history import JobRow, jobs_by_token
from runtime.tracking.ports import Store
from runtime.tracking.queries import runs_by_id
from runtime.tracking.runs import missing_or_non_finite

from .catalog import JobCatalog
from .inbox import Item, SubmitJobs
from .reactor import CriteriaFacts
from .submission import Known, TokenKey, token_key


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
    tokens, parents = _named(items)
    exits = {item.key: item.key.job_id for item in items if isinstance(item, Exited)}
    facts = await catalog.of(exits.values()) if exits else {}
    demands = {
        key: facts[job_id] for key, job_id in exits.items() if job_id in facts and facts[job_id].required_metrics
    }
    if not tokens and not parents and not demands:
        return Found(known=Known(jobs_by_token={}, run_ids=frozenset()))

    def read(connection: sa.Connection) -> Found:
        criteria = {}
        for key, fact in demands.items():
            missing, bad = missing_or_non_finite(connection, fact.run_id, fact.required_metrics)
            criteria[key] = CriteriaFacts(missing_metrics=missing, non_finite_metrics=bad)
        known = Known(
            jobs_by_token=_jobs(connection, tokens),
            run_ids=frozenset(runs_by_id(connection, parents)) if parents else frozenset(),
        )
        return Found(known=known, criteria=criteria)

    return await store.read(read)


def _named(items: Sequence[Item]) -> tuple[dict[str, list[str]], list[str]]:
    """Idempotency tokens by project, and parent runs, of all submissions."""
    tokens: dict[str, list[str]] = {}
    parents: list[str] = []
    for item in items:
        if not isinstance(item, SubmitJobs):
            continue
        for submission in item.submissions:
            key = token_key(submission.spec)
            if key is not None:
                tokens.setdefault(key[0], []).append(key[1])
            if submission.spec.mlflow_parent_run_id is not None:
                parents.append(submission.spec.mlflow_parent_run_id)
    return tokens, parents


def _jobs(connection: sa.Connection, tokens: Mapping[str, Sequence[str]]) -> dict[TokenKey, JobRow]:
    found: dict[TokenKey, JobRow] = {}
    for project, wanted in tokens.items():
        for token, row in jobs_by_token(connection, project, wanted).items():
            found[(project, token)] = row
    return found
