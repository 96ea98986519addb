"""`nightlab model calls` and the page of a session: tokens and money of a language model by purpose."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from agent_worlds import a_task

from agent.llm.chat import Outcome, Trouble, Usage
from agent.llm.turns import turns
from agent.planner.budget import CallNeed
from agent.spending import Spending
from agent.store.calls import CUT_OFF, CallBook, CallFacts, Used
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore
from agent.task import Prices
from nightlab.__main__ import main
from nightlab.session_page import print_session, session_data


def test_calls_are_told_one_by_one_and_by_purpose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = AgentStore.open(tmp_path)
    task = a_task()
    store.create_session(task)
    spending = Spending(task, CallBook(FencedWriter(store, "s1", store.claim("s1", os.getpid()))))
    price = Prices(prompt=1000.0, completion=2000.0)
    for purpose, outcome, told in (
        ("suggest", Outcome.USED, Usage(prompt_tokens=1000, completion_tokens=500)),
        ("suggest", Trouble.FAILED, Usage(prompt_tokens=0, completion_tokens=0)),
        ("doctor", Outcome.USED, Usage(prompt_tokens=10, completion_tokens=5)),
    ):
        known = price if purpose == "suggest" else None
        need = CallNeed(prompt_tokens=10, max_tokens=10, least_tokens=10, price=known)
        permit = spending.begin(CallFacts(purpose=purpose, model="tiny", rung="schema"), need)
        spending.end(permit, outcome, usage=told, took_s=1.0)
    with pytest.raises(SystemExit) as ended:
        main(["model", "calls", "s1", "--home", str(tmp_path), "--json"])
    assert ended.value.code == 0
    told_json = json.loads(capsys.readouterr().out)["data"]
    assert [call["outcome"] for call in told_json["calls"]] == ["used", "failed", "used"]
    sums = [(row["purpose"], row["n_calls"], row["n_used"], row["cost_usd"]) for row in told_json["by_purpose"]]
    assert sums == [("suggest", 2, 1, 2.0), ("doctor", 1, 1, 0.0)]
    print_session(store, "s1")
    shown = capsys.readouterr().out
    assert "model for suggest: 2 calls, 1 used, 1,500 tokens, 2.0000 USD" in shown
    assert "model for doctor: 1 call, 1 used, 15 tokens, price unknown" in shown
    assert session_data(store, "s1")["model_calls"] == told_json["by_purpose"]


def test_calls_that_an_earlier_process_left_open_are_lost_once_and_stay_booked(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())

    def begin() -> CallBook:
        book = CallBook(FencedWriter(store, "s1", store.claim("s1", os.getpid())))
        assert book.close_open() == len([call for call in book.calls() if call.outcome == CUT_OFF])
        booked = Used(prompt_tokens=30, completion_tokens=12, cost_usd=0.5)
        book.begin(CallFacts(purpose="suggest", model="tiny"), lambda _: booked, "over_budget")
        return book

    begin()
    book = begin()
    assert [call.outcome for call in book.calls()] == [CUT_OFF, "open"]
    session = store.session("s1")
    assert (session.tokens, session.cost_usd) == (84, 1.0)
    assert (turns(book.calls()).n_lost, turns(book.calls()).tokens) == (1, 84)
