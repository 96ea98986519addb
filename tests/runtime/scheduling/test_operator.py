"""What people put in the way of work: holds, closed and suspect nodes, reservations, foreign use."""

from __future__ import annotations

import pytest
from core_language import NOW, Journal, Step, cluster, decide, node, placements, queued, round_of, running, then

from runtime.model.check import check
from runtime.model.errors import IllegalTransition
from runtime.model.events import (
    AgentsAllowed,
    AgentsStopped,
    DevicesBusySeen,
    DevicesReserved,
    DevicesUnreserved,
    Event,
    HoldLifted,
    HoldPlaced,
    NodeJoined,
    NodeLeft,
    NodeStateSet,
    StartOrdered,
)
from runtime.model.holds import CLOSED, Hold, HoldScope, NodeState, Reservation
from runtime.model.state import State
from runtime.scheduling.explain import explain
from runtime.scheduling.order import queue_position
from runtime.scheduling.policy import Policy


def happened(event: Event) -> Step:
    return lambda journal: journal.record(event)


def paused(scope: HoldScope, name: str | None = None) -> Step:
    return happened(
        HoldPlaced(hold=Hold(scope=scope, name=name, reason="noise", placed_at_s=0.0, placed_by="user:owner"))
    )


def unpaused(scope: HoldScope, name: str | None = None) -> Step:
    return happened(HoldLifted(scope=scope, name=name))


def marked(node_id: str, state: NodeState, reason: str = "") -> Step:
    return happened(NodeStateSet(node_id=node_id, state=state, reason=reason))


def reserved(node_id: str, *devices: int, until_s: float = NOW + 60) -> Step:
    return happened(
        DevicesReserved(node_id=node_id, reservation=Reservation(devices=devices, holder="alice", until_s=until_s))
    )


def why(state: State, job_id: str) -> str:
    found = explain(state, job_id, now_s=NOW, policy=Policy())
    return "\n".join((found.summary, *found.details))


@pytest.mark.parametrize("hold", [(HoldScope.ALL, None), (HoldScope.CLASS, "normal"), (HoldScope.PROJECT, "default")])
def test_a_job_on_hold_waits_until_the_hold_is_lifted(hold: tuple[HoldScope, str | None]) -> None:
    state = cluster("a:1", paused(*hold), queued("j1"))
    assert decide(state) == []
    assert decide(then(state, unpaused(*hold))) == ["start j1 on a:0"]


def test_a_hold_reaches_only_what_it_names() -> None:
    state = cluster(
        "a:4",
        queued("j1", priority="exploratory"),
        queued("j2"),
        paused(HoldScope.CLASS, "exploratory"),
        paused(HoldScope.SESSION, "s1"),
        paused(HoldScope.PROJECT, "other"),
    )
    assert decide(state) == ["start j2 on a:0"]


def test_two_holds_must_both_be_lifted() -> None:
    state = cluster("a:1", queued("j1"), paused(HoldScope.ALL), paused(HoldScope.CLASS, "normal"))
    assert decide(then(state, unpaused(HoldScope.ALL))) == []
    assert decide(then(state, unpaused(HoldScope.CLASS, "normal"))) == ["start j1 on a:0"]


def test_a_hold_on_a_head_lets_those_behind_it_through() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2", n_devices=2, priority="critical"), queued("j3"))
    assert decide(state) == ["preempt j1 for j2"]
    assert decide(then(state, paused(HoldScope.CLASS, "critical"))) == ["start j3 on a:1"]


def test_a_job_on_hold_keeps_its_place() -> None:
    state = cluster("a:1", queued("j1"), paused(HoldScope.ALL), queued("j2"), unpaused(HoldScope.ALL))
    assert decide(state) == ["start j1 on a:0"]
    assert queue_position(state, "j2", NOW, Policy()) == 2


def test_the_queue_timeout_goes_on_while_a_job_is_on_hold() -> None:
    state = cluster("a:1", paused(HoldScope.ALL), queued("j1", queue_timeout_s=NOW - 1))
    assert decide(state) == ["expire j1"]


def test_a_start_of_a_job_on_hold_is_refused() -> None:
    state = cluster("a:1", queued("j1"), paused(HoldScope.ALL))
    order = StartOrdered(job_id="j1", attempt=1, placements=placements("a:0"), reason="test")
    with pytest.raises(IllegalTransition, match="there is a hold on all"):
        then(state, happened(order))


def test_explain_names_the_hold_its_reason_and_who() -> None:
    state = cluster("a:1", queued("j1"), paused(HoldScope.CLASS, "normal"))
    assert why(state, "j1") == "j1 is paused (class normal, by user:owner): noise"


