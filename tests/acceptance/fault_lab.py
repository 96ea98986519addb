"""A home with real services, a real session on a fast script, ways to do it harm, and what must be true at its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from agent.planner.history import SLOT_NEEDED
from agent.store.store import AgentStore
from agent.store.views import Purpose, SessionState, SessionView, TrialState, TrialView
from agent.task import Task
from agent.task_file import parse_task
from nightlab.services import Services, start_services
from nightlab.services.settings import ServiceFiles
from nightlab.services.state import read_state
from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError
from runtime_client.models import Environment, JobView

T = TypeVar("T")

SCRIPTS = Path(__file__).parent / "scripts"
N_STEPS = 12
PAUSE_S = 0.06
N_SEARCH = 7
N_FRESH = 4
FIRST_FRESH = 1000
N_DEVICES = 2
SESSION_S = 150.0

TASK = f"""
task: curve
objective: {{metric: score, direction: maximize}}
job:
  command: python curve.py
  args_style: argparse
  code_source: {{root_path: {SCRIPTS}}}
  max_retries: 5
  env_variables: {{CURVE_STEPS: "{N_STEPS}", CURVE_PAUSE_S: "{PAUSE_S}", CURVE_STARTS: "STARTS_FILE"}}
space: {{x: {{type: float, low: 0.0, high: 1.0, default: 0.9}}}}
held_out: {{metric: test_score, parameters: {{test: true}}, looks: 1}}
seeds: {{fresh: {N_FRESH}, max_pairs: {N_FRESH}, first_fresh: {FIRST_FRESH}}}
trust: {{error_budget: 0.4}}
budgets: {{trials: {N_SEARCH}}}
"""


def eventually(ask: Callable[[], T | None], *, within_s: float = 30.0, what: str = "it") -> T:
    """The first answer of `ask` that is neither None nor False.

    Raises:
        AssertionError: there was none in time.
    """
    deadline = time.monotonic() + within_s
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.03)


def holds(ask: Callable[[], bool], *, for_s: float) -> None:
    """
    Raises:
        AssertionError: `ask` was false once.
    """
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert ask()
        time.sleep(0.1)


class FaultLab:
    """`with FaultLab(folder) as lab`: services that end with the test, and nothing of them is left."""

    def __init__(
        self, folder: Path, *, mlflow_url: str | None = None, has_mlflow: bool = False, n_devices: int = N_DEVICES
    ) -> None:
        self.home = (folder / "home").resolve()
        self.starts_file = folder.resolve() / "starts"
        self._mlflow_url, self._has_mlflow, self._n_devices = mlflow_url, has_mlflow, n_devices
        self.services: Services | None = None

    def __enter__(self) -> FaultLab:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.down()
        finally:
            end_all(self.home)

    def up(self) -> None:
        self.services = start_services(
            self.home,
            devices=f"cpu:{self._n_devices}",
            mlflow=self._has_mlflow or self._mlflow_url is not None,
            mlflow_url=self._mlflow_url,
        )
        self.store = AgentStore.open(self.home)

    def down(self) -> None:
        if self.services is not None:
            self.store.close()
            self.services.stop()
            self.services = None

    @property
    def client(self) -> RuntimeClient:
        assert self.services is not None
        return self.services.client

    # A session, and where it is.

    def start_session(self, task: Task | None = None) -> str:
        return self.store.create_session(task or curve_task(self.starts_file)).session_id

    def session(self, session_id: str = "s1") -> SessionView:
        return self.store.session(session_id)

    def trials(self, session_id: str = "s1") -> list[TrialView]:
        return self.store.trials(session_id)

    def jobs(self, session_id: str = "s1") -> list[JobView]:
        return self.client.jobs(session_id=session_id, limit=500)

    def await_moment(self, moment: str, session_id: str = "s1") -> None:
        """`start`: a process works on it; `search`: two trials have ended; `confirm`, `held_out`: jobs of that kind."""
        reached = {
            "start": lambda: self.session(session_id).pid is not None,
            "search": lambda: sum(t.is_ended for t in self.trials(session_id)) >= 2,
            "confirm": lambda: self.store.plans(session_id)[-1].phase != "search",
            "held_out": lambda: any(t.purpose is Purpose.HELD_OUT and t.job_id for t in self.trials(session_id)),
        }[moment]

        def look() -> bool:
            view = self.session(session_id)
            assert view.state is SessionState.RUNNING, f"{view.state} before {moment}: {view.message}"
            return bool(reached())

        eventually(look, within_s=SESSION_S, what=f"the moment {moment!r}")

    def await_end(self, session_id: str = "s1", within_s: float = SESSION_S) -> SessionView:
        def ended() -> SessionView | None:
            view = self.session(session_id)
            return None if view.state in (SessionState.RUNNING, SessionState.STOPPING) else view

        try:
            return eventually(ended, within_s=within_s, what="the end of the session")
        except AssertionError:
            print("\n".join(f"{line.step}: {line.text}" for line in self.store.activity(session_id, 80)))
            raise

    # Harm.

    def service_pid(self, name: str) -> int:
        """The process of a service that is there now; `supervisor` is the one above them."""

        def pid() -> int | None:
            state = read_state(ServiceFiles(self.home))
            if state is None:
                return None
            found = state.pid if name == "supervisor" else getattr(state.services.get(name), "pid", None)
            return found if found is not None and is_alive(found) else None

        return eventually(pid, what=f"a process of {name}")

    def session_pid(self, session_id: str = "s1") -> int:
        """Its process, once that has claimed the session."""

        def pid() -> int | None:
            found = self.session(session_id).pid
            return found if found is not None and is_alive(found) else None

        return eventually(pid, within_s=60, what="a process of the session")

    def running_attempt(self, *, is_checkpointed: bool = False) -> Path:
        """The folder of an attempt whose command runs: the newest, which has most of its time left."""

        def folder() -> Path | None:
            found = self.home.glob("attempts/*/*/started.json")
            for started in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
                has_one = any(started.parent.parent.glob("checkpoints/step-*/COMPLETE"))
                if not (started.parent / "exit.json").exists() and (has_one or not is_checkpointed):
                    return started.parent
            return None

        return eventually(folder, within_s=60, what="a running attempt")

    def kill(self, victim: str) -> int:
        """SIGKILL, once; the process id."""
        match victim:
            case "session":
                pid = self.session_pid()
            case "leader":
                pid = pid_in(self.running_attempt(is_checkpointed=True) / "started.json")
            case "attempt supervisor":
                pid = pid_in(self.running_attempt(is_checkpointed=True) / "supervisor.json")
            case "launcher":
                pid = eventually(lambda: next(iter(processes_with(self.home, "runtime.node.launcher")), None))
            case service:
                pid = self.service_pid(service)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return pid

    def answers(self) -> bool:
        try:
            self.client.info()
        except RuntimeClientError:
            return False
        return True


def curve_task(starts_file: Path, **changes: str) -> Task:
    """The task, with this Python; `changes` are replaced in its text."""
    text = TASK.replace("STARTS_FILE", str(starts_file))
    for old, new in changes.items():
        text = text.replace(old, new)
    return with_this_python(parse_task(text, source=SCRIPTS / "task.yaml"))


def with_this_python(task: Task) -> Task:
    job = task.job.model_copy(update={"environment": Environment(python=sys.executable)})
    return task.model_copy(update={"job": job})


def pid_in(record: Path) -> int:
    return int(json.loads(record.read_text())["pid"])


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def processes_with(home: Path, word: str = "") -> list[int]:
    """Living processes whose command line or environment names the home folder, and the word."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid() or not is_alive(int(entry.name)):
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(home).encode() in text and word.encode() in text:
            found.append(int(entry.name))
    return found


