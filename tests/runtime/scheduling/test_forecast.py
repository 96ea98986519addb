"""What would happen to a job that is not there yet; and nothing happens to those that are."""

from __future__ import annotations

import json
import random

import pytest
from core_driver import COMMANDS, OPERATOR_COMMANDS, begin
from core_language import NOW, Journal, cluster, decide, job, queued, running, stopping

from runtime.model.codec import decode_state, encode_state
from runtime.model.events import HoldPlaced, JobSubmitted, NodeStateSet
from runtime.model.holds import Hold, HoldScope, NodeState
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.scheduling.decision import Preempt, Start
from runtime.scheduling.forecast import Cost, Forecast, Prospect, what_if
from runtime.scheduling.policy import Policy
from runtime.scheduling.schedule import schedule


def forecast(state: State, **traits: object) -> Forecast:
    new = job("j99", **traits)  # type: ignore[arg-type]
    return what_if(state, new.but(job_id="this job"), now_s=NOW, policy=Policy())


def test_it_starts_on_free_devices() -> None:
    found = forecast(cluster("a:2", running("j1", on="a:0")))
    assert (found.prospect, found.summary) == (Prospect.STARTS, "this job is about to start")
    assert [(p.node_id, p.devices) for p in found.placements] == [("a", (1,))]
    assert found.victims == ()


def test_it_names_its_victims_and_what_they_lose() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="exploratory", saved_at_s=NOW - 10),
        running("j2", on="a:1", priority="exploratory", saved_at_s=NOW - 50),
    )
    found = forecast(state, priority="critical")
    assert found.prospect is Prospect.PREEMPTS
    assert found.victims == (Cost(job_id="j1", priority_class="exploratory", lost_s=10.0),)
    assert found.summary == "this job gets a:0 as soon as j1 has left"


def test_it_follows_what_leaves_anyway() -> None:
    found = forecast(cluster("a:1", stopping("j1", on="a:0")))
    assert (found.prospect, found.victims) == (Prospect.FOLLOWS, ())


def test_it_waits_behind_those_that_come_first() -> None:
    state = cluster("a:2", running("j1", on="a:0-1"), queued("j2", n_devices=2), queued("j3", priority="exploratory"))
    found = forecast(state)
    assert (found.prospect, found.behind, found.queue_position) == (Prospect.WAITS, ("j2",), 2)


def test_a_hold_would_keep_it() -> None:
    hold = Hold(scope=HoldScope.ALL, name=None, reason="noise", placed_at_s=0.0, placed_by="user:owner")
    found = forecast(cluster("a:1", lambda journal: journal.record(HoldPlaced(hold=hold))))
    assert (found.prospect, found.summary) == (Prospect.HELD, "this job is paused (all, by user:owner): noise")


def test_what_could_never_run_is_told_apart_from_what_must_wait() -> None:
    cordon = NodeStateSet(node_id="a", state=NodeState.CORDONED, reason="")
    state = cluster("a:2", lambda journal: journal.record(cordon))
    assert forecast(state, n_devices=3).prospect is Prospect.NEVER
    found = forecast(state, n_devices=2)
    assert found.prospect is Prospect.WAITS
    assert "too few of the devices there are take new work" in found.summary


def test_asking_changes_nothing() -> None:
    state = cluster("a:2", running("j1", on="a:0", priority="exploratory"), queued("j2", n_devices=2))
    before, decision = (json.dumps(encode_state(state)), repr(state.index)), decide(state)
    forecast(state, priority="critical", n_devices=2)
    assert (json.dumps(encode_state(state)), repr(state.index)) == before
    assert decide(state) == decision


@pytest.mark.parametrize("seed", range(12))
def test_what_is_foretold_is_what_the_next_round_does(seed: int) -> None:
    pick = random.Random(seed).randrange
    world = begin(pick, Policy())
    for _ in range(60):
        (*COMMANDS, *OPERATOR_COMMANDS)[pick(len(COMMANDS) + len(OPERATOR_COMMANDS))](world)
        if pick(3):
            world.round()
        n_devices, priority = 1 + pick(3), ("exploratory", "normal", "critical")[pick(3)]
        new = job("j9999", n_devices=n_devices, priority=priority, submitted_at=world.now_s)
        told = what_if(world.state, new, now_s=world.now_s, policy=world.policy)
        check_forecast(world.state, new, told, world.now_s)


def check_forecast(state: State, new: Job, told: Forecast, now_s: float) -> None:
    """The same job is really submitted, to a copy."""
    copy = Journal(state=decode_state(encode_state(state)))
    copy.record(JobSubmitted(job=new), now_s)
    actions = schedule(copy.state, now_s=now_s, policy=Policy()).actions
    started = [a.placements for a in actions if isinstance(a, Start) and a.job_id == "j9999"]
    victims = {a.job_id for a in actions if isinstance(a, Preempt) and a.beneficiary == "j9999"}
    assert started == ([told.placements] if told.prospect is Prospect.STARTS else [])
    assert victims == {victim.job_id for victim in told.victims}
