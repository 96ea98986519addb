"""When a waiting job is expected to start, and that it does start then when nothing else happens."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from core_language import NOW, cluster, decide, finished, job, queued, running, stopping, then

from runtime.model.codec import encode_state
from runtime.model.copying import copy_of
from runtime.model.events import AttemptStarted, HoldPlaced, JobSubmitted, Recorded
from runtime.model.holds import Hold, HoldScope
from runtime.model.nouns import Node
from runtime.model.state import State
from runtime.model.states import JobState
from runtime.scheduling import rehearsal
from runtime.scheduling.policy import Policy
from runtime.scheduling.rehearsal import Expectation, expected_start, stage
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.scenario import Scenario
from runtime.simulator.simulation import simulate
from runtime.simulator.workload import Costs, TraceJob


def learned(run_s: float = 100.0) -> State:
    """Two devices, and three jobs that ran so long."""
    taught = [step for n in (1, 2, 3) for step in (running(f"j{n}", on="a:0", at_s=0.0), finished(f"j{n}", at_s=run_s))]
    return cluster("a:2", *taught)


def expect(state: State, job_id: str) -> Expectation:
    return expected_start(stage(state, now_s=NOW), job_id, now_s=NOW, policy=Policy())


def test_a_job_starts_when_like_jobs_would_have_ended() -> None:
    state = then(learned(), running("j4", on="a:0-1", at_s=NOW - 30), queued("j5"))
    assert expect(state, "j5") == Expectation(at_s=NOW + 70, basis="when j4 has ended (as long as like jobs ran)")


def test_a_job_starts_at_the_latest_when_a_time_limit_and_its_grace_are_over() -> None:
    state = cluster("a:1", running("j1", on="a:0", at_s=NOW - 10, timeout_s=60.0, grace_s=20.0), queued("j2"))
    assert expect(state, "j2") == Expectation(at_s=NOW + 70, basis="when j1 has ended (at its time limit)")


def test_nobody_invents_a_time_where_no_end_is_known() -> None:
    state = cluster("a:2", running("j1", on="a:0"), running("j2", on="a:1"), queued("j3"))
    told = expect(state, "j3")
    assert told.at_s is None
    assert told.basis.startswith("nobody knows how long j1, j2 run")


def test_an_unknown_end_does_not_hide_a_known_one() -> None:
    state = cluster(
        "a:2", running("j1", on="a:0"), running("j2", on="a:1", at_s=NOW, timeout_s=50.0, grace_s=0.0), queued("j3")
    )
    assert expect(state, "j3").at_s == NOW + 50


def test_a_job_follows_its_victims_when_their_grace_is_over() -> None:
    state = then(cluster("a:1", running("j1", on="a:0", priority="exploratory")), queued("j2", priority="critical"))
    assert decide(state) == ["preempt j1 for j2"]
    assert expect(state, "j2") == Expectation(at_s=NOW + 30, basis="when j1 has left (within its grace)")


def test_each_job_ahead_takes_its_turn() -> None:
    state = then(learned(), *(queued(f"j{n}", n_devices=2) for n in (4, 5, 6)))
    assert [expect(state, f"j{n}").at_s for n in (4, 5, 6)] == [NOW, NOW + 100, NOW + 200]


def test_a_queue_timeout_that_comes_first_is_said() -> None:
    state = then(learned(), running("j4", on="a:0-1", at_s=NOW), queued("j5", queue_timeout_s=NOW + 20))
    told = expect(state, "j5")
    assert told.at_s is None
    assert told.basis.startswith("it is expected to end before: waited longer than its queue timeout")


def test_what_nothing_will_change_is_said() -> None:
    hold = Hold(scope=HoldScope.ALL, name=None, reason="noise", placed_at_s=0.0, placed_by="user:owner")
    state = cluster("a:1", queued("j1"), lambda journal: journal.record(HoldPlaced(hold=hold)))
    assert expect(state, "j1").basis == "nothing that is expected to happen makes room for it"


def test_a_job_that_is_not_there_yet_is_rehearsed_too() -> None:
    state = then(learned(), running("j4", on="a:0-1", at_s=NOW))
    copy = stage(state, job("j99").but(job_id="this job"), now_s=NOW)
    assert expected_start(copy, "this job", now_s=NOW, policy=Policy()).at_s == NOW + 100
    assert "this job" not in state.jobs


def test_with_too_many_jobs_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MAX_JOBS", 1)
    assert expect(cluster("a:1", queued("j1"), queued("j2")), "j2").basis == "more than 1 jobs are there"


def test_a_rehearsal_changes_nothing() -> None:
    state = then(learned(), running("j4", on="a:0-1", at_s=NOW), stopping_soon(), queued("j6", priority="critical"))
    before = (json.dumps(encode_state(state)), repr(state.index), repr(state.estimates))
    expect(state, "j6")
    assert (json.dumps(encode_state(state)), repr(state.index), repr(state.estimates)) == before


def stopping_soon() -> Callable[..., None]:
    return lambda journal: journal.record(JobSubmitted(job=job("j5")), 0.0)


def test_a_copy_equals_its_original_and_shares_nothing_that_changes() -> None:
    state = cluster("a:2 b:2", running("j1", on="a:0"), stopping("j2", on="b:0", beneficiary="j3"), queued("j3"))
    twin = copy_of(state)
    assert (twin, twin.index) == (state, state.index)
    then(twin, queued("j4"), finished("j1"))
    assert twin.index.queue != state.index.queue
    assert "j1" in state.jobs
    assert "j4" not in state.jobs


def test_what_nobody_has_said_how_to_copy_is_refused() -> None:
    with pytest.raises(TypeError, match="how to copy a bytearray"):
        copy_of({"a": [bytearray()]})


RUN_S = {"short": 40.0, "middling": 150.0, "long": 700.0}
WIDTHS = {"short": (1, 1, 2), "middling": (1, 2, 3), "long": (1, 2, 4)}
BURST_S = 5000.0


@pytest.mark.parametrize("seed", range(25))
def test_the_expected_start_is_met_when_all_goes_as_expected(seed: int) -> None:
    """Jobs run as long as they always did, preempted ones lose nothing, and nothing else arrives."""
    world = Asked(parse_nodes(("1x4", "2x4", "1x6")[seed % 3]), random.Random(seed))
    simulate(Scenario(jobs=world.jobs, nodes=world.nodes, policy=Policy()), watch=world.look)
    assert len(world.told) >= 5
    wrong = {told: (at_s, world.started.get(told)) for told, at_s in world.told.items() if not world.is_met(told)}
    assert not wrong


def test_the_property_fails_when_work_that_is_done_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "remaining_s", lambda expected_s, done_s: expected_s)
    world = Asked(parse_nodes("1x4"), random.Random(0))
    simulate(Scenario(jobs=world.jobs, nodes=world.nodes, policy=Policy()), watch=world.look)
    assert not all(map(world.is_met, world.told))


class Asked:
    """A simulated world that is asked, once all jobs have arrived, when each of those that wait will start."""

    def __init__(self, nodes: list[Node], numbers: random.Random) -> None:
        self.nodes = nodes
        self.jobs = [*self._lessons(), *self._burst(numbers)]
        self.last_arrival_s = self.jobs[-1].submitted_at_s
        self.told: dict[str, float] = {}
        self.asked_at_s = 0.0
        self.started: dict[str, float] = {}
        self._before: State | None = None

    def _lessons(self) -> list[TraceJob]:
        names = [name for name in RUN_S for width in {*WIDTHS[name]} for _ in range(3)]
        widths = [width for name in RUN_S for width in {*WIDTHS[name]} for _ in range(3)]
        return [self._job(f"lesson{n}", 0.0, *pair, "normal") for n, pair in enumerate(zip(names, widths, strict=True))]

    def _burst(self, numbers: random.Random) -> list[TraceJob]:
        at_s, found = BURST_S, []
        for n in range(24):
            at_s += numbers.choice((0.0, 1.0, 17.0))
            name = numbers.choice(list(RUN_S))
            level = numbers.choice(("exploratory", "normal", "normal", "critical"))
            found.append(self._job(f"burst{n}", at_s, name, numbers.choice(WIDTHS[name]), level))
        return found

    def _job(self, job_id: str, at_s: float, project: str, width: int, level: str) -> TraceJob:
        costs = Costs(checkpoint_every_s=None, notice_checkpoint_s=0.0, restart_s=0.0, grace_s=0.0)
        return TraceJob(
            job_id=job_id,
            submitted_at_s=at_s,
            run_s=RUN_S[project],
            n_devices=width,
            priority_class=level,
            project=project,
            costs=costs,
        )

    def look(self, state: State, recorded: Recorded) -> None:
        """Asks in the first pause after the last arrival: the state before the first event of a later time."""
        if recorded.at_s > self.last_arrival_s and not self.told and self._before is not None:
            self._ask(self._before)
        if recorded.at_s == self.last_arrival_s:
            self._before = copy_of(state)
        if self.told and isinstance(recorded.event, AttemptStarted):
            self.started.setdefault(recorded.event.job_id, recorded.at_s)

    def _ask(self, state: State) -> None:
        self.asked_at_s = state.clock_s
        for waiting in (each for each in state.jobs.values() if each.state is JobState.QUEUED):
            found = expected_start(
                stage(state, now_s=state.clock_s), waiting.job_id, now_s=state.clock_s, policy=Policy()
            )
            self.told[waiting.job_id] = -1.0 if found.at_s is None else found.at_s

    def is_met(self, job_id: str) -> bool:
        return job_id in self.started and abs(self.started[job_id] - self.told[job_id]) < 1e-6
