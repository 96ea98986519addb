"""What fits where: kinds, memory, cores, shares, exclusive jobs; and what is said when nothing does."""

from __future__ import annotations

import pytest
from core_language import NOW, cluster, decide, queued, round_of, then

from runtime.model.nouns import Needs, Shape
from runtime.scheduling.decision import Start
from runtime.scheduling.explain import explain, feasible
from runtime.scheduling.intent import event_of
from runtime.scheduling.policy import Policy


def test_the_first_kind_of_a_list_that_fits_is_taken_and_a_gang_is_of_one_kind() -> None:
    either = Needs(or_accelerators=("A100",))
    state = cluster("a:2xH100 b:4xA100", queued("j1", n_devices=3, kind="H100", needs=either))
    assert decide(state) == ["start j1 on b:0,1,2"]
    state = cluster("a:2xH100 b:4xA100", queued("j1", n_devices=2, kind="H100", needs=either))
    assert decide(state) == ["start j1 on a:0,1"]


def test_devices_with_too_little_memory_are_left_out() -> None:
    state = cluster("a:2xA100 b:4xH100", queued("j1", n_devices=1, needs=Needs(device_memory_mb=50_000)))
    assert decide(state) == ["start j1 on b:0"]


def test_cores_are_promised_once() -> None:
    """A node of 4 devices has 3 cores here."""
    jobs = (queued(f"j{n}", needs=Needs(cpu_milli=1500)) for n in (1, 2, 3))
    assert decide(cluster("a:4", *jobs)) == ["start j1 on a:0", "start j2 on a:1"]


def test_memory_is_promised_once_and_those_who_ask_for_none_take_none() -> None:
    """A node has 1,024 MiB here."""
    jobs = [queued(f"j{n}", needs=Needs(memory_mb=600)) for n in (1, 2)]
    assert decide(cluster("a:4", *jobs, queued("j3"))) == ["start j1 on a:0"], "j3 is behind j2, for which room is kept"
    assert decide(cluster("a:4", queued("j1"), jobs[1])) == ["start j1 on a:0", "start j2 on a:1"]


def test_shares_fill_one_device_before_the_next() -> None:
    jobs = (queued(f"j{n}", needs=Needs(device_thousandths=part)) for n, part in enumerate((500, 300, 400, 200), 1))
    starts = [action for action in round_of(cluster("a:2", *jobs)).actions if isinstance(action, Start)]
    assert [start.placements[0].devices for start in starts] == [(0,), (0,), (1,), (0,)]


def test_a_whole_device_is_not_given_where_a_share_is() -> None:
    jobs = (queued("j1", needs=Needs(device_thousandths=100)), queued("j2", n_devices=2))
    assert decide(cluster("a:2", *jobs))[0].startswith("start j1 on a:0 (10 %)")
    assert len(decide(cluster("a:2", *jobs))) == 1


def test_an_exclusive_job_keeps_devices_idle_that_share_its_cores() -> None:
    """Of 3 devices with 2 cores, the first two share one."""
    jobs = (queued("j1", needs=Needs(is_exclusive=True)), queued("j2"), queued("j3"))
    first, second = round_of(cluster("a:3", *jobs)).actions
    assert isinstance(first, Start)
    assert isinstance(second, Start)
    (part,) = first.placements
    assert (part.devices, part.kept, part.cpu_milli) == ((0,), (1,), 1000)
    assert (second.job_id, second.placements[0].devices) == ("j2", (2,))


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (Shape(n_devices=1, needs=Needs(cpu_milli=8000)), "a has 3 cores (asked: 8 cores)"),
        (Shape(n_devices=1, needs=Needs(memory_mb=4096)), "a has 1.074 GB of memory (asked: 4.295 GB)"),
        (Shape(n_devices=1, needs=Needs(device_memory_mb=90_000)), "a has devices of 85.9 GB (asked: 94.37 GB)"),
        (Shape(n_devices=1, accelerator="B200", needs=Needs(or_accelerators=("A100",))), "a has no devices for it"),
    ],
)
def test_an_impossible_job_is_told_which_node_fails_which_test(shape: Shape, why: str) -> None:
    told = feasible(cluster("a:4xH100"), shape)
    assert told is not None
    assert why in told


def test_a_waiting_job_is_told_what_is_left_of_what_it_asks_for() -> None:
    hog, waiting = (queued(f"j{n}", needs=Needs(cpu_milli=2500)) for n in (1, 2))
    state = cluster("a:4 b:2", hog, waiting)
    for action in round_of(state).actions:
        then(state, lambda journal, action=action: journal.record(event_of(action)))
    told = explain(state, "j2", now_s=NOW, policy=Policy()).details
    assert told[0] == "a: 3 of 4 usable devices free; 0.5 cores left (asked: 2.5 cores); j1 (normal) holds 1"
    assert told[1] == "b: has 2 cores (asked: 2.5 cores)"
