"""The demo's decisions: when the urgent job comes, where it works, what counts as complete."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from live_builder import NOW, slots, snapshot
from rich.console import Console

from agent.report.sample import TASK, sample_report_input
from agent.store.store import AgentStore
from agent.store.views import SessionState
from nightlab.demo.outcome import outcome_of
from nightlab.demo.place import digits_task, examples_folder, prepare_home, unfinished_session
from nightlab.demo.summary import preemption_story, print_summary
from nightlab.demo.urgent import PATIENCE_S, Moment, urgent_job
from nightlab.failure import Failure
from nightlab.live.snapshot import SlotLine
from nightlab.services.remains import end_remains, processes_of

TRAINING = replace(slots()[0], checkpoint_step=20, step=22, n_steps=60)
STARTING_UP = replace(slots()[0], name="cpu:1", checkpoint_step=None, step=None)
IDLE = SlotLine(name="cpu:1", job_id=None)


def has_come(*present: SlotLine, n_measured: int = 9, **changes: object) -> bool:
    return Moment(n_trials=18).has_come(snapshot(slots=present, n_search_measured=n_measured, **changes))


def test_urgent_job_comes_when_a_busy_slot_could_pause():
    assert has_come(TRAINING, STARTING_UP)


@pytest.mark.parametrize(
    "present",
    [
        (TRAINING, IDLE),
        (STARTING_UP, STARTING_UP),
        (replace(TRAINING, step=55), STARTING_UP),
        (replace(TRAINING, checkpoint_step=None), STARTING_UP),
        (replace(TRAINING, state="stopping"), STARTING_UP),
        (),
    ],
    ids=["a slot is free", "nothing to save yet", "about to end", "no checkpoint", "leaving already", "no slots"],
)
def test_urgent_job_waits_for_its_moment(present):
    assert not has_come(*present)


def test_urgent_job_does_not_come_before_half_of_the_search():
    assert not has_come(TRAINING, STARTING_UP, n_measured=8)


def test_urgent_job_does_not_come_once_the_session_stops():
    assert not has_come(TRAINING, STARTING_UP, session_state=SessionState.STOPPING)


def test_urgent_job_takes_any_busy_moment_when_no_good_one_comes():
    moment = Moment(n_trials=18)
    late = snapshot(slots=(STARTING_UP, STARTING_UP), n_search_measured=9)
    assert not moment.has_come(late)
    assert not moment.has_come(replace(late, at=NOW + PATIENCE_S))
    assert moment.has_come(replace(late, at=NOW + PATIENCE_S + 1))


def test_urgent_job_is_critical_outside_the_session_and_submitted_once():
    spec = urgent_job(TASK, "s1", 1)
    assert (spec.priority_class, spec.session) == ("critical", None)
    assert spec.idempotency_token == urgent_job(TASK, "s1", 1).idempotency_token
    assert spec.idempotency_token != urgent_job(TASK, "s1", 2).idempotency_token
    assert spec.parameters == {"lr": 1e-3, "hidden": 32, "alpha": 1e-4, "activation": "relu", "epochs": 60}


def test_short_form_has_fewer_trials_and_seeds():
    whole, short = digits_task(is_short=False), digits_task(is_short=True)
    assert short.budgets.trials < whole.budgets.trials
    assert short.seeds.fresh < whole.seeds.fresh
    assert whole.budgets.trials >= 16
    assert whole.seeds.fresh >= 5
    assert short.job.environment.python == sys.executable


def test_examples_are_found_in_a_wheel_and_in_a_checkout(tmp_path):
    package = tmp_path / "nightlab"
    for folder in (tmp_path / "examples", package / "_examples"):
        (folder / "digits").mkdir(parents=True)
        (folder / "digits" / "task.yaml").touch()
        assert examples_folder(package) == folder


def test_missing_examples_are_said_to_be_missing(tmp_path):
    with pytest.raises(Failure, match="install nightlab again"):
        examples_folder(tmp_path / "nightlab")


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("NIGHTLAB_HOME", str(tmp_path))
    return tmp_path / "demo"


def session_in(home: Path, *, is_finished: bool) -> None:
    with closing(AgentStore.open(home)) as store:
        session = store.create_session(TASK)
        if is_finished:
            store.fail(session.session_id, "for the test")


def test_own_folder_is_emptied(own_home):
    session_in(own_home, is_finished=True)
    assert prepare_home(None, say=lambda line: None) == own_home
    assert not own_home.exists()


def test_own_folder_with_a_demo_stopped_half_way_is_kept(own_home):
    session_in(own_home, is_finished=False)
    said: list[str] = []
    prepare_home(None, say=said.append)
    assert unfinished_session(own_home) == "s1"
    assert "Going on with session s1" in said[0]


def test_folder_of_the_user_is_never_emptied(tmp_path):
    (tmp_path / "thesis.tex").touch()
    session_in(tmp_path, is_finished=True)
    prepare_home(tmp_path, say=lambda line: None)
    assert (tmp_path / "thesis.tex").exists()
    assert (tmp_path / "agent.db").exists()


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"],
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def test_remains_are_found_by_their_folder_and_killed(tmp_path):
    mine = sleeper(NIGHTLAB_CHECKPOINT_DIR=str(tmp_path / "home" / "attempts" / "j1" / "checkpoints"))
    other = sleeper(NIGHTLAB_CHECKPOINT_DIR=str(tmp_path / "home2" / "attempts" / "j1" / "checkpoints"))
    try:
        for process in (mine, other):
            assert process.stdout is not None
            process.stdout.readline()
        assert [p.pid for p in processes_of(tmp_path / "home")] == [mine.pid]
        assert end_remains(tmp_path / "home", grace_s=0.0) == 1
        assert processes_of(tmp_path / "home") == []
        assert mine.wait(10) is not None
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def facts():
    return sample_report_input()


def test_whole_session_with_a_resumed_victim_is_complete(facts):
    outcome = outcome_of(facts, urgent_job_id="j10", is_mirrored=True)
    assert outcome.shortcomings == ()
    assert outcome.n_measured == 56


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: replace(f, session=replace(f.session, state=SessionState.FAILED, result=None)), "failed"),
        (lambda f: replace(f, jobs=tuple(j for j in f.jobs if j.job_id != "j10")), "j10 did not succeed"),
        (lambda f: replace(f, jobs=tuple(j for j in f.jobs if j.job_id != "j9")), "nothing had to be preempted"),
        (
            lambda f: replace(
                f, jobs=tuple(j.model_copy(update={"state": "failed"}) if j.job_id == "j9" else j for j in f.jobs)
            ),
            "did not finish afterwards",
        ),
    ],
    ids=["session failed", "urgent failed", "no preemption", "victim failed"],
)
def test_what_is_not_as_promised_is_said(facts, spoil, words):
    outcome = outcome_of(spoil(facts), urgent_job_id="j10", is_mirrored=True)
    assert any(words in shortcoming for shortcoming in outcome.shortcomings)


def test_urgent_job_that_never_came_and_missing_records_are_said(facts):
    outcome = outcome_of(facts, urgent_job_id=None, is_mirrored=False)
    assert len(outcome.shortcomings) == 2


def test_story_names_victim_beneficiary_checkpoint_and_run(facts):
    outcome = outcome_of(facts, urgent_job_id="j10", is_mirrored=True)
    told = " ".join(preemption_story(outcome.preemptions[0]))
    for words in ("j9 (trial 9)", "j10", "step 41", "attempt 2", outcome.preemptions[0].run_id[:12]):
        assert words in told


def test_summary_has_table_interval_verdict_share_and_addresses(facts):
    outcome = outcome_of(facts, urgent_job_id="j10", is_mirrored=True)
    written = io.StringIO()
    console = Console(file=written, width=140, force_terminal=False)
    print_summary(console, outcome, report=Path("/x/report.html"), home=Path("/x/home"), took_s=171.0)
    text = written.getvalue()
    for words in (
        "Best 6 of 18 configurations",
        "difference",
        "supported",
        "held-out metric: 1",
        "Slots busy: ",
        "Finished trials: 56",
        "/x/report.html",
        "http://127.0.0.1:5000/#/experiments/1",
        "nightlab up --home /x/home",
    ):
        assert words in text
    assert "Not complete" not in text
