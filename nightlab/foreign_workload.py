"""Workload files of Databricks AI Runtime, made ours: what we have under another place is moved, what we have not
is dropped with a warning. Source: "Workload YAML reference" of its documentation.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]

IGNORED_AT_TOP = {
    "permissions": "every job belongs to the owner of this installation",
    "usage_policy_name": "there are no billing labels here; `project` says who is charged",
    "usage_policy_id": "there are no billing labels here; `project` says who is charged",
    "mlflow_experiment_directory": "the experiment is named by experiment_name alone",
    "mlflow_artifact_location": "artifacts go where the MLflow server keeps them",
    "containers": "jobs run as processes of this machine",
    "secrets": "secrets are not supported yet; the variables will not be set",
}
IGNORED_IN_COMPUTE = {
    "pool_id": "there are no pools",
    "node_pool_id": "there are no pools",
    "pool_name": "there are no pools",
}
IGNORED_IN_ENVIRONMENT = {
    "version": "the job runs in your own Python",
    "dependencies": "nothing is installed; the job runs in your own Python as it is",
    "docker_image": "jobs run as processes of this machine, in your own Python",
    "unity_catalog_image": "jobs run as processes of this machine, in your own Python",
}
IGNORED_IN_SNAPSHOT = {
    "include_paths": "the whole folder is used",
    "remote_volume": "snapshots are kept in nightlab's home folder",
    "git": "the folder is taken as it is now; check that commit out to run it",
}


def made_ours(fields: Fields) -> tuple[Fields, list[str]]:
    """A copy in our field names, and what was ignored and why."""
    ours = dict(fields)
    warnings: list[str] = []
    _drop(ours, IGNORED_AT_TOP, "", warnings)
    _move_priority(ours)
    for name, ignored in (("compute", IGNORED_IN_COMPUTE), ("environment", IGNORED_IN_ENVIRONMENT)):
        if isinstance(ours.get(name), dict):
            ours[name] = dict(ours[name])
            _drop(ours[name], ignored, f"{name}.", warnings)
    _unwrap_snapshot(ours, warnings)
    return ours, warnings


def _drop(fields: Fields, ignored: dict[str, str], prefix: str, warnings: list[str]) -> None:
    for name, why in ignored.items():
        if name in fields:
            del fields[name]
            warnings.append(f"{prefix}{name} is ignored: {why}")


def _move_priority(fields: Fields) -> None:
    """`compute.priority_class`, and before that `priority`, is our `priority_class`."""
    compute = fields.get("compute")
    found: list[Any] = []
    if isinstance(compute, dict) and "priority_class" in compute:
        fields["compute"] = {name: value for name, value in compute.items() if name != "priority_class"}
        found.append(compute["priority_class"])
    if "priority" in fields:
        found.append(fields.pop("priority"))
    if found:
        fields.setdefault("priority_class", found[0])


def _unwrap_snapshot(fields: Fields, warnings: list[str]) -> None:
    """`code_source: {type: snapshot, snapshot: {root_path}}` is our `code_source: {root_path, snapshot: auto}`."""
    source = fields.get("code_source")
    if not isinstance(source, dict) or not isinstance(source.get("snapshot"), dict):
        return
    snapshot = dict(source["snapshot"])
    _drop(snapshot, IGNORED_IN_SNAPSHOT, "code_source.snapshot.", warnings)
    rest = {name: value for name, value in source.items() if name not in ("type", "snapshot")}
    fields["code_source"] = {**snapshot, "snapshot": "auto", **rest}
