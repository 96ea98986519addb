"""The digits script as a good citizen: it is interrupted, resumed, and ends with the very same numbers."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "digits" / "train.py"
EPOCHS = 30
DEADLINE_S = 60.0


class Training:
    """Runs the script in this process, which has paid for its imports already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str, **environment: str) -> tuple[int, list[str]]:
        """The exit code and the lines with metrics."""
        self._capsys.readouterr()
        before = signal.getsignal(signal.SIGTERM)
        with self._monkeypatch.context() as here:
            for name in [n for n in os.environ if n.startswith(("NIGHTLAB_", "MLFLOW_"))]:
                here.delenv(name)
            for name, value in environment.items():
                here.setenv(name, value)
            here.setattr(sys, "argv", [str(SCRIPT), "--seed", "3", *arguments])
            try:
                with pytest.raises(SystemExit) as end:
                    runpy.run_path(str(SCRIPT), run_name="__main__")
            finally:
                signal.signal(signal.SIGTERM, before)
        assert isinstance(end.value.code, int)
        return end.value.code, metrics_in(self._capsys.readouterr().out)


def outside() -> dict[str, str]:
    """This process' environment without ours: the last digits depend on the number of threads."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}


def metrics_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("epoch ")]


@pytest.fixture
def train(monkeypatch, capsys):
    return Training(monkeypatch, capsys)


@pytest.fixture
def undisturbed(train):
    code, lines = train("--epochs", str(EPOCHS), "--evaluate_test")
    assert code == 0
    return lines


def test_interrupted_by_signal_checkpoints_leaves_with_75_and_ends_like_undisturbed(train, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-u", str(SCRIPT), "--seed", "3", "--epochs", "2000"],
        env={**outside(), "NIGHTLAB_CHECKPOINT_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    seen = "".join(process.stdout.readline() for _ in range(6))
    process.terminate()
    seen += process.communicate(timeout=DEADLINE_S)[0]
    assert process.returncode == 75

    (newest,) = [f for f in tmp_path.iterdir() if f.name == f"step-{len(metrics_in(seen)) // 2:06d}"]
    assert (newest / "COMPLETE").exists()
    more = str(len(metrics_in(seen)) // 2 + 5)
    code, after = train("--epochs", more, "--evaluate_test", NIGHTLAB_RESUME_FROM=str(newest))
    assert code == 0
    assert metrics_in(seen) + after == train("--epochs", more, "--evaluate_test")[1]


def test_notice_file_checkpoints_and_leaves_with_75(train, undisturbed, tmp_path):
    (tmp_path / "notice").touch()
    code, seen = train(
        "--epochs",
        str(EPOCHS),
        NIGHTLAB_CHECKPOINT_DIR=str(tmp_path / "checkpoints"),
        NIGHTLAB_PREEMPT_FILE=str(tmp_path / "notice"),
    )
    assert code == 75
    assert (tmp_path / "checkpoints" / "step-000001" / "COMPLETE").exists()
    _, after = train(
        "--epochs",
        str(EPOCHS),
        "--evaluate_test",
        NIGHTLAB_RESUME_FROM=str(tmp_path / "checkpoints" / "step-000001"),
    )
    assert seen + after == undisturbed


def test_notice_without_a_checkpoint_folder_does_not_claim_a_checkpoint(train, tmp_path):
    (tmp_path / "notice").touch()
    code, _ = train("--epochs", str(EPOCHS), NIGHTLAB_PREEMPT_FILE=str(tmp_path / "notice"))
    assert code not in (0, 75)


def test_notice_in_the_last_epoch_changes_nothing(train, tmp_path):
    (tmp_path / "notice").touch()
    code, _ = train(
        "--epochs", "1", NIGHTLAB_CHECKPOINT_DIR=str(tmp_path), NIGHTLAB_PREEMPT_FILE=str(tmp_path / "notice")
    )
    assert code == 0


def test_run_resumed_from_a_periodic_checkpoint_ends_like_undisturbed(train, undisturbed, tmp_path):
    train("--epochs", "15", NIGHTLAB_CHECKPOINT_DIR=str(tmp_path))
    assert [folder.name for folder in tmp_path.iterdir()] == ["step-000010"]
    _, after = train("--epochs", str(EPOCHS), "--evaluate_test", NIGHTLAB_RESUME_FROM=str(tmp_path / "step-000010"))
    assert after == undisturbed[20:]


def test_torn_checkpoint_is_not_resumed_and_is_written_again(train, undisturbed, tmp_path):
    torn = tmp_path / "step-000010"
    torn.mkdir()
    (torn / "state.pickle").write_bytes(b"half of it")
    _, seen = train("--epochs", "12", NIGHTLAB_RESUME_FROM=str(torn), NIGHTLAB_CHECKPOINT_DIR=str(tmp_path))
    assert seen == undisturbed[:24]
    assert (torn / "COMPLETE").exists()
    assert (torn / "state.pickle").read_bytes() != b"half of it"


def test_seed_changes_the_result(train, undisturbed):
    assert train("--epochs", str(EPOCHS), "--evaluate_test", "--seed", "4")[1] != undisturbed


def test_test_split_is_looked_at_only_when_asked(train, undisturbed):
    assert sum("test_accuracy" in line for line in undisturbed) == 1
    assert not any("test_accuracy" in line for line in train("--epochs", "2")[1])
