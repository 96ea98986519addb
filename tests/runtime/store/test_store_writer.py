from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError

import pytest
import sqlalchemy as sa
from store_samples import event, job

from runtime.store import history, journal, records
from runtime.store.engine import open_engine
from runtime.store.sql_writer import MAX_BATCH, SqlWriter
from runtime.store.writer import StoreFailed, StoreRefused

Unit = Callable[[sa.Connection], object]


class Stopped:
    """Holds the writer in a unit, so that what is submitted meanwhile shares the next transaction."""

    def __init__(self, store: SqlWriter) -> None:
        self._entered, self._leave = threading.Event(), threading.Event()
        self.future = store.submit(self._unit)
        assert self._entered.wait(10)

    def _unit(self, _connection: sa.Connection) -> None:
        self._entered.set()
        assert self._leave.wait(10)

    def go_on(self) -> None:
        self._leave.set()


def remember(key: str) -> Unit:
    return lambda c: records.set_fact(c, key, True)


def broken(_connection: sa.Connection) -> None:
    raise ZeroDivisionError("the unit's own")


def remembers(store: SqlWriter, key: str) -> bool:
    return bool(store.read_blocking(lambda c: records.get_fact(c, key)))


def test_a_result_is_handed_back_after_its_commit(store: SqlWriter, engine: sa.Engine) -> None:
    def unit(connection: sa.Connection) -> str:
        records.set_fact(connection, "a", 1)
        return "done"

    assert store.write_blocking(unit) == "done"
    other = open_engine(engine.url, read_only=True)
    with other.connect() as connection:
        assert records.get_fact(connection, "a") == 1
    other.dispose()


def test_units_that_wait_share_one_transaction(store: SqlWriter, engine: sa.Engine) -> None:
    commits: list[object] = []
    sa.event.listen(engine, "commit", commits.append)
    stopped = Stopped(store)
    futures = [store.submit(remember(f"k{number}")) for number in range(50)]
    stopped.go_on()
    for future in futures:
        future.result(10)
    assert len(commits) == 2
    assert all(remembers(store, f"k{number}") for number in range(50))


def test_a_crowd_is_split_into_bounded_transactions(store: SqlWriter, engine: sa.Engine) -> None:
    commits: list[object] = []
    sa.event.listen(engine, "commit", commits.append)
    stopped = Stopped(store)
    futures = [store.submit(lambda c: None) for _ in range(MAX_BATCH + 1)]
    stopped.go_on()
    for future in futures:
        future.result(10)
    assert len(commits) == 3


def test_units_run_in_the_order_of_their_arrival(store: SqlWriter) -> None:
    stopped = Stopped(store)
    futures = [
        store.submit(lambda c, seq=seq: journal.append(c, [event(seq)]))  # a gap would be refused
        for seq in range(1, 400)
    ]
    stopped.go_on()
    for future in futures:
        future.result(10)
    assert store.read_blocking(journal.last_seq) == 399


def test_a_units_own_exception_comes_back_and_nothing_of_it_is_kept(store: SqlWriter) -> None:
    def half(connection: sa.Connection) -> None:
        records.set_fact(connection, "half", True)
        broken(connection)

    with pytest.raises(ZeroDivisionError, match="the unit's own"):
        store.write_blocking(half)
    assert not remembers(store, "half")


