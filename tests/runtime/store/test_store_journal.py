from __future__ import annotations

import pytest
from store_samples import event, events

from runtime.store import journal
from runtime.store.sql_writer import SqlWriter
from runtime.store.writer import StoreRefused


def append(store: SqlWriter, first: int, last: int) -> None:
    store.write_blocking(lambda c: journal.append(c, events(first, last)))


def seqs(store: SqlWriter, since: int = 0) -> list[int]:
    return [stored.seq for stored in store.read_blocking(lambda c: journal.read_events(c, since=since, limit=1000))]


def snapshot(store: SqlWriter, seq: int) -> None:
    store.write_blocking(lambda c: journal.write_snapshot(c, seq=seq, at_s=float(seq), payload={"at": seq}))


def prune(store: SqlWriter, before_s: float) -> int:
    return store.write_blocking(lambda c: journal.prune_events(c, before_s=before_s))


def test_events_come_back_as_they_were_written(store: SqlWriter) -> None:
    written = [
        event(1, actor="user:owner", on_behalf_of="session:s1", payload={"lr": 0.1, "names": ["größe", "学习", "🙂"]}),
        event(2, project=None, job_id=None, payload={}),
    ]
    store.write_blocking(lambda c: journal.append(c, written))
    assert store.read_blocking(lambda c: journal.read_events(c, since=0, limit=10)) == written


def test_reading_starts_after_since_and_stops_at_limit(store: SqlWriter) -> None:
    append(store, 1, 9)
    got = store.read_blocking(lambda c: journal.read_events(c, since=3, limit=2))
    assert [stored.seq for stored in got] == [4, 5]


def test_reading_one_job_leaves_out_the_others(store: SqlWriter) -> None:
    mixed = [event(1, job_id="j1"), event(2, job_id="j2"), event(3, job_id="j1"), event(4, job_id=None)]
    store.write_blocking(lambda c: journal.append(c, mixed))
    got = store.read_blocking(lambda c: journal.read_events(c, since=0, limit=10, job_id="j1"))
    assert [stored.seq for stored in got] == [1, 3]


@pytest.mark.parametrize("numbers", [[2], [1, 3], [1, 1], [0], [2, 1]])
def test_refuses_a_gap_and_keeps_nothing(store: SqlWriter, numbers: list[int]) -> None:
    with pytest.raises(StoreRefused, match="must come next"):
        store.write_blocking(lambda c: journal.append(c, [event(number) for number in numbers]))
    assert seqs(store) == []


def test_refuses_a_number_that_was_given_out(store: SqlWriter) -> None:
    append(store, 1, 3)
    with pytest.raises(StoreRefused, match="event 3 where 4 must come next"):
        append(store, 3, 3)


def test_empty_journal_starts_at_one(store: SqlWriter) -> None:
    assert store.read_blocking(lambda c: (journal.first_seq(c), journal.last_seq(c))) == (1, 0)
    assert store.read_blocking(journal.read_snapshot) is None


def test_newest_snapshot_is_read_and_only_two_are_kept(store: SqlWriter) -> None:
    append(store, 1, 9)
    for seq in (2, 5, 8):
        snapshot(store, seq)
    newest = store.read_blocking(journal.read_snapshot)
    assert newest == journal.Snapshot(seq=8, at_s=8.0, payload={"at": 8})
    older = store.read_blocking(lambda c: journal.read_snapshot(c, before=8))
    assert older is not None
    assert older.seq == 5
    assert store.read_blocking(lambda c: journal.read_snapshot(c, before=5)) is None


def test_a_second_snapshot_at_one_event_replaces_the_first(store: SqlWriter) -> None:
    append(store, 1, 2)
    snapshot(store, 2)
    store.write_blocking(lambda c: journal.write_snapshot(c, seq=2, at_s=7.0, payload={"again": True}))
    newest = store.read_blocking(journal.read_snapshot)
    assert newest is not None
    assert newest.payload == {"again": True}


def test_refuses_a_snapshot_of_the_future(store: SqlWriter) -> None:
    append(store, 1, 2)
    with pytest.raises(StoreRefused, match="the journal ends at 2"):
        snapshot(store, 3)


def test_prunes_nothing_without_a_snapshot(store: SqlWriter) -> None:
    append(store, 1, 5)
    assert prune(store, 1e12) == 0
    assert seqs(store) == [1, 2, 3, 4, 5]


def test_prunes_by_age_and_never_what_a_kept_snapshot_needs(store: SqlWriter) -> None:
    append(store, 1, 9)
    snapshot(store, 4)
    snapshot(store, 7)
    assert prune(store, 3.0) == 2
    assert seqs(store) == [3, 4, 5, 6, 7, 8, 9]
    assert prune(store, 1e12) == 2
    assert seqs(store) == [5, 6, 7, 8, 9]
    assert store.read_blocking(journal.first_seq) == 5


def test_pruning_leaves_no_hole_when_the_clock_went_back(store: SqlWriter) -> None:
    odd = [event(1, at_s=1.0), event(2, at_s=100.0), event(3, at_s=2.0), event(4, at_s=101.0)]
    store.write_blocking(lambda c: journal.append(c, odd))
    snapshot(store, 4)
    assert prune(store, 50.0) == 1
    assert seqs(store) == [2, 3, 4]


def test_numbers_go_on_after_every_event_was_pruned(store: SqlWriter) -> None:
    append(store, 1, 5)
    snapshot(store, 5)
    assert prune(store, 1e12) == 5
    assert store.read_blocking(lambda c: (journal.first_seq(c), journal.last_seq(c))) == (6, 5)
    append(store, 6, 7)
    assert seqs(store) == [6, 7]


def test_a_payload_may_hold_what_text_may_not(store: SqlWriter) -> None:
    payload = {"nul": "a\0b", "surrogate": "\udcff", "inf": float("inf"), "big": 2**70}
    store.write_blocking(lambda c: journal.append(c, [event(1, payload=payload)]))
    assert store.read_blocking(lambda c: journal.read_events(c, since=0, limit=1))[0].payload == payload
