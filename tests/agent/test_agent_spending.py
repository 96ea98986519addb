"""What a language model's calls book and pay."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from agent_worlds import a_task, a_world

from agent.spending import Permit, Spending
from agent.store.fenced import FencedWriter, FenceLost
from agent.store.record import SessionRecord
from agent.store.store import AgentStore
from nightlab.session_page import print_session, session_data


def a_session(tmp_path: Path, **budgets: float) -> tuple[AgentStore, Spending]:
    task = a_task(budgets={"trials": 6, **budgets})
    store = AgentStore.open(tmp_path)
    store.create_session(task)
    return store, Spending(task, record_of(store), lambda: 0.0)


def record_of(store: AgentStore) -> SessionRecord:
    return SessionRecord(FencedWriter(store, "s1", store.claim("s1", os.getpid())))


def test_a_call_books_what_it_may_need_and_pays_what_it_used(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000, cost_usd=1)
    permit = spending.can_spend(800, 0.5)
    assert permit == Permit(refusal=None, tokens=800, cost_usd=0.5)
    assert (store.session("s1").tokens, store.session("s1").cost_usd) == (800, 0.5)
    spending.spent(permit, 300, 0.125)
    assert (store.session("s1").tokens, store.session("s1").cost_usd) == (300, 0.125)


def test_calls_side_by_side_can_not_overdraw_a_budget_together(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    permits: list[Permit] = []
    threads = [threading.Thread(target=lambda: permits.append(spending.can_spend(300))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(permit.is_granted for permit in permits) == 3
    assert store.session("s1").tokens == 900
    refused = next(permit for permit in permits if not permit.is_granted)
    assert refused.refusal == "budgets.tokens: 900 of 1000 are used, and this call may need 300 more"


def test_a_process_that_dies_during_a_call_has_paid_for_it(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    spending.can_spend(800)
    again = Spending(a_task(budgets={"trials": 6, "tokens": 1000}), record_of(store))
    assert again.can_spend(300).refusal == "budgets.tokens: 800 of 1000 are used, and this call may need 300 more"


def test_a_call_that_used_more_than_it_said_is_booked_and_the_next_is_refused(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    spending.spent(spending.can_spend(10), 1200)
    assert store.session("s1").tokens == 1200
    assert spending.can_spend(0).refusal == "budgets.tokens: 1200 of 1000 are used"


def test_a_process_that_was_overtaken_books_nothing(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    record_of(store)
    with pytest.raises(FenceLost):
        spending.can_spend(100)
    assert store.session("s1").tokens == 0


def test_trials_in_flight_count_where_device_time_has_a_price(tmp_path: Path) -> None:
    task = a_task(budgets={"trials": 6, "cost_usd": 1, "usd_per_device_hour": 3.6})
    store = AgentStore.open(tmp_path)
    store.create_session(task)
    spending = Spending(task, record_of(store), lambda: 900.0)
    assert spending.can_spend(1, 0.2).refusal == "budgets.cost_usd: 0.90 of 1 are used, and this call may need 0.2 more"


def test_a_session_that_has_used_up_its_money_ends_with_what_it_has_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets = {"trials": 50, "cost_usd": 0.2, "usd_per_device_hour": 3.6}
    world = a_world(tmp_path, task=a_task(budgets=budgets))
    world.live()
    session = world.store.session("s1")
    longest_s, n_in_flight = 12.0, 3
    assert session.device_seconds <= 200 + longest_s * n_in_flight
    assert session.result is not None
    text = "\n".join(line.text for line in world.store.activity("s1", limit=1000))
    assert "device-seconds left are needed for" in text
    print_session(world.store, "s1")
    assert f"cost_usd: {session.device_seconds / 1000:.2f} of 0.2" in capsys.readouterr().out
    assert session_data(world.store, "s1")["budgets"][4]["limit"] == 0.2  # type: ignore[index]
