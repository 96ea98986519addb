"""A sealed training is preempted and resumes, on a real server: `python training_run.py WISHES`. Prints JSON.

`WISHES` is JSON: `n_steps`, and `launch`, warm or cold. Printed are how each attempt was sealed, started and ended, the
step that the last one began with, and the curve.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec
from runtime_client.training.manifest import complete_in

WITHIN_S = 100.0
SCRIPT = Path(__file__).parents[1] / "runtime" / "server" / "training_scripts" / "with_numpy.py"


def preempted(client: RuntimeClient, home: Path, n_steps: int, launch: str) -> dict[str, Any]:
    code = home / "code"
    code.mkdir(mode=0o755)
    script, hurry = shutil.copy(SCRIPT, code), code / "hurry"
    training = JobSpec.model_validate(
        {
            "experiment_name": "curve",
            "command": (sys.executable, script, str(n_steps), str(hurry)),
            "priority_class": "exploratory",
            "grace_seconds": 60,
            "sandbox": "sealed",
            "readable": (str(code),),
            "launch": launch,
            "environment": {"preload": ("numpy",) if launch == "warm" else ()},
        }
    )
    client.submit(training)
    deadline = time.monotonic() + WITHIN_S
    while not list(complete_in(home / "attempts/j1/checkpoints")):
        assert time.monotonic() < deadline, client.job("j1")
        time.sleep(0.01)
    urgent = client.submit(JobSpec(experiment_name="urgent", command="true", priority_class="critical"))
    client.await_end(urgent.job_id, timeout_s=WITHIN_S)
    hurry.touch()
    ended = client.await_end("j1", timeout_s=WITHIN_S)
    began = re.search(r"^begins with (\d+)$", client.logs("j1").text, re.MULTILINE)
    return {
        "attempts": [
            (attempt.outcome, attempt.sandbox and attempt.sandbox.how, attempt.launch) for attempt in ended.attempts
        ],
        "why": [attempt.launch_why for attempt in ended.attempts] + [ended.state_reason],
        "began": began and int(began[1]),
        "sealed_by": client.info().sealed_by,
        "curve": sorted({(point.step, point.value) for point in client.metrics("j1", keys=["loss"])}),
    }


def main() -> None:
    wishes = json.loads(sys.argv[1])
    os.environ["OMP_NUM_THREADS"] = "1"
    with running_server("cpu:1") as (client, home):
        print(json.dumps(preempted(client, home, wishes["n_steps"], wishes["launch"])))


if __name__ == "__main__":
    main()
