"""Unchanged scripts with the real MLflow client, through the gateway, into a real MLflow server."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from gateway_world import GatewayWorld, Script
from loopback import Forwarder, wait_for
from mlflow_server import MlflowServer

from runtime.tracking.rest import artifact_url

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]


class Record:
    """What MLflow has, by its own REST API."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60.0, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def run(self, mlflow_run_id: str | None) -> dict[str, Any]:
        answer = self._http.get("/api/2.0/mlflow/runs/get", params={"run_id": mlflow_run_id or ""})
        assert answer.status_code == 200, answer.text
        run: dict[str, Any] = answer.json()["run"]
        return run

    def tags(self, mlflow_run_id: str | None) -> dict[str, str]:
        return {tag["key"]: tag["value"] for tag in self.run(mlflow_run_id)["data"]["tags"]}

    def params(self, mlflow_run_id: str | None) -> dict[str, str]:
        return {item["key"]: item["value"] for item in self.run(mlflow_run_id)["data"].get("params", [])}

    def values(self, mlflow_run_id: str | None, key: str) -> list[float]:
        query = {"run_id": mlflow_run_id or "", "metric_key": key}
        points = self._http.get("/api/2.0/mlflow/metrics/get-history", params=query).json().get("metrics", [])
        return [float(point["value"]) for point in sorted(points, key=lambda point: point.get("step", 0))]

    def artifact(self, mlflow_run_id: str | None, path: str) -> bytes:
        root = self.run(mlflow_run_id)["info"]["artifact_uri"]
        return self._http.get(artifact_url(root, path)).content


@pytest.fixture
def record(mlflow_server: MlflowServer) -> Iterator[Record]:
    record = Record(mlflow_server.url)
    yield record
    record.close()


@pytest.fixture
def world(make_world: Callable[..., GatewayWorld], mlflow_server: MlflowServer) -> GatewayWorld:
    world = make_world(mlflow_server.url)
    wait_for(lambda: world.mirror is not None and world.mirror.state == "up", "never up", 60.0)
    return world


