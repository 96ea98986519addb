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
    """The training or the scorer ended with an error; its last line."""


class Copy:
    """A copy of the examples in which one edit at most was made."""

    def __init__(self, folder: Path, patch: Path | None = None) -> None:
        self.folder = folder
        shutil.copytree(CODE, folder, ignore=shutil.ignore_patterns("__pycache__", "edits"))
        if patch is not None:
            subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True, timeout=DEADLINE_S)

    def value(self, task: str, metric: str, seed: int, *arguments: str) -> float:
        """What the scorer says of one training.

        Raises:
            Failed: one of them ended with an error.
        """
        self.run(f"{task}.train", "--seed", str(seed), *arguments)
        return self.measured(task, metric)

    def measured(self, task: str, metric: str) -> float:
        return float(json.loads(self.run(f"{task}.score").splitlines()[-1])[metric])

    def run(self, module: str, *arguments: str) -> str:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env={**known, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        if done.returncode != 0:
            raise Failed((done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1])
        return done.stdout
