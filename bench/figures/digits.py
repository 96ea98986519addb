"""How many trials of the digits example an hour brings, over one cold start after the other."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from agent.frontdoors.research import session_deps
from agent.session import run_session
from agent.store.store import AgentStore
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task
from agent.task_file import load_task
from bench.figure import Figure, Unavailable, quartiles
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import Environment, JobSpec, LaunchMode

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


def trials_ratio(quick: bool) -> Figure:
    """A whole session (search and confirmation, warm starts, a slot for each core) over cold starts one at a time.

    The cold ones run the session's own configurations, so that each must give the very same value: quality per trial
    is equal, and the best of more trials is as good or better. Both record the same metrics with MLflow: the cold ones
    in a SQLite file of theirs, the session's through the gateway. The note tells cold starts that record nothing, too.
    """
    n_cores = os.cpu_count() or 1
    n_cold = 3 if quick else 10
    task = _task(n_trials=10 if quick else 40)
    with running_server(f"cpu:{n_cores}") as (client, home):
        _until_warm(client, task)
        trials = _session(home, task)
    measured = [t for t in trials if t.state is TrialState.MEASURED and t.launched_at is not None]
    if len(measured) < len(trials):
        raise RuntimeError(f"only {len(measured)} of {len(trials)} trials were measured")
    span_s = max(t.ended_at or 0.0 for t in measured) - min(t.launched_at or 0.0 for t in measured)
    search = [t for t in measured if t.purpose is Purpose.SEARCH]
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        tracking = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db", "MLFLOW_EXPERIMENT_NAME": "cold"}
        _cold_s(task, search[0], tracking)  # makes the tables
        cold = [_cold_s(task, trial, tracking) for trial in search[:n_cold]]
    silent = [_cold_s(task, trial, {}) for trial in search[:n_cold]]
    per_trial_s = span_s / len(measured)
    best_cold = max(t.value or 0.0 for t in search[:n_cold])
    best = max(t.value or 0.0 for t in search)
    return Figure(
        id="agent.trials_ratio",
        value=statistics.median(cold) / per_trial_s,
        unit="ratio",
        control=1.0,
        n=len(measured),
        spread=quartiles([seconds / per_trial_s for seconds in cold]),
        note=(
            f"{n_cores} cores: a cold start {statistics.median(cold):.2f} s (n {len(cold)}), one that records nothing "
            f"{statistics.median(silent):.2f} s, a session's trial {per_trial_s:.2f} s; values of like trials equal; "
            f"best {best:.4f}, of the cold ones {best_cold:.4f}"
        ),
    )


def _task(n_trials: int) -> Task:
    task = load_task(EXAMPLE / "task.yaml")
    job = task.job.model_copy(update={"environment": Environment(python=sys.executable)})
    budgets = task.budgets.model_copy(update={"trials": n_trials})
    seeds = task.seeds.model_copy(update={"fresh": 4, "max_pairs": 4})
    return task.model_copy(update={"job": job, "budgets": budgets, "seeds": seeds, "held_out": None})


def _until_warm(client: RuntimeClient, task: Task) -> None:
    """The environment's fork server is there before the clock starts, as after the first job of a day."""
    spec = JobSpec(
        experiment_name="warm",
        command=task.job.command,
        args_style=task.job.args_style,
        code_source=task.job.code_source,
        environment=task.job.environment,
        parameters={"epochs": 1},
        launch=LaunchMode.WARM,
    )
    for _ in range(20):
        job = client.await_end(client.submit(spec).job_id, timeout_s=120)
        if job.attempts[-1].launch == "warm":
            return
        time.sleep(1)
    raise Unavailable(f"no warm start here: {job.attempts[-1].launch_why}")


def _session(home: Path, task: Task) -> list[TrialView]:
    store = AgentStore.open(home)
    try:
        session_id = store.create_session(task).session_id
        run_session(session_id, replace(session_deps(home, store, threading.Event()), write_report=None))
        return store.trials(session_id)
    finally:
        store.close()


def _cold_s(task: Task, trial: TrialView, tracking: dict[str, str]) -> float:
    """Seconds of the same trial as a process of its own.

    Args:
        tracking: environment that has it record with MLflow; empty: it prints, and the value is compared.

    Raises:
        RuntimeError: it gave another value.
    """
    given = {**trial.params, "seed": trial.seed}
    if task.fidelity is not None:
        given[task.fidelity.parameter] = task.fidelity.value
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")} | tracking
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "train.py", *words], cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    if tracking:
        return seconds
    value = float(done.stdout.split()[-1])
    if trial.value is None or abs(value - trial.value) > 1e-9:
        raise RuntimeError(f"{trial.trial_id} gave {trial.value}, a cold start of it {value}")
    return seconds
