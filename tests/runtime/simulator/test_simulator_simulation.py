"""Clusters in virtual time: what becomes of jobs, of their work, and of the cluster's time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenarios import COSTS, NO_NOTICE, everything, excerpt, line, played, trace_job

from runtime.model.states import JobState
from runtime.scheduling.policy import Policy
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.errors import BadScenario, SimulationError
from runtime.simulator.faults import Faults, NodeFault
from runtime.simulator.scenario import Scenario
from runtime.simulator.simulation import simulate
from runtime.simulator.workload import Costs, TraceJob

NEVER_SAVES = replace(NO_NOTICE, checkpoint_every_s=None)


def urgent_meets(costs: Costs) -> tuple[float | None, float | None, float]:
    """An urgent job of 100 s comes when a job of 1,000 s on the only device has run for 500 s.

    Start of the urgent one, end of the other, device-seconds lost.
    """
    ledger = played("1x1", trace_job("j1", 0, 1000, costs=costs), trace_job("j2", 500, 100, priority="critical"))
    return line(ledger, "j2").started_s, line(ledger, "j1").ended_s, ledger.lost_to_preemption.total_s


def test_a_preempted_job_goes_on_where_it_was_saved_on_notice() -> None:
    assert urgent_meets(COSTS) == (520.0, 620.0 + 30.0 + 500.0, 20.0 + 30.0)


def test_without_saving_on_notice_it_goes_on_at_its_last_checkpoint() -> None:
    assert urgent_meets(NO_NOTICE) == (500.0, 600.0 + 30.0 + 600.0, 100.0 + 30.0)


def test_without_any_checkpoint_it_begins_anew() -> None:
    assert urgent_meets(NEVER_SAVES) == (500.0, 600.0 + 30.0 + 1000.0, 500.0 + 30.0)


def test_a_notice_checkpoint_longer_than_the_grace_costs_the_grace_too() -> None:
    slow = replace(COSTS, notice_checkpoint_s=60.0)
    assert urgent_meets(slow) == (530.0, 630.0 + 30.0 + 600.0, 100.0 + 30.0 + 30.0)


def test_a_job_preempted_while_it_restarts_loses_that_time_and_no_work() -> None:
    ledger = played(
        "1x1",
        trace_job("j1", 0, 1000),
        trace_job("j2", 500, 100, priority="critical"),
        trace_job("j3", 630, 100, priority="critical"),
    )
    assert line(ledger, "j3").started_s == 630.0
    assert line(ledger, "j1").ended_s == 730.0 + 30.0 + 500.0
    assert ledger.lost_to_preemption.restart_s == 10.0 + 30.0
    assert ledger.lost_to_preemption.recomputed_s == 0.0


def test_a_job_asked_to_leave_just_before_its_end_saves_and_comes_back_for_the_rest() -> None:
    ledger = played("1x1", trace_job("j1", 0, 510), trace_job("j2", 500, 100, priority="critical"))
    assert line(ledger, "j2").started_s == 520.0
    assert line(ledger, "j1").ended_s == 620.0 + 30.0 + 10.0


def test_the_choice_of_victims_knows_the_newest_checkpoints() -> None:
    """j1 has run longest and saved last."""
    ledger = played(
        "1x2",
        trace_job("j1", 0, 1000),
        trace_job("j2", 150, 1000),
        trace_job("j3", 210, 100, priority="critical"),
    )
    assert [line(ledger, name).n_preemptions for name in ("j1", "j2")] == [1, 0]


@pytest.mark.parametrize(
    "costs",
    [COSTS, pytest.param(NO_NOTICE, marks=pytest.mark.lives), pytest.param(NEVER_SAVES, marks=pytest.mark.lives)],
)
def test_reporting_each_checkpoint_decides_the_same(costs: Costs) -> None:
    scenario = Scenario(jobs=excerpt(share=0.4, costs=costs), nodes=parse_nodes("3x8"), policy=Policy())
    seldom, always = simulate(scenario), simulate(replace(scenario, reports_every_checkpoint=True))
    assert sum(one.n_preemptions for one in seldom.lines.values()) > 10
    assert everything(seldom) == everything(always)


def test_the_same_scenario_has_the_same_outcome() -> None:
    scenario = Scenario(
        jobs=excerpt(), nodes=parse_nodes("3x8"), policy=Policy(), faults=Faults(seed=3, node_mtbf_s=20_000.0)
    )
    assert everything(simulate(scenario)) == everything(simulate(scenario))


@pytest.mark.parametrize(
    "faults",
    [Faults(), pytest.param(Faults(seed=1, node_mtbf_s=30_000.0, device_mtbf_s=100_000.0), marks=pytest.mark.lives)],
)
def test_device_time_held_is_work_and_losses_and_nothing_else(faults: Faults) -> None:
    ledger = played("3x8", *excerpt()[:200], faults=faults)
    done = [one for one in ledger.lines.values() if one.end_state is JobState.SUCCEEDED]
    assert len(done) > 150
    for one in done:
        assert one.held_device_s == pytest.approx(one.job.run_s * one.job.n_devices + one.lost_device_s)
    lost = ledger.lost_to_preemption.total_s + ledger.lost_to_faults.total_s
    assert lost == pytest.approx(sum(one.lost_device_s for one in ledger.lines.values()))


def test_every_job_that_fits_ends() -> None:
    ledger = played("3x8", *excerpt()[:150])
    assert {one.end_state for one in ledger.lines.values() if one.refusal is None} == {JobState.SUCCEEDED}


def test_a_gang_that_never_fits_is_refused_and_delays_nobody() -> None:
    ledger = played("2x4", trace_job("j1", 0, 100, n=9), trace_job("j2", 0, 100))
    assert "asks for 9 devices" in (line(ledger, "j1").refusal or "")
    assert line(ledger, "j2").started_s == 0.0


def test_a_small_gang_stays_on_one_node() -> None:
    """4 devices are free, but on two nodes."""
    ledger = played("2x4", trace_job("a", 0, 100, n=2), trace_job("b", 0, 200, n=3), trace_job("c", 1, 10, n=4))
    assert line(ledger, "c").started_s == 100.0


def test_devices_of_the_wanted_kind_are_waited_for() -> None:
    ledger = played("1x1xH100,1x1xA100", trace_job("a", 0, 50, kind="H100"), trace_job("b", 1, 10, kind="H100"))
    assert line(ledger, "b").started_s == 50.0


def test_a_failed_node_sends_its_jobs_back_to_their_checkpoints() -> None:
    faults = Faults(scripted=(NodeFault(node_id="n1", at_s=500.0, back_at_s=800.0),))
    ledger = played("1x1", trace_job("j1", 0, 1000), faults=faults)
    assert line(ledger, "j1").ended_s == 800.0 + 30.0 + 600.0
    assert (ledger.n_node_faults, ledger.lost_to_faults.recomputed_s) == (1, 100.0)
    assert ledger.lost_to_preemption.total_s == 0.0


def test_a_failed_node_goes_on_elsewhere() -> None:
    faults = Faults(scripted=(NodeFault(node_id="n1", at_s=500.0, back_at_s=9000.0),))
    ledger = played("2x1", trace_job("j1", 0, 1000), faults=faults)
    assert line(ledger, "j1").ended_s == 500.0 + 30.0 + 600.0


def test_attempts_that_die_again_and_again_without_progress_end_the_job() -> None:
    ledger = played("1x1", trace_job("j1", 0, 1e6, costs=NEVER_SAVES), faults=Faults(device_mtbf_s=10.0))
    assert (line(ledger, "j1").end_state, line(ledger, "j1").n_attempts) == (JobState.FAILED, 3)


def test_faults_do_not_depend_on_the_policy() -> None:
    faults = Faults(seed=7, node_mtbf_s=100.0)
    first, second = faults.of_node("n1", 0.0), faults.of_node("n1", 0.0)
    assert [next(first) for _ in range(5)] == [next(second) for _ in range(5)]
    assert next(faults.of_node("n2", 0.0)).at_s != next(faults.of_node("n1", 0.0)).at_s


def test_a_job_that_can_never_end_is_said_to_be_one() -> None:
    faults = Faults(node_mtbf_s=50.0, repair_s=1.0)
    scenario = Scenario(
        jobs=[trace_job("j1", 0, 1e6, costs=NEVER_SAVES)], nodes=parse_nodes("1x1"), policy=Policy(), faults=faults
    )
    with pytest.raises(SimulationError, match="j1 was started 1000 times"):
        simulate(scenario)


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([trace_job("a", 0, 1, priority="urgent")], "'urgent' is not in the policy"),
        ([trace_job("a", 5, 1), trace_job("b", 0, 1)], "not in order of submission"),
        ([trace_job("a", 0, 1), trace_job("a", 0, 1)], "one id"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused(jobs: list[TraceJob], words: str) -> None:
    with pytest.raises(BadScenario, match=words):
        simulate(Scenario(jobs=jobs, nodes=parse_nodes("1x1"), policy=Policy()))
