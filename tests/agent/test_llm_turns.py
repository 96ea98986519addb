"""Lost turns: calls that were made and gave nothing usable, of all that were made."""

from __future__ import annotations

from dataclasses import replace

from agent.llm.rung import Rung
from agent.llm.turns import rung_steps, turns
from agent.store.views import ModelCallView


def a_call(outcome: str, cost_usd: float | None = 0.5) -> ModelCallView:
    return ModelCallView(
        call_id=1, at=0.0, purpose="suggest", prompt_version=None, model="small", rung="tools", outcome=outcome,
        prompt_tokens=10, completion_tokens=5, cost_usd=cost_usd, took_s=1.0,
    )  # fmt: skip


def test_unusable_answers_and_silence_are_lost_and_calls_that_were_not_made_are_none() -> None:
    outcomes = ("used", "used", "unusable", "timed_out", "over_budget", "forbidden", "open")
    found = turns([a_call(one) for one in outcomes])
    assert (found.n_calls, found.n_lost, found.lost_turns_percent) == (4, 2, 50.0)
    assert [(one.reason, one.n_calls) for one in found.lost] == [("unusable", 1), ("timed_out", 1)]
    assert (found.n_answered, found.n_not_made) == (2, 2)
    assert (found.tokens, found.cost_usd) == (105, 3.5)


def test_without_calls_no_share_is_made_up_and_unknown_prices_are_told() -> None:
    assert turns([]).lost_turns_percent is None
    assert turns([a_call("used", None)]).words == "1 calls, 15 tokens, 0 USD, 1 calls of unknown price"


def test_the_steps_of_the_ladder_are_those_that_a_session_takes() -> None:
    calls = [a_call("used"), *[a_call("unusable")] * 4, a_call("over_budget"), a_call("timed_out")]
    assert [(one.before, one.after) for one in rung_steps(calls, "tools")] == [(Rung.TOOLS, Rung.SCHEMA)]
    assert rung_steps(calls[1:], "schema") == ()
    begun_lower = [replace(a_call("used"), rung="schema")] * 5
    assert rung_steps(begun_lower, "tools") == ()
