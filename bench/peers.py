"""Other programs that start commands, as far as they are installed: each starts the same command beside us.

A peer that is not there is said to be not there; nothing is looked up or remembered from elsewhere. Those that are
Python packages may be in another environment: `NIGHTLAB_PEERS_PYTHON` names its interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.figure import Unavailable

Submit = Callable[[tuple[str, ...]], object]
"""Hands a command to the peer, and returns when the peer has taken it."""
READY_S = 60.0
_HELPER = """
import json, sys
for line in sys.stdin:
    submit(json.loads(line))
    print("taken", flush=True)
"""
_SUBMITIT = """
import submitit
executor = submitit.LocalExecutor(folder=FOLDER)
executor.update_parameters(timeout_min=5)
def submit(command):
    executor.submit(submitit.helpers.CommandFunction(command, verbose=False))
"""
_RAY_JOBS = """
import shlex
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient(ADDRESS)
def submit(command):
    client.submit_job(entrypoint=shlex.join(command))
"""


@contextlib.contextmanager
def popen() -> Iterator[Submit]:
    """No queue at all: the floor."""
    yield subprocess.Popen


@contextlib.contextmanager
def task_spooler() -> Iterator[Submit]:
    program = _program("tsp")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TS_SOCKET": f"{folder}/socket", "TS_SLOTS": "2", "TMPDIR": folder}
        try:
            yield lambda command: _run([program, "-n", *command], environment)
        finally:
            _run([program, "-K"], environment)


@contextlib.contextmanager
def hyperqueue() -> Iterator[Submit]:
    program = _program("hq")
    with tempfile.TemporaryDirectory() as folder:
        base = [program, "--server-dir", folder]
        with _process([*base, "server", "start"]):
            _until(lambda: _run([*base, "server", "info"]) is not None, "HyperQueue's server")
            with _process([*base, "worker", "start", "--cpus", "2"]):
                _until(lambda: "RUNNING" in (_run([*base, "worker", "list"]) or ""), "HyperQueue's worker")
                yield lambda command: _run([*base, "submit", "--stdout", "none", "--stderr", "none", "--", *command])
                _run([*base, "server", "stop"])


@contextlib.contextmanager
def submitit_local() -> Iterator[Submit]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        yield stack.enter_context(_python_helper("submitit", _SUBMITIT.replace("FOLDER", repr(folder))))


@contextlib.contextmanager
def ray_jobs() -> Iterator[Submit]:
    python = _python_with("ray")
    ray = str(Path(python).parent / "ray")
    port, dashboard = _free_port(), _free_port()
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        environment = {
            **os.environ,
            "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        start = [
            ray, "start", "--head", "--block", "--num-cpus=2", f"--port={port}", f"--temp-dir={folder}",
            "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", "--node-ip-address=127.0.0.1",
            "--object-store-memory=100000000",
        ]  # fmt: skip
        address = f"http://127.0.0.1:{dashboard}"
        with _process(start, environment, own_group=True):
            _until(lambda: _answers(dashboard), "Ray's dashboard")
            with _python_helper("ray", _RAY_JOBS.replace("ADDRESS", repr(address))) as submit:
                yield submit


@contextlib.contextmanager
def slurm() -> Iterator[Submit]:
    """A controller, one node daemon and munge of its own, with the delays of its scheduler set to none."""
    programs = [_program(name) for name in ("slurmctld", "slurmd", "sbatch", "munged", "sinfo")]
    controller, daemon, sbatch, munged, sinfo = programs
    with tempfile.TemporaryDirectory(prefix="nl-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = {**os.environ, "SLURM_CONF": str(_slurm_files(folder))}
        munge = ["--force", "--foreground", f"--key-file={folder}/munge/key", f"--socket={folder}/munge/sock"]
        munge += [
            f"--pid-file={folder}/munge/pid",
            f"--log-file={folder}/munge/log",
            f"--seed-file={folder}/munge/seed",
        ]
        with contextlib.ExitStack() as daemons:
            daemons.enter_context(_process([munged, *munge]))
            _until((folder / "munge" / "sock").exists, "munge")
            daemons.enter_context(_process([controller, "-D", "-c"], environment))
            daemons.enter_context(_process([daemon, "-D", "-N", "n1"], environment))
            _until(lambda: (_run([sinfo, "-h", "-o", "%T"], environment) or "").strip() == "idle", "Slurm's node")
            script = ["--output=/dev/null", "--cpus-per-task=1"]
            yield lambda command: _run([sbatch, *script, "--wrap", f"exec {shlex.join(command)}"], environment)


PEERS: Mapping[str, Callable[[], AbstractContextManager[Submit]]] = {
    "Popen, no queue": popen,
    "task-spooler": task_spooler,
    "HyperQueue": hyperqueue,
    "submitit, local executor": submitit_local,
    "Slurm, sbatch": slurm,
    "Ray Jobs": ray_jobs,
}


def _slurm_files(folder: Path) -> Path:
    """Source: slurm.conf(5). No cgroups and no accounting; one node that runs as the present user."""
    host = socket.gethostname().partition(".")[0]
    for name in ("state", "spool", "log", "munge"):
        (folder / name).mkdir(mode=0o700 if name == "munge" else 0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    settings = {
        "ClusterName": "bench", "SlurmctldHost": f"{host}(127.0.0.1)", "SlurmctldPort": _free_port(),
        "SlurmUser": "root", "SlurmdUser": "root", "AuthType": "auth/munge", "AuthInfo": f"socket={folder}/munge/sock",
        "StateSaveLocation": folder / "state", "SlurmdSpoolDir": folder / "spool",
        "SlurmctldPidFile": folder / "ctl.pid", "SlurmdPidFile": folder / "d.pid",
        "SlurmctldLogFile": folder / "log/ctl", "SlurmdLogFile": folder / "log/d",
        "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none",
        "MpiDefault": "none", "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core",
        "SlurmdParameters": "config_overrides", "SchedulerType": "sched/builtin",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0", "ReturnToService": 2,
    }  # fmt: skip
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines.append(f"NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs=2 RealMemory=1000")
    lines.append("PartitionName=all Nodes=n1 Default=YES State=UP")
    path = folder / "slurm.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def _program(name: str) -> str:
    beside = Path(os.environ.get("NIGHTLAB_PEERS_PYTHON", sys.executable)).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def _python_with(package: str) -> str:
    python = os.environ.get("NIGHTLAB_PEERS_PYTHON", sys.executable)
    if _run([python, "-c", f"import {package}"]) is None:
        raise Unavailable(f"{package} is not installed for {python}")
    return python


@contextlib.contextmanager
def _python_helper(package: str, source: str) -> Iterator[Submit]:
    """A process with the package imported, which submits what it is told: a client that is warm, as ours is."""
    command = [_python_with(package), "-c", source + _HELPER]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def submit(words: tuple[str, ...]) -> None:
        print(json.dumps(words), file=to, flush=True)
        if back.readline().strip() != "taken":
            raise Unavailable(f"{package} did not take a command")

    try:
        yield submit
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _process(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, own_group: bool = False
) -> Iterator[None]:
    """Runs meanwhile; killed afterwards, with its group where it has its own."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=own_group
    )
    try:
        yield
    finally:
        if own_group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What it prints; None: it failed."""
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=READY_S, check=False
    )
    return done.stdout if done.returncode == 0 else None


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_S
    while not condition():
        if time.monotonic() > deadline:
            raise Unavailable(f"{what} was not ready within {READY_S:g} s")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
