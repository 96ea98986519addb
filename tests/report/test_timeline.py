"""Who held what, when, and for whom somebody stepped aside."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agent.report.sample import sample_report_input
from agent.report.timeline import Holder, Segment, preemptions, segments, slot_use
from runtime_client.models import MetricPoint


@pytest.fixture(scope="module")
def facts():
    return sample_report_input()


@pytest.fixture(scope="module")
def held(facts):
    return segments(facts.jobs, facts.trials, now=facts.made_at)


def segment(start: float, end: float, *, device: int = 0, job_id: str = "j1") -> Segment:
    return Segment(
        node_id="local",
        device=device,
        job_id=job_id,
        attempt=1,
        holder=Holder.SEARCH,
        priority_class="exploratory",
        trial_number=1,
        start=start,
        end=end,
        stop_ordered_at=None,
        outcome="succeeded",
        beneficiary=None,
        resumed_step=None,
    )


def point(at: float, *, attempt: int = 1) -> MetricPoint:
    return MetricPoint(key="loss", value=1.0, step=1, at=at, attempt=attempt)


def test_no_device_is_held_twice_at_once(held):
    by_device: dict[tuple[str, int], list[Segment]] = {}
    for one in held:
        by_device.setdefault((one.node_id, one.device), []).append(one)
    assert len(by_device) == 2
    for row in by_device.values():
        assert all(earlier.end <= later.start for earlier, later in pairwise(row))


def test_second_attempt_is_marked_as_going_on_from_the_checkpoint(held):
    first, second = [s for s in held if s.job_id == "j9"]
    assert (first.resumed_step, first.outcome, first.beneficiary) == (None, "preempted", "j10")
    assert second.resumed_step == 41


def test_job_outside_the_session_is_other(held):
    (urgent,) = [s for s in held if s.holder is Holder.OTHER]
    assert (urgent.job_id, urgent.trial_number, urgent.priority_class) == ("j10", None, "critical")


def test_running_attempt_reaches_the_present(facts):
    job = facts.jobs[0]
    open_attempt = job.attempts[0].model_copy(update={"ended_at": None, "outcome": None})
    (one,) = segments([job.model_copy(update={"attempts": (open_attempt,)})], (), now=facts.made_at)
    assert one.end == facts.made_at


def test_preemption_tells_the_whole_story(facts):
    (told,) = preemptions(facts.jobs, facts.trials)
    assert (told.job_id, told.trial_number, told.beneficiary) == ("j9", 9, "j10")
    assert (told.checkpoint_step, told.resumed_attempt, told.state) == (41, 2, "succeeded")
    assert told.resumed_at is not None
    assert told.left_at is not None
    assert told.resumed_at > told.left_at > told.ordered_at


def test_attempt_stopped_for_another_cause_is_no_preemption(facts):
    cancelled = [
        job.model_copy(update={"attempts": tuple(a.model_copy(update={"stop_cause": "cancel"}) for a in job.attempts)})
        for job in facts.jobs
    ]
    assert preemptions(cancelled, facts.trials) == ()


def test_busy_share_is_leased_time_over_devices_times_span():
    use = slot_use([segment(0, 10), segment(0, 5, device=1, job_id="j2")], {}, n_devices=2)
    assert use.leased_share == pytest.approx(15 / 20)


def test_user_share_counts_first_to_last_metric_of_each_attempt():
    points = {"j1": [point(2), point(4), point(7)], "j2": [point(1), point(2, attempt=2)]}
    use = slot_use([segment(0, 10), segment(0, 5, device=1, job_id="j2")], points, n_devices=2)
    assert use.user_s == pytest.approx(5.0)


def test_busy_share_of_nothing_is_not_a_number_but_none():
    assert slot_use([], {}, n_devices=2).leased_share is None
