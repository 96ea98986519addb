"""Carrying out one delivery: the calls to MLflow, then the note in the store that they were made."""

from __future__ import annotations

from typing import Any, assert_never

import sqlalchemy as sa

from runtime.store import records
from runtime.store.records import RunRow

from . import queries, translate
from .delivery import Create, Delivery, Log, Other, Status
from .ports import Store
from .recording import PARENT_TAG
from .rest import MlflowFailed, MlflowRefused, MlflowRest, MlflowTrouble, RemoteRun, metric_json, pairs
from .spool import Spool

RUN_TAG = "nightlab.run_id"
_CACHE = 10_000


class NotYet(MlflowTrouble):
    """It must wait for another run's rows."""


class Sender:
    """Sends deliveries; every method raises `MlflowTrouble` and leaves the rows where they are then."""

    def __init__(self, *, store: Store, rest: MlflowRest, spool: Spool) -> None:
        self._store = store
        self._rest = rest
        self._spool = spool
        self._experiments: dict[str, str] = {}
        self._roots: dict[str, str] = {}

    async def send(self, run_id: str, delivery: Delivery) -> None:
        """Make the calls of one delivery, then drop its rows."""
        row = await self._store.read(lambda connection: records.get_run(connection, run_id))
        if row is None:
            raise MlflowRefused("RESOURCE_DOES_NOT_EXIST", "the run is not in the runtime's own tables")
        if isinstance(delivery, Create):
            await self._create(row, delivery)
            return
        if row.mlflow_run_id is None:
            raise MlflowRefused("RESOURCE_DOES_NOT_EXIST", "the run itself could not be created in MLflow")
        match delivery:
            case Log():
                await self._log(row.mlflow_run_id, delivery)
            case Status():
                body: dict[str, Any] = {"run_id": row.mlflow_run_id, "status": delivery.status}
                if delivery.end_ms is not None:
                    body["end_time"] = delivery.end_ms
                await self._rest.post("runs/update", body)
            case Other():
                await self._other(row.mlflow_run_id, delivery)
            case _:
                assert_never(delivery)
        await self._drop(delivery)
        if isinstance(delivery, Other) and delivery.kind == "artifact":
            self._spool.remove(delivery.payload["file"])

    async def artifact_root(self, mlflow_run_id: str) -> str:
        """The artifact address of a run of MLflow's; asked for once."""
        if mlflow_run_id not in self._roots:
            run, _ = await self._rest.run(mlflow_run_id)
            self._remember_root(run)
        return self._roots[mlflow_run_id]

    def _remember_root(self, run: RemoteRun) -> None:
        if len(self._roots) >= _CACHE:
            self._roots.clear()
        self._roots[run.run_id] = run.artifact_uri

    async def _create(self, row: RunRow, delivery: Create) -> None:
        """Create the run, unless a try whose answer was lost has done so."""
        if row.mlflow_run_id is not None:
            await self._drop(delivery)
            return
        tags = dict(delivery.tags)
        parent = await self._parent(tags.pop(PARENT_TAG, None))
        if parent is not None:
            tags[PARENT_TAG] = parent
        experiment_id = await self._experiment(row.experiment_name)
        outbox_row = delivery.rows[0]
        run = None
        if outbox_row.n_tries:
            run = await self._rest.find_run(experiment_id, tag=RUN_TAG, value=row.run_id)
        else:  # noted before the call: after a crash in between, the next try looks first
            await self._store.write(lambda connection: records.fail_outbox(connection, outbox_row.id, "asked for"))
        if run is None:
            run = await self._create_in(experiment_id, row, tags)
        self._remember_root(run)
        await self._store.write(lambda connection: _created(connection, row.run_id, run, delivery))

    async def _create_in(self, experiment_id: str, row: RunRow, tags: dict[str, str]) -> RemoteRun:
        try:
            return await self._rest.create_run(
                experiment_id=experiment_id,
                run_name=row.run_name,
                start_ms=round(row.created_at * 1000),
                user=tags.get("mlflow.user", ""),
                tags=tags,
            )
        except MlflowRefused:
            self._experiments.pop(row.experiment_name, None)  # it may be gone: look again on the next try
            raise

    async def _experiment(self, name: str) -> str:
        if name not in self._experiments:
            self._experiments[name] = await self._rest.experiment_id(name)
        return self._experiments[name]

    async def _parent(self, run_id: str | None) -> str | None:
        """MLflow's id of the parent; None when there is none, or none that MLflow will ever have."""
        if run_id is None:
            return None
        row, n_waiting = await self._store.read(
            lambda connection: (records.get_run(connection, run_id), queries.n_waiting(connection, [run_id]))
        )
        if row is None:
            return None
        if row.mlflow_run_id is None and n_waiting:
            raise NotYet(f"the parent {run_id} comes first")
        return row.mlflow_run_id

    async def _log(self, mlflow_run_id: str, log: Log) -> None:
        tags = dict(log.tags)
        if PARENT_TAG in tags:
            parent = await self._parent(tags.pop(PARENT_TAG))
            if parent is not None:
                tags[PARENT_TAG] = parent
        body = {
            "run_id": mlflow_run_id,
            "metrics": metric_json(log.metrics),
            "params": pairs(log.params),
            "tags": pairs(tags),
        }
        await self._rest.post("runs/log-batch", body)

    async def _other(self, mlflow_run_id: str, other: Other) -> None:
        payload = other.payload
        match other.kind:
            case "untag":
                await self._untag(mlflow_run_id, payload["key"])
            case "rename":
                await self._rest.post("runs/update", {"run_id": mlflow_run_id, "run_name": payload["name"]})
            case "call":
                await self._call(payload["path"], payload["body"])
            case "artifact":
                await self._artifact(mlflow_run_id, payload)
            case unknown:
                raise MlflowRefused("INVALID_PARAMETER_VALUE", f"outbox row of unknown kind {unknown!r}")

    async def _untag(self, mlflow_run_id: str, key: str) -> None:
        try:
            await self._rest.post("runs/delete-tag", {"run_id": mlflow_run_id, "key": key})
        except MlflowRefused as refused:
            if refused.code != "RESOURCE_DOES_NOT_EXIST":
                raise

    async def _call(self, path: str, text: str) -> None:
        rows = await self._store.read(lambda connection: translate.our_runs_in(connection, text))
        roots = {
            run_id: await self.artifact_root(row.mlflow_run_id)
            for run_id, row in rows.items()
            if row.mlflow_run_id is not None and "mlflow-artifacts:/nightlab/" in text
        }
        await self._rest.post_text(path, translate.to_mlflow(text, rows, roots))

    async def _artifact(self, mlflow_run_id: str, payload: dict[str, Any]) -> None:
        root = await self.artifact_root(mlflow_run_id)
        try:
            await self._rest.put_artifact(root, payload["path"], self._spool.path(payload["file"]))
        except FileNotFoundError as error:
            raise MlflowRefused("DATA_LOSS", f"the spooled file {error.filename} is gone") from error
        except OSError as error:
            raise MlflowFailed(f"the spooled file can not be read: {error.strerror}") from error

    async def _drop(self, delivery: Delivery) -> None:
        ids = [row.id for row in delivery.rows]
        await self._store.write(lambda connection: records.drop_outbox(connection, ids))


def _created(connection: sa.Connection, run_id: str, run: RemoteRun, delivery: Create) -> None:
    records.set_mlflow_ids(connection, run_id, mlflow_run_id=run.run_id, mlflow_experiment_id=run.experiment_id)
    records.drop_outbox(connection, [row.id for row in delivery.rows])
