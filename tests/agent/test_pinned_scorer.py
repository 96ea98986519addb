"""The scorer of a session: what was kept when it began measures every trial, and nothing else does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task, a_world, honest

from agent.pinned_scorer import PinnedScorer, ScorerRefused, is_pinned
from agent.planner.comparable import OTHER_USER, SEALED, WITHIN_REACH
from agent.steps.scoring import reach_of
from agent.store.views import SessionState, TrialState
from agent.task import Task
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, JobView, Sandbox, SubmitResult
from runtime_client.models.views import AttemptView, SandboxView
from runtime_client.snapshot.tree import walk

pytestmark = pytest.mark.code


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    files = {"train.py": "train", "score.py": "score", "private/test.txt": "answers", ".gitignore": "private\ndata\n"}
    for name, text in {**files, "data/train.txt": "train", "data/test.txt": "more answers"}.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (tmp_path / "elsewhere.txt").write_text("large")
    return made


def scored(root: Path, private: Sequence[str] = ("score.py", "private", "../elsewhere.txt"), **changes: Any) -> Task:
    paths = [str((root / name).resolve()) for name in private]
    job = {"command": "train", "code_source": {"root_path": str(root), "snapshot": "auto", "snapshot_limit_mb": 1}}
    score = {"command": "python score.py", "private": paths}
    return a_task(**({"job": job, "score": score, "held_out": None, "budgets": {"trials": 3}} | changes))


def opened(root: Path, **changes: Any) -> PinnedScorer:
    return PinnedScorer.open(root.parent / "s1.scorer", scored(root, **changes))


def code_of(scorer: PinnedScorer) -> Path:
    return Path(scorer.code.root_path)


def test_it_is_a_copy_of_the_code_with_the_private_files_at_their_place(root: Path) -> None:
    scorer = opened(root)
    assert {"train.py", "score.py", "private/test.txt", "data"} <= set(walk(code_of(scorer)).files)
    assert scorer.readable == (str(root.parent / "elsewhere.txt"),)
    assert scorer.changed() is None


def test_what_is_edited_afterwards_is_not_in_it(root: Path) -> None:
    before = opened(root)
    (root / "score.py").write_text("another")
    (root / "private" / "test.txt").write_text("another")
    after = opened(root)
    assert (code_of(after) / "score.py").read_text() == "score"
    assert after.digest == before.digest
    assert after.changed() is None


def test_one_that_was_cut_off_is_made_again(root: Path) -> None:
    digest = opened(root).digest
    (root.parent / "s1.scorer" / "scorer.json").unlink()
    (root.parent / "s1.scorer" / "code" / "score.py").write_text("half")
    again = opened(root)
    assert (again.digest, (code_of(again) / "score.py").read_text()) == (digest, "score")


@pytest.mark.parametrize("name", ["score.py", "private/test.txt", "train.py", "private/planted.py"])
def test_a_change_of_its_own_copy_is_seen_and_named(root: Path, name: str) -> None:
    scorer = opened(root)
    (code_of(scorer) / name).write_text("changed")
    assert scorer.changed() == name
    assert opened(root).changed() == name


def test_a_change_of_a_private_file_elsewhere_is_seen(root: Path) -> None:
    scorer = opened(root)
    (root.parent / "elsewhere.txt").write_text("LARGE")
    assert "elsewhere.txt" in (scorer.changed() or "")


def test_one_that_is_gone_is_told(root: Path) -> None:
    scorer = opened(root)
    shutil.rmtree(code_of(scorer))
    assert "can not be read" in (scorer.changed() or "")


def test_private_data_in_a_linked_folder_is_read_in_place(root: Path) -> None:
    """Writing into such a folder would write into the user's own."""
    scorer = opened(root, private=("score.py", "data/test.txt"))
    assert scorer.readable == (str(root / "data" / "test.txt"),)
    (root / "data" / "test.txt").write_text("MORE answers")
    assert "test.txt" in (scorer.changed() or "")


def test_private_data_that_is_too_large_is_told_where_to_put(root: Path) -> None:
    (root / "private" / "test.txt").write_bytes(b"x" * 2_000_000)
    with pytest.raises(ScorerRefused, match=r"limit is 1 MB.*outside of the code's folder"):
        opened(root)


