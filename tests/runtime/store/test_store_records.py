from __future__ import annotations

import math

import pytest
from store_samples import point, run

from runtime.store import records
from runtime.store.records import MetricRow, OutboxRow, ParamConflict, RunRow
from runtime.store.sql_writer import SqlWriter
from runtime.store.writer import StoreRefused


def insert(store: SqlWriter, *rows: RunRow) -> None:
    store.write_blocking(lambda c: records.insert_runs(c, rows))


def log(store: SqlWriter, *rows: MetricRow) -> None:
    store.write_blocking(lambda c: records.insert_metrics(c, rows))


def test_a_run_comes_back_as_it_was_written(store: SqlWriter) -> None:
    row = run(
        "r1",
        job_id="j1",
        attempt=2,
        parent_run_id="r0",
        run_name="größe",
        reported_status="FINISHED",
        ended_at=2.0,
        idempotency_token="t",
        mlflow_run_id="m",
        mlflow_experiment_id="1",
    )
    store.write_blocking(lambda c: records.insert_run(c, row))
    assert store.read_blocking(lambda c: records.get_run(c, "r1")) == row
    assert store.read_blocking(lambda c: records.run_by_token(c, "t")) == row
    assert store.read_blocking(lambda c: records.get_run(c, "r2")) is None


def test_the_jobs_own_run_is_the_one_without_attempt(store: SqlWriter) -> None:
    insert(store, run("r3", job_id="j1", attempt=1, created_at=3.0), run("r1", job_id="j1"))
    insert(store, run("r2", job_id="j1", attempt=1, created_at=2.0), run("r4", job_id="j1", attempt=2))
    own = store.read_blocking(lambda c: records.run_of_job(c, "j1"))
    assert own is not None
    assert own.run_id == "r1"
    further = store.read_blocking(lambda c: records.runs_of_attempt(c, "j1", 1))
    assert [row.run_id for row in further] == ["r2", "r3"]


def test_refuses_a_second_run_with_one_token(store: SqlWriter) -> None:
    insert(store, run("r1", idempotency_token="t"))
    with pytest.raises(StoreRefused):
        insert(store, run("r2", idempotency_token="t"))


def test_changes_one_run_only(store: SqlWriter) -> None:
    insert(store, run("r1"), run("r2"))
    store.write_blocking(lambda c: records.update_run(c, "r1", status="FINISHED", ended_at=5.0))
    store.write_blocking(lambda c: records.set_mlflow_ids(c, "r1", mlflow_run_id="m1", mlflow_experiment_id="3"))
    assert store.read_blocking(lambda c: records.get_run(c, "r1")) == run(
        "r1", status="FINISHED", ended_at=5.0, mlflow_run_id="m1", mlflow_experiment_id="3"
    )
    assert store.read_blocking(lambda c: records.get_run(c, "r2")) == run("r2")


def test_refuses_to_change_an_unknown_run(store: SqlWriter) -> None:
    with pytest.raises(StoreRefused, match="no such run: 'r404'"):
        store.write_blocking(lambda c: records.update_run(c, "r404", status="FINISHED"))


def test_finds_runs_newest_first(store: SqlWriter) -> None:
    insert(
        store,
        run("r1", created_at=1.0, parent_run_id="p"),
        run("r2", created_at=3.0, parent_run_id="p"),
        run("r3", created_at=2.0, parent_run_id="p", experiment_name="other"),
        run("r4", created_at=4.0),
    )

    def found(**chosen: str) -> list[str]:
        return [row.run_id for row in store.read_blocking(lambda c: records.find_runs(c, limit=2, **chosen))]

    assert found() == ["r4", "r2"]
    assert found(parent_run_id="p") == ["r2", "r3"]
    assert found(parent_run_id="p", experiment_name="digits") == ["r2", "r1"]


