"""Who leaves first among the jobs of one experiment: who promises the least for what it still costs."""

from __future__ import annotations

import pytest
from core_language import NOW, Step, cluster, decide, queued, round_of, running
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.scheduling.policy import Policy
from runtime.scheduling.worth import MAX_TRIES, Promising, exchanged


def filler(job_id: str, on: str, worth: tuple[float, float] | None, **traits: object) -> Step:
    return running(job_id, on=on, priority="exploratory", worth=worth, at_s=500.0, **traits)  # type: ignore[arg-type]


def test_of_one_experiment_who_promises_least_leaves_first() -> None:
    state = cluster(
        "a:3",
        filler("j1", "a:0", (0.03, 9000.0)),
        filler("j2", "a:1", (0.01, 9000.0)),
        filler("j3", "a:2", (0.02, 9000.0)),
        queued("j4"),
    )
    assert decide(state) == ["preempt j2 for j4"]


def test_an_equal_gain_counts_more_where_little_is_left_to_pay() -> None:
    state = cluster("a:2", filler("j1", "a:0", (0.02, 9000.0)), filler("j2", "a:1", (0.02, 600.0)), queued("j3"))
    assert decide(state) == ["preempt j1 for j3"]


def test_who_has_outlived_its_cost_is_expected_to_cost_twice_as_much() -> None:
    state = cluster("a:2", filler("j1", "a:0", (0.02, 400.0)), filler("j2", "a:1", (0.02, 700.0)), queued("j3"))
    # At 1000 s both ran 500 s: j1 has 300 of 800 left, j2 200 of 700.
    assert decide(state) == ["preempt j1 for j3"]


def test_without_worth_the_least_work_lost_decides() -> None:
    state = cluster("a:2", filler("j1", "a:0", None, saved_at_s=990.0), filler("j2", "a:1", (0.0, 100.0)), queued("j3"))
    assert decide(state) == ["preempt j1 for j3"]


@pytest.mark.parametrize("traits", [{"project": "vision"}, {"experiment": "other"}])
def test_nobody_escapes_at_the_cost_of_others_by_promising_much(traits: dict[str, object]) -> None:
    """Neither of another project nor of another experiment, whose objective has other units."""
    state = cluster(
        "a:2",
        filler("j1", "a:0", (1e9, 100.0), saved_at_s=990.0, **traits),
        filler("j2", "a:1", (0.001, 1e6)),
        queued("j3"),
    )
    assert decide(state) == ["preempt j1 for j3"]


def test_a_stand_in_gives_up_no_more_devices() -> None:
    state = cluster(
        "a:3", filler("j1", "a:0", (0.5, 9000.0)), filler("j2", "a:1-2", (0.001, 9000.0)), queued("j3", n_devices=1)
    )
    assert decide(state) == ["preempt j1 for j3"]


def test_a_stand_in_must_make_room_for_the_whole_gang() -> None:
    state = cluster(
        "a:2xH100 b:1xA100",
        filler("j1", "a:0", (0.5, 9000.0)),
        filler("j2", "a:1", (0.4, 9000.0)),
        filler("j3", "b:0", (0.001, 9000.0)),
        queued("j4", n_devices=2, kind="H100"),
    )
    assert sorted(decide(state)) == ["preempt j1 for j4", "preempt j2 for j4"]


def test_the_lowest_class_leaves_first_whatever_it_promises() -> None:
    state = cluster(
        "a:2",
        filler("j1", "a:0", (1e9, 100.0)),
        running("j2", on="a:1", priority="normal", worth=(0.0, 9000.0)),
        queued("j3", priority="critical"),
    )
    assert decide(state) == ["preempt j1 for j3"]


def test_the_minimum_run_time_protects_who_promises_little() -> None:
    young = running("j2", on="a:1", priority="exploratory", at_s=NOW - 1, worth=(0.0, 900.0))
    state = cluster("a:2", filler("j1", "a:0", (0.5, 900.0)), young, queued("j3"))
    assert decide(state, policy=Policy(min_run_s=60.0)) == ["preempt j1 for j3"]


def test_the_reason_says_in_whose_place_it_leaves() -> None:
    state = cluster(
        "a:2",
        filler("j1", "a:0", (0.03, 9000.0), saved_at_s=990.0),
        filler("j2", "a:1", (0.01, 9000.0)),
        queued("j3"),
    )
    (action,) = round_of(state).actions
    assert action.reason.endswith("it promises less for what it still costs than j1 of its experiment, which stays")


values = st.lists(st.integers(0, 6), min_size=1, max_size=7)


@given(values=values, groups=st.lists(st.sampled_from("pq"), min_size=7, max_size=7), n=st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_an_exchange_never_makes_another_group_pay(values: list[int], groups: list[str], n: int) -> None:
    """Where any of them is as good as any other: the same number from each group, and the least of each."""
    jobs = [
        Promising(key=f"j{i}", group=(100, group, "e"), value=float(value), n_devices=1)
        for i, (value, group) in enumerate(zip(values, groups, strict=False))
    ]
    victims, others = jobs[:n], jobs[n:]
    n_tried = 0

    def is_enough(leaving: frozenset[str]) -> bool:
        nonlocal n_tried
        n_tried += 1
        return len(leaving) == len(victims)

    stands_in = exchanged(victims, others, is_enough)
    after = {stands_in.get(victim.key, victim.key) for victim in victims}
    by_key = {job.key: job for job in jobs}
    for group in "pq":
        before = [victim for victim in victims if victim.group[1] == group]
        now = sorted(by_key[key].value for key in after if by_key[key].group[1] == group)
        assert now == sorted(job.value for job in jobs if job.group[1] == group)[: len(before)]
    assert n_tried <= MAX_TRIES


def test_a_search_tries_a_bounded_number_of_exchanges() -> None:
    jobs = [Promising(key=f"j{i}", group=(100, "p", "e"), value=float(i), n_devices=1) for i in range(500)]
    n_tried = 0

    def never(leaving: frozenset[str]) -> bool:
        nonlocal n_tried
        n_tried += 1
        return False

    assert exchanged(jobs[250:], jobs[:250], never) == {}
    assert n_tried == MAX_TRIES
