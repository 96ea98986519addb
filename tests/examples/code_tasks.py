"""The code tasks in the hands of tests: copies of them with an edit, trained and scored as their jobs do it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

CODE = Path(__file__).resolve().parents[2] / "examples" / "code"
DEADLINE_S = 120.0


class Failed(Exception):
    """The training or the scorer ended with an error; its last lines."""


class Copy:
    """What a training job has: a copy of the examples in which one edit at most was made. Scored by the originals."""

    def __init__(self, folder: Path, patch: Path | None = None) -> None:
        self._left, self.folder = folder, folder / "work"
        shutil.copytree(CODE, self.folder, ignore=shutil.ignore_patterns("__pycache__", "edits"))
        if patch is not None:
            subprocess.run(["git", "apply", str(patch)], cwd=self.folder, check=True, timeout=DEADLINE_S)

    def value(self, task: str, metric: str, seed: int, *arguments: str) -> float:
        """What the scorer says of one training.

        Raises:
            Failed: one of them ended with an error.
        """
        self.train(task, seed, *arguments)
        return self.score(task, metric, seed)

    def train(self, task: str, seed: int, *arguments: str) -> None:
        _run(self.folder, f"{task}.train", "--seed", str(seed), *arguments)

    def make_data(self, task: str) -> None:
        _run(self.folder, f"{task}.make_data")

    def score(self, task: str, metric: str, seed: int = 0) -> float:
        return _value(metric, _run(CODE, f"{task}.score", "--seed", str(seed), NIGHTLAB_AFTER_FOLDERS=str(self._left)))

    def score_by_hand(self, task: str, metric: str) -> float:
        """By the copy's own scorer, in its folder."""
        return _value(metric, _run(self.folder, f"{task}.score"))


def _value(metric: str, printed: str) -> float:
    return float(json.loads(printed.splitlines()[-1])[metric])


def _run(folder: Path, module: str, *arguments: str, **variables: str) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**known, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    if done.returncode != 0:
        raise Failed("\n".join(done.stderr.strip().splitlines()[-3:]) or f"exit {done.returncode}")
    return done.stdout
