"""What a language model's calls book and pay."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from agent_worlds import a_task, a_world

from agent.llm.chat import Outcome, Trouble, Usage
from agent.planner.budget import CallNeed
from agent.spending import Permit, Spending
from agent.store.calls import CallBook, CallFacts, model_calls_of
from agent.store.fenced import FencedWriter, FenceLost
from agent.store.store import AgentStore
from agent.task import Prices
from nightlab.session_page import print_session, session_data

FACTS = CallFacts(purpose="ideas", model="tiny")
DOLLAR_A_TOKEN = Prices(prompt=1e6, completion=1e6)


def a_session(tmp_path: Path, **budgets: float) -> tuple[AgentStore, Spending]:
    task = a_task(budgets={"trials": 6, **budgets})
    store = AgentStore.open(tmp_path)
    store.create_session(task)
    return store, Spending(task, book_of(store))


def book_of(store: AgentStore) -> CallBook:
    return CallBook(FencedWriter(store, "s1", store.claim("s1", os.getpid())))


def need(prompt: int, answer: int, price: Prices | None = None) -> CallNeed:
    return CallNeed(prompt_tokens=prompt, max_tokens=answer, least_tokens=answer, price=price)


def used(prompt: int, completion: int) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def sums_agree(store: AgentStore) -> bool:
    """The session's sums are those of its calls."""
    session, calls = store.session("s1"), model_calls_of(store, "s1")
    tokens = sum(call.prompt_tokens + call.completion_tokens for call in calls)
    return (session.tokens, session.cost_usd) == (tokens, sum(call.cost_usd or 0.0 for call in calls))


def test_a_call_books_what_it_may_need_and_pays_what_it_used(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000, cost_usd=1000)
    permit = spending.begin(FACTS, need(300, 500, DOLLAR_A_TOKEN))
    assert (permit.refusal, permit.max_tokens, permit.booked.cost_usd) == (None, 500, 800.0)
    assert (store.session("s1").tokens, store.session("s1").cost_usd) == (800, 800.0)
    assert [call.outcome for call in model_calls_of(store, "s1")] == ["open"]
    assert sums_agree(store)
    spending.end(permit, Outcome.USED, usage=used(250, 50), took_s=2.0, model="tiny-1")
    assert (store.session("s1").tokens, store.session("s1").cost_usd) == (300, 300.0)
    (call,) = model_calls_of(store, "s1")
    assert (call.outcome, call.model, call.prompt_tokens, call.completion_tokens) == ("used", "tiny-1", 250, 50)
    assert sums_agree(store)


def test_calls_side_by_side_can_not_overdraw_a_budget_together(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    permits: list[Permit] = []
    threads = [threading.Thread(target=lambda: permits.append(spending.begin(FACTS, need(200, 100)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(permit.is_granted for permit in permits) == 3
    assert store.session("s1").tokens == 900
    refused = next(permit for permit in permits if not permit.is_granted)
    assert refused.refusal == "budgets.tokens: 900 of 1000 are used, and this call may need 300 more"
    assert sorted(call.outcome for call in model_calls_of(store, "s1")) == ["open"] * 3 + ["over_budget"] * 5


def test_a_process_that_dies_during_a_call_has_paid_for_it(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    spending.begin(FACTS, need(600, 200))
    again = Spending(a_task(budgets={"trials": 6, "tokens": 1000}), book_of(store))
    refusal = again.begin(FACTS, need(200, 100)).refusal
    assert refusal == "budgets.tokens: 800 of 1000 are used, and this call may need 300 more"
    assert sums_agree(store)


def test_an_answer_is_cut_to_what_is_left_and_not_below_what_is_worth_asking_for(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    wish = CallNeed(prompt_tokens=400, max_tokens=2000, least_tokens=300, price=None)
    assert spending.begin(FACTS, wish).max_tokens == 600
    assert store.session("s1").tokens == 1000
    _, spending = a_session(tmp_path / "other", tokens=699)
    assert spending.begin(FACTS, wish).refusal == "budgets.tokens: 0 of 699 are used, and this call may need 700 more"


def test_an_answer_is_cut_to_the_money_that_is_left(tmp_path: Path) -> None:
    _, spending = a_session(tmp_path, cost_usd=100)
    wish = CallNeed(prompt_tokens=10, max_tokens=500, least_tokens=20, price=Prices(prompt=1e6, completion=2e6))
    assert spending.begin(FACTS, wish).max_tokens == 45


def test_a_call_that_used_more_than_it_said_is_booked_and_the_next_is_refused(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    spending.end(spending.begin(FACTS, need(5, 5)), Outcome.USED, usage=used(600, 600), took_s=1.0)
    assert store.session("s1").tokens == 1200
    refusal = spending.begin(FACTS, need(0, 0)).refusal
    assert refusal == "budgets.tokens: 1200 of 1000 are used"


def test_what_nobody_knows_is_paid_as_it_was_booked(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    spending.end(spending.begin(FACTS, need(300, 100)), Trouble.TIMED_OUT, usage=None, took_s=9.0, note="late")
    (call,) = model_calls_of(store, "s1")
    assert (store.session("s1").tokens, call.outcome, call.note, call.took_s) == (400, "timed_out", "late", 9.0)


def test_a_model_without_a_price_costs_no_money_and_its_calls_say_so(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, cost_usd=1)
    spending.end(spending.begin(FACTS, need(300, 100)), Outcome.USED, usage=used(300, 10), took_s=1.0)
    assert model_calls_of(store, "s1")[0].cost_usd is None
    assert (store.session("s1").tokens, store.session("s1").cost_usd) == (310, 0.0)


def test_a_process_that_was_overtaken_books_nothing(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path, tokens=1000)
    permit = spending.begin(FACTS, need(50, 50))
    book_of(store)
    with pytest.raises(FenceLost):
        spending.begin(FACTS, need(50, 50))
    with pytest.raises(FenceLost):
        spending.end(permit, Outcome.USED, usage=used(1, 1), took_s=1.0)
    assert store.session("s1").tokens == 100
    assert sums_agree(store)


def test_what_an_endpoint_says_fits_into_the_row(tmp_path: Path) -> None:
    store, spending = a_session(tmp_path)
    permit = spending.begin(CallFacts(purpose="p" * 100, model="m" * 300), need(1, 1))
    spending.end(permit, Trouble.FAILED, usage=used(0, 0), took_s=0.1, model="\x00" + "n" * 500, note="\ud800x" * 5000)
    (call,) = model_calls_of(store, "s1")
    assert (len(call.purpose), call.model, call.note) == (60, "n" * 200, "x" * 2000)


def test_trials_in_flight_count_where_device_time_has_a_price(tmp_path: Path) -> None:
    task = a_task(budgets={"trials": 6, "cost_usd": 1, "usd_per_device_hour": 3.6})
    store = AgentStore.open(tmp_path)
    store.create_session(task)
    spending = Spending(task, book_of(store), lambda: 900.0)
    refusal = spending.begin(FACTS, need(1, 1, Prices(prompt=0.1e6, completion=0.1e6))).refusal
    assert refusal == "budgets.cost_usd: 0.90 of 1 are used, and this call may need 0.2 more"


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
