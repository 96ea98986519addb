"""An evidence folder says what it is, and one that was tampered with is refused with the file named."""

import dataclasses
import hashlib
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ended_session import ended_session

from agent.data import DataFingerprints
from agent.planner.compared import hold_against
from agent.store.store import AgentStore
from agent.store.views import Purpose
from agent.task import DataSource
from nightlab.trials.again import data_lack
from nightlab.trials.evidence import CODE, SCORER, SUMS, TRIAL, FolderTaken, write_evidence
from nightlab.trials.foreign_folder import Refused, read_evidence
from nightlab.trials.record import TrialRecord, read_record
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.home import CODE_FOLDER
from runtime_client.models import CodeSource, JobSpec, MetricPoint, SnapshotMode
from runtime_client.snapshot.store import CodeStore
from runtime_client.snapshot.tree import ALL_IS_CODE

POINTS = [MetricPoint(key="score", value=0.5, step=1, at=0.0, attempt=1)]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ended")
    ended_session(home)
    return home


@pytest.fixture
def record(ended: Path, tmp_path: Path) -> TrialRecord:
    """A trial whose job ran a snapshot with a link in it, and has a secret among its variables."""
    code = tmp_path / "code"
    (code / "sub").mkdir(parents=True)
    (code / "train.py").write_text("print('score 0.5')\n")
    (code / "sub" / "run.sh").write_text("true\n")
    (code / "data").symlink_to("/etc")
    snapshot = CodeStore(ended / CODE_FOLDER).take(code)
    source = CodeSource(root_path=str(code), snapshot=SnapshotMode.AUTO, snapshot_id=snapshot.snapshot_id)
    runtime = FakeRuntime(lambda _: FakeOutcome())
    job = runtime.submit(
        JobSpec(
            experiment_name="toy",
            command="python train.py",
            code_source=source,
            env_variables={"API_TOKEN": "hunter2", "MODE": "fast"},
            idempotency_token="secret-key/t1",
        )
    )
    with closing(AgentStore.open(ended)) as store:
        found = read_record(store, ended, "s1-t1", None)
    return TrialRecord(
        trial=found.trial, task=found.task, job=job, provenance=found.provenance, siblings=found.siblings
    )


@pytest.fixture
def folder(record: TrialRecord, ended: Path, tmp_path: Path) -> Path:
    held = hold_against(record.siblings, record.siblings, record.task)
    write_evidence(tmp_path / "evidence", record, POINTS, held, home=ended)
    return tmp_path / "evidence"


def test_an_untouched_folder_is_read_as_it_was_written(folder: Path, record: TrialRecord) -> None:
    evidence = read_evidence(folder)
    assert (evidence.trial_id, evidence.value, evidence.params) == ("s1-t1", record.trial.value, record.trial.params)
    assert evidence.curves == {"score": ((1, 0.5),)}
    own = [t for t in record.siblings if t.configuration == record.trial.configuration]
    alike = [t for t in own if t.value is not None and t.purpose is not Purpose.HELD_OUT]
    assert len(evidence.replicates) == len(alike) - 1 > 1, "the others of the same configuration"
    assert evidence.code is not None
    assert evidence.code.left_out == ("data",)
    assert (folder / CODE / "sub" / "run.sh").read_text() == "true\n"


def test_no_secret_leaves_the_home(folder: Path) -> None:
    text = (folder / TRIAL).read_text()
    assert "hunter2" not in text
    assert "secret-key" not in text
    assert read_evidence(folder).job.env_variables["MODE"] == "fast"


def test_an_existing_folder_is_not_written_over(folder: Path, record: TrialRecord, ended: Path) -> None:
    held = hold_against(record.siblings, record.siblings, record.task)
    with pytest.raises(FolderTaken):
        write_evidence(folder, record, POINTS, held, home=ended)


def _change(folder: Path) -> str:
    (folder / CODE / "train.py").write_text("print('score 0.9')\n")
    return "code/train.py was changed"


def _add(folder: Path) -> str:
    (folder / CODE / "extra.py").write_text("")
    return "code/extra.py is not listed"


def _remove(folder: Path) -> str:
    (folder / CODE / "train.py").unlink()
    return "code/train.py is listed"


def _link_file(folder: Path) -> str:
    (folder / CODE / "train.py").unlink()
    (folder / CODE / "train.py").symlink_to("/etc/passwd")
    return "code/train.py is a symbolic link"


