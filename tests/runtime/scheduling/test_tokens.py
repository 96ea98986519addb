"""The token bucket: how often a class may have others give up devices."""

from __future__ import annotations

import pytest
from core_language import NOW, cluster, decide, queued, round_of, running, stopping

from runtime.model.evictions import N_KEPT, Eviction, with_eviction
from runtime.scheduling.explain import explain
from runtime.scheduling.policy import Policy
from runtime.scheduling.tokens import level, ready_s

ONE_EACH_MINUTE = Policy(preempt_burst=0.25, preempt_per_hour=15.0)
"""On four devices: one token at once, sixty an hour."""


def asked_at(*times: float, n_devices: int = 1) -> tuple[Eviction, ...]:
    return tuple(Eviction(at_s=at_s, n_devices=n_devices) for at_s in times)


def test_a_bucket_is_full_before_anything_was_asked() -> None:
    assert level((), 8.0, 0.1, NOW) == 8.0


def test_a_bucket_drains_by_devices_and_fills_with_time_up_to_its_size() -> None:
    past = asked_at(NOW - 100, NOW - 50, n_devices=4)
    assert level(past, 8.0, 0.02, NOW) == pytest.approx(8 - 4 + 1 - 4 + 1)
    assert level(past, 8.0, 10.0, NOW) == 8.0


def test_a_large_gang_may_overdraw_the_bucket_and_the_next_waits_longer() -> None:
    assert level(asked_at(NOW, n_devices=20), 8.0, 1.0, NOW) == -12.0


def test_only_what_is_recent_is_remembered() -> None:
    state = cluster("a:1", running("j1", on="a:0"))
    earlier = asked_at(*range(N_KEPT + 10))
    kept = with_eviction(earlier, state.jobs["j1"], 100.0)
    assert len(kept) == N_KEPT
    assert kept[-1] == Eviction(at_s=100.0, n_devices=1)
    assert with_eviction(earlier, state.jobs["j1"], 1e6) == asked_at(1e6)


def test_a_class_that_asked_for_much_waits_for_tokens_and_says_so() -> None:
    state = cluster(
        "a:4",
        running("j1", on="a:0", priority="exploratory"),
        running("j2", on="a:1-3", priority="exploratory"),
        queued("j3"),
        queued("j4"),
    )
    assert decide(state, policy=ONE_EACH_MINUTE) == ["preempt j1 for j3"]
    state.evictions["normal"] = asked_at(NOW - 15.0)
    assert decide(state, policy=ONE_EACH_MINUTE) == []
    assert round_of(state, policy=ONE_EACH_MINUTE).next_wake_s == pytest.approx(NOW + 45.0)
    why = explain(state, "j3", now_s=NOW, policy=ONE_EACH_MINUTE).summary
    assert why == ("j3 needs 1 device; may have others leave in 45 s again: its class asked for many devices of late")


def test_a_round_counts_what_it_has_asked_for_itself() -> None:
    state = cluster(
        "a:4",
        running("j1", on="a:0-1", priority="exploratory"),
        running("j2", on="a:2-3", priority="exploratory"),
        queued("j3", n_devices=2),
        queued("j4", n_devices=2),
    )
    assert len(decide(state, policy=ONE_EACH_MINUTE)) == 1
    assert len(decide(state)) == 2


def test_the_highest_class_pays_nothing_and_takes_nothing_from_others() -> None:
    state = cluster("a:1", running("j1", on="a:0"), queued("j2", priority="critical"))
    state.evictions = {"critical": asked_at(*[NOW - 1.0] * 50)}
    assert decide(state, policy=ONE_EACH_MINUTE) == ["preempt j1 for j2"]
    lower = cluster("a:1", queued("j3"))
    lower.evictions = dict(state.evictions)
    assert ready_s(lower, lower.jobs["j3"], ONE_EACH_MINUTE, NOW) == NOW


def test_what_is_asked_is_recorded_for_the_class_that_gets_it() -> None:
    state = cluster("a:2", queued("j1"), stopping("j2", on="a:0-1", priority="exploratory", beneficiary="j1"))
    assert [one.n_devices for one in state.evictions["normal"]] == [2]


def test_nobody_waits_for_tokens_for_ever() -> None:
    state = cluster("a:1", queued("j1"))
    state.evictions["normal"] = asked_at(NOW - 1.0, n_devices=1000)
    never_filled = Policy(preempt_burst=1.0, preempt_per_hour=0.0)
    assert NOW < ready_s(state, state.jobs["j1"], never_filled, NOW) <= NOW + 3600
    assert ready_s(state, state.jobs["j1"], never_filled, NOW + 3600) == NOW + 3600
