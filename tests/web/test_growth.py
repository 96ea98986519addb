"""The stream that says when a running trial has logged or printed more."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from trial_worlds import lived_world

from agent.store.views import TrialState, TrialView
from agent.web.app import create_app
from agent.web.events import HELLO, SIGN_OF_LIFE, Pulse
from agent.web.growth import MORE, growth_stream, size_of
from agent.web.keys import Keys
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec
from runtime_client.protocol import Runtime


@dataclass(slots=True)
class Running:
    """A trial whose job runs for 10 seconds and logs in each."""

    runtime: FakeRuntime
    trial: TrialView
    is_away: bool = False

    def connect(self) -> AbstractContextManager[Runtime]:
        if self.is_away:
            raise Unreachable("away", code="not_running", retryable=True)
        return nullcontext(self.runtime)

    def stream(self, pulse: Pulse, *, look_every_s: float = 0.001) -> AsyncIterator[bytes]:
        return growth_stream(pulse, lambda: self.trial, self.connect, look_every_s=look_every_s)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialView]:
    world = lived_world(tmp_path_factory.mktemp("home"))
    yield world.store.trial("s1-t1")
    world.store.close()


@pytest.fixture
def running(ended: TrialView) -> Running:
    runtime = FakeRuntime(lambda _spec: FakeOutcome(curves={"loss": [9.0 - n for n in range(10)]}))
    job = runtime.submit(JobSpec(experiment_name="e", command="train"))
    return Running(runtime, replace(ended, state=TrialState.LAUNCHED, job_id=job.job_id))


async def next_but_life(stream: AsyncIterator[bytes]) -> bytes:
    while (sent := await asyncio.wait_for(anext(stream), 10)) == SIGN_OF_LIFE:
        pass
    return sent


def test_it_tells_of_more_once_and_ends_with_the_trial(running: Running) -> None:
    async def heard() -> list[bytes]:
        stream = running.stream(Pulse(lambda: 0))
        found = [await anext(stream)]
        running.runtime.advance(3.0)
        found.append(await next_but_life(stream))
        waits = asyncio.ensure_future(next_but_life(stream))
        await asyncio.sleep(0.05)
        assert not waits.done()
        running.trial = replace(running.trial, state=TrialState.MEASURED)
        found += [await waits, *[one async for one in stream]]
        return found

    assert asyncio.run(heard()) == [HELLO, MORE, MORE]


def test_a_runtime_that_is_away_is_no_news_and_what_came_meanwhile_is(running: Running) -> None:
    async def heard() -> bytes:
        stream = running.stream(Pulse(lambda: 0))
        await anext(stream)
        running.is_away = True
        running.runtime.advance(2.0)
        waits = asyncio.ensure_future(next_but_life(stream))
        await asyncio.sleep(0.05)
        assert not waits.done()
        running.is_away = False
        return await waits

    assert asyncio.run(heard()) == MORE


def test_one_that_is_quiet_shows_that_it_lives(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.web.growth.KEEP_ALIVE_S", 0.003)

    async def heard() -> bytes:
        stream = running.stream(Pulse(lambda: 0))
        await anext(stream)
        return await asyncio.wait_for(anext(stream), 10)

    assert asyncio.run(heard()) == SIGN_OF_LIFE


def test_it_ends_with_the_service(running: Running) -> None:
    async def heard() -> list[bytes]:
        pulse = Pulse(lambda: 0)
        stream = running.stream(pulse)
        await anext(stream)
        pulse.close()
        return [one async for one in stream if one != SIGN_OF_LIFE]

    assert asyncio.run(heard()) == []


def test_a_trial_without_a_job_has_no_size(running: Running) -> None:
    assert size_of(replace(running.trial, job_id=None), running.connect) is None
    assert size_of(replace(running.trial, job_id="j77"), running.connect) is None


def test_of_an_ended_trial_nothing_more_comes(tmp_path: Path) -> None:
    world = lived_world(tmp_path)
    app = create_app(world.store, Keys(owner_token="o", reader_token="r"), tmp_path)

    async def asked(trial_id: str) -> tuple[int, str]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7072") as client:
            path = f"/v1/trials/{trial_id}/growth"
            answer = await client.get(path, headers={"Authorization": "Bearer r"})
            return answer.status_code, answer.json()["error"]["code"]

    assert asyncio.run(asked("s1-t1")) == (409, "trial_ended")
    assert asyncio.run(asked("s1-t999")) == (404, "unknown_trial")
    world.store.close()
