"""An MLflow server that is not there, comes late, or is killed: the session does not notice, and MLflow has it all."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import httpx
import pytest
from command import nightlab
from fault_lab import N_STEPS, FaultLab, check_whole, eventually, undisturbed, with_this_python
from mlflow_server import MlflowServer

from agent.store.views import SessionState, TrialState
from agent.task_file import load_task

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "task.yaml"


class Tracking:
    """What an MLflow server has, by its REST API."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/2.0/mlflow/", timeout=60, trust_env=False)

    def runs(self, experiment: str) -> list[dict]:
        found = self._http.get("experiments/get-by-name", params={"experiment_name": experiment}).json()
        body = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 500, "run_view_type": "ALL"}
        return self._http.post("runs/search", json=body).json().get("runs", [])

    def curve(self, run_id: str, key: str) -> dict[int, float]:
        query = {"run_id": run_id, "metric_key": key, "max_results": 5000}
        points = self._http.get("metrics/get-history", params=query).json().get("metrics", [])
        steps = [point.get("step", 0) for point in points]
        assert len(steps) == len(set(steps)), f"{key} of {run_id} has steps twice"
        return {point.get("step", 0): point["value"] for point in points}


def await_mirror(lab: FaultLab, within_s: float = 120.0) -> None:
    def is_empty() -> bool:
        info = lab.client.info()
        return info.n_outbox == 0 and info.mlflow_state == "up"

    eventually(lambda: lab.answers() and is_empty(), within_s=within_s, what="MLflow having everything")


def check_mirrored(lab: FaultLab, tracking: Tracking, session_id: str) -> None:
    """One run for each job of the session, ended with its status, with its whole curve."""
    runs = {run_id_of(run): run for run in tracking.runs("curve")}
    jobs = {job.job_id: job for job in lab.jobs(session_id)}
    names = Counter(run["info"]["run_name"] for run in runs.values())
    for trial in lab.trials(session_id):
        job = jobs[str(trial.job_id)]
        assert names[trial.trial_id] == 1, f"{trial.trial_id} has {names[trial.trial_id]} runs"
        assert job.mlflow_run_id is not None
        assert runs[job.mlflow_run_id]["info"]["status"] == "FINISHED"
        curve = tracking.curve(job.mlflow_run_id, "score")
        assert curve == undisturbed(trial), trial.trial_id
        assert len(curve) == N_STEPS


def run_id_of(run: dict) -> str:
    return str(run["info"]["run_id"])


def test_a_session_finishes_without_mlflow_and_all_arrives_when_it_comes(tmp_path: Path) -> None:
    server = MlflowServer(tmp_path / "mlflow")
    with FaultLab(tmp_path, mlflow_url=server.url) as lab:
        lab.start_session()
        assert lab.await_end().state is SessionState.FINISHED
        check_whole(lab, with_retries=False)
        told = nightlab("status", home=lab.home)
        assert told.exit_code == 0
        assert "not yet at MLflow; nothing is lost" in told.out
        row = next(line for line in told.out.splitlines() if line.startswith("mlflow"))
        assert "starting" in row or "unreachable" in row
        try:
            server.start()
            await_mirror(lab)
            check_mirrored(lab, Tracking(server.url), "s1")
            lab.starts_file.unlink()
            lab.start_session()
            lab.await_moment("search", "s2")
            server.kill()
            lab.await_moment("confirm", "s2")
            lab.kill("server")
            assert lab.await_end("s2").state is SessionState.FINISHED
            check_whole(lab, with_retries=False, session_id="s2")
            server.start()
            await_mirror(lab)
            check_mirrored(lab, Tracking(server.url), "s2")
            sessions = [run for run in Tracking(server.url).runs("curve") if run["info"]["run_name"] in ("s1", "s2")]
            assert [run["info"]["status"] for run in sessions] == ["FINISHED"] * len(sessions)
        finally:
            server.stop()


def test_the_example_survives_the_death_of_its_mlflow_its_runtime_and_its_session(tmp_path: Path) -> None:
    task = load_task(DIGITS)
    assert task.fidelity is not None
    small = {
        "fidelity": task.fidelity.model_copy(update={"value": 12}),
        "budgets": task.budgets.model_copy(update={"trials": 4}),
        "seeds": task.seeds.model_copy(update={"fresh": 2}),
    }
    with FaultLab(tmp_path, has_mlflow=True) as lab:
        lab.start_session(with_this_python(task.model_copy(update=small)))
        lab.await_moment("search")
        for victim in ("mlflow", "server", "session"):
            lab.kill(victim)
        lab.await_moment("confirm")
        for victim in ("agent", "mlflow"):
            lab.kill(victim)
        view = lab.await_end()
        assert view.state is SessionState.FINISHED, view.message
        trials = lab.trials()
        assert {t.state for t in trials} == {TrialState.MEASURED}
        jobs = {job.job_id: job for job in lab.jobs()}
        assert sorted(jobs) == sorted(str(t.job_id) for t in trials)
        assert all(len(job.attempts) == 1 for job in jobs.values())
        await_mirror(lab)
        assert lab.services is not None
        tracking = Tracking(str(lab.services.mlflow_url))
        names = Counter(run["info"]["run_name"] for run in tracking.runs("digits"))
        for job in (jobs[str(trial.job_id)] for trial in trials):
            assert job.mlflow_run_id is not None
            curve = tracking.curve(job.mlflow_run_id, "val_accuracy")
            assert sorted(curve) == list(range(1, 13))
            assert all(math.isfinite(value) for value in curve.values())
        assert {names[trial.trial_id] for trial in trials} == {1}