def end_all(home: Path) -> None:
    """Whatever a failed test left."""
    for pid in processes_with(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# What must be true at the end.


def check_whole(lab: FaultLab, *, with_retries: bool, session_id: str = "s1") -> None:
    """Finished; every trial once, on one job; each attempt executed once; every curve as if nothing had happened."""
    view = lab.session(session_id)
    assert view.state is SessionState.FINISHED, view.message
    assert view.result is not None
    trials = lab.trials(session_id)
    jobs = {job.job_id: job for job in lab.jobs(session_id)}
    cut = [trial for trial in trials if gave_way(trial)]
    whole = [trial for trial in trials if not gave_way(trial)]
    check_once(trials, jobs)
    assert {str(trial.job_id): jobs[str(trial.job_id)].state for trial in cut} == {
        str(t.job_id): "cancelled" for t in cut
    }
    check_trials(whole)
    check_jobs([jobs[str(trial.job_id)] for trial in whole], with_retries=with_retries)
    starts = Counter(lab.starts_file.read_text().split())
    assert max(starts.values()) == 1, f"executed twice: {starts}"
    for trial in whole:
        assert trial.job_id is not None
        check_curve(lab.client, trial, jobs[trial.job_id])


def gave_way(trial: TrialView) -> bool:
    """Idle work whose slot was needed: it was cut short in order, and says nothing of its configuration."""
    return trial.is_idle_work and trial.exit_reason == SLOT_NEEDED


def check_once(trials: list[TrialView], jobs: dict[str, JobView]) -> None:
    numbers = [t.number for t in trials]
    assert numbers == sorted(set(numbers))
    carried = [t.job_id for t in trials]
    assert sorted(jobs) == sorted(str(job_id) for job_id in carried), "one job for each trial, and no other"
    tags = [job.spec.tags["nightlab.trial"] for job in jobs.values()]
    assert sorted(tags) == sorted(t.trial_id for t in trials)


def check_trials(trials: list[TrialView]) -> None:
    assert {t.trial_id: t.note for t in trials if t.state is not TrialState.MEASURED} == {}
    assert len({(t.configuration, t.seed, t.purpose) for t in trials}) == len(trials)
    kinds = Counter(t.purpose for t in trials)
    fresh = [t for t in trials if t.purpose is Purpose.REPLICATE and t.seed >= FIRST_FRESH]
    assert kinds[Purpose.SEARCH] == N_SEARCH
    assert kinds[Purpose.HELD_OUT] == 1
    assert len(fresh) == 2 * N_FRESH


def check_jobs(jobs: list[JobView], *, with_retries: bool) -> None:
    assert {job.state for job in jobs} == {"succeeded"}
    if not with_retries:
        again = {job.job_id: job.attempts for job in jobs if len(job.attempts) != 1}
        assert not again, "\n".join(str(attempt) for attempts in again.values() for attempt in attempts)


def check_curve(client: RuntimeClient, trial: TrialView, job: JobView) -> None:
    """The curve of all attempts together is, bit for bit, that of an execution that nobody disturbed."""
    expected = undisturbed(trial)
    seen: dict[int, set[float | None]] = {}
    points = client.metrics(job.job_id, keys=["score"])
    for point in points:
        seen.setdefault(point.step, set()).add(point.value)
    assert seen == {step: {value} for step, value in expected.items()}, f"{job.job_id}, {len(job.attempts)} attempts"
    assert len(points) == len({(point.step, point.attempt) for point in points}), f"{job.job_id}: logged twice"
    assert trial.value == expected[N_STEPS]


def undisturbed(trial: TrialView, *, n_steps: int = N_STEPS) -> dict[int, float]:
    """By running the script alone, with the trial's parameters and seed."""
    given = ["--x", repr(trial.params["x"]), "--seed", str(trial.seed)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "curve.py"), *given],
        env={**plain, "CURVE_STEPS": str(n_steps)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    points = [json.loads(line) for line in done.stdout.splitlines()]
    return {point["step"]: point["score"] for point in points}


def check_nothing_is_left(home: Path, within_s: float = 20.0) -> None:
    try:
        eventually(lambda: not processes_with(home), within_s=within_s, what="the end of every process of this home")
    except AssertionError as error:
        left = [(pid, command_line(pid)) for pid in processes_with(home)]
        raise AssertionError(f"{error}: {left}") from error


def command_line(pid: int) -> str:
    """Empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