def test_a_failing_unit_does_not_take_the_others_with_it(store: SqlWriter) -> None:
    def half(connection: sa.Connection) -> None:
        records.set_fact(connection, "half", True)
        broken(connection)

    def twice(connection: sa.Connection) -> None:
        history.insert_jobs(connection, [job(1), job(2)])
        history.insert_jobs(connection, [job(1)])

    def misspelled(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT nothing FROM nowhere"))

    stopped = Stopped(store)
    first, bad, double, wrong, last = map(store.submit, (remember("a"), half, twice, misspelled, remember("b")))
    stopped.go_on()
    first.result(10)
    last.result(10)
    assert isinstance(bad.exception(10), ZeroDivisionError)
    assert isinstance(double.exception(10), StoreRefused)
    assert isinstance(wrong.exception(10), StoreFailed)
    assert remembers(store, "a")
    assert remembers(store, "b")
    assert not remembers(store, "half")
    assert store.read_blocking(history.list_jobs) == []


def test_even_an_exit_in_a_unit_leaves_the_writer_alive(store: SqlWriter) -> None:
    def leave(_connection: sa.Connection) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        store.write_blocking(leave)
    store.write_blocking(remember("after"))
    assert remembers(store, "after")


def test_a_failed_commit_fails_every_unit_in_it(store: SqlWriter, engine: sa.Engine) -> None:
    def refuse(_connection: sa.Connection) -> None:
        raise sa.exc.OperationalError("COMMIT", None, Exception("the device is gone"))

    stopped = Stopped(store)
    futures = [store.submit(remember(f"k{number}")) for number in range(3)]
    sa.event.listen(engine, "commit", refuse)
    stopped.go_on()
    failures = [future.exception(10) for future in futures]
    sa.event.remove(engine, "commit", refuse)
    assert all(isinstance(failure, StoreFailed) and "device is gone" in str(failure) for failure in failures)
    assert len({id(failure) for failure in failures}) == 3
    store.write_blocking(remember("after"))
    assert [remembers(store, key) for key in ("k0", "k1", "k2", "after")] == [False, False, False, True]


def test_a_caller_cancelled_before_its_unit_began_takes_it_back(store: SqlWriter) -> None:
    async def scene() -> None:
        stopped = Stopped(store)
        doomed = asyncio.create_task(store.write(remember("doomed")))
        others = [asyncio.create_task(store.write(remember(f"k{number}"))) for number in range(4)]
        await asyncio.sleep(0)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        stopped.go_on()
        await asyncio.gather(*others)

    asyncio.run(scene())
    assert not remembers(store, "doomed")
    assert all(remembers(store, f"k{number}") for number in range(4))


def test_a_caller_cancelled_while_its_unit_runs_breaks_nothing(store: SqlWriter) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(connection: sa.Connection) -> None:
        entered.set()
        assert leave.wait(10)
        records.set_fact(connection, "slow", True)

    async def scene() -> None:
        doomed = asyncio.create_task(store.write(slow))
        await asyncio.to_thread(entered.wait, 10)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        leave.set()
        await store.write(remember("after"))

    asyncio.run(scene())
    assert remembers(store, "slow")
    assert remembers(store, "after")


def test_a_closed_event_loop_does_not_stop_the_writer(store: SqlWriter) -> None:
    stopped = Stopped(store)

    async def leave_early() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(store.write(remember("late"))), 0.01)

    asyncio.run(leave_early())
    stopped.go_on()
    store.write_blocking(remember("after"))
    assert remembers(store, "after")


def test_closing_commits_what_was_handed_in(engine: sa.Engine) -> None:
    store = SqlWriter(engine)
    store.start()
    stopped = Stopped(store)
    futures = [store.submit(remember(f"k{number}")) for number in range(300)]
    closing = threading.Thread(target=store.close)
    closing.start()
    stopped.go_on()
    closing.join(10)
    assert not closing.is_alive()
    assert all(future.done() and future.exception() is None for future in futures)
    with engine.connect() as connection:
        assert records.get_fact(connection, "k299") is True


def test_a_closed_store_refuses(engine: sa.Engine) -> None:
    store = SqlWriter(engine)
    with pytest.raises(StoreFailed, match="closed"):
        store.write_blocking(remember("early"))
    store.start()
    store.close()
    store.close()
    with pytest.raises(StoreFailed, match="closed"):
        store.write_blocking(remember("late"))
    with pytest.raises(StoreFailed, match="closed"):
        asyncio.run(store.read(journal.last_seq))


def test_readers_do_not_wait_for_the_writer_and_see_only_commits(store: SqlWriter) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(connection: sa.Connection) -> None:
        records.set_fact(connection, "slow", True)
        entered.set()
        assert leave.wait(10)

    future = store.submit(slow)
    assert entered.wait(10)
    assert not remembers(store, "slow")
    leave.set()
    future.result(10)
    assert remembers(store, "slow")


def test_one_read_sees_one_state(store: SqlWriter) -> None:
    store.write_blocking(lambda c: journal.append(c, [event(1)]))

    def twice(connection: sa.Connection) -> tuple[int, int]:
        before = journal.last_seq(connection)
        store.write_blocking(lambda c: journal.append(c, [event(2)]))
        return before, journal.last_seq(connection)

    assert store.read_blocking(twice) == (1, 1)
    assert store.read_blocking(journal.last_seq) == 2


def test_a_reader_can_not_write(store: SqlWriter) -> None:
    with pytest.raises(StoreFailed, match=r"read-?only"):
        store.read_blocking(remember("sly"))
    assert not remembers(store, "sly")


def test_a_readers_own_exception_comes_back(store: SqlWriter) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(store.read(broken))


def test_eight_callers_lose_nothing(store: SqlWriter) -> None:
    async def caller(number: int) -> None:
        for step in range(40):
            await store.write(remember(f"c{number}-{step}"))

    async def scene() -> None:
        await asyncio.gather(*(caller(number) for number in range(8)))

    asyncio.run(scene())
    count = sa.text("SELECT count(*) FROM facts")
    assert store.read_blocking(lambda c: c.scalar(count)) == 320


def test_blocking_callers_on_many_threads_are_served(store: SqlWriter) -> None:
    threads = [threading.Thread(target=store.write_blocking, args=(remember(f"t{n}"),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert all(remembers(store, f"t{number}") for number in range(20))


def test_a_future_taken_back_is_never_run(store: SqlWriter) -> None:
    stopped = Stopped(store)
    future = store.submit(remember("back"))
    assert future.cancel()
    stopped.go_on()
    store.write_blocking(remember("after"))
    with pytest.raises(CancelledError):
        future.result(10)
    assert not remembers(store, "back")
