"""The event stream: replay, live, no gap and no duplicate where they meet, resume, resync, slow readers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from lab import Lab, lab, spec, until

from runtime.server import hub as hub_module
from runtime.server.hub import EventHub
from runtime.server.sse import Journal, JournalSpan, event_stream
from runtime_client.client import RuntimeClient
from runtime_client.models import EventView


def fact(seq: int | None) -> EventView:
    return EventView(seq=seq, type="job_submitted" if seq else "metrics_logged", at=0.0, actor="t")


class Memory:
    """A journal in memory that can be added to while it is read."""

    def __init__(self, n: int, *, oldest: int = 1) -> None:
        self.events = [fact(seq) for seq in range(oldest, n + 1)]
        self.oldest = oldest
        self.before_page: list[object] = []

    async def span(self) -> JournalSpan:
        last = self.events[-1].seq if self.events else 0
        return JournalSpan(oldest_seq=self.oldest, last_seq=last or 0)

    async def page(self, since: int, limit: int) -> Sequence[EventView]:
        found = [event for event in self.events if (event.seq or 0) > since][:limit]
        for act in self.before_page:
            act()  # type: ignore[operator]
        self.before_page.clear()
        return found

    def journal(self) -> Journal:
        return Journal(span=self.span, page=self.page)


async def read_all(hub: EventHub, memory: Memory, since: int, *, wait_s: float = 0.05) -> list[str]:
    """The ids of all events of one stream (type for those without)."""
    seen: list[str] = []
    stream = event_stream(hub, memory.journal(), since=since, wait_s=wait_s, keep_alive_s=15, now_s=0.0)
    async for chunk in stream:
        for message in chunk.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in message.splitlines() if not line.startswith(":"))
            if fields:
                seen.append(fields.get("id", fields["event"]) if fields["event"] != "resync" else "resync")
    return seen


def test_what_is_committed_during_the_replay_comes_once() -> None:
    async def scenario() -> list[str]:
        hub, memory = EventHub(), Memory(3)

        def commit_meanwhile() -> None:
            memory.events.append(fact(4))
            hub.publish([memory.events[1], memory.events[2], fact(4), fact(None)])

        memory.before_page.append(commit_meanwhile)
        return await read_all(hub, memory, 1)

    assert asyncio.run(scenario()) == ["2", "3", "4", "metrics_logged"]


def test_a_long_journal_is_replayed_page_by_page() -> None:
    async def scenario() -> list[str]:
        return await read_all(EventHub(), Memory(1203), 0)

    assert asyncio.run(scenario()) == [str(seq) for seq in range(1, 1204)]


@pytest.mark.parametrize("since", [0, 3, 99])
def test_a_number_outside_the_journal_gets_resync(since: int) -> None:
    async def scenario() -> list[str]:
        return await read_all(EventHub(), Memory(9, oldest=5), since)

    assert asyncio.run(scenario()) == ["resync"]


def test_the_last_number_before_the_journal_is_enough() -> None:
    async def scenario() -> list[str]:
        return await read_all(EventHub(), Memory(6, oldest=5), 4)

    assert asyncio.run(scenario()) == ["5", "6"]


def test_a_slow_reader_is_dropped_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "QUEUE_LIMIT", 4)

    async def scenario() -> tuple[bool, bool, int]:
        hub = EventHub()
        slow, quick = hub.subscribe(), hub.subscribe()
        n_read = 0
        for seq in range(1, 8):
            hub.publish([fact(seq)])
            n_read += len(await quick.next_batch(0.01))
        return slow.is_over, quick.is_over, n_read

    assert asyncio.run(scenario()) == (True, False, 7)


def test_passing_events_never_crowd_out_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "QUEUE_LIMIT", 4)

    async def scenario() -> list[int | None]:
        hub = EventHub()
        reader = hub.subscribe()
        hub.publish([fact(None)] * 50)
        hub.publish([fact(1), fact(2)])
        return [message.seq for message in await reader.next_batch(0.01)]

    assert asyncio.run(scenario()) == [None, None, 1, 2]


def test_signs_of_life_come_without_events() -> None:
    async def scenario() -> list[bytes]:
        stream = event_stream(EventHub(), Memory(0).journal(), since=0, wait_s=0.2, keep_alive_s=0.02, now_s=0.0)
        return [chunk async for chunk in stream]

    chunks = asyncio.run(scenario())
    assert len(chunks) >= 3
    assert all(chunk.startswith(b":") for chunk in chunks)


def test_a_client_sees_the_life_of_a_job(shared: Lab) -> None:
    since = shared.client.info().last_seq
    job = shared.client.submit(spec())
    shared.in_state(job.job_id, "running")
    shared.finish(job.job_id)
    shared.in_state(job.job_id, "succeeded")
    events = list(shared.client.events(since=since, wait_s=0.05))
    assert [event.type for event in events] == ["job_submitted", "start_ordered", "attempt_started", "attempt_ended"]
    assert [event.seq for event in events] == list(range(since + 1, since + 5))
    assert {event.job_id for event in events} == {job.job_id}
    assert events[-1].data["outcome"] == "succeeded"


def test_metrics_pass_by_live(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        job = made.client.submit(spec())
        made.in_state(job.job_id, "running")
        attempt = made.engine.running[0]
        seen: list[EventView] = []

        def read() -> None:
            for event in made.client.events(since=made.client.info().last_seq):
                seen.append(event)
                return

        reader = threading.Thread(target=read)
        reader.start()
        until(lambda: made.server.on_loop(lambda: len(made.server.services.hub._subscriptions)))
        made.do(lambda: made.engine.log_metric(attempt, "loss", 1.0))
        reader.join(timeout=10)
        assert [(event.seq, event.type) for event in seen] == [(None, "metrics_logged")]
        assert seen[0].data == {"job_id": job.job_id, "run_id": job.run_id, "keys": ["loss"]}


def test_a_stream_goes_on_from_last_event_id(shared: Lab) -> None:
    shared.client.submit_many([spec(), spec()])
    headers = {**shared.auth, "Last-Event-ID": "1"}
    text = shared.http.get("/v1/events?since=0&wait_s=0", headers=headers).text
    ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert ids == list(range(2, 2 + len(ids)))
    assert len(ids) >= 4


def test_a_client_goes_on_after_the_server_came_back(tmp_path: Path) -> None:
    """The connection breaks with the server; the next one replays what was missed, once."""
    with lab(tmp_path) as first:
        engine, port = first.engine, first.server.config.port
        first.client.submit(spec())
        first.in_state("j1", "running")
        stream = RuntimeClient(first.server.url, first.server.token).events(since=0)
        seen = [next(stream) for _ in range(4)]
    with lab(tmp_path, engine=engine, port=port) as second:
        second.client.submit(spec())
        while seen[-1].type != "start_ordered" or seen[-1].job_id != "j2":
            seen.append(next(stream))
        seqs = [event.seq for event in seen]
        assert seqs == list(range(1, len(seqs) + 1))


def test_many_submitters_and_a_reader_see_every_number_once(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=4) as made:
        seen: list[int] = []
        is_written = threading.Event()

        def read() -> None:
            newest = 0
            with made.server.client() as client:
                while not is_written.is_set() or newest < client.info().last_seq:
                    for event in client.events(since=newest, wait_s=1.0):
                        if event.seq is not None:
                            seen.append(event.seq)
                            newest = event.seq

        def write() -> None:
            with made.server.client() as client:
                for _ in range(15):
                    client.submit(spec())

        readers, writers = ([threading.Thread(target=work) for work in works] for works in ((read,) * 2, (write,) * 3))
        for thread in (*readers, *writers):
            thread.start()
        for thread in writers:
            thread.join(timeout=60)
        is_written.set()
        for thread in readers:
            thread.join(timeout=60)
        last = made.client.info().last_seq
        assert sorted(seen) == sorted([*range(1, last + 1)] * 2)


def test_an_orderly_end_closes_open_streams_at_once(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        ended = threading.Event()

        def read() -> None:
            headers = made.auth
            with httpx.Client(trust_env=False, timeout=20) as http:
                http.get(f"{made.server.url}/v1/events", headers=headers)
            ended.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        until(lambda: made.server.on_loop(lambda: len(made.server.services.hub._subscriptions)))
    assert ended.wait(timeout=3)
