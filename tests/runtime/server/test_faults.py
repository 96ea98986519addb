"""What goes wrong: full disks, restarts, bugs, a taken port, a second server. Nothing is lost, everything is said."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from lab import Lab, key, lab, spec, until

from runtime.engines.contract import Started
from runtime.engines.fake import ByHand, FakeEngine, fake_node
from runtime.model.check import check
from runtime.model.codec import encode_state
from runtime.server import loop as loop_module
from runtime.server.app import serve
from runtime.server.config import ServerConfig
from runtime.server.occupancy import HomeOccupied, lock_home
from runtime.server.recovery import recover
from runtime.store import journal
from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError, ServerFault


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand()) as found:
        yield found


def limit_pages(made: Lab, n_more: int | None) -> None:
    """Let the database grow by so many pages from now on; None: without limit."""

    def unit(connection: sa.Connection) -> None:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        most = 2**30 if n_more is None else used + n_more
        connection.exec_driver_sql(f"PRAGMA max_page_count={most}")

    made.server.services.store.write_blocking(unit)


def assert_replay_equals_live(made: Lab) -> None:
    """What is committed tells the same as memory; asked until nothing is under way."""

    def is_equal() -> bool:
        services = made.server.services
        check(services.loop.state)
        replayed = services.store.read_blocking(recover).state
        return encode_state(replayed) == encode_state(services.loop.state)

    until(lambda: made.server.on_loop(is_equal))


def test_a_full_disk_refuses_new_work_and_loses_no_report(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    limit_pages(made, 0)
    big = {"blob": "x" * 50_000}
    with pytest.raises(ServerFault, match="no space left") as refused:
        made.client.submit(spec(parameters=big))
    assert (refused.value.code, refused.value.retryable) == ("store_full", True)
    assert [job.job_id for job in made.client.jobs()] == ["j1"]
    assert any("no space left" in notice for notice in made.client.info().notices)

    made.do(lambda: made.engine.print(key("j1"), "Traceback (most recent call last):\n" + "E: " + "y" * 400 + "\n"))
    made.finish("j1", exit_code=1)
    with pytest.raises(ServerFault):
        made.client.submit(spec(parameters=big))
    limit_pages(made, None)
    assert made.in_state("j1", "failed").exit_reason == "code_error"
    assert made.client.submit(spec(parameters=big)).job_id == "j2"
    assert made.client.info().notices == ()
    assert_replay_equals_live(made)


def test_after_a_failed_commit_nothing_of_it_is_remembered(made: Lab) -> None:
    limit_pages(made, 0)
    with pytest.raises(ServerFault):
        made.client.submit(spec(parameters={"blob": "x" * 50_000}, idempotency_token="t"))
    limit_pages(made, None)
    assert made.client.submit(spec(idempotency_token="t")).job_id == "j1"
    assert made.engine.running == (key("j1"),)


def test_a_restarted_server_adopts_what_runs(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as first:
        first.client.submit_many([spec(), spec(idempotency_token="t")])
        first.in_state("j1", "running")
        engine = first.engine
    with lab(tmp_path, engine=engine) as second:
        (node,) = second.client.nodes()
        assert (node.generation, node.devices[0].job_id) == (2, "j1")
        assert second.client.job("j1").state == "running"
        assert second.client.submit(spec(idempotency_token="t")).job_id == "j2"
        second.finish("j1")
        second.in_state("j1", "succeeded")
        second.in_state("j2", "running")
        assert list(engine.attempts) == [key("j1"), key("j2")]
        assert_replay_equals_live(second)


def test_what_ended_while_the_server_was_away_is_learned(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand()) as first:
        first.client.submit(spec())
        first.in_state("j1", "running")
        engine = first.engine
    engine.attempts[key("j1")].generation = 2  # reports carry the registration under which they are made
    engine.finish(key("j1"))
    with lab(tmp_path, engine=engine) as second:
        ended = second.in_state("j1", "succeeded")
        assert len(ended.attempts) == 1


def test_an_order_that_was_never_carried_out_is_carried_out_by_the_next_server(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand()) as first:
        first.client.submit(spec())
        first.in_state("j1", "running")
    fresh = FakeEngine(nodes=(fake_node(),), script=ByHand())
    with lab(tmp_path, engine=fresh) as second:
        until(lambda: fresh.running == (key("j1"),))
        assert second.client.job("j1").state == "running"


def test_a_stop_is_repeated_after_a_restart(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand()) as first:
        first.client.submit(spec(grace_seconds=1000))
        first.in_state("j1", "running")
        first.client.cancel("j1")
        engine = first.engine
        until(lambda: engine.stops)
    engine.stops.clear()
    with lab(tmp_path, engine=engine):
        (order,) = until(lambda: engine.stops)
        assert (order.key, order.cause) == (key("j1"), "cancel")
        assert 900 < order.grace_s <= 1000


def test_jobs_on_devices_that_are_gone_are_queued_again(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand()) as first:
        first.client.submit_many([spec(), spec()])
        first.in_state("j2", "running")
    smaller = FakeEngine(nodes=(fake_node(n_devices=1),), script=ByHand())
    with lab(tmp_path, engine=smaller) as second:
        waiting = second.client.job("j2")
        assert (waiting.state, waiting.attempts[0].outcome) == ("queued", "node_lost")
        assert second.client.job("j1").state == "running"
        assert_replay_equals_live(second)


def test_snapshots_shorten_the_replay_and_old_events_go(tmp_path: Path) -> None:
    with lab(tmp_path, snapshot_every=10, journal_keep_s=0.0) as first:
        for _ in range(12):
            job = first.client.submit(spec())
            first.in_state(job.job_id, "running")
            first.finish(job.job_id)
            first.in_state(job.job_id, "succeeded")
        kept = first.server.services.store.read_blocking(journal.first_seq)
        assert kept > 10
        assert_replay_equals_live(first)
        seen = list(first.client.events(since=0, wait_s=0))
        assert [(event.type, event.seq) for event in seen] == [("resync", first.client.info().last_seq)]
    with lab(tmp_path) as second:
        assert second.client.submit(spec()).job_id == "j13"
        assert_replay_equals_live(second)


def cut(text: str, share: float) -> str:
    return text[: int(len(text) * share)]


@pytest.mark.parametrize(
    "damage",
    [
        *(partial(cut, share=share) for share in (0.0, 0.01, 0.5, 0.99)),
        lambda text: text.replace('"jobs":', '"jobs":7,"were":'),
        lambda text: text.replace('"recent":{', '"recent":[],"were":{'),
        lambda text: "[]",
        lambda text: "\x00" * 40,
    ],
)
def test_a_damaged_snapshot_falls_back_to_the_older_one(tmp_path: Path, damage: Callable[[str], str]) -> None:
    with lab(tmp_path, snapshot_every=4, journal_keep_s=0.0) as first:
        for _ in range(6):
            job = first.client.submit(spec())
            first.in_state(job.job_id, "running")
            first.finish(job.job_id)
            first.in_state(job.job_id, "succeeded")
        last = first.client.submit(spec())
        first.in_state(last.job_id, "running")
    with sqlite3.connect(tmp_path / "runtime.db") as database:
        seq, text = database.execute("SELECT seq, payload FROM snapshots ORDER BY seq DESC LIMIT 1").fetchone()
        assert database.execute("SELECT count(*) FROM snapshots").fetchone() == (2,)
        database.execute("UPDATE snapshots SET payload = ? WHERE seq = ?", (damage(text), seq))
    database.close()
    with lab(tmp_path) as second:
        assert second.client.job(last.job_id).state in ("starting", "running")
        assert second.client.submit(spec()).job_id == "j8"
        assert_replay_equals_live(second)


def test_a_report_of_an_earlier_registration_changes_nothing(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    before = made.client.info().last_seq
    made.do(lambda: made.server.services.loop.report(Started(key=key("j1"), generation=0, pid=1, at_s=0.0)))
    made.do(lambda: made.server.services.loop.report(Started(key=key("j1", 7), generation=1, pid=1, at_s=0.0)))
    made.client.submit(spec(compute={"num_accelerators": 2}))
    assert made.client.info().last_seq == before + 1


def plant_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs whose command is `poison` make the loop fail."""
    real = loop_module.take

    def take(draft: Any, submission: Any, *args: Any, **named: Any) -> Any:
        taken = real(draft, submission, *args, **named)
        if submission.spec.command == "poison":
            raise ZeroDivisionError("planted")
        return taken

    monkeypatch.setattr(loop_module, "take", take)


