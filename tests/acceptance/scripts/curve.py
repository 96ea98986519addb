"""A training script that starts in a tenth of a second: standard library alone, metrics over plain HTTP.

It checkpoints every third step, resumes, and gives way. Its curve depends on a random state that the checkpoint
keeps, so a curve that was interrupted and resumed is right only if everything was. Without MLFLOW_TRACKING_URI it
prints its points, one JSON object a line.

    CURVE_STEPS, CURVE_PAUSE_S   how long it takes
    CURVE_STARTS                 a file that gets one line for each execution
"""

import argparse
import json
import os
import pickle
import random
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

CHECKPOINT_EVERY = 3
PATIENCE_S = 120.0
"""How long a gateway that is being started again is waited for, as MLflow's own client does."""


class Gateway:
    """Three calls of MLflow's REST API."""

    def __init__(self, url, token):
        self._url = url + "/api/2.0/mlflow/"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        run = self._post("runs/create", {"experiment_id": "0", "start_time": int(time.time() * 1000)})
        self._run_id = run["run"]["info"]["run_id"]

    def log(self, name, value, step):
        point = {"key": name, "value": value, "timestamp": int(time.time() * 1000), "step": step}
        self._post("runs/log-batch", {"run_id": self._run_id, "metrics": [point]})

    def _post(self, path, body):
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), self._headers)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"{}")
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if is_final or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


class Printer:
    def log(self, name, value, step):
        print(json.dumps({name: value, "step": step}), flush=True)


def save(step, state):
    folder = Path(os.environ["NIGHTLAB_CHECKPOINT_DIR"], f"step-{step}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("state", pickle.dumps(state)), ("COMPLETE", b"")):
        (folder / name).write_bytes(content)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--x", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--test", action="store_true")
    args = parser.parse_args()
    notices = []
    signal.signal(signal.SIGTERM, lambda *_: notices.append(True))
    if "CURVE_STARTS" in os.environ:
        with open(os.environ["CURVE_STARTS"], "a") as starts:
            starts.write(f"{os.environ['NIGHTLAB_JOB_ID']}.{os.environ['NIGHTLAB_ATTEMPT']}\n")
    url = os.environ.get("MLFLOW_TRACKING_URI")
    log = (Gateway(url, os.environ["MLFLOW_TRACKING_TOKEN"]) if url else Printer()).log

    done, score, source = 0, 0.0, random.Random(args.seed)
    resume_from = os.environ.get("NIGHTLAB_RESUME_FROM")
    if resume_from:
        done, score, source = pickle.loads(Path(resume_from, "state").read_bytes())
    n_steps = int(os.environ.get("CURVE_STEPS", "12"))
    for step in range(done + 1, n_steps + 1):
        time.sleep(float(os.environ.get("CURVE_PAUSE_S", "0")))
        score = 0.7 * score + 1.0 - (args.x - 0.3) ** 2 + 0.001 * source.gauss(0, 1)
        log("score", score, step)
        is_leaving = bool(notices) or os.path.exists(os.environ.get("NIGHTLAB_PREEMPT_FILE", ""))
        if "NIGHTLAB_CHECKPOINT_DIR" in os.environ and (is_leaving or step % CHECKPOINT_EVERY == 0):
            save(step, (step, score, source))
        if is_leaving and step < n_steps:
            return 75
    if args.test:
        log("test_score", score, n_steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
