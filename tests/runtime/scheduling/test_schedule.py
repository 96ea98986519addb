"""The rules of a round, one a test."""

from __future__ import annotations

import pytest
from core_language import (
    NOW,
    Journal,
    Step,
    cluster,
    decide,
    finished,
    gone,
    job,
    line,
    ordered,
    queued,
    renewed,
    round_of,
    running,
    starting,
    stopping,
    then,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.model.events import AttemptEnded, StopOrdered, Then
from runtime.model.indexes import Indexes
from runtime.model.nouns import Shape
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, OnTimeout, StopCause
from runtime.scheduling import paper as paper_module
from runtime.scheduling.decision import Preempt, Start
from runtime.scheduling.fit import fits, place
from runtime.scheduling.intent import event_of
from runtime.scheduling.policy import Policy, Quota
from runtime.scheduling.room import Room


def test_higher_class_goes_first() -> None:
    state = cluster("a:1", queued("j1", priority="exploratory"), queued("j2"), queued("j3", priority="critical"))
    assert decide(state) == ["start j3 on a:0"]


def test_within_a_class_the_earlier_submission_goes_first() -> None:
    state = cluster("a:2", queued("j2"), queued("j1"), queued("j3", n_devices=2))
    assert decide(state) == ["start j1 on a:0", "start j2 on a:1"]


def test_a_gang_starts_whole_or_not_at_all() -> None:
    assert decide(cluster("a:2 b:2", running("j1", on="a:0"), queued("j2", n_devices=4))) == []
    assert decide(cluster("a:2 b:2", queued("j2", n_devices=4))) == ["start j2 on a:0,1 b:0,1"]


def test_a_gang_goes_to_the_tightest_single_node() -> None:
    assert decide(cluster("a:8 b:3 c:2", queued("j1", n_devices=2))) == ["start j1 on c:0,1"]


def test_a_gang_spans_the_fewest_nodes() -> None:
    assert decide(cluster("a:2 b:2 c:4 d:1", queued("j1", n_devices=5))) == ["start j1 on c:0,1,2,3 d:0"]


def test_groups_per_node_stay_whole() -> None:
    state = cluster("a:3xH100 b:3xH100 c:2xH100", queued("j1", n_devices=4, per_node=2))
    assert decide(state) == ["start j1 on a:0,1 c:0,1"]


def test_a_gang_runs_on_the_kind_it_asked_for() -> None:
    state = cluster("a:2xA100+2xH100 b:2", queued("j1", n_devices=2, kind="H100"))
    assert decide(state) == ["start j1 on a:2,3"]


def test_ranks_follow_each_other_over_nodes() -> None:
    (start,) = round_of(cluster("a:2 b:3", queued("j1", n_devices=5))).actions
    assert isinstance(start, Start)
    assert [(p.node_id, p.first_rank) for p in start.placements] == [("a", 0), ("b", 2)]


@pytest.mark.parametrize(
    ("holder", "waiter", "is_preempted"),
    [
        ("exploratory", "critical", True),
        ("exploratory", "normal", True),
        ("normal", "critical", True),
        ("normal", "normal", False),
        ("critical", "normal", False),
        ("normal", "exploratory", False),
    ],
)
def test_preempts_only_lower_classes(holder: str, waiter: str, is_preempted: bool) -> None:
    state = cluster("a:1", running("j1", on="a:0", priority=holder), queued("j2", priority=waiter))
    assert decide(state) == (["preempt j1 for j2"] if is_preempted else [])


def test_preempts_only_preemptible_jobs() -> None:
    state = cluster(
        "a:1", running("j1", on="a:0", priority="exploratory", is_preemptible=False), queued("j2", priority="critical")
    )
    assert decide(state) == []


def test_nobody_leaves_unless_the_whole_gang_then_fits() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="exploratory"),
        running("j2", on="a:1", priority="critical"),
        queued("j3", n_devices=2, priority="critical"),
    )
    assert decide(state) == []


def test_the_lowest_class_leaves_first() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="normal", at_s=NOW),
        running("j2", on="a:1", priority="exploratory", at_s=0.0),
        queued("j3", priority="critical"),
    )
    assert decide(state) == ["preempt j2 for j3"]


