"""The gateway's calls that only read: runs, metric histories, searches, experiments.

Runs of ours are read from our tables, at once; others are asked of MLflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response

from runtime.engines.contract import AttemptKey
from runtime.store import records

from . import experiments, queries, search
from .answers import MlflowRefusal, RunContents, experiment_json, json_response, point_json, run_json
from .door import Caller, Door
from .passthrough import Passthrough
from .ports import Store
from .requests import (
    CreateExperiment,
    GetExperiment,
    GetExperimentByName,
    GetHistory,
    GetRun,
    SearchRuns,
    parse,
    parse_query,
)

Call = Callable[[Request], Any]


class Reading:
    def __init__(self, *, store: Store, door: Door, passthrough: Passthrough) -> None:
        self._store = store
        self._door = door
        self._passthrough = passthrough

    def calls(self) -> Sequence[tuple[str, list[str], Call]]:
        """Path, methods, function."""
        return (
            ("runs/get", ["GET"], self.get_run),
            ("runs/search", ["POST"], self.search_runs),
            ("metrics/get-history", ["GET"], self.get_history),
            ("experiments/get", ["GET"], self.get_experiment),
            ("experiments/get-by-name", ["GET"], self.get_experiment_by_name),
            ("experiments/create", ["POST"], self.create_experiment),
            ("experiments/search", ["GET", "POST"], self.search_experiments),
        )

    async def get_run(self, request: Request) -> Response:
        caller = self._door.caller(request)
        wanted = parse_query(GetRun, dict(request.query_params))
        contents = await self._store.read(lambda connection: queries.find_contents(connection, wanted.run_id))
        if contents is None:
            return await self._elsewhere(request, caller, f"Run with id={wanted.run_id} not found")
        return json_response({"run": run_json(contents, experiment_id=shown_experiment(caller, contents))})

    async def get_history(self, request: Request) -> Response:
        caller = self._door.caller(request)
        wanted = parse_query(GetHistory, dict(request.query_params))

        def read(connection: sa.Connection) -> list[records.MetricRow] | None:
            if records.get_run(connection, wanted.run_id) is None:
                return None
            return records.read_metrics(connection, wanted.run_id, keys=[wanted.metric_key])

        points = await self._store.read(read)
        if points is None:
            return await self._elsewhere(request, caller, f"Run with id={wanted.run_id} not found")
        points.sort(key=lambda point: (point.at_s, point.step))
        page, token = _page(points, wanted.page_token, wanted.max_results)
        return json_response({"metrics": [point_json(point) for point in page]} | token)

    async def search_runs(self, request: Request) -> Response:
        caller = self._door.caller(request)
        wanted = parse(SearchRuns, await request.body())
        if wanted.run_view_type == "DELETED_ONLY":
            return json_response({"runs": []})
        try:
            terms, orders = search.parse_filter(wanted.filter), search.parse_order(wanted.order_by)
            runs = await self._store.read(lambda connection: _candidates(connection, caller, wanted.experiment_ids))
            found = None if runs is None else search.select(runs, terms, orders)
        except search.NotSimple:
            found = None
        if found is None:
            return await self._passthrough.forward(request, caller)
        page, token = _page(found, wanted.page_token, wanted.max_results)
        shown = [run_json(run, experiment_id=shown_experiment(caller, run)) for run in page]
        return json_response({"runs": shown} | token)

    async def get_experiment(self, request: Request) -> Response:
        caller = self._door.caller(request)
        wanted = parse_query(GetExperiment, dict(request.query_params))
        name = await self._store.read(lambda connection: experiments.name_of(connection, wanted.experiment_id))
        if name is None:
            return await self._elsewhere(request, caller, f"No Experiment with id={wanted.experiment_id} exists")
        return json_response({"experiment": experiment_json(wanted.experiment_id, name)})

    async def get_experiment_by_name(self, request: Request) -> Response:
        """For a job every name exists: its runs stay where the job put them, whatever the script asks for."""
        caller = self._door.caller(request)
        name = parse_query(GetExperimentByName, dict(request.query_params)).experiment_name
        identifier = experiments.experiment_id(name)
        if await self._store.read(lambda connection: experiments.name_of(connection, identifier)) != name:
            if not isinstance(caller, AttemptKey):
                return await self._elsewhere(request, caller, f"Could not find experiment with name '{name}'")
            await self._store.write(lambda connection: experiments.register(connection, name))
        return json_response({"experiment": experiment_json(identifier, name)})

    async def create_experiment(self, request: Request) -> Response:
        """Creating one that exists is no error for a job: a later attempt runs the same line again."""
        caller = self._door.caller(request)
        name = parse(CreateExperiment, await request.body()).name

        def unit(connection: sa.Connection) -> str | None:
            known = experiments.name_of(connection, experiments.experiment_id(name)) == name
            if known and not isinstance(caller, AttemptKey):
                return None
            return experiments.register(connection, name)

        identifier = await self._store.write(unit)
        if identifier is None:
            raise MlflowRefusal("RESOURCE_ALREADY_EXISTS", f"Experiment '{name}' already exists.")
        return json_response({"experiment_id": identifier})

    async def search_experiments(self, request: Request) -> Response:
        """The experiments that hold runs of ours; filters are not looked at."""
        self._door.caller(request)
        names = await self._store.read(lambda connection: queries.experiment_names(connection, limit=1000))
        found = [experiment_json(experiments.experiment_id(name), name) for name in names]
        return json_response({"experiments": found})

    async def _elsewhere(self, request: Request, caller: Caller, not_found: str) -> Response:
        """Ask MLflow for what is not ours; without one it does not exist."""
        try:
            return await self._passthrough.forward(request, caller)
        except MlflowRefusal as refusal:
            if refusal.code == "NOT_IMPLEMENTED":
                raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", not_found) from refusal
            raise


def shown_experiment(caller: Caller, run: RunContents) -> str:
    """The experiment id in a run's info: for a job the one it asked for, so that its script finds what it expects."""
    asked = run.tags.get(queries.ASKED_EXPERIMENT)
    name = asked if asked is not None and isinstance(caller, AttemptKey) else run.row.experiment_name
    return experiments.experiment_id(name)


def _candidates(connection: sa.Connection, caller: Caller, experiment_ids: Sequence[str]) -> list[RunContents] | None:
    """Runs to search among; None when one of the experiments is not ours. For a job `0` means its own runs."""
    names = [experiments.name_of(connection, identifier) for identifier in experiment_ids]
    if None in names:
        return None
    wanted = [name for name in names if name is not None]
    rows = queries.runs_of_experiments(connection, wanted, limit=search.MAX_CANDIDATES)
    if isinstance(caller, AttemptKey) and experiments.DEFAULT_NAME in wanted:
        known = {row.run_id for row in rows}
        rows += [row for row in queries.runs_of_job(connection, caller.job_id) if row.run_id not in known]
    return search.contents(connection, rows)


def _page(items: Sequence[Any], token: str, size: int | None) -> tuple[Sequence[Any], dict[str, str]]:
    """A slice, and the token of the next when there is one; a token is a position."""
    if not token.isdecimal() and token:
        raise MlflowRefusal("INVALID_PARAMETER_VALUE", f"Invalid page token {token[:40]!r}.")
    start = int(token or 0)
    end = len(items) if size is None else start + size
    return items[start:end], {} if end >= len(items) else {"next_page_token": str(end)}
