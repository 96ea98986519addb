"""What the loop needs of a job besides its place in the state: its spec and its run. Read once, then remembered."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from runtime.store.history import JobRow, get_jobs
from runtime.tracking.ports import Store

SIZE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    spec: Mapping[str, Any]
    """A `JobSpec` as JSON values."""
    run_id: str

    @property
    def spec_json(self) -> str:
        return json.dumps(self.spec)

    @property
    def required_metrics(self) -> tuple[str, ...]:
        success: Mapping[str, Any] = self.spec.get("success") or {}
        return tuple(success.get("required_metrics", ()))


def facts_of(row: JobRow) -> JobFacts:
    return JobFacts(spec=row.spec, run_id=row.run_id)


class JobCatalog:
    """Facts of the jobs that were last asked for, at most `SIZE`; the others are read again when needed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, JobFacts] = OrderedDict()

    def remember(self, row: JobRow) -> None:
        self._known[row.job_id] = facts_of(row)
        while len(self._known) > SIZE:
            self._known.popitem(last=False)

    def forget(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            self._known.pop(job_id, None)

    async def of(self, job_ids: Iterable[str]) -> dict[str, JobFacts]:
        """Facts by job; unknown jobs are left out.

        Raises:
            StoreFailed: they can not be read.
        """
        wanted = list(dict.fromkeys(job_ids))
        missing = [job_id for job_id in wanted if job_id not in self._known]
        found = {job_id: self._known[job_id] for job_id in wanted if job_id in self._known}
        if missing:

            def read(connection: sa.Connection) -> dict[str, JobRow]:
                return get_jobs(connection, missing)

            for job_id, row in (await self._store.read(read)).items():
                self.remember(row)
                found[job_id] = facts_of(row)
        return found