def test_the_least_work_lost_leaves_first() -> None:
    state = cluster(
        "a:3",
        running("j1", on="a:0", priority="exploratory", at_s=10.0, saved_at_s=900.0),
        running("j2", on="a:1", priority="exploratory", at_s=10.0, saved_at_s=990.0),
        running("j3", on="a:2", priority="exploratory", at_s=500.0),
        queued("j4"),
    )
    assert decide(state) == ["preempt j2 for j4"]


def test_at_equal_loss_the_youngest_leaves_first() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="exploratory", at_s=10.0, saved_at_s=900.0),
        running("j2", on="a:1", priority="exploratory", at_s=20.0, saved_at_s=900.0),
        queued("j3"),
    )
    assert decide(state) == ["preempt j2 for j3"]


def test_a_running_attempt_leaves_before_a_starting_one() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="exploratory", at_s=0.0),
        starting("j2", on="a:1", priority="exploratory", at_s=999.0),
        queued("j3"),
    )
    assert decide(state) == ["preempt j1 for j3"]


def test_a_starting_attempt_leaves_if_nothing_else_helps() -> None:
    state = cluster("a:1", starting("j1", on="a:0", priority="exploratory"), queued("j2"))
    assert decide(state) == ["preempt j1 for j2"]


def test_victims_that_turn_out_unneeded_stay() -> None:
    state = cluster(
        "a:4 b:2",
        running("j1", on="a:0-1", priority="exploratory", at_s=900.0),
        running("j2", on="b:0-1", priority="exploratory", at_s=800.0),
        running("j3", on="a:2-3", priority="exploratory", at_s=100.0),
        queued("j4", n_devices=4, per_node=4),
    )
    assert decide(state) == ["preempt j1 for j4", "preempt j3 for j4"]


def test_devices_that_are_being_vacated_count() -> None:
    state = cluster(
        "a:2",
        stopping("j1", on="a:0", priority="exploratory", cause=StopCause.CANCEL),
        running("j2", on="a:1", priority="exploratory"),
        queued("j3"),
    )
    assert decide(state) == []


def test_nobody_else_leaves_while_victims_are_leaving() -> None:
    """Even when a higher job has taken what was vacated."""
    state = cluster(
        "a:2",
        stopping("j1", on="a:0", priority="exploratory", beneficiary="j3"),
        running("j2", on="a:1", priority="exploratory"),
        queued("j3"),
        queued("j4", priority="critical"),
    )
    assert decide(state) == []
    state = then(state, gone("j1"))
    assert decide(state) == ["start j4 on a:0", "preempt j2 for j3"]


def test_vacated_devices_are_kept_for_their_beneficiary() -> None:
    state = cluster(
        "a:2",
        stopping("j1", on="a:0", priority="exploratory", beneficiary="j3"),
        stopping("j2", on="a:1", priority="exploratory", beneficiary="j3"),
        queued("j3", n_devices=2, priority="critical"),
        queued("j4", priority="exploratory"),
        queued("j5", priority="normal"),
    )
    assert decide(then(state, gone("j1"))) == []
    assert decide(then(state, gone("j2"))) == ["start j3 on a:0,1"]


def test_a_preempted_job_keeps_its_place() -> None:
    state = cluster(
        "a:1",
        stopping("j1", on="a:0", priority="exploratory", beneficiary="j2"),
        queued("j2", priority="critical"),
        queued("j3", priority="exploratory"),
    )
    state = then(state, gone("j1"))
    assert decide(state) == ["start j2 on a:0"]
    state = cluster("a:1", stopping("j1", on="a:0", priority="exploratory"), queued("j3", priority="exploratory"))
    assert decide(then(state, gone("j1"))) == ["start j1 on a:0"]


def test_two_blocked_jobs_get_different_victims() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="exploratory"),
        running("j2", on="a:1", priority="exploratory"),
        queued("j3"),
        queued("j4"),
    )
    assert decide(state) == ["preempt j2 for j3", "preempt j1 for j4"]


def test_what_a_victim_leaves_over_serves_the_next() -> None:
    state = cluster("a:2", running("j1", on="a:0-1", priority="exploratory"), queued("j2"), queued("j3"))
    assert decide(state) == ["preempt j1 for j2"]


