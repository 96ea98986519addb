"""Whole sessions with slots that have nothing else to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world, honest

from agent.planner.history import SLOT_NEEDED, History, Proposal
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from nightlab.session_page import print_session
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec


class Slow:
    """Gives the next search trials only when all before them have ended."""

    def __init__(self, task: Task, at_once: int) -> None:
        self._inner = OptunaSampler(task)
        self._at_once = at_once

    @property
    def name(self) -> str:
        return "slow"

    def tell(self, history: History) -> None:
        """Nothing to tell."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        is_busy = any(not t.is_ended for t in history.search if not t.is_idle_work)
        return [] if is_busy else self._inner.ask(history, min(n, self._at_once))


def a_slow_world(tmp_path: Path, *, n_devices: int = 3, **changes: object) -> World:
    given = {"budgets": {"trials": 12}, "idle": {"max_share": 0.6, "explore": False}, **changes}
    return a_world(tmp_path, task=a_task(**given), n_devices=n_devices, script=varied)


def varied(spec: JobSpec) -> FakeOutcome:
    """As `honest`; how long it takes depends on the seed, so that things end one by one."""
    outcome = honest(spec)
    return FakeOutcome(curves=outcome.curves, duration_s=20.0 + 7.0 * ((spec.seed or 0) % 4))


def lived(world: World, *, at_once: int = 1) -> SessionState:
    return world.live(open_search=lambda task, shelf, memory: Slow(task, at_once))


def idle_of(world: World) -> list[TrialView]:
    return [trial for trial in world.store.trials("s1") if trial.is_idle_work]


def test_idle_slots_replicate_and_the_session_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_slow_world(tmp_path)
    assert lived(world) is SessionState.FINISHED
    idle = idle_of(world)
    assert [t for t in idle if t.state is TrialState.MEASURED and t.purpose is Purpose.REPLICATE]
    assert all(100 <= t.seed < 1000 for t in idle)
    assert all(t.worth is not None for t in idle)
    print_session(world.store, "s1")
    assert "idle time: replicate" in capsys.readouterr().out


def test_idle_work_is_exploratory_whatever_the_class_of_the_task(tmp_path: Path) -> None:
    world = a_slow_world(tmp_path, priority_class="normal")
    lived(world)
    by_trial = {job.spec.tags["nightlab.trial"]: job.spec for job in world.runtime.jobs(limit=1000)}
    idle = {trial.trial_id for trial in idle_of(world)}
    assert idle & set(by_trial)
    for trial_id, spec in by_trial.items():
        assert spec.priority_class == ("exploratory" if trial_id in idle else "normal")
        assert trial_id not in idle or spec.worth is not None


def test_idle_work_gives_way_and_what_is_cut_is_no_failure(tmp_path: Path) -> None:
    world = a_slow_world(tmp_path, budgets={"trials": 16})
    assert lived(world, at_once=3) is SessionState.FINISHED
    cut = [trial for trial in idle_of(world) if trial.exit_reason == SLOT_NEEDED]
    ended = [trial for trial in idle_of(world) if trial.exit_reason == "cancelled"]
    assert cut
    assert all(t.state is TrialState.INVALID for t in (*cut, *ended))
    failed = [t for t in world.store.trials("s1") if t.state is TrialState.INVALID and not t.is_idle_work]
    assert failed == []
    assert not [job for job in world.runtime.jobs(limit=1000) if not job.is_ended]


def test_idle_work_stays_within_its_share(tmp_path: Path) -> None:
    world = a_slow_world(tmp_path, idle={"max_share": 0.2, "explore": True})
    lived(world)
    total = sum(t.device_seconds for t in world.store.trials("s1"))
    longest_s = 41.0
    assert idle_of(world)
    assert sum(t.device_seconds for t in idle_of(world)) <= 0.2 * total + longest_s


def test_exploring_while_the_proposer_thinks_counts_among_the_trials(tmp_path: Path) -> None:
    world = a_slow_world(tmp_path, idle={"max_share": 0.6, "replicate": False})
    assert lived(world) is SessionState.FINISHED
    search = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH and t.exit_reason != SLOT_NEEDED]
    assert len(search) == 12
    assert any(t.is_idle_work for t in search)


def test_wanted_work_is_not_delayed_by_idle_work(tmp_path: Path) -> None:
    """Search trials start as soon after their submission as if there were no idle work."""
    gaps = {}
    for share in (0.0, 0.6):
        world = a_slow_world(tmp_path / str(share), n_devices=3, idle={"max_share": share})
        lived(world, at_once=3)
        wanted = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH and not t.is_idle_work]
        waits = []
        for trial in wanted:
            (job,) = [j for j in world.runtime.jobs(limit=1000) if j.job_id == trial.job_id]
            waits.append(job.attempts[0].ordered_at - job.submitted_at)
        gaps[share] = max(waits)
    assert gaps[0.6] <= gaps[0.0] + 1.0
