"""The gateway's calls that change something: recorded in one transaction with their outbox rows, then answered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.records import RunRow

from . import experiments, queries, recording
from .answers import MlflowRefusal, RunContents, json_response, run_info_json, run_json
from .door import Caller, Door, Owner, own_run
from .memory import ParamMemory
from .opening import ASKED_NAME, ASKED_PARENT, RESERVED, Opening, open_run
from .ports import Notify, Store
from .reading import shown_experiment
from .recording import NAME_TAG, PARENT_TAG
from .requests import (
    CreateRun,
    DeleteTag,
    LogBatch,
    LogMetric,
    LogParam,
    Point,
    RunScoped,
    SetTag,
    UpdateRun,
    check_entities,
    check_name,
    pairs_of,
    parse,
    points_of,
)
from .rest import API

QUEUED_CALLS = ("runs/log-inputs", "runs/outputs", "runs/log-model")
"""Calls whose answer is empty: sent on by the mirror, so that nobody waits."""


class Writing:
    """The calls that change something."""

    def __init__(
        self,
        *,
        store: Store,
        door: Door,
        notify: Notify,
        clock: Callable[[], float],
        wake: Callable[[], None],
        new_run_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._door = door
        self._notify = notify
        self._clock = clock
        self._wake = wake
        self._new_run_id = new_run_id
        self._params = ParamMemory()
        self._answered: set[str] = set()

    def calls(self) -> dict[str, Callable[..., object]]:
        calls: dict[str, Callable[..., object]] = {
            "runs/create": self.create_run,
            "runs/update": self.update_run,
            "runs/log-metric": self.log_metric,
            "runs/log-batch": self.log_batch,
            "runs/log-parameter": self.log_parameter,
            "runs/set-tag": self.set_tag,
            "runs/delete-tag": self.delete_tag,
        }
        return calls | dict.fromkeys(QUEUED_CALLS, self.queue_call)

    async def log_metric(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(LogMetric, await request.body())
        return await self._log(caller, body.run_id, points=points_of((body,), now_s=self._clock()))

    async def log_parameter(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(LogParam, await request.body())
        return await self._log(caller, body.run_id, params=pairs_of("param", (body,)))

    async def set_tag(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(SetTag, await request.body())
        return await self._log(caller, body.run_id, tags=pairs_of("tag", (body,)))

    async def log_batch(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(LogBatch, await request.body())
        check_entities(body)
        return await self._log(
            caller,
            body.run_id,
            points=points_of(body.metrics, now_s=self._clock()),
            params=pairs_of("param", body.params),
            tags=pairs_of("tag", body.tags),
        )

    async def _log(
        self,
        caller: Caller,
        run_id: str,
        *,
        points: list[Point] | None = None,
        params: dict[str, str] | None = None,
        tags: dict[str, str] | None = None,
    ) -> Response:
        points, params, tags = points or [], params or {}, tags or {}
        own_params = self._params.of(run_id, caller)

        def unit(connection: sa.Connection) -> tuple[RunRow, frozenset[str]]:
            row = own_run(connection, caller, run_id)
            plain = _special_tags(connection, caller, row, tags)
            attempt = caller.attempt if isinstance(caller, AttemptKey) else row.attempt or 0
            own = params if isinstance(caller, Owner) else own_params
            ignored = recording.log(
                connection, run_id, attempt=attempt, points=points, params=params, tags=plain, own_params=own
            )
            return row, ignored

        try:
            row, ignored = await self._store.write(unit)
        except recording.ParamChanged as changed:
            raise MlflowRefusal("INVALID_PARAMETER_VALUE", str(changed)) from changed
        self._params.add(run_id, caller, params.keys() - ignored)
        self._wake()
        if points and row.job_id is not None:
            self._notify(row.job_id, run_id, frozenset(key for key, *_ in points))
        return json_response({})

    async def delete_tag(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(DeleteTag, await request.body())
        _check_tag(body.key)

        def unit(connection: sa.Connection) -> bool:
            own_run(connection, caller, body.run_id)
            return recording.untag(connection, body.run_id, body.key)

        if not await self._store.write(unit):
            raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"No tag with name: {body.key} in run with id {body.run_id}")
        self._wake()
        return json_response({})

    async def create_run(self, request: Request) -> Response:
        caller = self._door.caller(request)
        raw = await request.body()
        body = parse(CreateRun, raw)
        if isinstance(caller, Owner):
            row = await self._store.write(lambda connection: self._create_for_owner(connection, body))
        else:
            row = await self._open(caller, body, raw)
        self._wake()
        contents, experiment_id = await self._store.read(lambda c: _shown(c, caller, row.run_id))
        return json_response({"run": run_json(contents, experiment_id=experiment_id)})

    async def _open(self, caller: AttemptKey, body: CreateRun, raw: bytes) -> RunRow:
        digest = hashlib.sha256(raw).hexdigest()[:32]
        seen = f"{caller.job_id}.{caller.attempt}.{digest}"
        opening = Opening(
            key=caller,
            body=body,
            digest=digest,
            is_new=seen in self._answered,
            fresh_run_id=self._new_run_id(),
            now_s=self._clock(),
        )
        row = await self._store.write(lambda connection: open_run(connection, opening))
        self._answered.add(seen)
        return row

    def _create_for_owner(self, connection: sa.Connection, body: CreateRun) -> RunRow:
        """A run that no job carries, in an experiment of ours."""
        name = experiments.name_of(connection, body.experiment_id)
        if name is None:
            raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"No experiment with id {body.experiment_id} here.")
        tags = pairs_of("tag", body.tags)
        run_name = body.run_name or tags.pop(NAME_TAG, "")
        tags.pop(NAME_TAG, None)
        parent = tags.pop(PARENT_TAG, None)
        if parent is not None and records.get_run(connection, parent) is None:
            raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"The parent run {parent} is not known here.")
        run_id = self._new_run_id()
        row = RunRow(
            run_id=run_id,
            parent_run_id=parent,
            experiment_name=name,
            run_name=run_name or run_id[:8],
            status="RUNNING",
            created_at=self._clock(),
        )
        recording.new_run(connection, row, tags=tags, params={})
        return row

    async def update_run(self, request: Request) -> Response:
        caller = self._door.caller(request)
        body = parse(UpdateRun, await request.body())
        if body.status is not None and body.status not in recording.STATUSES:
            allowed = ", ".join(sorted(recording.STATUSES))
            raise MlflowRefusal("INVALID_PARAMETER_VALUE", f"Invalid status {body.status!r}: use one of {allowed}.")
        at_s = self._clock() if body.end_time is None else body.end_time / 1000
        await self._store.write(lambda connection: _update(connection, caller, body, at_s))
        self._wake()
        contents, experiment_id = await self._store.read(lambda c: _shown(c, caller, body.run_id))
        user = contents.tags.get("mlflow.user", "")
        return json_response({"run_info": run_info_json(contents.row, experiment_id=experiment_id, user=user)})

    async def queue_call(self, request: Request) -> Response:
        """Take a call with an empty answer for the mirror to make."""
        caller = self._door.caller(request)
        raw = await request.body()
        body = parse(RunScoped, raw)
        path = request.url.path.removeprefix(API)

        def unit(connection: sa.Connection) -> None:
            own_run(connection, caller, body.run_id)
            recording.push(connection, body.run_id, "call", {"path": path, "body": raw.decode("utf-8", "replace")})

        await self._store.write(unit)
        self._wake()
        return json_response({})


def _update(connection: sa.Connection, caller: Caller, body: UpdateRun, at_s: float) -> None:
    """Record what a script says of a run; obey it only for runs that no job carries by itself."""
    row = own_run(connection, caller, body.run_id)
    if body.run_name:
        tags = _special_tags(connection, caller, row, {NAME_TAG: body.run_name})
        if tags:
            recording.log(connection, row.run_id, attempt=row.attempt or 0, tags=tags)
    if body.status is None:
        return
    if isinstance(caller, AttemptKey) or row.job_id is not None:
        records.update_run(connection, row.run_id, reported_status=body.status)
    if row.job_id is None or row.attempt is not None:
        recording.set_status(connection, row, body.status, at_s)


def _special_tags(connection: sa.Connection, caller: Caller, row: RunRow, tags: dict[str, str]) -> dict[str, str]:
    """Act on the tags that mean something (name, parent); return those that are just tags.

    A job's own run keeps the name and the parent that it was submitted with; what the script asked for is noted.
    """
    if not any(key in (NAME_TAG, PARENT_TAG) or key.startswith(RESERVED) for key in tags):
        return tags
    plain = dict(tags)
    if isinstance(caller, AttemptKey):
        for key in tags:
            _check_tag(key)
    is_jobs_own = row.job_id is not None and row.attempt is None
    name = plain.pop(NAME_TAG, None)
    if name is not None and is_jobs_own:
        plain[ASKED_NAME] = name
    elif name:
        recording.rename(connection, row.run_id, name[:250])
    parent = plain.pop(PARENT_TAG, None)
    if parent is not None and is_jobs_own:
        plain[ASKED_PARENT] = parent
    elif parent is not None:
        own_run(connection, caller, parent)
        recording.set_parent(connection, row.run_id, parent)
    return plain


def _check_tag(key: str) -> None:
    check_name("tag", key)
    if key.startswith(RESERVED):
        raise MlflowRefusal("INVALID_PARAMETER_VALUE", f"Tag {key!r}: names with `{RESERVED}` are nightlab's own.")


def _shown(connection: sa.Connection, caller: Caller, run_id: str) -> tuple[RunContents, str]:
    contents = queries.run_contents(connection, run_id)
    return contents, shown_experiment(caller, contents)
