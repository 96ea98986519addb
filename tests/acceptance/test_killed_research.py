"""A session with all that a session can do, whose process is killed with SIGKILL at ten moments of its life.

Suggestions wait, the race replicates, each value comes from a scorer's job. It ends as if nothing had
happened: no trial lost, none launched twice, every value that of an undisturbed run, the same verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_lab import (
    N_STEPS,
    SESSION_S,
    FaultLab,
    check_nothing_is_left,
    curve_task,
    eventually,
    gave_way,
    undisturbed,
)

from agent.planner import seeds
from agent.store.views import Purpose, SessionState, TrialState, TrialView

pytestmark = pytest.mark.kills

SCORED = {
    "held_out: {metric: test_score, parameters: {test: true}, looks: 1}": "score: {command: python measure.py}",
    "seeds: {fresh: 2}": "seeds: {fresh: 7, max_pairs: 8}",
    "budgets: {trials: 7}": "budgets: {trials: 10}",
}


class Moments:
    """Is it now? One question for each moment; the answer is of the store as it is."""

    def __init__(self, lab: FaultLab) -> None:
        self.lab = lab
        self.task = curve_task(lab.starts_file, **SCORED)
        self.all: dict[str, Callable[[], bool]] = {
            "claimed": lambda: lab.session().pid is not None,
            "suggestion waits": lambda: any(idea.trial_id is None for idea in lab.store.suggestions("s1")),
            "first launch": lambda: any(t.job_id for t in lab.trials()),
            "suggestion runs": lambda: self.runs(lambda t: t.suggested_by == "person"),
            # Once a trial has ended: the fifth kill in a row before that would end the session, as it should.
            "training has ended": lambda: (
                any(t.is_ended for t in lab.trials())
                and any(t.facts.score_job_id and not t.is_ended for t in lab.trials())
            ),
            "two are measured": lambda: sum(t.is_ended for t in lab.trials()) >= 2,
            "race": lambda: self.runs(lambda t: t.purpose is Purpose.REPLICATE and seeds.is_racing(self.task, t.seed)),
            "eight are measured": lambda: sum(t.is_ended for t in lab.trials()) >= 8,
            "confirmation": lambda: any(plan.phase == "confirm" for plan in lab.store.plans("s1")),
            "fresh pairs": lambda: self.runs(lambda t: seeds.is_fresh(self.task, t.seed)),
        }

    def runs(self, is_one: Callable[[TrialView], bool]) -> bool:
        return any(is_one(t) and t.state is TrialState.LAUNCHED for t in self.lab.trials())

    def reached(self, missing: list[str]) -> str | None:
        return next((name for name in missing if self.all[name]()), None)


def test_ten_kills_cost_nothing(tmp_path: Path) -> None:
    with FaultLab(tmp_path) as lab:
        moments = Moments(lab)
        lab.start_session(moments.task)
        lab.store.suggest("s1", {"x": 0.35}, why="the middle looks good", suggested_by="person")
        missing = list(moments.all)
        while missing:
            now = eventually(lambda: next_moment(lab, moments, missing), within_s=SESSION_S, what=f"one of {missing}")
            missing.remove(now)
            lab.kill("session")
        lab.await_end()
        check_session(lab)
        lab.down()
        check_nothing_is_left(lab.home)


def next_moment(lab: FaultLab, moments: Moments, missing: list[str]) -> str | None:
    view = lab.session()
    assert view.state is SessionState.RUNNING, f"{view.state} before {missing}: {view.message}"
    return moments.reached(missing)


def check_session(lab: FaultLab) -> None:
    view = lab.session()
    assert view.state is SessionState.FINISHED, view.message
    assert view.result is not None
    assert (view.result.verdict, view.result.comparison) == ("supported", "better")
    trials = lab.trials()
    assert [t.number for t in trials] == list(range(1, len(trials) + 1))
    assert len({(t.configuration, t.seed, t.purpose) for t in trials}) == len(trials)
    check_jobs_once(lab, trials)
    starts = Counter(lab.starts_file.read_text().split())
    assert max(starts.values()) == 1, f"executed twice: {starts}"
    for trial in trials:
        if trial.state is TrialState.MEASURED:
            assert trial.value == undisturbed(trial)[N_STEPS], trial.trial_id
        else:
            assert gave_way(trial), trial.note


def check_jobs_once(lab: FaultLab, trials: list[TrialView]) -> None:
    """One job that trains and at most one that scores for each trial, and no other."""
    jobs = lab.jobs()
    trained = Counter(job.spec.tags["nightlab.trial"] for job in jobs if "nightlab.score_of" not in job.spec.tags)
    scored = Counter(job.spec.tags["nightlab.trial"] for job in jobs if "nightlab.score_of" in job.spec.tags)
    assert set(trained.values()) == {1}
    assert set(scored.values()) == {1}
    assert set(trained) == {t.trial_id for t in trials}
    measured = {t.trial_id for t in trials if t.state is TrialState.MEASURED}
    assert measured <= set(scored)