@pytest.mark.parametrize("state_of_node", sorted(CLOSED))
def test_closed_nodes_take_no_new_work(state_of_node: NodeState) -> None:
    state = cluster("a:2 b:1", marked("a", state_of_node), queued("j1"), queued("j2"))
    assert decide(state) == ["start j1 on b:0"]
    assert decide(then(state, marked("a", NodeState.HEALTHY))) == ["start j1 on b:0", "start j2 on a:0"]


def test_nobody_leaves_a_closed_node_for_another_job() -> None:
    state = cluster("a:1", running("j1", on="a:0"), marked("a", NodeState.CORDONED), queued("j2", priority="critical"))
    assert decide(state) == []


def test_a_head_that_only_closed_nodes_could_carry_delays_nobody() -> None:
    state = cluster("a:4 b:1", marked("a", NodeState.CORDONED), queued("j1", n_devices=4), queued("j2"))
    assert decide(state) == ["start j2 on b:0"]
    assert queue_position(state, "j2", NOW, Policy()) == 1


def test_devices_that_are_given_back_on_a_closed_node_stay_idle() -> None:
    state = cluster("a:1", running("j1", on="a:0"), marked("a", NodeState.DRAINING))
    state.drop_job("j1")
    assert state.index.free == {"a": 0}


def test_a_cordon_survives_a_new_registration_and_a_departure() -> None:
    state = cluster(
        "a:2",
        marked("a", NodeState.CORDONED, "new fan"),
        happened(NodeJoined(node=node("a", "3", generation=2))),
        happened(NodeLeft(node_id="a", generation=2, reason="silent")),
        happened(NodeJoined(node=node("a", "2", generation=3))),
        queued("j1"),
    )
    assert decide(state) == []
    assert "a: has no devices for it (2 cpu) [cordoned: new fan]" in why(state, "j1")


def test_suspect_nodes_are_used_last() -> None:
    state = cluster("a:1 b:2", marked("a", NodeState.SUSPECT), *(queued(f"j{n}") for n in (1, 2, 3)))
    assert decide(state) == ["start j1 on b:0", "start j2 on b:1", "start j3 on a:0"]


def test_suspect_nodes_carry_no_gang() -> None:
    state = cluster("a:2 b:1", marked("a", NodeState.SUSPECT), queued("j1", n_devices=2), queued("j2"), queued("j3"))
    assert decide(state) == ["start j2 on b:0", "start j3 on a:0"]


def test_a_blocked_gang_leaves_suspect_devices_to_single_jobs() -> None:
    state = cluster(
        "a:1 b:2",
        marked("a", NodeState.SUSPECT),
        running("j1", on="b:0"),
        queued("j2", n_devices=2),
        queued("j3"),
    )
    assert decide(state) == ["start j3 on a:0"]


def test_reserved_devices_are_not_used_until_they_are_given_back() -> None:
    state = cluster("a:2", reserved("a", 0), queued("j1"), queued("j2"))
    assert decide(state) == ["start j1 on a:1"]
    assert "0 reserved for alice" in why(state, "j2")
    back = then(state, happened(DevicesUnreserved(node_id="a", devices=(0,), reason="done")))
    assert decide(back) == ["start j1 on a:0", "start j2 on a:1"]


def test_a_later_reservation_of_the_same_device_wins() -> None:
    state = cluster("a:3", reserved("a", 0, 1, until_s=10.0), reserved("a", 1, 2, until_s=20.0))
    assert [(r.devices, r.until_s) for r in state.standing("a").reservations] == [((0,), 10.0), ((1, 2), 20.0)]
    assert state.standing("a").lapsed(15.0) == (0,)


def test_a_round_is_due_when_a_reservation_lapses() -> None:
    state = cluster("a:2", reserved("a", 0, until_s=NOW + 60), reserved("a", 1, until_s=NOW + 30))
    assert round_of(state).next_wake_s == NOW + 30


def test_devices_that_others_compute_on_are_not_used() -> None:
    state = cluster("a:2", happened(DevicesBusySeen(node_id="a", devices=(0,))), queued("j1"), queued("j2"))
    assert decide(state) == ["start j1 on a:1"]
    assert "0 used by others (busy_external)" in why(state, "j2")
    assert len(decide(then(state, happened(DevicesBusySeen(node_id="a", devices=()))))) == 2


def test_agents_are_stopped_until_they_are_allowed() -> None:
    journal = Journal()
    journal.record(AgentsStopped(reason="runaway"), 5.0)
    check(journal.state)
    assert journal.state.agents_stop is not None
    assert (journal.state.agents_stop.reason, journal.state.agents_stop.since_s) == ("runaway", 5.0)
    journal.record(AgentsAllowed())
    assert journal.state.agents_stop is None
