from __future__ import annotations

import pytest
from store_samples import attempt, job

from runtime.model.nouns import Placement
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause
from runtime.store import history
from runtime.store.history import JobRow
from runtime.store.sql_writer import SqlWriter
from runtime.store.writer import StoreRefused


def insert(store: SqlWriter, *rows: JobRow) -> None:
    store.write_blocking(lambda c: history.insert_jobs(c, rows))


def listed(store: SqlWriter, **chosen: object) -> list[str]:
    return [row.job_id for row in store.read_blocking(lambda c: history.list_jobs(c, **chosen))]  # type: ignore[arg-type]


def test_a_job_comes_back_as_it_was_written(store: SqlWriter) -> None:
    row = job(
        7,
        session_id="s1",
        state=JobState.FAILED,
        state_reason="Größe 学习 🙂",
        exit_reason=ExitReason.CODE_ERROR,
        started_at=1.5,
        ended_at=2.5,
        n_preemptions=2,
        n_retries=1,
        checkpoint_step=2**40,
        idempotency_token="t",
        spec={"parameters": {"lr": float("nan")}, "command": ["é"]},
    )
    insert(store, row)
    got = store.read_blocking(lambda c: history.get_job(c, "j7"))
    assert repr(got) == repr(row)  # by repr: NaN is not equal to itself


def test_an_unknown_job_is_none(store: SqlWriter) -> None:
    assert store.read_blocking(lambda c: history.get_job(c, "j404")) is None


def test_states_and_reasons_come_back_as_members(store: SqlWriter) -> None:
    insert(store, job(1))
    got = store.read_blocking(lambda c: history.get_job(c, "j1"))
    assert got is not None
    assert got.state is JobState.QUEUED


@pytest.mark.parametrize(
    "double",
    [
        job(2, job_id="j1"),
        job(1, job_id="j2"),
        job(2, idempotency_token="t"),
    ],
    ids=["id", "number", "token"],
)
def test_refuses_a_second_job_of_the_same(store: SqlWriter, double: JobRow) -> None:
    insert(store, job(1, idempotency_token="t"))
    with pytest.raises(StoreRefused):
        insert(store, job(3), double)
    assert listed(store) == ["j1"]


def test_a_token_is_free_in_another_project(store: SqlWriter) -> None:
    insert(store, job(1, idempotency_token="t"), job(2, project="other", idempotency_token="t"))
    assert listed(store) == ["j2", "j1"]


def test_jobs_without_a_token_do_not_clash(store: SqlWriter) -> None:
    insert(store, job(1), job(2))
    assert listed(store) == ["j2", "j1"]


def test_changes_only_the_columns_named(store: SqlWriter) -> None:
    insert(store, job(1, state_reason="waits"), job(2, state_reason="waits"))
    store.write_blocking(lambda c: history.update_job(c, "j1", state=JobState.RUNNING, started_at=9.0))
    jobs = store.read_blocking(lambda c: history.get_jobs(c, ["j1", "j2"]))
    assert jobs["j1"] == job(1, state_reason="waits", state=JobState.RUNNING, started_at=9.0)
    assert jobs["j2"] == job(2, state_reason="waits")


def test_a_column_can_be_emptied(store: SqlWriter) -> None:
    insert(store, job(1, state_reason="waits"))
    store.write_blocking(lambda c: history.update_job(c, "j1", state_reason=None))
    assert store.read_blocking(lambda c: history.get_job(c, "j1")) == job(1)


def test_many_jobs_change_each_in_its_way(store: SqlWriter) -> None:
    insert(store, *(job(number) for number in range(1, 5)))
    store.write_blocking(
        lambda c: history.update_jobs(
            c,
            {
                "j1": {"state": JobState.RUNNING},
                "j2": {"state": JobState.CANCELLED, "ended_at": 3.0},
                "j3": {"state": JobState.STARTING},
                "j4": {},
            },
        )
    )
    got = store.read_blocking(history.list_jobs)
    assert [(row.state, row.ended_at) for row in reversed(got)] == [
        (JobState.RUNNING, None),
        (JobState.CANCELLED, 3.0),
        (JobState.STARTING, None),
        (JobState.QUEUED, None),
    ]


def test_refuses_to_change_an_unknown_job(store: SqlWriter) -> None:
    insert(store, job(1))
    with pytest.raises(StoreRefused, match="no such job: 'j404'"):
        store.write_blocking(
            lambda c: history.update_jobs(c, {"j1": {"n_retries": 1}, "j404": {"n_retries": 1}}),
        )
    assert store.read_blocking(lambda c: history.get_job(c, "j1")) == job(1)


def test_refuses_a_state_that_does_not_exist(store: SqlWriter) -> None:
    insert(store, job(1))
    with pytest.raises(StoreRefused, match="paused"):
        store.write_blocking(lambda c: history.update_job(c, "j1", state="paused"))  # type: ignore[arg-type]


def test_refuses_a_name_longer_than_its_column(store: SqlWriter) -> None:
    with pytest.raises(StoreRefused, match="101 characters"):
        insert(store, job(1, project="p" * 101))