def test_an_equal_job_does_not_overtake_a_blocked_head() -> None:
    state = cluster("a:2", running("j1", on="a:0", priority="critical"), queued("j2", n_devices=2), queued("j3"))
    assert decide(state) == []


def test_a_job_overtakes_on_devices_that_the_head_can_not_use() -> None:
    state = cluster(
        "a:2xH100 b:2",
        running("j1", on="a:0", priority="critical"),
        queued("j2", n_devices=2, kind="H100"),
        queued("j3"),
        queued("j4"),
    )
    assert decide(state) == ["start j3 on b:0", "start j4 on b:1"]


def test_a_lower_preemptible_job_fills_what_a_blocked_head_waits_for() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="critical"),
        queued("j2", n_devices=2),
        queued("j3", priority="exploratory"),
    )
    assert decide(state) == ["start j3 on a:1"]
    (start,) = round_of(state).actions
    assert "j2" in start.reason


def test_a_filler_leaves_once_the_head_can_run() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="critical"),
        queued("j2", n_devices=2),
        running("j3", on="a:1", priority="exploratory"),
    )
    assert decide(state) == []
    assert decide(then(state, finished("j1"))) == ["preempt j3 for j2"]


def test_a_lower_job_that_is_not_preemptible_is_no_filler() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", priority="critical"),
        queued("j2", n_devices=2),
        queued("j3", priority="exploratory", is_preemptible=False),
    )
    assert decide(state) == []


def test_a_job_that_can_never_fit_blocks_nobody() -> None:
    state = cluster("a:2", queued("j1", n_devices=3, priority="critical"), queued("j2", is_preemptible=False))
    assert decide(state) == ["start j2 on a:0"]


def test_an_attempt_over_its_time_limit_is_stopped() -> None:
    state = cluster("a:1", running("j1", on="a:0", at_s=100.0, timeout_s=60.0))
    assert decide(state, now_s=159.0) == []
    assert round_of(state, now_s=159.0).next_wake_s == 160.0
    assert decide(state, now_s=160.0) == ["time out j1"]


def test_an_attempt_at_its_time_limit_is_renewed_when_its_job_resumes() -> None:
    state = cluster("a:1", running("j1", on="a:0", at_s=100.0, timeout_s=60.0, on_timeout=OnTimeout.RESUME))
    decision = round_of(state, now_s=160.0)
    assert [line(action) for action in decision.actions] == ["renew j1"]
    (stop,) = map(event_of, decision.actions)
    assert isinstance(stop, StopOrdered)
    assert (stop.cause, stop.reason) == (StopCause.RENEW, "its time limit of 60 s is over; it goes on as a new attempt")


def test_the_running_time_of_all_attempts_ends_a_job_that_resumes() -> None:
    traits = {"timeout_s": 60.0, "on_timeout": OnTimeout.RESUME, "max_total_s": 100.0}
    state = cluster("a:1", running("j1", on="a:0", at_s=100.0, **traits))  # type: ignore[arg-type]
    stop = event_of(round_of(state, now_s=160.0).actions[0])
    then(state, lambda journal: journal.record(stop, 160.0), renewed("j1", at_s=165.0))
    assert (state.jobs["j1"].ran_s, state.jobs["j1"].limit_s) == (65.0, 35.0)
    assert (state.jobs["j1"].n_preemptions, state.jobs["j1"].n_retries) == (0, 0)
    then(state, ordered("j1", on="a:0", at_s=170.0))
    assert decide(state, now_s=204.0) == []
    (over,) = round_of(state, now_s=205.0).actions
    assert (line(over), over.reason) == ("time out j1", "its total running time of 100 s is over")


def test_devices_of_a_timed_out_attempt_spare_a_victim() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", timeout_s=60.0),
        running("j2", on="a:1", priority="exploratory"),
        queued("j3"),
    )
    assert decide(state) == ["time out j1"]


def test_a_job_that_waited_too_long_expires() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2", queue_timeout_s=60.0))
    assert decide(state, now_s=59.0) == []
    assert round_of(state, now_s=59.0).next_wake_s == 60.0
    assert decide(state, now_s=60.0) == ["expire j2"]


