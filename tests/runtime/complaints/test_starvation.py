"""Live-lock and starvation.

Source: reports about Kueue, Volcano, dstack, Determined.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from core_language import NOW, Journal, cluster, decide, gone, node, queued, running, starting, stopping, then
from lab import lab, spec, until
from scenarios import NO_NOTICE, line, played, trace_job

from runtime.engines.contract import AttemptKey, LaunchOrder, StopAttempt
from runtime.engines.fake import FakeEngine, fake_node
from runtime.model.events import AttemptEnded, NodeJoined, NodeLeft, Then
from runtime.model.outcome import classify_unlaunched
from runtime.model.states import AttemptOutcome, ExitReason, StopCause
from runtime.scheduling.explain import explain
from runtime.scheduling.policy import Policy
from runtime.server import dispatch


def left(node_id: str) -> NodeLeft:
    return NodeLeft(node_id=node_id, generation=1, reason="silent")


def lost(job_id: str) -> AttemptEnded:
    return AttemptEnded(
        job_id=job_id,
        attempt=1,
        outcome=AttemptOutcome.NODE_LOST,
        exit_reason=ExitReason.NODE_LOST,
        exit_code=None,
        evidence=None,
        then=Then.REQUEUE,
        end_state=None,
    )


def test_nobody_leaves_for_a_job_that_can_not_fit() -> None:
    low = [running(f"j{n}", on=f"a:{n - 1}", priority="exploratory") for n in (1, 2, 3, 4)]
    assert decide(cluster("a:4", *low, queued("j5", n_devices=5, priority="critical"))) == []


def test_nobody_leaves_for_a_job_that_a_higher_one_keeps_out_anyway() -> None:
    state = cluster(
        "a:4",
        running("j1", on="a:0-2", priority="exploratory"),
        running("j2", on="a:3", priority="critical"),
        queued("j3", n_devices=4, priority="critical"),
    )
    assert decide(state) == []


def test_victims_are_not_asked_again_and_again_by_a_waiting_gang() -> None:
    state = cluster(
        "a:4", stopping("j1", on="a:0-3", priority="exploratory", beneficiary="j2"), queued("j2", n_devices=4)
    )
    assert decide(state) == []
    assert decide(then(state, gone("j1"))) == ["start j2 on a:0,1,2,3"]


def test_jobs_of_one_class_never_make_each_other_leave() -> None:
    played_out = played("1x2", *(trace_job(f"t{n}", 10.0 * n, 500.0, n=1 + n % 2) for n in range(12)))
    assert sum(one.n_preemptions for one in played_out.lines.values()) == 0


def test_a_victim_leaves_at_most_once_for_each_job_above_it() -> None:
    lower = [trace_job(f"low{n}", 0.0, 900.0, priority="exploratory", costs=NO_NOTICE) for n in range(4)]
    higher = [trace_job(f"high{n}", 100.0 + 40 * n, 300.0, n=2, priority="critical") for n in range(10)]
    ledger = played("1x4", *lower, *higher)
    assert all(one.ended_s is not None for one in ledger.lines.values())
    assert max(line(ledger, f"low{n}").n_preemptions for n in range(4)) <= len(higher)


def test_what_comes_later_does_not_take_the_slot_of_a_gang_whose_node_came_back() -> None:
    state = cluster("a:2 b:2", running("j1", on="a:0-1 b:0-1"))
    journal = Journal(state=state)
    journal.record(lost("j1"), NOW)
    journal.record(left("b"), NOW)
    then(state, queued("j2"))
    assert decide(state) == ["start j2 on a:0"], "while the gang can not run at all, nobody waits for it"
    journal.record(NodeJoined(node=node("b", "2", generation=2)), NOW)
    assert decide(state) == ["start j1 on a:0,1 b:0,1"]


@pytest.mark.parametrize("step", [starting, running])
def test_an_attempt_that_never_came_up_can_be_made_to_leave(step: object) -> None:
    stuck = step("j1", on="a:0", priority="exploratory")  # type: ignore[operator]
    assert decide(cluster("a:1", stuck, queued("j2", priority="critical"))) == ["preempt j1 for j2"]


def test_a_victim_whose_launch_fails_gives_its_devices_back_and_waits_again() -> None:
    ending = classify_unlaunched(StopCause.PREEMPT, ExitReason.LAUNCHER_UNAVAILABLE, "no such image")
    assert ending.outcome is AttemptOutcome.PREEMPTED


def test_a_gang_takes_nothing_while_one_of_its_nodes_has_no_room() -> None:
    state = cluster("a:2 b:2", running("j1", on="b:0", priority="critical"), queued("j2", n_devices=4, per_node=2))
    assert decide(state) == []


def test_what_blocks_an_urgent_job_for_good_is_named() -> None:
    """A job that may not be preempted does block; then the person must be told which one it is."""
    state = cluster("a:2", running("j1", on="a:0-1", is_preemptible=False), queued("j2", priority="critical"))
    assert decide(state) == []
    details = explain(state, "j2", now_s=NOW, policy=Policy()).details
    assert details == ("a: 0 of 2 usable devices free; j1 (normal, not preemptible) holds 2",)


class Troubled(FakeEngine):
    """Starts of j1 may hang, and the first orders to stop may fail."""

    hangs = False
    n_refused = 0

    async def start(self, order: LaunchOrder, generation: int) -> None:
        if order.key == AttemptKey(job_id="j1", attempt=1) and self.hangs:
            await asyncio.Event().wait()
        await super().start(order, generation)

    async def stop(self, order: StopAttempt, generation: int) -> None:
        if self.n_refused > 0:
            self.n_refused -= 1
            raise OSError("the node does not answer")
        await super().stop(order, generation)


def test_an_order_to_leave_that_failed_is_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "PAUSES_S", (0.01,))
    engine = Troubled(nodes=(fake_node(n_devices=1),))
    engine.n_refused = 3
    with lab(tmp_path, engine=engine) as made:
        made.client.submit(spec(priority_class="exploratory"))
        made.in_state("j1", "running")
        made.client.submit(spec(priority_class="critical"))
        made.in_state("j2", "running")
        assert engine.n_refused == 0


def test_a_server_ends_though_an_order_to_leave_can_not_be_given(tmp_path: Path) -> None:
    engine = Troubled(nodes=(fake_node(n_devices=1),))
    engine.n_refused = 10**9
    with lab(tmp_path, engine=engine) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.client.cancel("j1")
        until(lambda: engine.n_refused < 10**9)
    engine.n_refused = 0
    with lab(tmp_path, engine=engine) as after:
        after.in_state("j1", "cancelled")


def test_a_start_that_hangs_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "PATIENCE_S", 0.3)
    engine = Troubled(nodes=(fake_node(n_devices=2),))
    engine.hangs = True
    with lab(tmp_path, engine=engine) as made:
        made.client.submit(spec())
        made.client.submit(spec())
        made.in_state("j2", "running")
        hung = until(lambda: (found := made.client.job("j1").attempts[0]).ended_at is not None and found)
        assert (hung.outcome, hung.exit_reason) == ("launch_failed", "launcher_unavailable")
