"""What the client makes of a spec before it sends it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runtime_client.errors import InvalidSpec
from runtime_client.models import CodeSource, JobSpec
from runtime_client.packing import Packer


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    return folder


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    return Packer(tmp_path / "home" / "code")


def spec(folder: Path, **source: object) -> JobSpec:
    fields = {"root_path": str(folder), "snapshot": "auto", **source}
    return JobSpec(experiment_name="x", command="t", code_source=CodeSource.model_validate(fields))


def test_a_spec_gets_a_key_to_be_sent_again_by_and_keeps_its_own(packer: Packer) -> None:
    bare = JobSpec(experiment_name="x", command="t")
    assert packer.pack(bare).idempotency_token
    assert packer.pack(bare.model_copy(update={"idempotency_token": "k"})).idempotency_token == "k"


def test_a_snapshot_is_taken_where_it_is_asked_for(packer: Packer, code: Path) -> None:
    taken = packer.pack(spec(code))
    assert taken.code_source is not None
    assert taken.code_source.snapshot_id
    assert taken.tags["nightlab.code"] == taken.code_source.snapshot_id
    left = packer.pack(spec(code, snapshot="off"))
    assert left.code_source is not None
    assert left.code_source.snapshot_id is None


def test_a_hundred_jobs_share_one_snapshot(packer: Packer, code: Path, tmp_path: Path) -> None:
    packed = packer.pack_many([spec(code) for _ in range(100)])
    assert len({p.code_source.snapshot_id for p in packed if isinstance(p, JobSpec) and p.code_source}) == 1
    assert len(list((tmp_path / "home" / "code").glob("*.tar"))) == 1


def test_the_run_is_tagged_with_the_commit_in_mlflows_words(packer: Packer, code: Path) -> None:
    for words in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-q", "-m", "m"]):
        who = ["-c", "user.name=n", "-c", "user.email=e@localhost"]
        subprocess.run(["git", *who, *words], cwd=code, check=True, capture_output=True)
    (code / "train.py").write_text("print(2)")
    tags = packer.pack(spec(code)).tags
    assert len(tags["mlflow.source.git.commit"]) == 40
    assert tags["mlflow.source.git.branch"] == "trunk"
    assert tags["nightlab.code_is_dirty"] == "true"


def test_one_refused_snapshot_does_not_refuse_the_others(packer: Packer, code: Path, tmp_path: Path) -> None:
    first, second, third = packer.pack_many([spec(code), spec(tmp_path / "none"), spec(code)])
    assert isinstance(first, JobSpec)
    assert isinstance(second, InvalidSpec)
    assert second.path == "code_source"
    assert isinstance(third, JobSpec)


def test_a_client_without_a_home_says_how_to_get_one(code: Path) -> None:
    with pytest.raises(InvalidSpec, match="from_home"):
        Packer(None).pack(spec(code))


@pytest.mark.parametrize(("word", "mode"), [(False, "off"), (True, "auto"), ("off", "off")])
def test_yaml_that_reads_off_as_false_is_understood(word: object, mode: str) -> None:
    assert CodeSource.model_validate({"root_path": "/x", "snapshot": word}).snapshot == mode
