"""Who is served first between projects, one rule a test."""

from __future__ import annotations

import pytest
from core_language import cluster, decide, finished, queued, running

from runtime.model import usage as usage_module
from runtime.model.usage import Usages
from runtime.scheduling.explain import explain
from runtime.scheduling.order import queue_position
from runtime.scheduling.policy import Policy, ProjectShare

DAY_S = 86400.0
EQUAL = Policy(projects={"default": ProjectShare(), "b": ProjectShare()})


def test_the_project_that_holds_less_goes_first() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2"), queued("j3", project="b"))
    assert decide(state, policy=EQUAL) == ["start j3 on a:1"]


def test_projects_that_nobody_named_are_entitled_to_the_same() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2"), queued("j3", project="b"))
    assert decide(state) == ["start j3 on a:1"]


def test_without_fair_share_submission_decides() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2"), queued("j3", project="b"))
    assert decide(state, policy=Policy(fair_share_max_s=0.0)) == ["start j2 on a:1"]


def test_what_the_round_gives_counts_at_once() -> None:
    jobs = [queued("j1"), queued("j2"), queued("j3"), queued("j4", project="b"), queued("j5", project="b")]
    assert decide(cluster("a:3", *jobs), policy=EQUAL) == ["start j1 on a:0", "start j4 on a:1", "start j2 on a:2"]


def test_who_stays_within_what_it_deserves_goes_before_all_others() -> None:
    policy = Policy(projects={"default": ProjectShare(deserved_devices=2), "b": ProjectShare(weight=1000.0)})
    state = cluster("a:3", running("j1", on="a:0"), queued("j2", project="b"), queued("j3"), queued("j4"))
    assert decide(state, policy=policy) == ["start j3 on a:1", "start j2 on a:2"]


def test_the_rest_is_shared_by_weight() -> None:
    policy = Policy(projects={"b": ProjectShare(weight=4.0)})
    state = cluster(
        "a:5", running("j1", on="a:0"), running("j2", on="a:1,2", project="b"), queued("j3"), queued("j4", project="b")
    )
    assert decide(state, policy=policy) == ["start j4 on a:3", "start j3 on a:4"]


@pytest.mark.parametrize(("later_s", "first"), [(60.0, "j3"), (40 * DAY_S, "j2")])
def test_what_a_project_had_counts_less_with_time(later_s: float, first: str) -> None:
    """After forty days nothing of it is left, and the submission decides."""
    used = (running("j1", on="a:0"), finished("j1", at_s=DAY_S))
    state = cluster("a:1", *used, queued("j2"), queued("j3", project="b", submitted_at=1.0))
    assert decide(state, now_s=DAY_S + later_s, policy=EQUAL) == [f"start {first} on a:0"]


def test_a_job_that_waits_long_enough_goes_before_those_of_any_project() -> None:
    week_s = EQUAL.fair_share_max_s

    def first(submitted_at_s: float) -> list[str]:
        early, late = queued("j2"), queued("j3", project="b", submitted_at=submitted_at_s)
        state = cluster("a:9", running("j1", on="a:0-7"), early, late)
        return decide(state, now_s=2 * week_s, policy=EQUAL)

    assert first(0.0) == ["start j3 on a:8"]
    assert first(week_s) == ["start j2 on a:8"]


def test_lower_work_of_a_project_does_not_count_in_a_class() -> None:
    lower = running("j1", on="a:0-6", priority="exploratory", is_preemptible=False)
    assert decide(cluster("a:8", lower, queued("j2"), queued("j3", project="b")), policy=EQUAL) == ["start j2 on a:7"]


def test_higher_work_of_a_project_counts_in_a_class() -> None:
    higher = running("j1", on="a:0-6", priority="critical")
    assert decide(cluster("a:8", higher, queued("j2"), queued("j3", project="b")), policy=EQUAL) == ["start j3 on a:7"]


def test_a_higher_class_goes_before_any_share() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2", priority="critical"), queued("j3", project="b"))
    assert decide(state, policy=EQUAL) == ["start j2 on a:1"]


def test_the_place_in_the_queue_and_the_reasons_tell_it() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2"), queued("j3", project="b"))
    now_s = 2 * DAY_S
    assert [queue_position(state, job_id, now_s, EQUAL) for job_id in ("j2", "j3")] == [2, 1]
    details = explain(state, "j2", now_s=now_s, policy=EQUAL).details
    assert details[0] == (
        "project default holds 1 device in this class and above, lately 0.8 on average; it is entitled to 0.5"
    )


def test_one_project_alone_has_nothing_to_share() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2"))
    assert not any("entitled" in line for line in explain(state, "j2", now_s=DAY_S, policy=EQUAL).details)


def test_a_project_holding_one_device_for_ever_has_had_one_on_average() -> None:
    usages = Usages()
    usages.change("a", 500, 1, 0.0)
    usage = usages.parts["a", 500]
    assert usage.mean_devices(DAY_S) == pytest.approx(0.5)
    assert usage.mean_devices(100 * DAY_S) == pytest.approx(1.0)


def test_what_is_remembered_is_bounded_and_keeps_who_holds_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "N_KEPT", 4)
    usages = Usages()
    usages.change("holds", 500, 1, 0.0)
    for n in range(20):
        usages.change(f"p{n}", 500, 1, float(n))
        usages.change(f"p{n}", 500, -1, n + 0.5)
    assert len(usages.parts) <= 4
    assert ("holds", 500) in usages.parts
