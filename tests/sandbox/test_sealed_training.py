"""A sealed training that is preempted resumes in its box, in whatever way it is sealed, and loses nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import training_run
from other_user import NO_USER_NAMESPACES, ROOT, run_as_other_user

from runtime_client import landlock

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user"),
]
N_STEPS = 600


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """Its curve, by running it alone, outside nightlab."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "hurry").touch()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
    done = subprocess.run(
        [sys.executable, str(training_run.SCRIPT), str(N_STEPS), str(folder / "hurry")],
        env=plain | {"OMP_NUM_THREADS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = re.findall(r"^step (\d+): loss (\S+)$", done.stdout, re.MULTILINE)
    assert len(found) == N_STEPS
    return {int(step): float(loss) for step, loss in found}


@pytest.mark.parametrize(
    ("before", "how", "launch"),
    [
        (ROOT, "root", "cold"),
        ("", "user namespace", "warm"),
        pytest.param(
            NO_USER_NAMESPACES,
            "landlock",
            "warm",
            marks=pytest.mark.skipif(landlock.abi() < 3, reason="needs Landlock of version 3"),
        ),
    ],
    ids=["root, cold", "user namespace, warm", "landlock, warm"],
)
def test_its_curve_is_the_undisturbed_one(undisturbed: dict[int, float], before: str, how: str, launch: str) -> None:
    wishes = json.dumps({"n_steps": N_STEPS, "launch": launch})
    run = run_as_other_user(Path(training_run.__file__), wishes, before=before)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["attempts"] == [["preempted", how, launch], ["succeeded", how, launch]], found["why"]
    assert found["sealed_by"] == [how]
    assert found["began"] > 1
    assert dict(found["curve"]) == undisturbed
    assert len(found["curve"]) == N_STEPS