def test_a_parameter_never_changes_and_the_conflict_is_reported(store: SqlWriter) -> None:
    assert store.write_blocking(lambda c: records.set_params(c, "r1", {"lr": "0.1", "seed": "1"})) == []
    again = {"lr": "0.2", "seed": "1", "width": "64"}
    conflicts = store.write_blocking(lambda c: records.set_params(c, "r1", again))
    assert conflicts == [ParamConflict(key="lr", stored="0.1", given="0.2")]
    assert store.read_blocking(lambda c: records.get_params(c, "r1")) == {"lr": "0.1", "seed": "1", "width": "64"}


def test_parameters_of_two_runs_do_not_mix(store: SqlWriter) -> None:
    store.write_blocking(lambda c: records.set_params(c, "r1", {"lr": "0.1"}))
    assert store.write_blocking(lambda c: records.set_params(c, "r2", {"lr": "0.2"})) == []
    assert store.read_blocking(lambda c: records.get_params(c, "r2")) == {"lr": "0.2"}


def test_the_last_value_of_a_tag_wins(store: SqlWriter) -> None:
    store.write_blocking(lambda c: records.set_tags(c, "r1", {"a": "1", "b": "1"}))
    store.write_blocking(lambda c: records.set_tags(c, "r1", {"b": "zwei 二", "c": "3"}))
    assert store.read_blocking(lambda c: records.get_tags(c, "r1")) == {"a": "1", "b": "zwei 二", "c": "3"}


def test_deletes_a_tag_once(store: SqlWriter) -> None:
    store.write_blocking(lambda c: records.set_tags(c, "r1", {"a": "1"}))
    assert store.write_blocking(lambda c: records.delete_tag(c, "r2", "a")) is False
    assert store.write_blocking(lambda c: records.delete_tag(c, "r1", "a")) is True
    assert store.write_blocking(lambda c: records.delete_tag(c, "r1", "a")) is False


def test_points_come_back_in_order_of_arrival(store: SqlWriter) -> None:
    log(store, point("loss", 0.5, 2), point("acc", 0.9, 1), point("loss", 0.7, 1), point("loss", 9, 9, run_id="r2"))
    got = store.read_blocking(lambda c: records.read_metrics(c, "r1"))
    assert [(row.key, row.value, row.step) for row in got] == [("loss", 0.5, 2), ("acc", 0.9, 1), ("loss", 0.7, 1)]
    assert [row.id for row in got] == sorted({row.id for row in got})
    assert all(row.id > 0 for row in got)


def test_points_are_read_by_key_and_on_from_an_id(store: SqlWriter) -> None:
    log(store, *(point(key, step, step) for step in range(4) for key in ("a", "b", "c")))
    first = store.read_blocking(lambda c: records.read_metrics(c, "r1", keys=["a", "c"], limit=3))
    assert [(row.key, row.step) for row in first] == [("a", 0), ("c", 0), ("a", 1)]
    rest = store.read_blocking(lambda c: records.read_metrics(c, "r1", keys=["a", "c"], after_id=first[-1].id))
    assert [(row.key, row.step) for row in rest] == [("c", 1), ("a", 2), ("c", 2), ("a", 3), ("c", 3)]


def test_non_finite_values_come_back_as_they_were(store: SqlWriter) -> None:
    log(store, *(point("loss", float(text), step) for step, text in enumerate(["nan", "inf", "-inf", "0.5"])))
    values = [row.value for row in store.read_blocking(lambda c: records.read_metrics(c, "r1"))]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 0.5]
    log(store, point("loss", math.nan, 10))
    assert math.isnan(store.read_blocking(lambda c: records.latest_metrics(c, "r1"))["loss"].value)


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, -0.1, 0.1 + 0.2])
def test_values_keep_every_bit(store: SqlWriter, value: float) -> None:
    log(store, point("loss", value, 0))
    assert store.read_blocking(lambda c: records.read_metrics(c, "r1"))[0].value == value


