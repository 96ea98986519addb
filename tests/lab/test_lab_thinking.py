"""A session whose only proposer takes its time: devices do not wait for it, and it thinks one call at a time."""

from __future__ import annotations

from pathlib import Path

from lab_worlds import a_task

from agent.session import SessionDeps
from agent.store.views import Purpose
from nightlab.lab.scripted import with_thinker
from nightlab.lab.sessions import Lived, Setting, live_alone
from nightlab.lab.stage import Actor
from nightlab.lab.synthetic import SyntheticWorld
from runtime.simulator.cluster import parse_nodes


def a_setting(n_trials: int) -> Setting:
    task = a_task(budgets={"trials": n_trials}, idle={"replicate": False, "explore": False})
    return Setting(task=task, world=SyntheticWorld("sphere", task), nodes=parse_nodes("1x4"))


def busy_share(lived: Lived, from_s: float, to_s: float, n_devices: int) -> float:
    spans = [(a.ordered_at, a.ended_at or to_s) for job in lived.jobs for a in job.attempts]
    held = sum(max(min(end, to_s) - max(start, from_s), 0.0) for start, end in spans)
    return held / (n_devices * (to_s - from_s))


def test_devices_do_not_wait_for_thoughts_once_the_first_are_there(tmp_path: Path) -> None:
    lived = live_alone(a_setting(40), 0, tmp_path, change=with_thinker)
    search = [trial for trial in lived.trials if trial.purpose is Purpose.SEARCH]
    assert {trial.suggested_by for trial in search} == {"default", "scripted"}
    begin = min(job.submitted_at for job in lived.jobs)
    last = max(trial.launched_at or 0.0 for trial in search)
    assert busy_share(lived, begin + 60.0, last, 4) > 0.97


def test_without_a_backlog_they_would(tmp_path: Path) -> None:
    """The control: the same calls, of one proposal each, can not feed the devices."""

    def one_by_one(deps: SessionDeps, actor: Actor) -> SessionDeps:
        return with_thinker(deps, actor, call_s=90.0, batch=1)

    lived = live_alone(a_setting(12), 0, tmp_path, change=one_by_one)
    begin = min(job.submitted_at for job in lived.jobs)
    last = max(trial.launched_at or 0.0 for trial in lived.trials if trial.purpose is Purpose.SEARCH)
    assert busy_share(lived, begin + 60.0, last, 4) < 0.7
