"""What a person is told, by the functions that decide."""

from __future__ import annotations

import pytest
from core_language import NOW, cluster, queued, running, stopping

from runtime.model.nouns import Shape
from runtime.model.state import State
from runtime.model.states import StopCause
from runtime.scheduling.decision import Reasons
from runtime.scheduling.explain import UnknownJob, explain, feasible
from runtime.scheduling.policy import Policy, Quota


def why(state: State, job_id: str) -> Reasons:
    return explain(state, job_id, now_s=NOW, policy=Policy())


def test_a_waiting_job_says_which_node_lacks_what_and_who_holds_it() -> None:
    state = cluster(
        "a:2 b:1", running("j1", on="a:0-1", priority="critical"), running("j2", on="b:0"), queued("j3", n_devices=2)
    )
    reasons = why(state, "j3")
    assert reasons.queue_position == 1
    assert reasons.summary == "j3 needs 2 devices; too few devices are free or held by lower, preemptible jobs"
    assert reasons.details == (
        "a: 0 of 2 usable devices free; j1 (critical) holds 2",
        "b: 0 of 1 usable devices free; j2 (normal) holds 1",
    )


def test_a_job_behind_another_of_its_shape_names_it() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2"), queued("j3"))
    reasons = why(state, "j3")
    assert reasons.queue_position == 2
    assert "behind j2" in reasons.summary


def test_a_job_that_would_delay_the_head_names_the_head() -> None:
    state = cluster("a:2", running("j1", on="a:0", priority="critical"), queued("j2", n_devices=2), queued("j3"))
    assert why(state, "j3").summary == (
        "j3 needs 1 device; there is room, but a start could delay j2 (normal), which comes first"
    )


def test_a_job_waits_for_those_who_leave_for_it() -> None:
    state = cluster("a:1", stopping("j1", on="a:0", priority="exploratory", beneficiary="j2"), queued("j2"))
    assert why(state, "j2").summary == "j2 gets a:0 as soon as j1 has left"


def test_a_preempted_job_names_its_beneficiary() -> None:
    state = cluster("a:1", stopping("j1", on="a:0", priority="exploratory", beneficiary="j2"), queued("j2"))
    reasons = why(state, "j1")
    assert (reasons.summary, reasons.beneficiary) == ("j1 leaves for j2", "j2")
    (ordered,) = (job.attempt.stop.ordered_at_s for job in state.jobs.values() if job.attempt and job.attempt.stop)
    later = explain(state, "j1", now_s=ordered + 12.0, policy=Policy())
    assert later.details[1] == "has 18 s left of 30 s to checkpoint and leave a:0"


def test_a_job_about_to_be_preempted_names_its_beneficiary() -> None:
    state = cluster("a:1", running("j1", on="a:0", priority="exploratory"), queued("j2"))
    reasons = why(state, "j1")
    assert reasons.beneficiary == "j2"
    assert "j2 (normal) needs 1 device" in reasons.details[0]


@pytest.mark.parametrize("cause", list(StopCause))
def test_every_cause_of_a_stop_has_words(cause: StopCause) -> None:
    assert why(cluster("a:1", stopping("j1", on="a:0", cause=cause, beneficiary="j9")), "j1").summary.startswith("j1 ")


def test_a_job_in_back_off_says_how_long() -> None:
    reasons = why(cluster("a:1", queued("j1", not_before_s=NOW + 5)), "j1")
    assert reasons.summary == "j1 backs off for another 5 s before its next attempt"


def test_a_job_about_to_start_says_so() -> None:
    assert why(cluster("a:1", queued("j1")), "j1").summary == "j1 is about to start"


def test_a_running_job_says_where() -> None:
    assert why(cluster("a:2", running("j1", on="a:1")), "j1").summary == "j1 runs on a:1"


def test_a_job_that_can_never_run_says_what_there_is() -> None:
    reasons = why(cluster("a:2", queued("j1", n_devices=3)), "j1")
    assert reasons.queue_position is None
    assert reasons.summary == (
        "j1 can not run on the nodes there are: it asks for 3 devices; the cluster has 2 cpu on a"
    )


def test_jobs_that_can_never_run_do_not_count_in_the_queue() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2", n_devices=3), queued("j3"))
    assert why(state, "j3").queue_position == 1


def test_an_unknown_job_is_refused() -> None:
    with pytest.raises(UnknownJob, match="j7"):
        why(cluster("a:1"), "j7")


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        (Shape(n_devices=2), None),
        (Shape(n_devices=6), None),
        (Shape(n_devices=4, accelerator="H100", devices_per_node=4), None),
        (Shape(n_devices=7), "asks for 7 devices; the cluster has 4 H100 on a, 2 cpu on b"),
        (Shape(n_devices=1, accelerator="A100"), "asks for 1 A100 device; the cluster has 4 H100 on a, 2 cpu on b"),
        (
            Shape(n_devices=16, accelerator="H100", devices_per_node=8),
            "asks for 16 H100 devices in groups of 8 per node; the cluster has 4 H100 on a, 2 cpu on b",
        ),
        (
            Shape(n_devices=3, devices_per_node=2),
            "asks for 3 devices in groups of 2 per node: not a whole number of groups",
        ),
        (Shape(n_devices=0), "asks for 0 devices; the least is 1, or 0 with cores or memory"),
    ],
)
def test_feasibility_says_what_is_asked_and_what_exists(shape: Shape, sentence: str | None) -> None:
    assert feasible(cluster("a:4xH100 b:2"), shape) == sentence


def test_nothing_is_feasible_without_nodes() -> None:
    assert feasible(cluster(""), Shape(n_devices=1)) == "asks for 1 device; the cluster has no devices"


def test_a_job_that_waits_names_those_who_leave_for_it_and_what_is_left_of_their_grace() -> None:
    state = cluster(
        "a:2",
        stopping("j1", on="a:0", priority="exploratory", beneficiary="j3"),
        running("j2", on="a:1", priority="critical"),
        queued("j3", n_devices=2, priority="critical"),
    )
    (order,) = (job.attempt.stop for job in state.jobs.values() if job.attempt and job.attempt.stop)
    reasons = explain(state, "j3", now_s=order.ordered_at_s + 12.0, policy=Policy())
    assert reasons.summary == "j3 needs 2 devices; waits for j1 to leave"
    assert reasons.details[0] == "j1 (exploratory) leaves for it: 18 s left of 30 s"


def test_a_job_says_which_quota_holds_it_back() -> None:
    policy = Policy(quotas=(Quota(max_devices=2, project="vision", priority_class="normal"),))
    jobs = (queued("j2", n_devices=2, project="vision"), queued("j3", n_devices=3, project="vision"))
    state = cluster("a:8", running("j1", on="a:0", project="vision"), *jobs)
    assert explain(state, "j2", now_s=NOW, policy=policy).summary == (
        "j2 needs 2 devices; a quota holds it back: project vision may hold 2 devices in class normal, "
        "and 1 of them are in use"
    )
    assert explain(state, "j3", now_s=NOW, policy=policy).summary == (
        "j3 needs 3 devices; it can not start under a quota: project vision may hold 2 devices in class normal, "
        "and it asks for 3 devices"
    )
