"""Which files of jobs may go, and how they go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec

from runtime.engines.fake import ByHand
from runtime.model.states import ExitReason, JobState
from runtime.server.retention import GOING, TRASH, Holding, Reason, Rules, clear, judge, survey
from runtime.store.retained import JobFiles
from runtime_client.models import NewRun, RunUpdate

DAY_S = 86400.0
NOW = 100 * DAY_S


def facts(
    job_id: str = "j1",
    *,
    state: JobState = JobState.SUCCEEDED,
    ended_days_ago: float | None = 1.0,
    session: str | None = "s1",
    configuration: str | None = "c1",
    winners: frozenset[str] | None = frozenset({"c2", "c0"}),
    is_pinned: bool = False,
    project: str = "default",
    exit_reason: ExitReason | None = None,
    is_continued: bool = False,
) -> JobFiles:
    return JobFiles(
        job_id=job_id,
        project=project,
        session_id=session,
        state=state,
        ended_at_s=None if ended_days_ago is None else NOW - ended_days_ago * DAY_S,
        is_pinned=is_pinned,
        configuration=configuration,
        winners=winners,
        exit_reason=exit_reason,
        is_continued=is_continued,
    )


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (facts(), Reason.LOSER),
        (facts(configuration="c2"), Reason.WINNER),
        (facts(configuration="c0"), Reason.WINNER),
        (facts(winners=None), Reason.NO_VERDICT),
        (facts(is_pinned=True), Reason.PINNED),
        (facts(state=JobState.QUEUED, ended_days_ago=None), Reason.LIVE),
        (facts(state=JobState.RUNNING, ended_days_ago=None), Reason.LIVE),
        (facts(state=JobState.FAILED), Reason.LOSER),
        (facts(exit_reason=ExitReason.DEADLINE), Reason.UNFINISHED),
        (facts(exit_reason=ExitReason.DEADLINE, configuration="c2"), Reason.WINNER),
        (facts(exit_reason=ExitReason.DEADLINE, ended_days_ago=8.0), Reason.LOSER),
        (facts(is_continued=True), Reason.CONTINUED),
        (facts(session=None, configuration=None, winners=None), Reason.OWN),
        (None, Reason.UNKNOWN),
    ],
)
def test_only_what_lost_goes_by_itself(job: JobFiles | None, reason: Reason) -> None:
    assert judge(job, Rules(now_s=NOW)) is reason


def test_age_takes_nothing_that_is_pinned_won_or_live() -> None:
    rules = Rules(now_s=NOW, older_than_s=30 * DAY_S)
    assert judge(facts(session=None, winners=None, ended_days_ago=31), rules) is Reason.OLD
    assert judge(facts(session=None, winners=None, ended_days_ago=29), rules) is Reason.OWN
    assert judge(facts(configuration="c2", ended_days_ago=31), rules) is Reason.WINNER
    assert judge(facts(is_pinned=True, ended_days_ago=31), rules) is Reason.PINNED
    assert judge(facts(is_continued=True, ended_days_ago=31), rules) is Reason.CONTINUED
    recent = Rules(now_s=NOW, older_than_s=DAY_S)
    assert judge(facts(exit_reason=ExitReason.DEADLINE, ended_days_ago=2), recent) is Reason.OLD
    assert judge(facts(state=JobState.QUEUED, ended_days_ago=None), rules) is Reason.LIVE


def folder(attempts: Path, job_id: str, n_bytes: int = 100) -> Path:
    step = attempts / job_id / "checkpoints" / "step-1"
    step.mkdir(parents=True)
    (step / "weights").write_bytes(b"x" * n_bytes)
    (step / "COMPLETE").touch()
    (attempts / job_id / "1").mkdir()
    (attempts / job_id / "1" / "out.log").write_text("epoch 1\n")
    return attempts / job_id / "checkpoints"


def test_checkpoints_and_working_folder_go_and_output_stays(tmp_path: Path) -> None:
    weights = folder(tmp_path, "j1")
    (tmp_path / "j1" / "work").mkdir()
    found = survey(tmp_path, {"j1": facts()}, Rules(now_s=NOW))
    assert [(each.path.name, each.n_bytes) for each in found] == [("checkpoints", 100), ("work", 0)]
    assert [why for _, why in clear(found)] == [None, None]
    assert not weights.exists()
    assert (tmp_path / "j1" / "1" / "out.log").read_text() == "epoch 1\n"
    assert sorted(path.name for path in (tmp_path / "j1").iterdir()) == ["1"]


def test_what_an_interrupted_clean_up_left_goes_the_next_time_whosever_it_was(tmp_path: Path) -> None:
    folder(tmp_path, "j1").rename(tmp_path / "j1" / f"{TRASH}checkpoints-1-ab")
    (found,) = survey(tmp_path, {"j1": facts(is_pinned=True)}, Rules(now_s=NOW))
    assert found.reason is Reason.INTERRUPTED
    assert [why for _, why in clear([found])] == [None]
    assert sorted(path.name for path in (tmp_path / "j1").iterdir()) == ["1"]


def test_links_are_neither_followed_nor_counted(tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "data").write_bytes(b"x" * 1000)
    attempts = tmp_path / "attempts"
    weights = folder(attempts, "j1")
    (weights / "link").symlink_to(outside)
    (attempts / "j2").mkdir()
    (attempts / "j2" / "checkpoints").symlink_to(outside)
    (attempts / "j3").symlink_to(outside)
    jobs = {name: facts(name) for name in ("j1", "j2", "j3")}
    found = survey(attempts, jobs, Rules(now_s=NOW))
    assert [each.job_id for each in found] == ["j1"]
    assert found[0].n_bytes < 1000
    list(clear(found))
    assert (outside / "data").stat().st_size == 1000


def test_what_can_not_be_deleted_is_told(tmp_path: Path) -> None:
    gone = Holding(
        path=tmp_path / "j1" / "checkpoints",
        job_id="j1",
        project="default",
        n_bytes=1,
        ended_at_s=1.0,
        reason=Reason.LOSER,
    )
    assert [why for _, why in clear([gone])] == [f"{gone.path}: No such file or directory"]


def test_over_the_quota_of_a_project_what_ended_first_goes_first(tmp_path: Path) -> None:
    jobs = {}
    for number, days in ((1, 1), (2, 9), (3, 5)):
        folder(tmp_path, f"j{number}")
        jobs[f"j{number}"] = facts(
            f"j{number}", session=None, configuration=None, winners=None, ended_days_ago=float(days)
        )
    folder(tmp_path, "j4")
    jobs["j4"] = facts("j4", session=None, configuration=None, winners=None, project="other", ended_days_ago=50.0)
    folder(tmp_path, "j5")
    jobs["j5"] = facts("j5", is_pinned=True, ended_days_ago=60.0)
    going = {
        each.job_id: each.reason
        for each in survey(tmp_path, jobs, Rules(now_s=NOW, quota_bytes=200))
        if each.reason in GOING
    }
    assert going == {"j2": Reason.OVER_QUOTA, "j3": Reason.OVER_QUOTA}


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert survey(tmp_path / "nowhere", {}, Rules(now_s=NOW)) == []


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=4) as found:
        yield found


def finish_trial(made: Lab, job_id: str, configuration: str) -> Path:
    from runtime_client.models import SessionFence

    tags = {"nightlab.configuration": configuration}
    job = made.client.submit(spec(session=SessionFence(session_id="s1", fence=1), tags=tags))
    assert job.job_id == job_id
    made.in_state(job_id, "running")
    made.finish(job_id, exit_code=0)
    made.in_state(job_id, "succeeded")
    return folder(made.server.config.attempts_dir, job_id)


def test_after_the_verdict_of_its_session_a_losing_trial_loses_its_weights(made: Lab) -> None:
    loser, winner = finish_trial(made, "j1", "c1"), finish_trial(made, "j2", "c2")
    session = made.client.create_run(
        NewRun(
            experiment_name="t",
            run_name="s1",
            tags={"nightlab.session": "s1", "nightlab.kind": "session"},
            idempotency_token="s1/session",
        )
    )
    assert {row.reason for row in made.client.collect_garbage(dry_run=False).rows} == {"no_verdict"}
    verdict = {"nightlab.best_configuration": "c2", "nightlab.default_configuration": "c0"}
    made.client.update_run(session.run_id, RunUpdate(tags=verdict))
    told = made.client.collect_garbage()
    assert [(row.reason, row.goes, row.n_bytes) for row in told.rows] == [
        ("winner", False, 100),
        ("losing_trial", True, 100),
    ]
    assert told.n_bytes_freed == 100
    assert loser.exists()
    made.client.collect_garbage(dry_run=False)
    assert (loser.exists(), winner.exists()) == (False, True)


def test_a_pinned_job_and_a_running_one_keep_theirs(made: Lab) -> None:
    pinned = finish_trial(made, "j1", "c1")
    made.client.update_run(made.client.job("j1").run_id, RunUpdate(tags={"nightlab.pinned": "true"}))
    made.client.submit(spec())
    made.in_state("j2", "running")
    made.do(lambda: made.engine.checkpoint(key("j2"), 1))
    running = folder(made.server.config.attempts_dir, "j2")
    found = made.client.collect_garbage(dry_run=False, older_than_days=0, quota_gb=0)
    assert {row.reason: row.goes for row in found.rows} == {"live": False, "pinned": False}
    assert pinned.exists()
    assert running.exists()


def test_the_checkpoints_of_a_job_that_a_live_one_goes_on_from_are_kept(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.finish("j1")
        made.in_state("j1", "succeeded")
        kept = folder(tmp_path / "attempts", "j1")
        made.client.submit(spec(continues="j1"))
        made.in_state("j2", "running")
        made.client.collect_garbage(older_than_days=0, dry_run=False)
        assert (kept / "step-1" / "weights").exists()
        made.finish("j2")
        made.in_state("j2", "succeeded")
        made.client.collect_garbage(older_than_days=0, dry_run=False)
        assert not kept.exists()