def test_back_off_is_respected() -> None:
    state = cluster("a:1", queued("j1", not_before_s=50.0))
    assert decide(state, now_s=49.0) == []
    assert round_of(state, now_s=49.0).next_wake_s == 50.0
    assert decide(state, now_s=50.0) == ["start j1 on a:0"]


def test_a_job_in_back_off_blocks_nobody() -> None:
    state = cluster("a:1", queued("j1", not_before_s=50.0), queued("j2"))
    assert decide(state, now_s=49.0) == ["start j2 on a:0"]
    assert decide(state, now_s=50.0) == ["start j1 on a:0"]


def test_a_young_attempt_is_no_victim() -> None:
    policy = Policy(min_run_s=60.0)
    state = cluster("a:1", running("j1", on="a:0", at_s=100.0, priority="exploratory"), queued("j2"))
    assert decide(state, now_s=159.0, policy=policy) == []
    assert round_of(state, now_s=159.0, policy=policy).next_wake_s == 160.0
    assert decide(state, now_s=160.0, policy=policy) == ["preempt j1 for j2"]


def test_nothing_to_wake_for_without_limits() -> None:
    assert round_of(cluster("a:1", running("j1", on="a:0"), queued("j2"))).next_wake_s is None


def test_an_empty_cluster_decides_nothing() -> None:
    assert decide(cluster("", queued("j1"))) == []


def test_every_action_names_reason_and_beneficiary() -> None:
    state = cluster("a:1", running("j1", on="a:0", priority="exploratory", at_s=900.0), queued("j2", grace_s=5.0))
    (action,) = round_of(state).actions
    assert isinstance(action, Preempt)
    assert (action.beneficiary, action.grace_s) == ("j2", 30.0)
    assert action.reason == (
        "j2 (normal) needs 1 device and gets a:0; j1 (exploratory) loses 100 device-seconds since its last checkpoint"
    )


def test_cost_follows_shapes_and_not_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    def n_looks(n_jobs: int) -> int:
        jobs = (queued(f"j{n}", n_devices=1 + n % 5) for n in range(2, n_jobs))
        state = cluster("a:8", running("j1", on="a:0-7", priority="critical"))
        for step in jobs:
            then_unchecked(state, step)
        calls = 0

        def counting(*args: object) -> object:
            nonlocal calls
            calls += 1
            return place(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(paper_module, "place", counting)
        assert decide(state) == []
        return calls

    assert n_looks(50) == n_looks(2000) == 2, "the first head bars what the other shapes could use"


def then_unchecked(state: State, step: Step) -> None:
    step(Journal(state=state))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    n_groups=st.integers(1, 5),
    size=st.sampled_from([None, 1, 2, 3]),
)
def test_placing_takes_exactly_the_gang_from_what_is_there(counts: list[int], n_groups: int, size: int | None) -> None:
    shape = Shape(n_devices=n_groups * (size or 1), devices_per_node=size)
    room = Room(index=Indexes(), devices={f"n{i}": (1 << count) - 1 for i, count in enumerate(counts)})
    placed = place(shape, room)
    assert (placed is not None) == fits(shape, room)
    if placed is not None:
        taken = [(p.node_id, d) for p in placed for d in p.devices]
        assert len(set(taken)) == len(taken) == shape.n_devices
        assert all(room.devices[node] >> device & 1 for node, device in taken)
        assert all(len(p.devices) % (size or 1) == 0 for p in placed)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(counts=st.lists(st.integers(0, 6), min_size=1, max_size=4), n_devices=st.integers(1, 12))
def test_placing_uses_the_fewest_nodes(counts: list[int], n_devices: int) -> None:
    room = Room(index=Indexes(), devices={f"n{i}": (1 << count) - 1 for i, count in enumerate(counts)})
    placed = place(Shape(n_devices=n_devices), room)
    if placed is not None:
        largest = sorted(counts, reverse=True)
        fewest = next(n for n in range(1, len(counts) + 1) if sum(largest[:n]) >= n_devices)
        assert len(placed) == fewest


def knowing(run_s: float, n_devices: int = 1) -> Step:
    """Three jobs of this size have run so long."""

    def step(journal: Journal) -> None:
        for _ in range(3):
            journal.state.estimates.learn(job("j99", n_devices=n_devices), run_s)

    return step


