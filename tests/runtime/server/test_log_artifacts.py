"""The output of ended attempts among the artifacts of their runs."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from lab import Lab, key, lab, spec, until
from mlflow_server import MlflowServer

from runtime.scheduling.policy import Policy
from runtime.server import log_artifacts
from runtime.server.log_artifacts import file_name
from runtime.tracking.rest import artifact_url

NOBODY = "http://127.0.0.1:9"
"""A tracking server that is away: artifacts wait in the spool."""


def artifacts(here: Lab, job_id: str) -> dict[str, int]:
    """Sizes by path, below `logs`, as the gateway lists them."""
    run_id = here.client.job(job_id).run_id
    found: dict[str, int] = {}

    def walk(folder: str) -> None:
        path = f"nightlab/{run_id}/artifacts/{folder}"
        answer = here.http.get("/api/2.0/mlflow-artifacts/artifacts", params={"path": path}, headers=here.auth)
        for item in answer.json()["files"]:
            if item["is_dir"]:
                walk(f"{folder}/{item['path']}")
            else:
                found[f"{folder}/{item['path']}"] = item["file_size"]

    walk("logs")
    return found


def test_the_output_of_each_attempt_and_rank_becomes_an_artifact(tmp_path: Path) -> None:
    with lab(tmp_path, mlflow_url=NOBODY, policy=Policy(retry_backoff_s=0.01)) as here:
        job = here.client.submit(spec())
        here.in_state(job.job_id, "running")
        here.do(lambda: here.engine.print(key(job.job_id), "hello\n"))
        here.do(lambda: here.engine.print(key(job.job_id), "of one\n", stream="1.err"))
        here.finish(job.job_id, exit_code=75)
        here.in_state(job.job_id, "running")
        until(lambda: here.client.job(job.job_id).attempts[-1].attempt == 2)
        here.do(lambda: here.engine.print(key(job.job_id, 2), "again\n"))
        here.finish(job.job_id, 2)
        until(lambda: len(artifacts(here, job.job_id)) == 3)
        assert artifacts(here, job.job_id) == {
            "logs/attempt_1/output.log": 6,
            "logs/attempt_1/rank_1.err.log": 7,
            "logs/attempt_2/output.log": 6,
        }


def test_a_long_output_is_kept_in_part(tmp_path: Path) -> None:
    with lab(tmp_path, mlflow_url=NOBODY) as here:
        job = here.client.submit(spec())
        here.in_state(job.job_id, "running")
        here.do(lambda: here.engine.print(key(job.job_id), "x" * 2 * log_artifacts.RANK_BYTES, stream="0"))
        here.finish(job.job_id)
        until(lambda: artifacts(here, job.job_id))
        assert artifacts(here, job.job_id)["logs/attempt_1/rank_0.log"] < log_artifacts.RANK_BYTES + 100


def test_the_stacks_of_a_hung_attempt_are_kept(tmp_path: Path) -> None:
    with lab(tmp_path, mlflow_url=NOBODY, hang_look_s=0.02) as here:
        job = here.client.submit(spec(hang_minutes=0.003))
        here.in_state(job.job_id, "failed")
        assert until(lambda: "logs/attempt_1/stacks.txt" in artifacts(here, job.job_id))


def test_names_of_files_tell_the_rank() -> None:
    assert [file_name(stream) for stream in ("main", "3", "3.err")] == ["output.log", "rank_3.log", "rank_3.err.log"]


@pytest.mark.acceptance
@pytest.mark.timeout(300)
def test_a_real_mlflow_gets_the_output_of_every_attempt_of_a_preempted_job(
    tmp_path: Path, mlflow_server: MlflowServer
) -> None:
    with lab(tmp_path, mlflow_url=mlflow_server.url, policy=Policy(retry_backoff_s=0.01)) as here:
        job = here.client.submit(spec())
        here.in_state(job.job_id, "running")
        here.do(lambda: here.engine.print(key(job.job_id), "before\n"))
        here.finish(job.job_id, exit_code=75)
        until(lambda: here.client.job(job.job_id).attempts[-1].attempt == 2)
        here.do(lambda: here.engine.print(key(job.job_id, 2), "after, without an end"))
        here.finish(job.job_id, 2)
        until(lambda: here.client.info().n_outbox == 0 and artifacts(here, job.job_id), timeout_s=120)
        run_id = here.client.job(job.job_id).mlflow_run_id
        with httpx.Client(base_url=mlflow_server.url, timeout=60.0, trust_env=False) as mlflow:
            run = mlflow.get("/api/2.0/mlflow/runs/get", params={"run_id": run_id}).json()["run"]
            assert run["info"]["status"] == "FINISHED"
            names = (f"logs/attempt_{n}/output.log" for n in (1, 2))
            contents = [mlflow.get(artifact_url(run["info"]["artifact_uri"], name)).text for name in names]
        assert contents == ["before\n", "after, without an end"]
