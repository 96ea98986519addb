"""A home with an installed sweep on a fast script, started as cron would: its line, by sh, in cron's environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from command import Said, nightlab
from fault_lab import SCRIPTS, eventually, processes_with, undisturbed

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import TrialState, TrialView
from agent.sweeps.views import NightView
from nightlab.services.settings import ServiceFiles
from nightlab.services.state import read_state
from runtime_client.client import RuntimeClient

CRONTAB = '#!/bin/sh\ncase "$1" in\n-l) [ -e {file} ] && exec cat {file}; echo "no crontab for me" >&2; exit 1;;\n'
CRONTAB += "-) exec cat > {file};;\nesac\n"
CRON_ENVIRONMENT = {"HOME": "/", "LOGNAME": "nobody", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
"""All that Debian's cron gives."""
NAME = "curves"
TASK = """
task: curve
objective: {{metric: score, direction: maximize}}
job:
  command: python curve.py
  args_style: argparse
  code_source: {{root_path: {scripts}}}
  grace_seconds: {grace_s}
  max_retries: 20
  env_variables: {{CURVE_STEPS: "{n_steps}", CURVE_PAUSE_S: "{pause_s}", CURVE_STARTS: "{starts}"}}
space: {{x: {{type: float, low: 0.0, high: 1.0, default: 0.9}}}}
seeds: {{first_fresh: 100000}}
budgets: {{trials: 10}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a night runs: so many values of `x`, the default among them, on so many seeds each."""

    n_points: int = 5
    n_seeds: int = 2
    n_steps: int = 2
    pause_s: float = 0.0
    grace_s: float = 5.0

    @property
    def n_trials(self) -> int:
        return self.n_points * self.n_seeds


