"""Whole sessions in the lab: alone, side by side, beside urgent work; and their outcome held against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lab_worlds import a_task

from agent.session import SessionDeps
from nightlab.lab.background import Background
from nightlab.lab.outcome import Spread, found_by, summary_of
from nightlab.lab.sessions import Lived, Setting, live_alone, live_together
from nightlab.lab.stage import Actor
from nightlab.lab.synthetic import SyntheticWorld
from nightlab.lab.world import LabError
from runtime.simulator.cluster import parse_nodes

pytestmark = pytest.mark.lives


def a_setting(
    kind: str = "sphere", *, nodes: str = "1x4", background: Background | None = None, **task: Any
) -> Setting:
    made = a_task(**task)
    return Setting(task=made, world=SyntheticWorld(kind, made), nodes=parse_nodes(nodes), background=background)


def shown(lived: Sequence[Lived]) -> list[object]:
    return [
        (one.session.message, one.span_s, [(t.params, t.seed, t.value, t.ended_at) for t in one.trials])
        for one in lived
    ]


def test_a_session_finds_a_true_gain_on_the_hill(tmp_path: Path) -> None:
    setting = a_setting(budgets={"trials": 12}, seeds={"fresh": 8})
    found = found_by(live_alone(setting, 0, tmp_path), setting.task, setting.world, n_devices=4)
    assert (found.state, found.verdict, found.claims, found.false_claims) == ("finished", "supported", 1, 0)
    assert found.truth is not None
    assert found.default_truth is not None
    assert found.true_gain == pytest.approx(found.truth - found.default_truth)
    assert 0 < found.busy_percent <= 100


def test_sessions_side_by_side_share_the_devices_and_all_end(tmp_path: Path) -> None:
    lived = live_together(a_setting(), [0, 1, 2], tmp_path)
    assert [one.session.state for one in lived] == ["finished"] * 3
    assert len({one.trials[1].configuration for one in lived}) == 3
    assert len({job.job_id for one in lived for job in one.jobs}) == sum(len(one.jobs) for one in lived)


def test_the_same_lab_gives_the_same(tmp_path: Path) -> None:
    setting = a_setting(background=Background(every_s=200.0, run_s=150.0, n_devices=2))
    first, second = (live_together(setting, [0, 1], tmp_path / name) for name in "ab")
    assert shown(first) == shown(second)


def test_urgent_work_preempts_trials_and_none_is_lost(tmp_path: Path) -> None:
    setting = a_setting(background=Background(every_s=120.0, run_s=100.0, n_devices=3))
    lived = live_alone(setting, 0, tmp_path)
    assert sum(job.n_preemptions for job in lived.jobs) > 0
    assert lived.session.state == "finished"
    assert all(trial.value is not None for trial in lived.trials)
    assert {job.spec.tags["nightlab.trial"] for job in lived.jobs} == {trial.trial_id for trial in lived.trials}


def test_where_nothing_matters_a_claim_is_false(tmp_path: Path) -> None:
    setting = a_setting("null", budgets={"trials": 3}, seeds={"fresh": 2})
    found = [
        found_by(live_alone(setting, draw, tmp_path / str(draw)), setting.task, setting.world, n_devices=4)
        for draw in range(2)
    ]
    assert all(one.true_gain is None and one.false_claims == one.claims for one in found)
    assert summary_of(found).device_hours_per_true_gain is None


def test_a_fault_of_one_session_ends_the_lab_and_the_others_leave(tmp_path: Path) -> None:
    def breaking(deps: SessionDeps, actor: Actor) -> SessionDeps:
        if actor.name == "s1":
            raise LabError("s1 can not go on")
        return deps

    with pytest.raises(LabError, match="s1 can not go on"):
        live_together(a_setting(), [0, 1], tmp_path, change=breaking)


def test_a_spread_is_of_what_is_known() -> None:
    assert Spread.of([None, 3.0, 1.0, 2.0]) == Spread(median=2.0, low=1.5, high=2.5)
    assert Spread.of([None]) == Spread(median=None, low=None, high=None)
