"""The statements of tracking on PostgreSQL: one walk through recording, searching, resuming and mirroring."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from gateway_world import GatewayWorld
from loopback import wait_for
from standin_mlflow import StandIn

from runtime.store.engine import open_engine
from runtime.tracking import queries, runs

pytestmark = pytest.mark.postgres
POSTGRES_URL = "NIGHTLAB_TEST_POSTGRES_URL"


@pytest.fixture
def world(tmp_path: Path, standin: StandIn) -> Iterator[GatewayWorld]:
    if POSTGRES_URL not in os.environ:
        pytest.skip(f"{POSTGRES_URL} is not set")
    schema = f"test_{uuid4().hex}"
    url = sa.make_url(os.environ[POSTGRES_URL])
    owner = open_engine(url)
    with owner.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    own = url.update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(hide_password=False)
    with GatewayWorld(tmp_path, mlflow_url=standin.url, database_url=own) as world:
        yield world
    with owner.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    owner.dispose()


def test_recording_searching_resuming_and_mirroring(world: GatewayWorld, standin: StandIn) -> None:
    script = world.job(parameters={"lr": 0.1})
    wait_for(lambda: world.mirror is not None and world.mirror.state == "up", "never up")
    mine = script.get("experiments/get-by-name", experiment_name="mine").json()["experiment"]["experiment_id"]
    script.create_run(experiment_id=mine)
    fold = script.create_run("fold")
    for step, value in enumerate((3.0, 2.0, "NaN")):
        script.log("loss", value, step)
    assert script.log("poison", 1.0).status_code == 200
    root = f"/api/2.0/mlflow-artifacts/artifacts/nightlab/{script.run_id}/artifacts"
    assert script.http.put(f"{root}/a.txt", content=b"x").status_code == 200
    again = world.attempt("j1", 2)
    assert again.create_run() == script.run_id
    assert again.create_run("fold") == fold
    assert again.post("runs/log-parameter", run_id=script.run_id, key="lr", value="0.2").status_code == 200
    found = again.post("runs/search", experiment_ids=[mine], filter="params.lr = '0.1'").json()["runs"]
    assert [run["info"]["run_id"] for run in found] == [script.run_id]
    assert math.isnan(next(p.value for p in world.run(script.run_id).latest if p.key == "loss"))
    missing = world.store.read_blocking(lambda c: runs.missing_or_non_finite(c, script.run_id, ["loss", "acc"]))
    assert missing == (("acc",), ("loss",))
    world.end("j1")
    world.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [3.0, 2.0, "NaN"]
    assert standin.by_name("fold").tags["mlflow.parentRunId"] == standin.by_name("j1").run_id
    assert world.store.read_blocking(queries.count_parked) == 1
    assert world.store.read_blocking(lambda c: queries.ended_runs(c, limit=9))[0].run_id == fold
