"""Replicates of the search: every configuration on the same seeds, before the search closes; nothing confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world, honest
from planner_builders import a_history, a_trial

from agent.planner.budget import Spend, n_confirming, reserve_reached
from agent.planner.failure import N_ALIKE
from agent.planner.held_out import HeldOutLedger
from agent.planner.hypothesis import Status
from agent.planner.plan import NOT_CONFIRMED, Phase, first_plan, next_work, revised
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.ranking import ranking
from agent.planner.readiness import TrialRun, judge
from agent.planner.replicates import further_seeds
from agent.planner.statistics import Basis
from agent.planner.verdict import findings
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

DEFAULT = {"x": 0.2, "kind": "a"}
GOOD = {"x": 0.7, "kind": "a"}
BAD = {"x": 0.9, "kind": "a"}


def a_replicated(n: int = 3, *points: dict[str, Any], **changes: Any) -> Task:
    listed = list(points) or [GOOD, BAD]
    search = {"use": ["points"], "points": listed, "replicates": n, "confirm": False}
    return a_task(**{"search": search, "budgets": {"trials": len(listed) + 1}, **changes})


def wanted(task: Task, *trials: TrialView, n: int = 20) -> list[tuple[float, int]]:
    history = a_history(*trials)
    plan = revised(first_plan(task), task, history, Spend(device_seconds=0, wall_seconds=0))
    return [(float(p.params["x"] or 0), p.seed) for p in next_work(plan, task, history, n, chosen_proposers(task))]


def another(task: Task, number: int, params: dict[str, Any], seed: int, value: float | None = None) -> TrialView:
    return a_trial(task, number, params, value, seed=seed, purpose=Purpose.REPLICATE)


def test_the_seeds_are_those_of_the_race_in_order_without_that_of_the_search() -> None:
    assert further_seeds(a_replicated(4, seeds={"first_racing": 5, "search": 6, "fresh": 3})) == [5, 7, 8]
    assert further_seeds(a_task()) == []


def test_what_is_measured_is_repeated_before_new_configurations_are_tried() -> None:
    task = a_replicated()
    assert wanted(task, a_trial(task, 1, DEFAULT, 0.5), n=3) == [(0.2, 100), (0.2, 101), (0.7, 0)]


def test_new_configurations_come_before_replicates_of_what_still_runs() -> None:
    task = a_replicated()
    found = wanted(task, a_trial(task, 1, DEFAULT))
    assert found == [(0.7, 0), (0.9, 0), (0.2, 100), (0.2, 101)]


@pytest.mark.parametrize(
    ("exit_reason", "seeds"),
    [("code_error", []), ("non_finite_metric", []), ("node_lost", [100, 101]), ("disk_full", [100, 101])],
)
def test_a_configuration_that_failed_by_itself_is_not_repeated(exit_reason: str, seeds: list[int]) -> None:
    task = a_replicated()
    done = [a_trial(task, 1, DEFAULT, 0.5), another(task, 2, DEFAULT, 100, 0.5), another(task, 3, DEFAULT, 101, 0.5)]
    failed = a_trial(task, 4, GOOD, state=TrialState.INVALID, exit_reason=exit_reason)
    found = wanted(task, *done, failed, a_trial(task, 5, BAD))
    assert [seed for x, seed in found if x == 0.7] == seeds


def test_the_search_closes_when_all_replicates_have_ended() -> None:
    task = a_replicated(2)
    trials = [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, 0.9), a_trial(task, 3, BAD, 0.1)]
    trials += [another(task, 4, DEFAULT, 100, 0.5), another(task, 5, GOOD, 100, 0.8)]
    spend = Spend(device_seconds=0, wall_seconds=0)
    for more, phase in (
        ([], Phase.SEARCH),
        ([another(task, 6, BAD, 100)], Phase.SEARCH),
        ([another(task, 6, BAD, 100, 0.1)], Phase.DONE),
    ):
        plan = revised(first_plan(task), task, a_history(*trials, *more), spend)
        assert plan.phase is phase
    assert plan.chosen == trials[1].configuration


def test_a_search_that_is_cut_short_waits_for_the_replicates_that_run_before_it_chooses() -> None:
    task = a_replicated(2, budgets={"trials": 3, "device_seconds": 10})
    trials = [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, 0.9), another(task, 3, DEFAULT, 100)]
    spend = Spend(device_seconds=20, wall_seconds=0)
    plan = revised(first_plan(task), task, a_history(*trials), spend)
    assert (plan.chosen, plan.phase) == (None, Phase.SEARCH)
    ended = another(task, 3, DEFAULT, 100, 0.5)
    plan = revised(plan, task, a_history(*trials[:2], ended), spend)
    assert (plan.chosen, plan.phase) == (trials[1].configuration, Phase.DONE)


def test_every_value_counts_alike_so_that_one_lucky_seed_does_not_lead() -> None:
    task = a_replicated()
    trials = [a_trial(task, 1, DEFAULT, 0.6), a_trial(task, 2, GOOD, 0.5), a_trial(task, 3, BAD, 0.9)]
    for at, (params, values) in enumerate([(DEFAULT, (0.6, 0.6)), (GOOD, (0.8, 0.8)), (BAD, (0.3, 0.3))]):
        trials += [another(task, 10 * (at + 1) + i, params, 100 + i, value) for i, value in enumerate(values)]
    ranks = ranking(task, a_history(*trials))
    assert [s.configuration for s in ranks.standings] == [t.configuration for t in (trials[1], trials[0], trials[2])]
    assert ranks.standings[0].mean == pytest.approx(0.7)


def test_values_of_what_lost_its_first_one_to_the_machine_count_and_those_of_what_failed_do_not() -> None:
    task = a_replicated()
    trials = [a_trial(task, 1, DEFAULT, 0.6)]
    trials.append(a_trial(task, 2, GOOD, state=TrialState.INVALID, exit_reason="node_lost"))
    trials.append(a_trial(task, 3, BAD, state=TrialState.INVALID, exit_reason="code_error"))
    trials += [another(task, 4, GOOD, 100, 0.7), another(task, 5, BAD, 100, 0.9)]
    ranks = ranking(task, a_history(*trials))
    assert [s.configuration for s in ranks.standings] == [trials[1].configuration, trials[0].configuration]


def test_replicates_of_all_make_no_claims() -> None:
    task = a_replicated()
    trials = [a_trial(task, 1, DEFAULT, 0.6), a_trial(task, 2, GOOD, 0.5), another(task, 3, GOOD, 100, 0.5)]
    plan = revised(first_plan(task), task, a_history(*trials), Spend(device_seconds=0, wall_seconds=0))
    assert len(plan.hypotheses) == 1


def test_without_confirmation_the_claim_is_dropped_and_nothing_is_scored_or_looked_at() -> None:
    task = a_replicated(1)
    trials = [a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, 0.9), a_trial(task, 3, BAD, 0.1)]
    history = a_history(*trials)
    plan = revised(first_plan(task), task, history, Spend(device_seconds=0, wall_seconds=0))
    assert (plan.phase, plan.claim.status, plan.claim.note) == (Phase.DONE, Status.DROPPED, NOT_CONFIRMED)
    assert plan.claim.brier is None
    assert next_work(plan, task, history, 5, chosen_proposers(task)) == []
    ledger = HeldOutLedger.of(task, history)
    assert (ledger.n_allowed, ledger.is_complete) == (0, True)
    assert ledger.words == "test_score is not looked at: search.confirm is false"
    assert n_confirming(task) == 0


def test_without_confirmation_no_time_is_kept_back_for_it() -> None:
    trials = [a_trial(a_task(), 1, DEFAULT, 0.5)]
    spend = Spend(device_seconds=90, wall_seconds=0)
    budgets = {"trials": 3, "device_seconds": 100}
    assert reserve_reached(a_replicated(1, budgets=budgets), a_history(*trials), spend) is None
    assert reserve_reached(a_task(budgets=budgets), a_history(*trials), spend) is not None


def test_the_estimate_of_replicated_configurations_is_drawn_towards_the_others() -> None:
    points = [{"x": round(0.1 * i, 1)} for i in range(3, 9)]
    task = a_replicated(2, *points)
    trials = [a_trial(task, 1, DEFAULT, 0.5), another(task, 2, DEFAULT, 100, 0.52)]
    for i, point in enumerate(points):
        noisy = 0.5 + 0.02 * (-1) ** i
        trials += [
            a_trial(task, 10 + 2 * i, {**DEFAULT, **point}, noisy),
            another(task, 11 + 2 * i, {**DEFAULT, **point}, 100, 0.5 + 0.01 * i),
        ]
    found = findings(first_plan(task), task, a_history(*trials))
    assert found is not None
    assert found.estimate is not None
    assert found.estimate.basis is Basis.SHRUNK
    assert found.estimate.interval.estimate < found.estimate.naive


def test_a_session_measures_each_on_all_seeds_and_says_that_nothing_was_confirmed(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_replicated(3))
    assert world.live() is SessionState.FINISHED
    trials = world.store.trials("s1")
    assert sorted((t.params["x"], t.seed) for t in trials) == [(x, s) for x in (0.2, 0.7, 0.9) for s in (0, 100, 101)]
    session = world.store.session("s1")
    assert session.result is not None
    assert session.result.best["x"] == 0.7
    assert (session.result.comparison, session.result.n_pairs, session.result.basis) == ("invalid", 0, "as_measured")
    assert "nothing was to be confirmed" in session.message
    assert world.store.looks("s1") == []


def test_a_session_ends_when_its_configurations_fail(tmp_path: Path) -> None:
    def broken(spec: JobSpec) -> FakeOutcome:
        return (
            FakeOutcome(exit_reason="code_error", evidence="ValueError")
            if spec.parameters["x"] != 0.2
            else honest(spec)
        )

    points = [{"x": 0.3 + 0.1 * i} for i in range(N_ALIKE)]
    world = a_world(tmp_path, task=a_replicated(2, *points), script=broken)
    assert world.live() is SessionState.FINISHED
    assert {t.params["x"] for t in world.store.trials("s1") if t.state is TrialState.MEASURED} == {0.2}


@pytest.mark.parametrize(("confirm", "codes"), [(True, {"budget_too_small"}), (False, set())])
def test_a_check_asks_for_no_pairs_where_none_are_wanted(confirm: bool, codes: set[str]) -> None:
    search = {"use": ["points"], "points": [GOOD, BAD], "replicates": 2, "confirm": confirm}
    task = a_task(search=search, budgets={"trials": 3, "device_seconds": 60})
    runs = [TrialRun(seed=i, value=0.5 + i / 10, note=None, run_s=10, device_seconds=10) for i in range(3)]
    found = judge(task, runs, None, n_slots=2)
    assert {f.code for f in found.findings} & {"budget_too_small", "nothing_detectable"} >= codes
    assert found.can_succeed is not confirm
    assert found.session_s == (30.0 if not confirm else pytest.approx(40.0))


@pytest.mark.parametrize("search", [{"use": ["random"]}, {"use": ["sampler"], "sampler": "random"}])
def test_the_same_configurations_are_drawn_at_random_whenever_replicates_are_made(search: dict[str, Any]) -> None:
    task = a_task(search={**search, "replicates": 3}, budgets={"trials": 5})

    def drawn(n_replicates: int) -> list[dict[str, Any]]:
        trials = [a_trial(task, 1, DEFAULT, 0.5)]
        for _ in range(4):
            more = [
                another(task, trials[-1].number + 1 + i, DEFAULT, 100 + len(trials) + i, 0.5)
                for i in range(n_replicates)
            ]
            (proposal,) = chosen_proposers(task).ask(a_history(*trials, *more), 1)
            trials += more
            trials.append(a_trial(task, trials[-1].number + 1, dict(proposal.params), 0.4))
        return [t.params for t in a_history(*trials).search]

    assert drawn(0) == drawn(2)
