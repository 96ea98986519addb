"""Run and experiment ids in text, ours to MLflow's and back. Ids of neither side are left as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from runtime.store.records import RunRow

from . import experiments, queries

_RUN_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_EXPERIMENT_KEYS = frozenset({"experiment_id", "experiment_ids"})


def run_ids_in(text: str) -> list[str]:
    """What looks like a run id, each once."""
    return list(dict.fromkeys(_RUN_ID.findall(text)))


def our_runs_in(connection: sa.Connection, text: str) -> dict[str, RunRow]:
    """The runs of ours that a text names."""
    return queries.runs_by_id(connection, run_ids_in(text))


def to_mlflow(text: str, runs: Mapping[str, RunRow], roots: Mapping[str, str]) -> str:
    """Replace our run ids by MLflow's, and our artifact addresses by the real ones (`roots`, by our run id)."""
    for run_id, root in roots.items():
        text = text.replace(f"mlflow-artifacts:/nightlab/{run_id}/artifacts", root)
    mapping = {run_id: row.mlflow_run_id for run_id, row in runs.items() if row.mlflow_run_id is not None}
    return _RUN_ID.sub(lambda found: mapping.get(found[0], found[0]), text)


def from_mlflow(connection: sa.Connection, text: str) -> str:
    """Replace MLflow's run ids by ours, where the run is ours."""
    ids = run_ids_in(text)
    if not ids:
        return text
    mapping = {mlflow_id: row.run_id for mlflow_id, row in queries.runs_by_mlflow_id(connection, ids).items()}
    return _RUN_ID.sub(lambda found: mapping.get(found[0], found[0]), text)


def experiments_to_mlflow(connection: sa.Connection, text: str, own: RunRow | None) -> str:
    """Replace the gateway's experiment ids in a JSON body by MLflow's.

    For a job (`own` is its run) every id of ours means the experiment in which its run is, whichever the script asked
    for. Text that is no JSON object stays as it is.
    """
    if not any(key in text for key in _EXPERIMENT_KEYS):
        return text
    try:
        body = json.loads(text)
    except ValueError:
        return text

    def real(identifier: Any) -> Any:
        name = experiments.name_of(connection, str(identifier))
        if name is None:
            return identifier
        if own is not None:
            return own.mlflow_experiment_id or identifier
        return queries.mlflow_experiment(connection, name) or identifier

    return json.dumps(_replace(body, real))


def _replace(value: Any, real: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: ([real(item) for item in inner] if isinstance(inner, list) else real(inner))
            if key in _EXPERIMENT_KEYS
            else _replace(inner, real)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_replace(item, real) for item in value]
    return value
