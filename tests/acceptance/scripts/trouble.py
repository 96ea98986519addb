"""A training script that goes wrong in the way named by --how; standard library alone.

It logs `score` as JSON lines, or over HTTP with TROUBLE_LOG=gateway.

    TROUBLE_PIDS   a file that gets the process id of every child it leaves behind
"""

import argparse
import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path


def print_point(name, value):
    print(json.dumps({name: value, "step": 1}), flush=True)


def post_point(name, value):
    call("log-metric", run_id=own_run(), key=name, value=value, timestamp=int(time.time() * 1000), step=1)


def own_run():
    return call("create", experiment_id="0", start_time=int(time.time() * 1000))["run"]["info"]["run_id"]


def call(path, **body):
    url = f"{os.environ['MLFLOW_TRACKING_URI']}/api/2.0/mlflow/runs/{path}"
    headers = {
        "Authorization": f"Bearer {os.environ['MLFLOW_TRACKING_TOKEN']}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"{}")


log = post_point if os.environ.get("TROUBLE_LOG") == "gateway" else print_point


def garbage():
    bad = bytes(range(256)) * 64
    for piece in (
        bad,
        b'{"score": 1e999999, "step": {}}\n',
        b'{"score": ',
        b"\xff\xfe\x00" * 5000,
        b"[" * 100_000,
        b"\n",
    ):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def sleep_for_ever():
    while True:
        time.sleep(60)


def leave_children():
    """Three that outlive their parent: one in its group, one in a session of its own, one without an environment."""
    leader = os.getpid()
    for kind in ("plain", "session", "bare"):
        if os.fork():
            continue
        if kind != "plain":
            os.setsid()
            if os.fork():
                os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        with open(os.environ["TROUBLE_PIDS"], "a") as pids:
            pids.write(f"{leader}:{os.getpid()}\n")
        if kind == "bare":
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
        sleep_for_ever()


def wait_for_children():
    path = Path(os.environ["TROUBLE_PIDS"])
    while not path.exists() or path.read_text().count(f"{os.getpid()}:") < 3:
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", required=True)
    parser.add_argument("--seed", type=int, default=0)
    how = parser.parse_args().how
    if how == "crash":
        log("score", 9.0)
        raise ValueError("the data are of another shape")
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "no_module":
        import a_module_that_nobody_has  # noqa: F401
    elif how == "no_file":
        Path("a-file-that-nobody-has.csv").read_text()
    elif how == "nan":
        log("score", float("nan"))
    elif how == "silent":
        log("other", 1.0)
    elif how == "garbage":
        garbage()
        sys.exit(3)
    elif how == "noisy":
        garbage()
        log("score", 2.0)
    elif how == "sleep":
        log("score", 9.0)
        sleep_for_ever()
    elif how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        leave_children()
        log("score", 9.0)
        sleep_for_ever()
    elif how == "litter":
        leave_children()
        wait_for_children()
        log("score", 1.5)
    else:
        log("score", {"plain": 1.0, "best": 3.0}[how])


if __name__ == "__main__":
    main()
