"""Word of a session gets out: what is told, once each, and never at the session's cost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from agent_worlds import a_task
from loopback_servers import webhook
from test_agent_ahead import a_history

from agent.frontdoors.messenger import Messenger
from agent.notices.notice import Notice
from agent.notices.session_events import events, patience_s
from agent.notices.telling import Delivery
from agent.planner.budget import Cap
from agent.service import run_service
from agent.store.store import AgentStore
from agent.store.tellings import TellingStore
from agent.store.views import SessionState, SessionView
from agent.task import Address


@dataclass(slots=True)
class Post:
    """Takes what is sent."""

    outcome: str = "sent"
    sent: list[Notice] = field(default_factory=list)

    def __call__(self, letters: Sequence[tuple[Address, Notice]]) -> list[Delivery]:
        self.sent += [notice for _, notice in letters]
        return [Delivery(address="json://a", outcome=self.outcome) for _ in letters]


@dataclass(slots=True)
class Desk:
    store: AgentStore
    now: list[float]

    def session(self, on: tuple[str, ...] = ("approval", "stalled", "budget", "ended")) -> SessionView:
        return self.store.create_session(a_task(notify=[{"url": "json://a", "on": on}]))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    now = [1e9]
    return Desk(store=AgentStore.open(tmp_path, clock=lambda: now[0]), now=now)


def test_a_stall_is_told_once_after_thirty_minutes_without_anything(desk: Desk) -> None:
    desk.session()
    post = Post()
    messenger = Messenger(store=desk.store, send=post)
    for seconds in (0.0, 1799.0, 1.0, 5.0, 3600.0):
        desk.now[0] += seconds
        messenger.look()
        assert len(post.sent) == (0 if desk.now[0] < 1e9 + 1800 else 1)
    assert "no trial has ended and none was launched for 30 minutes" in post.sent[0].body


def test_time_in_which_nobody_saw_it_run_is_no_stall(desk: Desk) -> None:
    desk.session()
    desk.now[0] += 7200.0
    post = Post()
    Messenger(store=desk.store, send=post).look()
    assert post.sent == []


def test_trials_that_take_longer_are_waited_for_twice_as_long() -> None:
    assert patience_s(a_history(60.0).trials) == 1800.0
    assert patience_s(a_history(60.0, 4000.0).trials) == 8000.0


def test_most_of_a_budget_is_told_once_for_each_limit(desk: Desk) -> None:
    session = desk.session()

    def keys(used: float, limit: float) -> list[str]:
        caps = [Cap(name="trials", used=used, limit=limit), Cap(name="tokens", used=9e9, limit=None)]
        return [one.key for one in events(session, [], [], caps, running_since=desk.now[0], now=desk.now[0])]

    assert keys(7.9, 10) == []
    assert keys(8, 10) == keys(10, 10) == ["budget-trials-10"]
    assert keys(16, 20) == ["budget-trials-20"]


def test_an_end_is_told_once_and_nothing_is_left_to_tell(desk: Desk) -> None:
    session = desk.session()
    desk.store.fail(session.session_id, "the runtime <burned> @everyone")
    post = Post()
    assert Messenger(store=desk.store, send=post).look()
    assert not Messenger(store=desk.store, send=post).look()
    (told,) = post.sent
    assert told.title == "s1 (toy) is failed"
    assert "‹burned›" in told.body
    assert "@everyone" not in told.body


def test_an_end_after_a_resume_is_told_again(desk: Desk) -> None:
    view = desk.session()
    ended = replace(view, state=SessionState.STOPPED, fence=1)
    again = replace(ended, fence=2)
    keys = {events(one, [], [], [], running_since=0.0, now=0.0)[0].key for one in (ended, again)}
    assert keys == {"ended-1", "ended-2"}


def test_a_messenger_that_was_killed_before_it_was_told_tells_again(desk: Desk) -> None:
    session = desk.session()
    desk.store.fail(session.session_id, "over")
    TellingStore(desk.store).intend(session.session_id, f"ended-{session.fence}")
    post = Post()
    Messenger(store=desk.store, send=post).look()
    assert len(post.sent) == 1


def test_what_could_not_be_told_is_kept_with_the_reason_and_not_tried_for_ever(desk: Desk) -> None:
    session = desk.session()
    desk.store.fail(session.session_id, "over")
    post = Post(outcome="failed")
    messenger = Messenger(store=desk.store, send=post)
    assert [messenger.look(), messenger.look()] == [True, False]
    assert TellingStore(desk.store).lost("s1") == [(f"ended-{session.fence}", "json://a: not told")]


def test_nobody_is_told_what_they_did_not_ask_for_and_a_task_without_addresses_needs_no_messenger(desk: Desk) -> None:
    desk.store.create_session(a_task(description='"notify":[{'))
    assert TellingStore(desk.store).to_tell() == []
    session = desk.session(on=("approval",))
    desk.store.fail(session.session_id, "over")
    post = Post()
    assert Messenger(store=desk.store, send=post).look()
    assert (post.sent, TellingStore(desk.store).to_tell()) == ([], [])


@pytest.mark.acceptance
def test_the_service_has_people_told_and_the_process_that_tells_ends_by_itself(tmp_path: Path) -> None:
    leaving = threading.Event()
    with webhook() as (port, came), closing(AgentStore.open(tmp_path)) as store:
        session = store.create_session(a_task(notify=[{"url": f"json://127.0.0.1:{port}/"}]))
        store.fail(session.session_id, "the runtime burned")
        service = threading.Thread(target=run_service, args=(tmp_path,), kwargs={"leaving": leaving})
        service.start()
        until = time.monotonic() + 60.0
        while TellingStore(store).to_tell() and time.monotonic() < until:
            leaving.wait(0.1)
        leaving.set()
        service.join()
        assert TellingStore(store).to_tell() == []
        assert TellingStore(store).lost("s1") == []
    ((_, body),) = came
    assert json.loads(body)["title"] == "s1 (toy) is failed"