def test_a_scorer_that_nobody_edits_and_that_keeps_nothing_is_the_trainings(root: Path) -> None:
    assert not is_pinned(scored(root, private=()))
    assert is_pinned(scored(root, private=(), code={"editable": ["train.py"]}))


def test_every_trial_is_measured_by_what_was_kept(root: Path) -> None:
    world = a_world(root.parent / "home", task=scored(root))
    assert world.live() is SessionState.FINISHED
    trials = [trial for trial in world.store.trials(world.session_id) if trial.state is TrialState.MEASURED]
    jobs = {job.job_id: job for job in world.runtime.jobs(limit=100)}
    measuring = [jobs[trial.facts.score_job_id or ""] for trial in trials]
    (digest,) = {trial.facts.scorer for trial in trials}
    assert {job.spec.tags["nightlab.scorer"] for job in measuring} == {digest}
    roots = {job.spec.code_source.root_path for job in measuring if job.spec.code_source is not None}
    assert roots == {str(root.parent / "home" / "sessions" / f"{world.session_id}.scorer" / "code")}
    assert {trial.facts.scorer_reach for trial in trials} == {WITHIN_REACH}
    trained = [jobs[trial.job_id or ""].spec.code_source for trial in trials]
    assert {source.left_out for source in trained if source is not None} == {("score.py", "private")}
    assert "within reach of the training" in (world.store.session(world.session_id).message or "")


def test_a_scorer_that_was_changed_under_way_measures_nothing(root: Path) -> None:
    home = root.parent / "home"

    def tampering(spec: JobSpec) -> FakeOutcome:
        if spec.command == "train" and spec.tags["nightlab.trial"].endswith("t3"):
            (home / "sessions" / f"{spec.tags['nightlab.session']}.scorer" / "code" / "score.py").write_text("1.0")
        return honest(spec)

    world = a_world(home, task=scored(root), script=tampering, n_devices=1)
    world.live()
    first, _, *later = world.store.trials(world.session_id)
    assert first.state is TrialState.MEASURED
    told = "the scorer changed since the session began: score.py; a new session measures with it"
    assert {(trial.state, trial.note) for trial in later} == {(TrialState.INVALID, told)}


class Swapping(FakeRuntime):
    """Runs scorers from another snapshot than the one that was kept."""

    def submit_many(self, specs: Sequence[JobSpec]) -> list[SubmitResult]:
        return super().submit_many([self._swapped(spec) for spec in specs])

    def _swapped(self, spec: JobSpec) -> JobSpec:
        if "nightlab.score_of" not in spec.tags or spec.code_source is None:
            return spec
        other = spec.code_source.model_copy(update={"snapshot_id": "0" * 64})
        return spec.model_copy(update={"code_source": other})


def test_a_value_from_another_snapshot_does_not_count(root: Path) -> None:
    world = a_world(root.parent / "home", task=scored(root), n_devices=1)
    world.runtime = Swapping(honest, n_devices=1, is_automatic=True)
    world.live()
    first = world.store.trials(world.session_id)[0]
    assert (first.state, first.value) == (TrialState.INVALID, None)
    assert "the scorer changed since the session began; the value" in (first.note or "")


def trained(sandbox: SandboxView | None) -> JobView:
    world = FakeRuntime(honest, n_devices=1)
    job = world.submit(JobSpec(experiment_name="x", command="train", sandbox=Sandbox.SEALED, parameters={"x": 0}))
    attempt = AttemptView.model_construct(sandbox=sandbox)
    return job.model_copy(update={"attempts": (attempt,)})


@pytest.mark.parametrize(
    ("sandbox", "told"),
    [
        (SandboxView(level="sealed", layers=("mount", "uid"), uid=7), OTHER_USER),
        (SandboxView(level="sealed", layers=("mount",)), SEALED),
        (SandboxView(level="user"), WITHIN_REACH),
        (None, SEALED),
    ],
)
def test_how_far_the_scorer_was_is_read_from_how_the_training_was_shut_off(
    sandbox: SandboxView | None, told: str
) -> None:
    assert reach_of(trained(sandbox)) == told
