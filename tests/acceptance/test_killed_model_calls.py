"""A session process that is killed with SIGKILL while its language model does not answer, and goes on after it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from fault_lab import FaultLab, check_nothing_is_left, curve_task, eventually
from model_endpoint import Answering, calls, model_endpoint

from agent.llm.turns import turns
from agent.store.calls import CUT_OFF, OPEN, model_calls_of
from agent.store.views import Purpose, SessionState

pytestmark = pytest.mark.kills

PRICE = "{prompt: 1000, completion: 2000}"
FIRST, SECOND = 0.35, 0.55


def hangs(answering: Answering) -> None:
    answering.over.wait(120)


def ideas(*values: float) -> str:
    return json.dumps({"trials": [{"parameters": {"x": x}, "why": "near the middle"} for x in values]})


def test_a_kill_in_the_middle_of_a_call_loses_that_call_once_and_nothing_else(tmp_path: Path) -> None:
    plays = (calls("answer", ideas(FIRST)), hangs, calls("answer", ideas(FIRST, SECOND)))
    with model_endpoint(*plays) as endpoint, FaultLab(tmp_path) as lab:
        model = f"model: {{name: small, base_url: '{endpoint.base_url}', price: {PRICE}}}"
        use = "search: {use: [sampler, replicator, model]}"
        changes = {"budgets: {trials: 7}": f"budgets: {{trials: 9, cost_usd: 1000}}\n{use}\n{model}"}
        lab.start_session(curve_task(lab.starts_file, **changes))
        # A trial has ended: a kill before that counts towards giving the session up.
        eventually(
            lambda: endpoint.n_requests == 2 and any(t.is_ended for t in lab.trials()), within_s=90, what="a call"
        )
        answered, hanging = model_calls_of(lab.store, "s1")
        before = lab.session()
        assert (answered.outcome, hanging.outcome) == ("used", OPEN)
        assert before.cost_usd == pytest.approx((answered.cost_usd or 0) + (hanging.cost_usd or 0)) != 0
        lab.kill("session")
        assert lab.await_end().state is SessionState.FINISHED
        check_accounts(lab)
        made = model_calls_of(lab.store, "s1")
        assert made[0] == answered
        assert [call.call_id for call in made if call.outcome == CUT_OFF] == [hanging.call_id]
        assert (made[1].cost_usd, made[1].prompt_tokens) == (hanging.cost_usd, hanging.prompt_tokens)
        assert endpoint.n_requests == len(made) > 2
        assert ("cut_off", 1) in [(one.reason, one.n_calls) for one in turns(made).lost]
        lab.down()
        check_nothing_is_left(lab.home)


def check_accounts(lab: FaultLab) -> None:
    """The sums are those of the calls, and no configuration is proposed or executed twice."""
    view, made = lab.session(), model_calls_of(lab.store, "s1")
    assert not [call for call in made if call.outcome == OPEN]
    assert view.tokens == sum(call.prompt_tokens + call.completion_tokens for call in made)
    assert view.cost_usd == pytest.approx(sum(call.cost_usd or 0.0 for call in made))
    search = [trial for trial in lab.trials() if trial.purpose is Purpose.SEARCH]
    assert max(Counter(trial.configuration for trial in search).values()) == 1
    by_model = sorted(float(trial.params["x"] or 0) for trial in search if trial.suggested_by == "model")
    assert by_model[0] == FIRST
    assert len(set(by_model)) == len(by_model)
    assert max(Counter(lab.starts_file.read_text().split()).values()) == 1
