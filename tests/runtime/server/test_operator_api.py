"""The stop button and the standing of nodes over HTTP: held, drained, reserved; and still so after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until

from runtime.engines.fake import ByHand, Refusal
from runtime.model.states import EXIT_REQUEUE, ExitReason
from runtime.scheduling.policy import Policy
from runtime_client.client import RuntimeClient
from runtime_client.errors import Conflict, InvalidSpec, NotFound
from runtime_client.models import HoldScope, HoldView, NodeState, NodeView, SessionFence


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=2) as found:
        yield found


def in_session(session_id: str = "s1") -> SessionFence:
    return SessionFence(session_id=session_id, fence=1)


def node(made: Lab) -> NodeView:
    (found,) = made.client.nodes()
    return found


def test_a_pause_checkpoints_what_runs_and_holds_what_waits(made: Lab) -> None:
    for _ in range(3):
        made.client.submit(spec(priority_class="exploratory"))
    made.in_state("j1", "running")
    held = made.client.pause(HoldScope.CLASS, "exploratory", reason="noise")
    assert (held.n_held, held.n_leaving) == (1, 2)
    made.do(lambda: made.engine.checkpoint(key("j1"), 7))
    made.finish("j1", exit_code=EXIT_REQUEUE)
    paused = made.in_state("j1", "queued")
    assert (paused.attempts[0].outcome, paused.attempts[0].stop_cause) == ("preempted", "pause")
    assert paused.n_preemptions == 0
    assert made.client.submit(spec()).state == "starting"
    made.client.unpause(HoldScope.CLASS, "exploratory")
    made.finish("j2", exit_code=EXIT_REQUEUE)
    again = made.in_state("j1", "starting", "running")
    assert again.checkpoint_step == 7


def test_a_pause_is_shown_and_explained(made: Lab) -> None:
    made.client.pause(HoldScope.ALL, reason="thunderstorm")
    job = made.client.submit(spec())
    assert job.state == "queued"
    assert made.client.explain(job.job_id).summary == "j1 is paused (all, by user:owner): thunderstorm"
    info = made.client.info()
    assert [(hold.scope, hold.reason) for hold in info.holds] == [("all", "thunderstorm")]
    assert "paused (all, by user:owner): thunderstorm" in info.notices
    assert made.client.holds().n_held == 1


def test_a_pause_of_a_session_leaves_others_alone(made: Lab) -> None:
    made.client.pause(HoldScope.SESSION, "s1", reason="look first")
    assert made.client.submit(spec(session=in_session("s1"))).state == "queued"
    assert made.client.submit(spec(session=in_session("s2"))).state == "starting"


def test_only_the_same_selector_lifts_a_hold(made: Lab) -> None:
    made.client.pause(HoldScope.PROJECT, "vision", reason="over budget")
    with pytest.raises(NotFound, match="no hold on all; holds there are: project vision"):
        made.client.unpause(HoldScope.ALL)
    assert made.client.unpause(HoldScope.PROJECT, "vision").holds == ()


def test_an_unknown_class_is_refused_with_those_there_are(made: Lab) -> None:
    with pytest.raises(InvalidSpec, match="did you mean exploratory") as refused:
        made.client.pause(HoldScope.CLASS, "exploratry", reason="noise")
    assert refused.value.path == "name"
    assert made.client.holds().holds == ()


def test_a_hold_has_a_name_exactly_where_one_is_needed(made: Lab) -> None:
    for body in ({"scope": "all", "name": "x"}, {"scope": "class"}):
        answer = made.http.post("/v1/holds", json={**body, "reason": "r"}, headers=made.auth)
        assert answer.status_code == 422


def test_stopped_agents_submit_nothing_and_people_do(made: Lab) -> None:
    made.client.submit(spec(session=in_session(), idempotency_token="before"))
    made.client.stop_agents(reason="runaway")
    with pytest.raises(Conflict, match="all agents were stopped") as refused:
        made.client.submit(spec(session=in_session()))
    assert (refused.value.code, refused.value.retryable) == ("agents_stopped", True)
    assert made.client.submit(spec()).job_id == "j2"
    again = made.client.submit(spec(session=in_session(), idempotency_token="before"))
    assert again.job_id == "j1", "what was taken before is answered as before"
    stop = made.client.info().agents_stop
    assert stop is not None
    assert stop.reason == "runaway"
    made.client.allow_agents()
    assert made.client.submit(spec(session=in_session())).job_id == "j3"


def test_a_drained_node_is_left_and_takes_nothing(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    drained = made.client.set_node_state("local", NodeState.DRAINING, reason="new fan")
    assert (drained.state, drained.state_reason) == ("draining", "new fan")
    assert made.in_state("j1", "stopping").attempts[0].stop_cause == "drain"
    made.finish("j1", exit_code=EXIT_REQUEUE)
    made.in_state("j1", "queued")
    assert "local: has no devices for it (2 cpu) [draining: new fan]" in made.client.explain("j1").details
    made.client.set_node_state("local", NodeState.HEALTHY)
    made.in_state("j1", "starting", "running")


def test_a_cordoned_node_keeps_what_runs(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    made.client.set_node_state("local", NodeState.CORDONED)
    assert made.client.submit(spec()).state == "queued"
    assert made.client.job("j1").state == "running"


def test_a_reservation_asks_for_its_devices_and_keeps_them(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    view = made.client.reserve("local", (0,), holder="alice", until=time.time() + 3600)
    assert [device.reserved_for for device in view.devices] == ["alice", None]
    made.finish("j1", exit_code=EXIT_REQUEUE)
    again = made.in_state("j1", "starting", "running")
    assert again.attempts[-1].placements[0].devices == (1,)
    made.client.unreserve("local", (0,))
    assert made.client.submit(spec()).state == "starting"


def test_a_reservation_lapses_by_itself(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=1) as made:
        made.client.reserve("local", (0,), holder="alice", until=time.time() + 0.3)
        assert made.client.submit(spec()).state == "queued"
        made.in_state("j1", "starting", "running")
        assert node(made).devices[0].reserved_for is None


def test_foreign_use_of_a_device_keeps_work_away(made: Lab) -> None:
    assert [d.busy_external for d in made.client.note_busy("local", (0,)).devices] == [True, False]
    placed = made.client.submit(spec()).attempts[0].placements
    assert placed[0].devices == (1,)


def test_devices_that_a_node_sees_in_use_are_shown_with_who_and_come_back(made: Lab) -> None:
    who = "in use by python (pid 4711, user bob)"
    made.do(lambda: made.engine.see_devices({0: who, 1: "it does not answer"}))
    until(lambda: [d.busy_reason for d in node(made).devices] == [who, "it does not answer"])
    assert made.client.submit(spec()).state == "queued"
    why = made.client.explain("j1")
    assert f"0 {who} (busy_external); 1 it does not answer (busy_external)" in " ".join(why.details)
    made.do(lambda: made.engine.see_devices({0: who}))
    assert made.in_state("j1", "starting", "running").attempts[0].placements[0].devices == (1,)
    made.do(lambda: made.engine.see_devices({}))
    until(lambda: [d.busy_external for d in node(made).devices] == [False, False])


def test_a_device_seen_in_use_leaves_what_runs_there_alone(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    made.do(lambda: made.engine.see_devices({0: "in use by python (pid 4711, user bob)"}))
    until(lambda: node(made).devices[0].busy_external)
    assert made.client.job("j1").state == "running"
    made.finish("j1")
    made.in_state("j1", "succeeded")


def test_an_attempt_that_found_its_device_in_use_costs_no_retry_and_goes_elsewhere(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=2, policy=Policy(retry_backoff_s=0.05)) as made:
        _goes_elsewhere(made)


def _goes_elsewhere(made: Lab) -> None:
    made.engine.refusals.append(Refusal(exit_reason=ExitReason.DEVICE_UNAVAILABLE, evidence="device 0: in use by x"))
    made.client.submit(spec(max_retries=0))
    made.do(lambda: made.engine.see_devices({0: "in use by x"}))
    again = until(lambda: (len((view := made.client.job("j1")).attempts) == 2 and view) or None)
    assert (again.attempts[0].outcome, again.attempts[0].exit_reason) == ("launch_failed", "device_unavailable")
    assert again.attempts[1].placements[0].devices == (1,)
    assert again.n_retries == 0


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda c: c.set_node_state("locl", NodeState.CORDONED), NotFound, "did you mean local"),
        (lambda c: c.reserve("local", (7,), holder="a", until=time.time() + 9), InvalidSpec, "local has no device 7"),
        (lambda c: c.reserve("local", (0,), holder="a", until=5.0), InvalidSpec, "it is over already"),
        (lambda c: c.unreserve("local", (0,)), NotFound, "not all reserved; those that are: none"),
    ],
)
def test_what_can_not_be_is_refused_in_a_sentence(
    made: Lab, ask: Callable[[RuntimeClient], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(made.client)


def test_all_of_it_survives_a_restart(tmp_path: Path) -> None:
    with lab(tmp_path) as first:
        first.client.pause(HoldScope.CLASS, "normal", reason="noise")
        first.client.stop_agents(reason="runaway")
        first.client.set_node_state("local", NodeState.CORDONED, reason="new fan")
        first.client.submit(spec())
        kept: tuple[HoldView, ...] = first.client.holds().holds
    with lab(tmp_path, snapshot_every=1) as second:
        held = second.client.holds()
        assert (held.holds, held.n_held) == (kept, 1)
        assert held.agents_stop is not None
        assert (node(second).state, node(second).state_reason) == ("cordoned", "new fan")
        second.client.set_node_state("local", NodeState.HEALTHY)
        assert second.client.job("j1").state == "queued"
    with lab(tmp_path) as third:  # from a snapshot
        third.client.unpause(HoldScope.CLASS, "normal")
        third.in_state("j1", "starting", "running")


def test_the_stop_button_is_for_the_owner(made: Lab) -> None:
    for path in ("/v1/holds", "/v1/agents/stop", "/v1/nodes/local/state"):
        assert made.http.post(path, json={}).status_code == 401
    until(lambda: made.client.holds().holds == ())


def fail_start(made: Lab, job_id: str, reason: ExitReason = ExitReason.DEVICE_UNAVAILABLE) -> None:
    """The next attempt of a new job fails to start."""
    made.engine.refusals.append(Refusal(exit_reason=reason, evidence="no CUDA-capable device is detected"))
    assert made.client.submit(spec()).job_id == job_id
    until(lambda: made.client.job(job_id).attempts[0].ended_at)
    made.client.cancel(job_id)


def on_one_device(tmp_path: Path, kind: str = "H100") -> AbstractContextManager[Lab]:
    return lab(tmp_path, script=ByHand(), n_devices=1, kind=kind, policy=Policy(retry_backoff_s=60.0))


def test_a_device_on_which_three_starts_fail_in_a_row_is_kept_out_of_use(tmp_path: Path) -> None:
    with on_one_device(tmp_path) as made:
        for job_id in ("j1", "j2"):
            fail_start(made, job_id)
        assert node(made).devices[0].reserved_for is None
        fail_start(made, "j3")
        device = node(made).devices[0]
        assert device.reserved_for == (
            "nobody: suspect, 3 starts failed there in a row, the last of j3 (device unavailable)"
        )
        assert device.reserved_until is not None
        assert 500 < device.reserved_until - time.time() <= 600
        assert made.client.submit(spec()).state == "queued"
        made.client.unreserve("local", (0,))
        made.in_state("j4", "starting", "running")


def test_jobs_that_fail_by_themselves_blame_no_device(tmp_path: Path) -> None:
    with on_one_device(tmp_path) as made:
        for job_id in ("j1", "j2", "j3"):
            made.client.submit(spec())
            made.in_state(job_id, "running")
            made.finish(job_id, exit_code=1)
            made.in_state(job_id, "failed")
        assert made.client.submit(spec()).state == "starting"


def test_cpu_slots_are_never_suspect(tmp_path: Path) -> None:
    with on_one_device(tmp_path, kind="cpu") as made:
        for job_id in ("j1", "j2", "j3"):
            fail_start(made, job_id)
        assert made.client.submit(spec()).state == "starting"
