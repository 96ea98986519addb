"""A small stand-in for the MLflow tracking server: real HTTP, its rules on runs, and faults on demand."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from loopback import Served, wait_for

API = "/api/2.0/mlflow/"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


@dataclass
class Run:
    run_id: str
    experiment_id: str
    name: str
    start_ms: int
    tags: dict[str, str]
    status: str = "RUNNING"
    end_ms: int | None = None
    params: dict[str, str] = field(default_factory=dict)
    metrics: list[tuple[str, Any, int, int]] = field(default_factory=list)

    def values(self, key: str) -> list[Any]:
        return [value for name, value, _, _ in self.metrics if name == key]


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str = "refused") -> None:
        self.status, self.code, self.message = status, code, message


class StandIn:
    """`fault(path, body)` may return a response to answer with, before or instead of carrying the call out."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.experiments: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.fault: Callable[[str, dict[str, Any]], Response | None] = lambda path, body: None
        self.lose_answers: Callable[[str], bool] = lambda path: False
        """Paths whose call is carried out, and answered with 504."""
        self.hold_answers: Callable[[str], bool] = lambda path: False
        """Paths whose call is carried out, and not answered as long as this is true."""
        self._served: Served | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def reset(self) -> None:
        """Up, empty and without faults."""
        for kept in (self.runs, self.experiments, self.deleted, self.files, self.calls):
            kept.clear()
        self.fault = lambda path, body: None
        self.lose_answers = lambda path: False
        self.hold_answers = lambda path: False
        if self._served is None:
            self.start()

    def start(self) -> None:
        """Come up, at the same address as before."""
        self._served = Served(self._app(), self._port)
        self._port = self._served.port
        self._served.start()

    def stop(self) -> None:
        if self._served is not None:
            self._served.stop()
            self._served = None

    def by_name(self, name: str) -> Run:
        """The only run of that name; waits for it."""
        found = wait_for(lambda: [run for run in self.runs.values() if run.name == name], f"no run {name!r} arrived")
        assert len(found) == 1, f"{len(found)} runs named {name!r}"
        return found[0]

    def count(self, path: str) -> int:
        return sum(1 for called, _ in self.calls if called == path)

    def _app(self) -> FastAPI:
        app = FastAPI()
        app.add_api_route("/health", lambda: PlainTextResponse("OK"), methods=["GET"])
        app.add_api_route(API + "{path:path}", self._api, methods=["GET", "POST", "PATCH"])
        app.add_api_route(ARTIFACTS, self._list, methods=["GET"])
        app.add_api_route(ARTIFACTS + "/{path:path}", self._artifact, methods=["GET", "PUT"])
        return app

    async def _api(self, path: str, request: Request) -> Response:
        raw = await request.body()
        body = json.loads(raw) if raw else dict(request.query_params)
        self.calls.append((path, body))
        answer = self.fault(path, body)
        if answer is not None:
            return answer
        try:
            result = self._carry_out(path, body)
        except Refused as refused:
            return JSONResponse({"error_code": refused.code, "message": refused.message}, refused.status)
        while self.hold_answers(path) and not await request.is_disconnected():
            await asyncio.sleep(0.01)
        if self.lose_answers(path):
            return PlainTextResponse("gateway timeout", 504)
        return JSONResponse(result)

    def _carry_out(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        match path:
            case "experiments/create":
                if body["name"] in self.experiments:
                    raise Refused(400, "RESOURCE_ALREADY_EXISTS")
                self.experiments[body["name"]] = str(len(self.experiments) + 1)
                return {"experiment_id": self.experiments[body["name"]]}
            case "experiments/get-by-name":
                identifier = self.experiments[body["experiment_name"]]
                stage = "deleted" if identifier in self.deleted else "active"
                return {"experiment": {"experiment_id": identifier, "lifecycle_stage": stage}}
            case "experiments/restore":
                self.deleted.discard(body["experiment_id"])
                return {}
            case "runs/create":
                return {"run": self._create(body)}
            case "runs/get":
                return {"run": self._json(self._run(body))}
            case "runs/search":
                return {"runs": self._search(body)}
            case "runs/update":
                run = self._run(body)
                run.status = body.get("status", run.status)
                run.end_ms = body.get("end_time", run.end_ms)
                run.name = body.get("run_name", run.name)
                return {"run_info": self._json(run)["info"]}
            case "runs/log-batch":
                return self._log(self._run(body), body)
            case "runs/delete-tag":
                self._run(body).tags.pop(body["key"])
                return {}
            case "metrics/get-history":
                points = [point for point in self._run(body).metrics if point[0] == body["metric_key"]]
                return {"metrics": [dict(zip(("key", "value", "timestamp", "step"), p, strict=True)) for p in points]}
            case "runs/log-inputs" | "runs/outputs":
                self._run(body)
                return {}
            case "logged-models":
                self._run({"run_id": body["source_run_id"]})
                return {"model": {"info": {"model_id": "m-1", "source_run_id": body["source_run_id"]}}}
        raise Refused(404, "ENDPOINT_NOT_FOUND")

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["experiment_id"] in self.deleted:
            raise Refused(400, "INVALID_PARAMETER_VALUE", "the experiment is deleted")
        if body["experiment_id"] not in self.experiments.values():
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "no such experiment")
        run = Run(
            run_id=uuid.uuid4().hex,
            experiment_id=body["experiment_id"],
            name=body["run_name"],
            start_ms=body["start_time"],
            tags={tag["key"]: tag["value"] for tag in body["tags"]},
        )
        self.runs[run.run_id] = run
        return self._json(run)

    def _log(self, run: Run, body: dict[str, Any]) -> dict[str, Any]:
        if len(body["metrics"]) > 1000 or len(body["params"]) > 100 or len(body["tags"]) > 100:
            raise Refused(400, "INVALID_PARAMETER_VALUE", "too many")
        for param in body["params"]:
            if run.params.get(param["key"], param["value"]) != param["value"]:
                raise Refused(400, "INVALID_PARAMETER_VALUE", "params are immutable")
        for metric in body["metrics"]:
            if isinstance(metric["value"], float) and metric["value"] != metric["value"]:
                raise Refused(400, "MALFORMED_REQUEST", "NaN must be quoted")
            if metric["key"].startswith("poison"):
                raise Refused(400, "INVALID_PARAMETER_VALUE", "this one is never taken")
            point = (metric["key"], metric["value"], metric["timestamp"], metric["step"])
            if point not in run.metrics:
                run.metrics.append(point)
        run.params |= {param["key"]: param["value"] for param in body["params"]}
        run.tags |= {tag["key"]: tag["value"] for tag in body["tags"]}
        return {}

    def _search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        key, _, value = body["filter"].removeprefix("tags.`").partition("` = ")
        found = [run for run in self.runs.values() if run.tags.get(key) == value.strip("'")]
        return [self._json(run) for run in found if run.experiment_id in body["experiment_ids"]]

    def _run(self, body: dict[str, Any]) -> Run:
        if body["run_id"] not in self.runs:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Run with id={body['run_id']} not found")
        return self.runs[body["run_id"]]

    def _json(self, run: Run) -> dict[str, Any]:
        info = {
            "run_id": run.run_id,
            "experiment_id": run.experiment_id,
            "status": run.status,
            "run_name": run.name,
            "artifact_uri": f"mlflow-artifacts:/{run.experiment_id}/{run.run_id}/artifacts",
        }
        if run.end_ms is not None:
            info["end_time"] = run.end_ms  # type: ignore[assignment]
        data = {
            "params": [{"key": key, "value": value} for key, value in run.params.items()],
            "tags": [{"key": key, "value": value} for key, value in run.tags.items()],
            "metrics": [{"key": key, "value": value} for key, value, _, _ in run.metrics],
        }
        return {"info": info, "data": data}

    async def _artifact(self, path: str, request: Request) -> Response:
        if request.method == "PUT":
            self.files[path] = await request.body()
            return JSONResponse({})
        if path not in self.files:
            return JSONResponse({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no file"}, 404)
        return Response(self.files[path])

    async def _list(self, path: str) -> Response:
        heads = {name[len(path) + 1 :].partition("/") for name in self.files if name.startswith(path + "/")}
        return JSONResponse({"files": [{"path": head, "is_dir": bool(slash)} for head, slash, _ in heads]})