def start(world: GatewayWorld, script: Script, code: str) -> subprocess.Popen[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(world.home),
        "MLFLOW_TRACKING_URI": world.url,
        "MLFLOW_TRACKING_TOKEN": script.token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=world.home,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def run(world: GatewayWorld, script: Script, code: str, *, exit_code: int = 0) -> str:
    """Run a script to its end; its output."""
    process = start(world, script, code)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == exit_code, output
    return output


def test_a_script_that_only_logs(world: GatewayWorld, record: Record) -> None:
    script = world.job(parameters={"lr": 0.1})
    run(
        world,
        script,
        """
        import mlflow
        mlflow.log_param("depth", 3)
        mlflow.log_param("lr", 0.1)
        mlflow.log_metric("loss", 0.5)
        mlflow.log_metric("loss", 0.25, step=1)
        mlflow.log_metrics({"a": float("nan"), "b": float("inf")}, step=2)
        mlflow.set_tag("note", "x")
        """,
    )
    world.end("j1")
    world.wait_mirrored(60.0)
    row = world.run(script.run_id).row
    assert (row.status, row.reported_status) == ("FINISHED", "FINISHED")
    assert world.children() == []
    assert record.params(row.mlflow_run_id) == {"lr": "0.1", "depth": "3"}
    assert record.values(row.mlflow_run_id, "loss") == [0.5, 0.25]
    assert record.tags(row.mlflow_run_id)["note"] == "x"
    assert record.run(row.mlflow_run_id)["info"]["status"] == "FINISHED"


def test_a_script_that_chooses_its_experiment_and_opens_two_runs(world: GatewayWorld, record: Record) -> None:
    script = world.job("j2")
    output = run(
        world,
        script,
        """
        import mlflow
        mlflow.set_experiment("mine")
        with mlflow.start_run(run_name="first") as first:
            mlflow.log_metric("loss", 1.0)
        with mlflow.start_run(run_name="second"):
            mlflow.log_metric("loss", 2.0)
        with mlflow.start_run(run_id=first.info.run_id):   # continued, in the experiment that the script knows
            mlflow.log_metric("loss", 3.0, step=1)
        found = mlflow.search_runs(experiment_names=["mine"], order_by=["metrics.loss DESC"], output_format="list")
        print("FOUND", [run.data.metrics["loss"] for run in found])
        print("READ", mlflow.get_run(first.info.run_id).data.metrics)
        """,
    )
    assert "FOUND [3.0, 2.0]" in output
    assert "READ {'loss': 3.0}" in output
    world.wait_mirrored(60.0)
    own, (child,) = world.run(script.run_id), world.children("j2")
    assert record.tags(own.row.mlflow_run_id)["nightlab.asked_experiment"] == "mine"
    assert record.values(own.row.mlflow_run_id, "loss") == [1.0, 3.0]
    assert record.values(child.mlflow_run_id, "loss") == [2.0]
    info = record.run(child.mlflow_run_id)["info"]
    assert (info["run_name"], info["status"]) == ("second", "FINISHED")
    assert info["experiment_id"] == own.row.mlflow_experiment_id
    assert record.tags(child.mlflow_run_id)["mlflow.parentRunId"] == own.row.mlflow_run_id


def test_nested_runs(world: GatewayWorld, record: Record) -> None:
    script = world.job("j3")
    run(
        world,
        script,
        """
        import mlflow
        with mlflow.start_run():
            for fold in range(2):
                with mlflow.start_run(nested=True, run_name=f"fold-{fold}"):
                    mlflow.log_metric("acc", fold)
                    with mlflow.start_run(nested=True, run_name=f"inner-{fold}"):
                        mlflow.log_metric("acc", 10 + fold)
        """,
    )
    world.wait_mirrored(60.0)
    children = {child.run_name: child for child in world.children("j3")}
    assert sorted(children) == ["fold-0", "fold-1", "inner-0", "inner-1"]
    parent = record.tags(children["inner-1"].mlflow_run_id)["mlflow.parentRunId"]
    assert parent == children["fold-1"].mlflow_run_id
    assert record.values(children["inner-1"].mlflow_run_id, "acc") == [11.0]


def test_an_exception_is_reported_and_the_job_decides(world: GatewayWorld) -> None:
    script = world.job("j4")
    world.status("j4", "RUNNING")
    run(
        world,
        script,
        """
        import mlflow
        with mlflow.start_run():
            mlflow.log_metric("loss", 1.0)
            raise RuntimeError("broken")
        """,
        exit_code=1,
    )
    row = world.run(script.run_id).row
    assert (row.status, row.reported_status) == ("RUNNING", "FAILED")


def test_sklearn_autolog_with_its_model(world: GatewayWorld, record: Record) -> None:
    script = world.job("j5")
    output = run(
        world,
        script,
        """
        import mlflow, mlflow.sklearn
        mlflow.sklearn.autolog()
        from sklearn.linear_model import LogisticRegression
        from sklearn.datasets import load_iris
        x, y = load_iris(return_X_y=True)
        with mlflow.start_run():
            model = LogisticRegression(max_iter=200).fit(x, y)
            logged = mlflow.last_logged_model()
            print("MODEL", logged.model_id, logged.source_run_id)
            print("PREDICTS", mlflow.sklearn.load_model(logged.model_uri).predict(x[:1]))
        """,
    )
    assert f" {script.run_id}" in output  # the model names the run by the id that the script knows
    assert "PREDICTS [0]" in output
    world.wait_mirrored(60.0)
    row = world.run(script.run_id).row
    run_there = record.run(row.mlflow_run_id)
    assert record.params(row.mlflow_run_id)["max_iter"] == "200"
    assert record.values(row.mlflow_run_id, "training_accuracy_score")[0] > 0.9
    assert run_there["inputs"]["dataset_inputs"]
    assert run_there["outputs"]["model_outputs"]


def test_artifacts_both_ways(world: GatewayWorld, record: Record) -> None:
    script = world.job("j6")
    output = run(
        world,
        script,
        """
        import mlflow
        mlflow.log_text("hello", "notes/a.txt")
        mlflow.log_dict({"x": 1}, "b.json")
        mlflow.log_table({"q": [1]}, "table.json")
        mlflow.log_table({"q": [2]}, "table.json")     # reads what is there, and writes it back longer
        uri = mlflow.get_artifact_uri()
        print("TEXT", mlflow.artifacts.load_text(uri + "/notes/a.txt"))
        run_id = mlflow.active_run().info.run_id
        print("LIST", sorted(f.path for f in mlflow.artifacts.list_artifacts(run_id=run_id)))
        """,
    )
    assert "TEXT hello" in output
    assert "LIST ['b.json', 'notes', 'table.json']" in output
    world.wait_mirrored(60.0)
    row = world.run(script.run_id).row
    assert record.artifact(row.mlflow_run_id, "notes/a.txt") == b"hello"
    assert b"[2]" in record.artifact(row.mlflow_run_id, "table.json")


def test_an_attempt_that_is_over_gets_a_final_error(world: GatewayWorld) -> None:
    script = world.job("j7")
    world.attempt("j7", 2)
    output = run(world, script, 'import mlflow; mlflow.log_metric("loss", 1.0)', exit_code=1)
    assert "Attempt 1 of job j7 is over" in output
    assert world.points(script.run_id) == []


def test_a_resumed_script_goes_on_in_the_same_runs(world: GatewayWorld, record: Record) -> None:
    code = """
        import mlflow, os
        attempt = {attempt}
        with mlflow.start_run():
            mlflow.log_param("host", f"machine-{attempt}")
            mlflow.log_metric("loss", 1.0 / attempt, step=attempt)
            with mlflow.start_run(nested=True, run_name="fold"):
                mlflow.log_metric("acc", attempt, step=attempt)
    """
    script = world.job("j8")
    run(world, script, code.replace("{attempt}", "1", 1))
    run(world, world.attempt("j8", 2), code.replace("{attempt}", "2", 1))
    world.end("j8")
    world.wait_mirrored(60.0)
    own, (fold,) = world.run(script.run_id).row, world.children("j8")
    assert record.values(own.mlflow_run_id, "loss") == [1.0, 0.5]
    assert record.values(fold.mlflow_run_id, "acc") == [1.0, 2.0]
    assert record.params(own.mlflow_run_id)["host"] == "machine-1"
    assert record.tags(own.mlflow_run_id)["nightlab.ignored_param.host"] == "machine-2"


def test_mlflow_away_at_the_start_and_in_between_loses_nothing(
    make_world: Callable[..., GatewayWorld], mlflow_server: MlflowServer, record: Record
) -> None:
    forwarder = Forwarder(mlflow_server.url)
    world = make_world(forwarder.url)
    script = world.job("j9")
    process = start(
        world,
        script,
        """
        import mlflow, time
        for step in range(40):
            mlflow.log_metric("loss", step, step=step)
            mlflow.log_text(str(step), f"{step}.txt")
            time.sleep(0.1)
        """,
    )
    wait_for(lambda: len(world.points(script.run_id)) > 5, "no metrics", 60.0)
    forwarder.open()
    wait_for(lambda: world.run(script.run_id).row.mlflow_run_id, "never mirrored", 60.0)
    forwarder.close()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    forwarder.open()
    world.end("j9")
    world.wait_mirrored(120.0)
    row = world.run(script.run_id).row
    assert record.values(row.mlflow_run_id, "loss") == [float(step) for step in range(40)]
    assert [record.artifact(row.mlflow_run_id, f"{step}.txt") for step in (0, 39)] == [b"0", b"39"]
    assert record.run(row.mlflow_run_id)["info"]["status"] == "FINISHED"
    forwarder.close()


@pytest.mark.kills
def test_killing_mlflow_loses_and_doubles_nothing(
    world: GatewayWorld, mlflow_server: MlflowServer, record: Record
) -> None:
    scripts = [world.job(f"k{number}") for number in range(5)]
    for step in range(20):
        for script in scripts:
            script.log("loss", float(step), step)
        if step == 10:
            mlflow_server.kill()
    for number in range(5):
        world.end(f"k{number}")
    mlflow_server.start()
    world.wait_mirrored(120.0)
    for script in scripts:
        row = world.run(script.run_id).row
        assert record.values(row.mlflow_run_id, "loss") == [float(step) for step in range(20)]
        assert record.run(row.mlflow_run_id)["info"]["status"] == "FINISHED"
    assert world.mirror is not None
    names = [script.run_id for script in scripts]
    for run_id in names:
        found = record._http.post(
            "/api/2.0/mlflow/runs/search",
            json={
                "experiment_ids": [world.run(run_id).row.mlflow_experiment_id],
                "filter": f"tags.`nightlab.run_id` = '{run_id}'",
            },
        ).json()
        assert len(found["runs"]) == 1