def _link_folder(folder: Path) -> str:
    (folder / "more").symlink_to("/etc")
    return "more is a symbolic link"


def _link_sums(folder: Path) -> str:
    (folder / SUMS).rename(folder.parent / "sums")
    (folder / SUMS).symlink_to(folder.parent / "sums")
    return f"{SUMS} is a symbolic link"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / CODE / "pipe")
    return "code/pipe is neither"


def _listing(name: str) -> Callable[[Path], str]:
    def change(folder: Path) -> str:
        digest = hashlib.sha256(Path("/etc/passwd").read_bytes()).hexdigest()
        with (folder / SUMS).open("a") as sums:
            sums.write(f"{digest}  {name}\n")
        return "leads out of the folder"

    return change


def _not_ours(folder: Path) -> str:
    (folder / TRIAL).write_text('{"format": 2}')
    lines = [line for line in (folder / SUMS).read_text().splitlines() if not line.endswith(TRIAL)]
    digest = hashlib.sha256((folder / TRIAL).read_bytes()).hexdigest()
    (folder / SUMS).write_text("\n".join([*lines, f"{digest}  {TRIAL}"]) + "\n")
    return "it is of another version"


@pytest.mark.parametrize(
    "tamper",
    [
        _change, _add, _remove, _link_file, _link_folder, _link_sums, _pipe, _not_ours,
        _listing("/etc/passwd"), _listing("../../../etc/passwd"), _listing("code/../../x"), _listing("./train.py"),
    ],
)  # fmt: skip
def test_a_tampered_folder_is_refused_with_the_file_named(folder: Path, tamper: Callable[[Path], str]) -> None:
    said = tamper(folder)
    with pytest.raises(Refused, match=said):
        read_evidence(folder)


def test_data_that_changed_since_is_named(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_text("1")
    (tmp_path / "labels.csv").write_text("a,1\n")
    sources = [DataSource(path=str(tmp_path / name), fingerprint="sha256") for name in ("images", "labels.csv")]
    recorded = DataFingerprints(sources).look().text
    assert data_lack(sources, recorded) is None
    (tmp_path / "labels.csv").write_text("a,2\n")
    lack = data_lack(sources, recorded)
    assert lack is not None
    assert str(tmp_path / "labels.csv") in lack.text
    assert "images" not in lack.text


def test_a_scorer_goes_with_the_evidence_and_is_run_after_the_training(record: TrialRecord, ended: Path) -> None:
    runtime = FakeRuntime(lambda _: FakeOutcome())
    scorer = runtime.submit(JobSpec(experiment_name="toy", command="python score.py", idempotency_token="key/score"))
    scored = dataclasses.replace(record, score_job=scorer)
    folder = ended / "scored"
    held = hold_against(record.siblings, record.siblings, record.task)
    write_evidence(folder, scored, POINTS, held, home=ended)
    evidence = read_evidence(folder)
    assert evidence.scorer is not None
    assert evidence.scorer.command == "python score.py"
    assert evidence.scorer.idempotency_token is None


def test_a_scorer_that_was_kept_apart_goes_along_with_its_private_files(
    record: TrialRecord, ended: Path, tmp_path: Path
) -> None:
    assert record.job is not None
    kept = tmp_path / "kept"
    (kept / "private").mkdir(parents=True)
    (kept / "private" / "test.txt").write_text("answers")
    (kept / ".gitignore").write_text("private\n")
    (kept / ALL_IS_CODE).touch()
    snapshot = CodeStore(ended / CODE_FOLDER).take(kept)
    source = CodeSource(root_path=str(kept), snapshot=SnapshotMode.AUTO, snapshot_id=snapshot.snapshot_id)
    spec = record.job.spec.model_copy(update={"code_source": source, "command": "python score.py"})
    measured = dataclasses.replace(record, score_job=record.job.model_copy(update={"spec": spec}))
    held = hold_against(record.siblings, record.siblings, record.task)
    evidence = write_evidence(tmp_path / "evidence", measured, POINTS, held, home=ended)
    assert read_evidence(tmp_path / "evidence") == evidence
    assert evidence.scorer_code is not None
    assert (tmp_path / "evidence" / SCORER / "private" / "test.txt").read_text() == "answers"
    assert "pass them on with care" in (tmp_path / "evidence" / "README.md").read_text()


def test_a_scorer_with_the_code_of_the_training_is_there_once(folder: Path) -> None:
    assert read_evidence(folder).scorer_code is None
    assert not (folder / SCORER).exists()