def test_refuses_a_step_beyond_64_bits(store: SqlWriter) -> None:
    with pytest.raises(StoreRefused, match="64 bits"):
        log(store, point("loss", 0.5, 2**63))


def test_latest_is_the_highest_step_then_the_last_arrival(store: SqlWriter) -> None:
    log(store, point("loss", 0.1, 10), point("loss", 0.2, 20, attempt=1), point("loss", 0.3, 15))
    log(store, point("loss", 0.4, 20, attempt=2), point("acc", 0.9, 0), point("loss", 9.0, 99, run_id="r2"))
    got = store.read_blocking(lambda c: records.latest_metrics(c, "r1"))
    assert {key: (row.value, row.step, row.attempt) for key, row in got.items()} == {
        "acc": (0.9, 0, 1),
        "loss": (0.4, 20, 2),
    }


def test_ten_thousand_points_are_kept_and_found(store: SqlWriter) -> None:
    log(store, *(point(f"k{number % 20}", float(number), number // 20) for number in range(10_000)))
    assert len(store.read_blocking(lambda c: records.read_metrics(c, "r1"))) == 10_000
    latest = store.read_blocking(lambda c: records.latest_metrics(c, "r1"))
    assert {row.value for row in latest.values()} == set(map(float, range(9_980, 10_000)))


def push(store: SqlWriter, *run_ids: str) -> list[OutboxRow]:
    rows = [OutboxRow(run_id=run_id, kind="metrics", payload={"n": n}) for n, run_id in enumerate(run_ids)]
    store.write_blocking(lambda c: records.push_outbox(c, rows))
    return store.read_blocking(lambda c: records.peek_outbox(c, limit=100))


def test_the_outbox_keeps_order_and_forgets_only_what_is_confirmed(store: SqlWriter) -> None:
    rows = push(store, "r2", "r1", "r2", "r1")
    assert [(row.run_id, row.payload["n"]) for row in rows] == [("r2", 0), ("r1", 1), ("r2", 2), ("r1", 3)]
    assert store.read_blocking(records.outbox_runs) == ["r2", "r1"]
    assert store.write_blocking(lambda c: records.drop_outbox(c, [rows[0].id, rows[2].id])) == 2
    assert store.read_blocking(records.outbox_runs) == ["r1"]
    assert store.read_blocking(records.count_outbox) == 2
    of_one = store.read_blocking(lambda c: records.peek_outbox(c, limit=1, run_id="r1"))
    assert of_one == [rows[1]]


def test_an_outbox_id_is_never_used_twice(store: SqlWriter) -> None:
    old = push(store, "r1", "r1")
    store.write_blocking(lambda c: records.drop_outbox(c, [row.id for row in old]))
    new = push(store, "r1")
    assert new[0].id > old[-1].id


def test_failed_tries_are_counted_with_what_they_met(store: SqlWriter) -> None:
    row, other = push(store, "r1", "r1")
    for error in ("refused", "timed out"):
        store.write_blocking(lambda c, error=error: records.fail_outbox(c, row.id, error))
    got = store.read_blocking(lambda c: records.peek_outbox(c, limit=2))
    assert [(found.n_tries, found.error) for found in got] == [(2, "timed out"), (0, None)]
    assert got[1] == other


@pytest.mark.parametrize("value", [1, 1.5, "text", True, [1, {"a": None}], {"generation": 7}, None])
def test_a_fact_is_remembered_as_it_was(store: SqlWriter, value: object) -> None:
    store.write_blocking(lambda c: records.set_fact(c, "key", "older"))
    store.write_blocking(lambda c: records.set_fact(c, "key", value))
    got = store.read_blocking(lambda c: records.get_fact(c, "key"))
    assert got == value
    assert type(got) is type(value)


def test_an_unknown_fact_is_none(store: SqlWriter) -> None:
    assert store.read_blocking(lambda c: records.get_fact(c, "nothing")) is None
