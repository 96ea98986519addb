"""What a process is told, and what it is told outside nightlab."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runtime_client.training.process_context import context_from

NOWHERE = Path("/nowhere")


def test_outside_there_is_no_job_and_one_rank() -> None:
    found = context_from({"WORLD_SIZE": "8", "MLFLOW_TRACKING_URI": "http://theirs"}, default_dir=NOWHERE)
    assert not found.is_job
    assert (found.attempt, found.rank, found.n_ranks, found.is_first_rank) == (1, 0, 1, True)
    assert (found.resume_from, found.preempt_file, found.seconds_left()) == (None, None, None)
    assert found.tracking_url is None, "somebody's own tracking server is not ours to write to"
    assert found.checkpoint_dir == NOWHERE


def test_inside_everything_is_what_the_server_said() -> None:
    said = {
        "NIGHTLAB_JOB_ID": "j7",
        "NIGHTLAB_ATTEMPT": "3",
        "NIGHTLAB_SEED": "0",
        "NIGHTLAB_CHECKPOINT_DIR": "/c",
        "NIGHTLAB_RESUME_FROM": "/c/step-4",
        "NIGHTLAB_PREEMPT_FILE": "/a/notice",
        "NIGHTLAB_DEADLINE": f"{time.time() + 60:.3f}",
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "NODE_RANK": "1",
        "NUM_NODES": "2",
        "MLFLOW_TRACKING_URI": "http://127.0.0.1:7070",
        "MLFLOW_TRACKING_TOKEN": "t",
    }
    found = context_from(said, default_dir=NOWHERE)
    assert (found.job_id, found.attempt, found.seed) == ("j7", 3, 0)
    assert (found.checkpoint_dir, found.resume_from) == (Path("/c"), Path("/c/step-4"))
    assert (found.rank, found.n_ranks, found.local_rank, found.node_rank, found.n_nodes) == (5, 8, 1, 1, 2)
    assert not found.is_first_rank
    assert 50 < (found.seconds_left() or 0) < 61


def test_what_is_left_ends_at_the_kill_that_the_notice_announces(tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    said = {"NIGHTLAB_PREEMPT_FILE": str(notice), "NIGHTLAB_DEADLINE": f"{time.time() + 600:.3f}"}
    found = context_from(said, default_dir=NOWHERE)
    assert 500 < (found.seconds_left() or 0) < 601
    notice.write_text(f"{time.time() + 30:.3f}\n")
    assert 20 < (found.seconds_left() or 0) < 31
    notice.write_text("")
    assert 500 < (found.seconds_left() or 0) < 601, "a notice without a time says nothing of it"


@pytest.mark.parametrize("name", ["RANK", "NIGHTLAB_ATTEMPT", "NIGHTLAB_DEADLINE", "NIGHTLAB_SEED"])
def test_a_variable_that_makes_no_sense_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='many'"):
        context_from({name: "many"}, default_dir=NOWHERE)