class NightLab:
    """`with NightLab(folder, plan) as lab`: its processes end with the test, and nothing of them is left."""

    def __init__(self, folder: Path, plan: Plan, *, home: Path | None = None) -> None:
        self.folder, self.plan = folder.resolve(), plan
        self.home = (home or folder / "home").resolve()
        self.file = self.folder / "sweep.yaml"
        self.starts_file = self.folder / "starts"
        self._tab = self.folder / "tab"
        self._began: list[subprocess.Popen[str]] = []

    def __enter__(self) -> NightLab:
        task = TASK.format(
            scripts=SCRIPTS,
            grace_s=self.plan.grace_s,
            n_steps=self.plan.n_steps,
            pause_s=self.plan.pause_s,
            starts=self.starts_file,
        )
        (self.folder / "task.yaml").write_text(task)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_everything()

    # What a person does, once.

    def write_sweep(self, **keys: str) -> None:
        points = ", ".join(f"{0.8 * place / self.plan.n_points:.6f}" for place in range(1, self.plan.n_points))
        given = {
            "sweep": NAME,
            "task": "task.yaml",
            "method": f"{{kind: grid, values: {{x: [{points}]}}}}",
            "replicates": str(self.plan.n_seeds),
            "confirm": "false",
            **keys,
        }
        self.file.write_text("".join(f"{key}: {value}\n" for key, value in given.items()))

    def up_once(self, *, stay: bool) -> None:
        """Settle the devices and the ports of this home."""
        up = nightlab("up", "--devices", "cpu:2", "--no-mlflow", "--port", "0", home=self.home)
        assert up.exit_code == 0, up.err
        if not stay:
            down = nightlab("down", home=self.home)
            assert down.exit_code == 0, down.err

    def up_as_before(self) -> None:
        """As the `@reboot` line does."""
        up = self.cron(f"{sys.executable} -P -m nightlab up --as-before --home {self.home}")
        assert up.wait(120) == 0

    def install(self) -> str:
        """The command of the line that `sweep install` puts into a crontab of ours."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "crontab").write_text(CRONTAB.format(file=self._tab))
        (programs / "crontab").chmod(0o755)
        path = f"{programs}:{Path(sys.executable).parent}:{os.defpath}"
        argv = [sys.executable, "-m", "nightlab", "sweep", "install", str(self.file), "--at", "0 22 * * *"]
        argv += ["--home", str(self.home), "--python", sys.executable]
        done = subprocess.run(argv, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return self._tab.read_text().rstrip("\n").removeprefix("0 22 * * * ").replace("\\%", "%")

    # What cron does.

    def cron(self, command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd="/",
            env=CRON_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._began.append(process)
        return process

    def sweep_run(self, *arguments: str) -> subprocess.Popen[str]:
        """`nightlab sweep run` itself, whose lines and exit code are to be read."""
        given = f"{sys.executable} -P -m nightlab sweep run {self.file} --home {self.home} --python {sys.executable}"
        return self.cron(f"exec {' '.join([given, *arguments])}")

    def said(self, process: subprocess.Popen[str], *, within_s: float) -> Said:
        out, err = process.communicate(timeout=within_s)
        assert "Traceback" not in err, err
        return Said(exit_code=process.returncode, out=out, err=err)

    # What became of it.

    @property
    def nights(self) -> NightStore:
        return NightStore(AgentStore.open(self.home))

    def night(self, number: int = 1) -> NightView:
        return self.nights.night(f"{NAME}-n{number}")

    def trials(self) -> list[TrialView]:
        """Of all sessions of all nights, each once."""
        nights = self.nights
        try:
            ids = {c.session_id for n in nights.nights(NAME) for c in nights.night(n.night_id).cells if c.session_id}
            return [trial for session_id in sorted(ids) for trial in nights.store.trials(session_id)]
        finally:
            nights.store.close()

    def n_measured(self) -> int:
        return sum(trial.state is TrialState.MEASURED for trial in self.trials())

    def await_measured(self, n: int, *, within_s: float = 120.0) -> None:
        eventually(
            lambda: self.home.exists() and self.n_measured() >= n, within_s=within_s, what=f"{n} measured trials"
        )

    def await_settled(self, number: int = 1, *, within_s: float) -> NightView:
        def settled() -> NightView | None:
            night = self.night(number)
            return night if night.settled_at is not None else None

        return eventually(settled, within_s=within_s, what="the end of the night")

    def client(self) -> RuntimeClient:
        return RuntimeClient.from_home(self.home)

    def service_pid(self, name: str) -> int:
        state = read_state(ServiceFiles(self.home))
        assert state is not None
        found = state.services[name].pid
        assert found is not None
        return found

    # Harm.

    def kill_everything(self) -> None:
        """SIGKILL to all that names this home, until there is nothing more: as a power cut, but for the disk."""
        for _ in range(20):
            found = processes_with(self.home)
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                break
        eventually(lambda: not processes_with(self.home), what="the end of everything")
        for process in self._began:
            process.wait(30)
        self._began.clear()


def clock_text(at: float) -> str:
    """A moment as `finish_by` takes it, to the second."""
    return f'"{datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S+00:00")}"'


def in_s(seconds: float) -> float:
    return time.time() + seconds


def check_each_once(lab: NightLab) -> None:
    """Every configuration on every seed, once, measured, in one chain of jobs, with the value of an undisturbed run."""
    trials = lab.trials()
    assert Counter(t.state for t in trials) == {TrialState.MEASURED: lab.plan.n_trials}
    assert len({(t.configuration, t.seed) for t in trials}) == lab.plan.n_trials
    assert len({t.configuration for t in trials}) == lab.plan.n_points
    assert [t.trial_id for t in trials if (t.ended_at or 0.0) < (t.launched_at or 0.0)] == []
    starts = Counter(lab.starts_file.read_text().split())
    assert max(starts.values()) == 1, f"an attempt was executed twice: {starts.most_common(3)}"
    for trial in trials[:: max(1, len(trials) // 8)]:
        assert trial.value == undisturbed(trial, n_steps=lab.plan.n_steps)[lab.plan.n_steps]