def head_and(*steps: Step) -> State:
    """j1 holds one of two devices up to 1,600 s; j2, the head, needs both."""
    return cluster("a:2", running("j1", on="a:0", at_s=900.0, timeout_s=670.0), queued("j2", n_devices=2), *steps)


@pytest.mark.parametrize(("run_s", "is_started"), [(100.0, True), (600.0, True), (601.0, False)])
def test_a_later_job_starts_only_if_it_is_expected_to_end_before_the_head_can_start(
    run_s: float, is_started: bool
) -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", at_s=900.0, timeout_s=670.0, experiment="long"),
        queued("j2", n_devices=2, experiment="long"),
        queued("j3"),
        knowing(run_s),
    )
    assert decide(state) == (["start j3 on a:1"] if is_started else [])


def test_a_job_whose_run_time_nobody_knows_is_no_backfill() -> None:
    assert decide(head_and(queued("j3"))) == []


def test_a_time_limit_bounds_the_run_time_of_a_backfill() -> None:
    assert decide(head_and(queued("j3", timeout_s=570.0))) == ["start j3 on a:1"]
    assert decide(head_and(queued("j3", timeout_s=571.0))) == []


def test_nothing_is_backfilled_while_nobody_knows_when_the_head_can_start() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2", n_devices=2), queued("j3", timeout_s=10.0))
    assert decide(state) == []


def test_a_long_job_starts_on_devices_that_the_head_will_not_need() -> None:
    state = cluster(
        "a:2 b:1",
        running("j1", on="a:0", at_s=900.0, timeout_s=670.0),
        queued("j2", n_devices=2, per_node=2),
        queued("j3"),
    )
    assert decide(state) == ["start j3 on b:0"]
    (start,) = round_of(state).actions
    assert isinstance(start, Start)
    assert start.reason == "its devices are of no use to j2, which comes first"


def test_a_long_job_starts_on_devices_that_are_not_kept_for_the_head() -> None:
    state = cluster(
        "a:4",
        running("j1", on="a:0-2", at_s=900.0, timeout_s=670.0),
        running("j2", on="a:3", at_s=900.0),
        queued("j3", n_devices=3),
        finished("j2"),
        queued("j4"),
    )
    (start,) = round_of(state).actions
    assert isinstance(start, Start)
    assert (start.job_id, "not among those that are kept for j3" in start.reason) == ("j4", True)


def test_backfills_do_not_add_up_to_a_delay() -> None:
    """What was given in this round counts as held."""
    state = cluster(
        "a:3",
        running("j1", on="a:0", at_s=900.0, timeout_s=670.0),
        queued("j2", n_devices=3),
        queued("j3", timeout_s=500.0),
        queued("j4", timeout_s=570.0),
        queued("j5", timeout_s=100.0),
    )
    assert decide(state) == ["start j3 on a:1", "start j4 on a:2"]


def test_a_head_that_has_waited_too_long_is_backfilled_no_more() -> None:
    state = head_and(queued("j3", timeout_s=60.0))
    assert decide(state, policy=Policy(backfill_patience_s=1001.0)) == ["start j3 on a:1"]
    assert decide(state, policy=Policy(backfill_patience_s=1000.0)) == []


def test_a_backfill_says_for_how_long_and_before_whom() -> None:
    (start,) = round_of(head_and(queued("j3", timeout_s=60.0))).actions
    assert isinstance(start, Start)
    assert start.reason == "expected to end in 90 s, before j2 can start in 600 s"


def test_short_work_goes_first() -> None:
    state = cluster("a:1", queued("j1", experiment="long"), queued("j2"), knowing(5.0), knowing_long(500.0))
    assert decide(state) == ["start j2 on a:0"]


def test_nobody_is_overtaken_for_longer_than_the_bound() -> None:
    steps = (queued("j1", experiment="long"), queued("j2", submitted_at=100.0), knowing(5.0), knowing_long(500.0))
    assert decide(cluster("a:1", *steps)) == ["start j2 on a:0"]
    assert decide(cluster("a:1", *steps), policy=Policy(overtaking_max_s=50.0)) == ["start j1 on a:0"]
    assert decide(cluster("a:1", *steps), policy=Policy(overtaking=0.0)) == ["start j1 on a:0"]


