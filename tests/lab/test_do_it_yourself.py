"""The ways of working that figures compare with: same budget, no more devices than there are, claims on one value."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_worlds import a_task

from agent.planner.configuration import default_params
from bench.do_it_yourself import PEERS, Lookup, one_at_a_time, optuna_on_a_queue, waves
from nightlab.lab.recorded import RecordedWorld
from nightlab.lab.synthetic import SyntheticWorld

N_TRIALS, N_DEVICES = 12, 4


def on(kind: str) -> Lookup:
    task = a_task()
    return Lookup(task=task, world=SyntheticWorld(kind, task), draw=3)


def test_one_at_a_time_takes_as_long_as_all_its_trials() -> None:
    result = one_at_a_time(on("sphere"), N_TRIALS, N_DEVICES)
    assert result.span_s == pytest.approx(result.held_s)


@pytest.mark.parametrize("work", [waves, optuna_on_a_queue])
def test_no_more_devices_are_held_than_there_are_and_more_than_one_is(work: object) -> None:
    assert callable(work)
    result = work(on("sphere"), N_TRIALS, N_DEVICES)
    assert result.span_s < result.held_s <= N_DEVICES * result.span_s


def test_a_queue_wastes_less_than_waves_that_wait_for_the_slowest() -> None:
    busy = [
        result.held_s / result.span_s for result in (work(on("sphere"), 40, 4) for work in (waves, optuna_on_a_queue))
    ]
    assert busy[0] < busy[1]


@pytest.mark.parametrize("name", list(PEERS))
def test_what_is_claimed_is_another_configuration_than_the_default(name: str) -> None:
    lookup = on("null")
    claimed = PEERS[name](lookup, N_TRIALS, N_DEVICES).claimed
    assert claimed is not None, "on pure noise one of twelve values is better than the first"
    assert claimed != default_params(lookup.task)


@pytest.mark.parametrize("name", list(PEERS))
def test_where_the_default_is_never_beaten_nothing_is_claimed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,kind,score\n0.2,a,0.9\n0.2,b,0.5\n0.8,a,0.5\n0.8,b,0.5\n")
    task = a_task()
    lookup = Lookup(task=task, world=RecordedWorld(path, task), draw=0)
    assert PEERS[name](lookup, 3, 2).claimed is None
