"""What a night is foretold to come to: jobs, device time and its end, as arithmetic of the task and of run times."""

from __future__ import annotations

from pathlib import Path

import agent_worlds
import pytest

from agent.store.views import SessionState
from agent.sweeps.cells import cells_of
from agent.sweeps.outlook import CellOutlook, RunTime, cell_outlook, duration_s
from agent.sweeps.run_times import learned_run_time
from agent.sweeps.sweep import Sweep
from agent.task import Task
from runtime_client.models import ArgsStyle


def a_task(**more: object) -> Task:
    task = agent_worlds.a_task(**more)
    return task.model_copy(update={"job": task.job.model_copy(update={"args_style": ArgsStyle.ARGPARSE})})


def a_sweep(**more: object) -> Sweep:
    method = {"kind": "grid", "values": {"x": [0.2, 0.5, 0.7]}}
    return Sweep.model_validate({"sweep": "s", "task": "t.yaml", "method": method, **more})


def outlook(task: Task, run_s: float | None = 10.0, **more: object) -> CellOutlook:
    (cell,) = cells_of(a_sweep(**more), [task]).cells
    known = None if run_s is None else RunTime(seconds=run_s, basis="night s-n1", n=3)
    return cell_outlook(cell, known)


def test_jobs_are_replicates_then_fresh_pairs_then_looks() -> None:
    found = outlook(a_task(seeds={"fresh": 3, "max_pairs": 10}), replicates=2)
    assert (found.n_configurations, found.n_search, found.n_confirm, found.n_confirm_most) == (3, 6, 6, 20)
    assert (found.n_looks, found.n_jobs, found.n_jobs_most) == (1, 13, 27)
    unconfirmed = outlook(a_task(), confirm=False)
    assert (unconfirmed.n_confirm, unconfirmed.n_looks, unconfirmed.n_jobs) == (0, 0, 3)


def test_a_scorer_doubles_the_jobs_and_not_the_time() -> None:
    plain, scored = outlook(a_task()), outlook(a_task(score={"command": "score"}))
    assert scored.n_jobs == 2 * plain.n_jobs
    assert scored.device_seconds() == plain.device_seconds()


def test_the_end_follows_the_waves_of_search_and_end_and_the_shared_devices() -> None:
    cell = outlook(a_task(), confirm=False)  # 3 trials of 10 s
    assert duration_s([cell], n_devices=2, cells_at_once=4) == 20.0
    assert duration_s([cell] * 2, n_devices=3, cells_at_once=1) == 20.0
    assert duration_s([cell] * 2, n_devices=3, cells_at_once=2) == pytest.approx(20.0)
    whole = outlook(a_task(seeds={"fresh": 3}))  # then 6 fresh trials and a look
    assert duration_s([whole], n_devices=2, cells_at_once=4) == 20.0 + 40.0


def test_what_is_not_known_or_can_never_run_has_no_end() -> None:
    assert duration_s([outlook(a_task(), None)], n_devices=2, cells_at_once=1) is None
    large = a_task(job={"command": "train", "compute": {"num_accelerators": 4}})
    assert duration_s([outlook(large)], n_devices=2, cells_at_once=1) is None


def test_a_budget_cuts_the_time_and_says_so() -> None:
    found = outlook(a_task(), confirm=False, budgets={"device_hours": 25 / 3600})
    assert (found.device_seconds(), found.is_cut_by_budget) == (25.0, True)
    assert duration_s([found], n_devices=1, cells_at_once=1) == 25.0


@pytest.mark.acceptance
def test_a_session_launches_as_many_trials_as_were_foretold_and_teaches_their_time(tmp_path: Path) -> None:
    sweep = a_sweep(replicates=2)
    (cell,) = cells_of(sweep, [a_task(seeds={"fresh": 9, "max_pairs": 9})]).cells
    foretold = cell_outlook(cell, None)
    world = agent_worlds.a_world(tmp_path, task=cell.task)
    assert world.live() is SessionState.FINISHED
    assert len(world.store.trials(world.session_id)) == foretold.n_jobs == foretold.n_jobs_most
    learned = learned_run_time(world.store, "s", cell, [])
    assert learned is not None
    assert learned.basis == f"session {world.session_id}"
    assert 10.0 <= learned.seconds <= 12.0
