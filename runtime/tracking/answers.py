"""What the gateway answers: runs and experiments as MLflow renders them, and errors in MLflow's own form.

The client retries 408, 429, 500, 502, 503 and 504 by itself; a final refusal must use another status.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from runtime.store.records import MetricRow, RunRow

STATUS_BY_CODE = {
    "INVALID_PARAMETER_VALUE": 400,
    "RESOURCE_ALREADY_EXISTS": 400,
    "MALFORMED_REQUEST": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "RESOURCE_DOES_NOT_EXIST": 404,
    "ENDPOINT_NOT_FOUND": 404,
    "RESOURCE_CONFLICT": 409,
    "NOT_IMPLEMENTED": 501,
    "TEMPORARILY_UNAVAILABLE": 503,
    "RESOURCE_LIMIT_EXCEEDED": 507,
}


class MlflowRefusal(Exception):
    """A request that is refused; rendered as `{"error_code", "message"}` with a fitting HTTP status."""

    def __init__(self, code: str, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return STATUS_BY_CODE[self.code]


def refusal_response(refusal: MlflowRefusal) -> Response:
    headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
    body = json.dumps({"error_code": refusal.code, "message": refusal.message})
    return Response(body, refusal.status, headers, "application/json")


def json_response(body: Mapping[str, Any]) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), media_type="application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContents:
    """A run with everything logged to it."""

    row: RunRow
    params: Mapping[str, str]
    tags: Mapping[str, str]
    latest: Sequence[MetricRow]
    """One point a metric: that of the highest step, the newest of it."""


def artifact_root(run_id: str) -> str:
    """The artifact address that scripts are given; rewritten to the real one when files are forwarded."""
    return f"mlflow-artifacts:/nightlab/{run_id}/artifacts"


def number(value: float) -> float | str:
    """A float as protobuf's JSON form writes it: NaN and infinities are strings."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def point_json(point: MetricRow) -> dict[str, Any]:
    return {
        "key": point.key,
        "value": number(point.value),
        "timestamp": round(point.at_s * 1000),
        "step": point.step,
    }


def run_info_json(row: RunRow, *, experiment_id: str, user: str = "") -> dict[str, Any]:
    info: dict[str, Any] = {
        "run_id": row.run_id,
        "run_uuid": row.run_id,
        "run_name": row.run_name,
        "experiment_id": experiment_id,
        "user_id": user,
        "status": row.status,
        "start_time": round(row.created_at * 1000),
        "artifact_uri": artifact_root(row.run_id),
        "lifecycle_stage": "active",
    }
    if row.ended_at is not None:
        info["end_time"] = round(row.ended_at * 1000)
    return info


def run_json(run: RunContents, *, experiment_id: str) -> dict[str, Any]:
    return {
        "info": run_info_json(run.row, experiment_id=experiment_id, user=run.tags.get("mlflow.user", "")),
        "data": {
            "metrics": [point_json(point) for point in run.latest],
            "params": [{"key": key, "value": value} for key, value in run.params.items()],
            "tags": [{"key": key, "value": value} for key, value in run.tags.items()],
        },
        "inputs": {},
        "outputs": {},
    }


def experiment_json(experiment_id: str, name: str) -> dict[str, Any]:
    return {
        "experiment_id": experiment_id,
        "name": name,
        "artifact_location": "mlflow-artifacts:/nightlab",
        "lifecycle_stage": "active",
    }
