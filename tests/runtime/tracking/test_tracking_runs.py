"""Run records as the server keeps them, attempt tokens, and the pure parts of search and delivery."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.records import OutboxRow
from runtime.tracking import recording, runs, search
from runtime.tracking.delivery import Create, Log, Status, plan
from runtime.tracking.spool import Spool
from runtime.tracking.tokens import attempt_token, verify
from runtime_client.models import JobSpec, NewRun, RunUpdate, SessionFence

RUN = "a" * 32


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sa.Connection]:
    engine = open_engine(f"sqlite:///{tmp_path / 'runtime.db'}")
    migrate(engine)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def submit(connection: sa.Connection, **spec: Any) -> None:
    wanted = JobSpec(**{"experiment_name": "exp", "command": "python train.py", **spec})
    runs.record_new_job(connection, run_id=RUN, job_id="j1", spec=wanted, now_s=10.0, user="anna")


def test_a_new_job_is_scheduled_and_says_what_it_is(connection: sa.Connection) -> None:
    submit(
        connection,
        session=SessionFence(session_id="s1", fence=1),
        priority_class="exploratory",
        tags={"a": "b", "nightlab.job_id": "forged"},
        parameters={"opt": {"name": "adam", "lr": 0.1}, "sizes": [1, 2], "bias": True, "bad?name": None},
        seed=3,
    )
    view = runs.run_view(connection, RUN, mlflow_url="http://mlflow")
    assert (view.status, view.run_name, view.mlflow_url) == ("SCHEDULED", "j1", None)
    assert view.params == {
        "opt.name": "adam",
        "opt.lr": "0.1",
        "sizes": "[1, 2]",
        "bias": "True",
        "bad_name": "None",
        "seed": "3",
    }
    assert view.tags == {
        "a": "b",
        "nightlab.run_id": RUN,
        "nightlab.job_id": "j1",
        "nightlab.session_id": "s1",
        "nightlab.priority_class": "exploratory",
        "nightlab.project": "default",
        "mlflow.user": "anna",
        "mlflow.runName": "j1",
        "mlflow.source.name": "python train.py",
        "mlflow.source.type": "JOB",
    }


def test_the_page_of_a_run_is_known_once_mlflow_has_it(connection: sa.Connection) -> None:
    submit(connection)
    records.set_mlflow_ids(connection, RUN, mlflow_run_id="r9", mlflow_experiment_id="4")
    view = runs.run_view(connection, RUN, mlflow_url="http://mlflow/")
    assert view.mlflow_url == "http://mlflow/#/experiments/4/runs/r9"


def test_required_metrics_are_missing_or_not_finite_by_their_last_value(connection: sa.Connection) -> None:
    submit(connection)
    points = [("good", math.nan, 0, 1.0), ("good", 1.0, 1, 2.0), ("bad", 1.0, 0, 1.0), ("bad", math.inf, 1, 2.0)]
    runs.record_points(connection, RUN, 1, points, now_s=5.0)
    assert runs.missing_or_non_finite(connection, RUN, ["good", "bad", "none"]) == (("none",), ("bad",))


def test_names_from_a_jobs_output_are_made_acceptable(connection: sa.Connection) -> None:
    submit(connection)
    odd = ["../loss", "acc%", "/abs", "a//b", "", "x" * 300]
    keys = runs.record_points(connection, RUN, 2, [(name, 1.0, 0, math.nan) for name in odd], now_s=5.0)
    stored = records.read_metrics(connection, RUN)
    assert {point.key for point in stored} == keys
    assert {point.at_s for point in stored} == {5.0}
    assert all(len(key) <= 250 and ".." not in key and not key.startswith("/") for key in keys)


def test_a_status_ends_a_run_and_the_same_again_tells_mlflow_nothing(connection: sa.Connection) -> None:
    submit(connection)
    for status, at_s in (("RUNNING", 11.0), ("SCHEDULED", 12.0), ("RUNNING", 13.0), ("KILLED", 14.0), ("KILLED", 15.0)):
        runs.record_status(connection, RUN, status, at_s)
    row = records.get_run(connection, RUN)
    assert row is not None
    assert (row.status, row.ended_at) == ("KILLED", 14.0)
    told = [item for item in records.peek_outbox(connection, limit=99) if item.kind == "status"]
    assert [item.payload["status"] for item in told] == ["SCHEDULED", "RUNNING", "SCHEDULED", "RUNNING", "KILLED"]
    with pytest.raises(runs.UnknownRun):
        runs.record_status(connection, "b" * 32, "RUNNING", 1.0)


def test_many_params_and_points_are_queued_in_pieces_that_mlflow_takes(connection: sa.Connection) -> None:
    submit(connection, parameters={f"p{number}": "x" * 5000 for number in range(250)})
    runs.record_points(connection, RUN, 1, [("loss", 1.0, step, 1.0) for step in range(2500)], now_s=1.0)
    logs = [item for item in plan(records.peek_outbox(connection, limit=99)) if isinstance(item, Log)]
    assert sum(len(item.params) for item in logs) == 250
    assert sum(len(item.metrics) for item in logs) == 2500
    assert all(len(item.params) <= 100 and len(item.metrics) + len(item.params) <= 1000 for item in logs)


def test_a_run_of_a_job_keeps_its_status_from_others(connection: sa.Connection) -> None:
    submit(connection)
    runs.update_run(connection, RUN, RunUpdate(tags={"verdict": "good"}), now_s=1.0)
    with pytest.raises(runs.RunConflict):
        runs.update_run(connection, RUN, RunUpdate(status="FINISHED"), now_s=1.0)
    new = NewRun(experiment_name="e", run_name="r", parent_run_id="b" * 32, idempotency_token="t")
    with pytest.raises(runs.UnknownRun):
        runs.create_run(connection, new, run_id="c" * 32, now_s=1.0)


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "", "a/./b", "a\0b"])
def test_artifact_paths_stay_below_their_run(connection: sa.Connection, path: str) -> None:
    submit(connection)
    with pytest.raises(runs.BadRunUpdate):
        runs.record_artifact(connection, RUN, path=path, file="f")


def test_a_sweep_keeps_what_the_outbox_knows(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    known, orphan = spool.put(b"1"), spool.put(b"2")
    (tmp_path / "spool" / "x.part").write_bytes(b"3")
    spool.sweep()
    assert {file.name for file in (tmp_path / "spool").iterdir()} == {known, orphan}
    spool.sweep(frozenset({known}))
    assert [file.name for file in (tmp_path / "spool").iterdir()] == [known]


def test_a_token_names_its_attempt_and_no_other() -> None:
    token = attempt_token(b"secret", "j12", 3)
    assert verify(b"secret", token) == AttemptKey(job_id="j12", attempt=3)
    forged = [token.replace("j12", "j13"), token.replace(".3.", ".4."), token[:-1], token + "0", "j12.0." + "a" * 64]
    assert [verify(b"secret", other) for other in forged] == [None] * 5
    assert verify(b"another", token) is None


def test_a_plan_merges_neighbours_and_keeps_the_order() -> None:
    def row(number: int, kind: str, n_tries: int = 0, **payload: Any) -> OutboxRow:
        return OutboxRow(id=number, run_id=RUN, kind=kind, payload=payload, n_tries=n_tries)

    rows = [
        row(1, "create", tags={}),
        row(2, "log", m=[["a", 1.0, 1, 0]]),
        row(3, "log", p={"x": "1"}, t={"k": "old"}),
        row(4, "log", t={"k": "new"}),
        row(5, "status", status="RUNNING", end_ms=None),
        row(6, "status", status="FINISHED", end_ms=5),
        row(7, "log", n_tries=1, m=[["bad", 1.0, 1, 0]]),
        row(8, "log", m=[["a", 2.0, 1, 1]]),
    ]
    create, log, status, failed, last = plan(rows)
    assert isinstance(create, Create)
    assert isinstance(log, Log)
    assert (len(log.metrics), log.params, log.tags) == (1, {"x": "1"}, {"k": "new"})
    assert isinstance(status, Status)
    assert (status.status, status.end_ms) == ("FINISHED", 5)
    assert [[item.id for item in delivery.rows] for delivery in (failed, last)] == [[7], [8]]


@pytest.mark.parametrize("text", ["metrics.a > 'x", "a = 1 OR b = 2", "metrics.a IN (1)", "= 3", "(a = 1)"])
def test_filters_beyond_us_are_left_to_mlflow(text: str) -> None:
    with pytest.raises(search.NotSimple):
        search.parse_filter(text)


def test_simple_filters_are_read() -> None:
    terms = search.parse_filter("metrics.`val loss` <= 1e-3 and params.\"lr\" = '0.1' AND status ILIKE 'f%'")
    assert [(term.group, term.key, term.op, term.value) for term in terms] == [
        ("metric", "val loss", "<=", 0.001),
        ("param", "lr", "=", "0.1"),
        ("attribute", "status", "ilike", "f%"),
    ]


def test_a_request_repeated_by_the_same_attempt_is_recorded_once(connection: sa.Connection) -> None:
    submit(connection)
    point, other_time, nothing = ("loss", 0.5, 3, 1.25), ("loss", 0.5, 3, 2.5), ("acc", math.nan, 3, 1.25)
    for _ in range(2):
        recording.log(connection, RUN, attempt=1, points=[point, nothing, point])
    recording.log(connection, RUN, attempt=1, points=[other_time])
    recording.log(connection, RUN, attempt=2, points=[point])
    stored = records.read_metrics(connection, RUN)
    assert [(row.key, row.at_s, row.attempt) for row in stored] == [
        ("loss", 1.25, 1),
        ("acc", 1.25, 1),
        ("loss", 2.5, 1),
        ("loss", 1.25, 2),
    ]


def test_output_that_is_read_again_after_a_crash_is_recorded_once(connection: sa.Connection) -> None:
    submit(connection)
    runs.record_points(connection, RUN, 1, [("loss", 0.5, 3, 1.0), ("loss", 0.4, 4, 1.0)], now_s=5.0)
    runs.record_points(connection, RUN, 1, [("loss", 0.4, 4, 9.0), ("loss", 0.3, 5, 9.0)], now_s=9.0)
    assert [(row.step, row.value) for row in records.read_metrics(connection, RUN)] == [(3, 0.5), (4, 0.4), (5, 0.3)]