def test_an_attempt_comes_back_as_it_was_written(store: SqlWriter) -> None:
    placements = (
        Placement(node_id="a", devices=(0, 1), first_rank=0),
        Placement(node_id="b", devices=(3,), first_rank=2),
    )
    row = attempt(
        "j1",
        2,
        placements=placements,
        started_at=2.0,
        stop_ordered_at=3.0,
        stop_cause=StopCause.PREEMPT,
        beneficiary="j9",
        ended_at=4.0,
        outcome=AttemptOutcome.PREEMPTED,
        exit_reason=ExitReason.PREEMPTED,
        exit_code=75,
        evidence="last line",
        checkpoint_step=12,
    )
    store.write_blocking(lambda c: history.upsert_attempt(c, row))
    assert store.read_blocking(lambda c: history.get_attempts(c, ["j1"])) == {"j1": [row]}


def test_an_attempt_written_again_is_replaced(store: SqlWriter) -> None:
    store.write_blocking(lambda c: history.upsert_attempt(c, attempt("j1", 1)))
    newer = attempt("j1", 1, started_at=2.0)
    store.write_blocking(lambda c: history.upsert_attempts(c, [newer, attempt("j1", 2)]))
    assert store.read_blocking(lambda c: history.get_attempts(c, ["j1"]))["j1"] == [newer, attempt("j1", 2)]


def test_attempts_come_by_job_in_order_of_number(store: SqlWriter) -> None:
    rows = [attempt("j1", 2), attempt("j2", 1), attempt("j1", 10), attempt("j1", 1)]
    store.write_blocking(lambda c: history.upsert_attempts(c, rows))
    got = store.read_blocking(lambda c: history.get_attempts(c, ["j1", "j2", "j3"]))
    numbers = {job_id: [row.attempt for row in found] for job_id, found in got.items()}
    assert numbers == {"j1": [1, 2, 10], "j2": [1], "j3": []}


def test_changes_one_attempt_only(store: SqlWriter) -> None:
    store.write_blocking(lambda c: history.upsert_attempts(c, [attempt("j1", 1), attempt("j1", 2)]))
    store.write_blocking(lambda c: history.update_attempt(c, "j1", 2, outcome=AttemptOutcome.FAILED, exit_code=1))
    got = store.read_blocking(lambda c: history.get_attempts(c, ["j1"]))["j1"]
    assert got == [attempt("j1", 1), attempt("j1", 2, outcome=AttemptOutcome.FAILED, exit_code=1)]


def test_refuses_to_change_an_unknown_attempt(store: SqlWriter) -> None:
    with pytest.raises(StoreRefused, match="'j1' number 3"):
        store.write_blocking(lambda c: history.update_attempt(c, "j1", 3, exit_code=1))


def test_evidence_with_bytes_that_are_no_text_is_kept_readable(store: SqlWriter) -> None:
    torn = b"loss \xff\x00 nan".decode("utf-8", "surrogateescape")
    store.write_blocking(lambda c: history.upsert_attempt(c, attempt("j1", 1, evidence=torn)))
    got = store.read_blocking(lambda c: history.get_attempts(c, ["j1"]))["j1"][0]
    assert got.evidence == "loss \ufffd\ufffd nan"


def test_lists_newest_first_and_page_by_page(store: SqlWriter) -> None:
    insert(store, *(job(number) for number in range(1, 12)))
    assert listed(store, limit=4) == ["j11", "j10", "j9", "j8"]
    assert listed(store, limit=4, before_number=8) == ["j7", "j6", "j5", "j4"]


def test_lists_by_state_session_and_project_together(store: SqlWriter) -> None:
    insert(
        store,
        job(1, session_id="s1", state=JobState.RUNNING),
        job(2, session_id="s1"),
        job(3, session_id="s2", state=JobState.RUNNING),
        job(4, session_id="s1", state=JobState.RUNNING, project="other"),
    )
    assert listed(store, states=[JobState.RUNNING]) == ["j4", "j3", "j1"]
    assert listed(store, states={JobState.RUNNING, JobState.QUEUED}, session_id="s1") == ["j4", "j2", "j1"]
    assert listed(store, states=[JobState.RUNNING], session_id="s1", project="default") == ["j1"]
    assert listed(store, states=[]) == []


def test_finds_jobs_by_token_within_the_project(store: SqlWriter) -> None:
    insert(store, *(job(number, idempotency_token=f"t{number}") for number in range(1, 1202)))
    tokens = [f"t{number}" for number in range(1100, 1300)] + [f"u{number}" for number in range(1000)]
    got = store.read_blocking(lambda c: history.jobs_by_token(c, "default", tokens))
    assert sorted(row.number for row in got.values()) == list(range(1100, 1202))
    assert got["t1150"].job_id == "j1150"
    assert store.read_blocking(lambda c: history.jobs_by_token(c, "other", tokens)) == {}


def test_numbers_go_on_from_the_highest(store: SqlWriter) -> None:
    assert store.read_blocking(history.next_number) == 1
    insert(store, job(9), job(10), job(3))
    assert store.read_blocking(history.next_number) == 11


def test_counts_by_state(store: SqlWriter) -> None:
    insert(store, job(1), job(2), job(3, state=JobState.RUNNING))
    assert store.read_blocking(history.count_by_state) == {JobState.QUEUED: 2, JobState.RUNNING: 1}