def test_what_is_saved_is_no_longer_expected() -> None:
    """j1 has 8 s of 520 s left, j2 all 100 s."""
    state = cluster(
        "a:1",
        running("j1", on="a:0", at_s=0.0, saved_at_s=512.0, experiment="long"),
        gone("j1", at_s=512.0),
        queued("j2"),
        knowing(100.0),
        knowing_long(520.0),
    )
    assert state.jobs["j1"].done_s == 512.0
    assert decide(state) == ["start j1 on a:0"]


def knowing_long(run_s: float) -> Step:
    def step(journal: Journal) -> None:
        for _ in range(3):
            journal.state.estimates.learn(job("j99", experiment="long"), run_s)

    return step


def test_a_quota_bounds_what_a_project_holds() -> None:
    policy = Policy(quotas=(Quota(max_devices=2, project="vision"),))
    state = cluster(
        "a:8",
        running("j1", on="a:0", project="vision"),
        queued("j2", n_devices=2, project="vision"),
        queued("j3", project="vision"),
        queued("j4", n_devices=3, project="speech"),
    )
    assert decide(state, policy=policy) == ["start j4 on a:1,2,3"], "j3 waits, or j2 would never find room"
    assert decide(then(state, finished("j1")), policy=policy) == ["start j2 on a:0,1", "start j4 on a:2,3,4"]


def test_a_quota_of_a_class_holds_for_all_projects_together() -> None:
    policy = Policy(quotas=(Quota(max_devices=1, priority_class="exploratory"),))
    state = cluster(
        "a:8", queued("j1", priority="exploratory"), queued("j2", priority="exploratory", project="b"), queued("j3")
    )
    assert decide(state, policy=policy) == ["start j3 on a:0", "start j2 on a:1"]


def test_nobody_leaves_for_a_job_that_its_quota_holds_back() -> None:
    policy = Policy(quotas=(Quota(max_devices=0, project="vision"),))
    state = cluster("a:1", running("j1", on="a:0", priority="exploratory"), queued("j2", project="vision"))
    assert decide(state, policy=policy) == []


def test_a_job_larger_than_its_quota_holds_nobody_back() -> None:
    policy = Policy(quotas=(Quota(max_devices=2, project="vision"),))
    state = cluster("a:8", queued("j1", n_devices=3, project="vision"), queued("j2", project="vision"))
    assert decide(state, policy=policy) == ["start j2 on a:0"]


def failed_here(job_id: str, reason: ExitReason = ExitReason.DEVICE_LOST) -> Step:
    """Its attempt failed, and it is back in the queue."""
    return lambda journal: journal.record(
        AttemptEnded(
            job_id=job_id,
            attempt=1,
            outcome=AttemptOutcome.FAILED,
            exit_reason=reason,
            exit_code=1,
            evidence=None,
            then=Then.REQUEUE,
            end_state=None,
        )
    )


def test_after_a_failure_of_the_machine_another_node_is_taken_first() -> None:
    state = cluster("a:2 b:2", running("j1", on="a:0"), failed_here("j1"))
    assert decide(state) == ["start j1 on b:0"]


def test_after_a_failure_of_the_machine_another_device_is_taken_where_the_node_is_the_only_one() -> None:
    assert decide(cluster("a:2", running("j1", on="a:0"), failed_here("j1"))) == ["start j1 on a:1"]


def test_a_place_that_failed_is_taken_where_it_fits_nowhere_else() -> None:
    assert decide(cluster("a:1", running("j1", on="a:0"), failed_here("j1"))) == ["start j1 on a:0"]


@pytest.mark.parametrize(
    ("reason", "place"), [(ExitReason.HUNG, "b:0"), (ExitReason.DEVICE_FAULT, "b:0"), (ExitReason.CODE_ERROR, "a:0")]
)
def test_a_failure_that_may_be_the_machines_is_tried_elsewhere_and_a_plain_one_is_not(
    reason: ExitReason, place: str
) -> None:
    state = cluster("a:2 b:2", running("j1", on="a:0"), failed_here("j1", reason))
    assert decide(state) == [f"start j1 on {place}"]