def test_a_bug_in_a_round_costs_its_request_alone(made: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_a_bug(monkeypatch)
    for n in range(1, 5):
        with pytest.raises(ServerFault, match="planted") as raised:
            made.client.submit(spec(command="poison"))
        assert (raised.value.code, raised.value.retryable) == ("bug", False)
        assert made.client.submit(spec()).job_id == f"j{n}"
    assert_replay_equals_live(made)


def test_a_bug_that_stays_ends_the_server(made: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def schedule(*args: Any, **named: Any) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(loop_module, "schedule", schedule)
    with pytest.raises(RuntimeClientError):
        made.client.submit(spec())

    def is_gone() -> bool:
        try:
            RuntimeClient(made.server.url, made.server.token, n_tries=1).info()
        except RuntimeClientError:
            return True
        return False

    until(is_gone)


def test_a_taken_port_is_said_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as stopped:
            serve(ServerConfig(home=tmp_path, port=port, devices="cpu:1"))
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert f"port {port} on 127.0.0.1 can not be used" in said
    assert f"--port {port + 1}" in said
    assert "Traceback" not in said


def test_an_address_that_others_reach_must_be_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        serve(ServerConfig(home=tmp_path, host="0.0.0.0", port=0))
    assert stopped.value.code == 2
    assert "allowed_hosts" in capsys.readouterr().err


def test_one_home_has_one_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = ServerConfig(home=tmp_path, port=0)
    lock = lock_home(config.lock_path)
    with pytest.raises(HomeOccupied):
        lock_home(config.lock_path)
    with pytest.raises(SystemExit) as stopped:
        serve(config)
    assert stopped.value.code == 2
    holder = config.lock_path.read_text().strip()
    assert f"process {holder}" in capsys.readouterr().err
    lock.release()
    lock_home(config.lock_path).release()


@pytest.mark.parametrize("damage", [b"not a database at all, but long enough to be looked at" * 40, b""])
def test_a_damaged_database_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: bytes
) -> None:
    config = ServerConfig(home=tmp_path, port=0, devices="nonsense:1")
    (tmp_path / "runtime.db").write_bytes(damage)
    with pytest.raises(SystemExit) as stopped:
        serve(config)
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert ("damaged" in said) if damage else ("nonsense" in said)
    assert "Traceback" not in said


def test_the_address_file_is_there_exactly_while_the_server_is(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        found = json.loads(made.server.config.address_path.read_text())
        assert found["url"] == made.server.url
        assert set(found) == {"url", "pid", "started_at", "mlflow_url"}
        with RuntimeClient.from_home(tmp_path) as client:
            assert client.info().n_devices == 2
    assert not made.server.config.address_path.exists()


def test_little_space_is_told_at_once_though_nothing_else_happens(tmp_path: Path) -> None:
    now = [1000.0]
    with lab(tmp_path, low_disk_bytes=1, clock=lambda: now[0]) as made:
        assert made.client.info().notices == ()
        made.engine.free = 0
        now[0] += 10.0
        assert "low disk" in made.client.info().notices[0]
