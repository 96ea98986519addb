"""Each invariant is seen when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from core_language import cluster, placements, queued, running, stopping

from runtime.model.check import check
from runtime.model.errors import InvariantViolation
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.model.states import JobState

Break = Callable[[State], None]


def sound() -> State:
    return cluster(
        "a:4xH100 b:2",
        running("j1", on="a:0-1", per_node=2, kind="H100", timeout_s=60.0),
        stopping("j2", on="b:0"),
        queued("j3", not_before_s=50.0, queue_timeout_s=9.0),
        queued("j4"),
    )


def swap(job_id: str, change: Callable[[Job], Job]) -> Break:
    return lambda state: state.jobs.update({job_id: change(state.jobs[job_id])})


def placed(text: str) -> Callable[[Job], Job]:
    def change(job: Job) -> Job:
        assert job.attempt is not None
        return job.but(attempt=replace(job.attempt, placements=placements(text)))

    return change


def without_stop(job: Job) -> Job:
    assert job.attempt is not None
    return job.but(attempt=replace(job.attempt, stop=None))


def unstarted(job: Job) -> Job:
    assert job.attempt is not None
    return job.but(attempt=replace(job.attempt, started_at_s=None))


def shifted_ranks(job: Job) -> Job:
    assert job.attempt is not None
    parts = tuple(replace(part, first_rank=1) for part in job.attempt.placements)
    return job.but(attempt=replace(job.attempt, placements=parts))


BROKEN: dict[str, tuple[Break, str]] = {
    "shared device": (swap("j2", placed("a:0")), "no device in two attempts"),
    "half a gang": (swap("j1", placed("a:0")), "a gang is whole or absent"),
    "split group": (swap("j1", placed("a:0 b:1")), "each node carries whole groups"),
    "unknown node": (swap("j2", placed("c:0")), "placements are on existing devices"),
    "unknown device": (swap("j2", placed("b:7")), "placements are on existing devices"),
    "wrong kind": (swap("j1", placed("b:0-1")), "a job holds the kind of device it asked for"),
    "wrong ranks": (swap("j1", shifted_ranks), "ranks follow each other"),
    "holds while queued": (
        swap("j1", lambda job: job.but(state=JobState.QUEUED)),
        "a job holds devices exactly while starting, running or stopping",
    ),
    "runs on nothing": (
        swap("j1", lambda job: job.but(attempt=None)),
        "a job holds devices exactly while starting, running or stopping",
    ),
    "ended but here": (
        swap("j1", lambda job: job.but(state=JobState.FAILED, attempt=None)),
        "ended jobs leave the state",
    ),
    "stops unasked": (swap("j2", without_stop), "a job is stopping exactly when asked to"),
    "never started": (swap("j1", unstarted), "a running attempt has a start time"),
    "old attempt": (swap("j1", lambda job: job.but(n_attempts=2)), "the attempt that holds devices is the newest"),
    "too many retries": (swap("j4", lambda job: job.but(n_retries=1)), "no more retries than allowed"),
    "negative count": (swap("j4", lambda job: job.but(n_stalled=-1)), "counts are not negative"),
    "wrong drawer": (swap("j4", lambda job: job.but(job_id="j9")), "a job is filed under its id"),
    "shared order": (
        lambda state: state.put_job(state.jobs["j4"].but(order=3)),
        "no two jobs share a place in the order",
    ),
    "free but held": (lambda state: state.index.free.update(a=0b1111), "index `free` equals its recomputation"),
    "missing in queue": (lambda state: state.index.queue.clear(), "index `queue` equals its recomputation"),
    "missing in back-off": (lambda state: state.index.delayed.clear(), "index `delayed` equals its recomputation"),
    "missing deadline": (lambda state: state.index.deadlines.clear(), "index `deadlines` equals its recomputation"),
    "missing holder": (lambda state: state.index.holding.discard("j1"), "index `holding` equals its recomputation"),
    "missing leaver": (lambda state: state.index.stopping.clear(), "index `stopping` equals its recomputation"),
    "missing victim": (lambda state: state.index.movable.clear(), "index `movable` equals its recomputation"),
    "missing limit": (lambda state: state.index.limits.clear(), "index `limits` equals its recomputation"),
    "old device list": (
        lambda state: state.index.kinds.update(b={None: 1}),
        "index `kinds` equals its recomputation",
    ),
    "forgotten use": (lambda state: state.usages.parts.clear(), "usage knows every project that holds"),
    "miscounted use": (lambda state: state.usages.change("default", 500, 1, 0.0), "usage knows what is held"),
    "stale notes": (lambda state: state.recent.update(j9=()), "only live jobs have recent events"),
    "node in wrong drawer": (
        lambda state: state.nodes.update(b=replace(state.nodes["b"], node_id="x")),
        "a node is filed under its id",
    ),
}


def test_a_sound_state_passes() -> None:
    check(sound())


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_invariant_is_seen(case: str) -> None:
    spoil, rule = BROKEN[case]
    state = sound()
    spoil(state)
    with pytest.raises(InvariantViolation) as caught:
        check(state)
    assert caught.value.rule == rule


def test_a_violation_carries_the_last_events_of_the_job() -> None:
    state = sound()
    swap("j1", unstarted)(state)
    with pytest.raises(InvariantViolation) as caught:
        check(state)
    assert caught.value.job_id == "j1"
    assert [note.split()[1] for note in caught.value.recent] == ["job_submitted", "start_ordered", "attempt_started"]
