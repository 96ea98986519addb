"""Running the job of an evidence folder here: in a copy, through a runtime that is up or one of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent.planner.reproduction import Reproduction, held_against_record
from agent.tools.again import spec_again, submit_again
from runtime.engines.provenance import HIDDEN
from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError
from runtime_client.models import CodeSource, Environment, JobSpec, SnapshotMode
from runtime_client.snapshot.tree import ALL_IS_CODE

from .again import Lack, data_lack, packages_lack, value_of
from .evidence import CODE, SCORER, Evidence

_START_S = 120.0
_LIMIT_MB = 4096
"""The code was let pass by a limit already when the trial was submitted."""


class CannotRun(Exception):
    """The evidence can not be run here; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    job_id: str
    reproduction: Reproduction
    note: str | None
    """Why there is no value."""


def lacks_here(evidence: Evidence, python: str | None) -> list[Lack]:
    """What is not here as it was where the evidence was made."""
    found = [packages_lack(evidence.ran_with.packages, python)]
    if evidence.code is None:
        found.append(Lack(what="code", text="the code was not pinned, and is not in the folder", is_blocking=True))
    elif evidence.code.left_out:
        named = ", ".join(evidence.code.left_out[:8])
        text = f"not in the folder (links, and what git ignores): {named}"
        found.append(Lack(what="code", text=text, is_blocking=False))
    found.append(data_lack(evidence.data, evidence.data_fingerprint))
    hidden = [name for name, value in evidence.job.env_variables.items() if value == HIDDEN]
    if hidden:
        found.append(
            Lack(what="environment", text=f"secret variables were left out: {', '.join(hidden)}", is_blocking=False)
        )
    return [one for one in found if one is not None]


def run_again(
    evidence: Evidence,
    folder: Path,
    *,
    python: str | None,
    client: RuntimeClient | None,
    timeout_s: float,
    tolerance: float | None,
) -> Verified:
    """Run it in a copy of the code; the folder stays as it is.

    Args:
        client: of a runtime that is up; None: one is started for this, and ended afterwards.

    Raises:
        CannotRun: the code is not there, or no runtime could be started.
        TimedOut: it has not ended in time; it is cancelled.
    """
    if evidence.code is None:
        raise CannotRun("the folder has no code: it was not pinned when the trial ran")
    with tempfile.TemporaryDirectory(prefix="nightlab-verify-") as place:
        code = Path(place, CODE)
        shutil.copytree(folder / CODE, code)
        training = _here(evidence.job, evidence, code, python)
        measures = code if evidence.scorer_code is None else _scorer_copied(folder, Path(place, SCORER))
        scorer = None if evidence.scorer is None else _here(evidence.scorer, evidence, measures, python)
        if client is not None:
            return _run(client, training, scorer, evidence, timeout_s, tolerance)
        with _own_runtime(Path(place, "home"), evidence) as own:
            return _run(own, training, scorer, evidence, timeout_s, tolerance)


def _scorer_copied(folder: Path, copy: Path) -> Path:
    """With its private files, though git may have been told to ignore them."""
    shutil.copytree(folder / SCORER, copy)
    (copy / ALL_IS_CODE).touch()
    return copy


def _here(spec: JobSpec, evidence: Evidence, code: Path, python: str | None) -> JobSpec:
    models = set(evidence.ran_with.devices)
    again = spec_again(spec, trial_id=evidence.trial_id, device_model=models.pop() if len(models) == 1 else None)
    variables = {name: value for name, value in again.env_variables.items() if value != HIDDEN}
    # Each job works in a copy of its own, as in the record: a scorer looks for what the training left in its folder.
    source = CodeSource(root_path=str(code), snapshot=SnapshotMode.AUTO, snapshot_limit_mb=_LIMIT_MB)
    environment = Environment(python=python)
    return again.model_copy(
        update={"code_source": source, "environment": environment, "env_variables": variables, "project": "default"}
    )


def _run(
    client: RuntimeClient,
    training: JobSpec,
    scorer: JobSpec | None,
    evidence: Evidence,
    timeout_s: float,
    tolerance: float | None,
) -> Verified:
    jobs = submit_again(client, training, scorer)
    try:
        job = client.await_end(jobs[-1].job_id, timeout_s=timeout_s)
    finally:
        for one in jobs:
            with suppress(RuntimeClientError):
                client.cancel(one.job_id, reason="the verification has ended")
    value, note = value_of(client, job, evidence.objective)
    held = held_against_record(evidence.value, value, evidence.replicates, tolerance=tolerance)
    return Verified(job_id=job.job_id, reproduction=held, note=note)


@contextmanager
def _own_runtime(home: Path, evidence: Evidence) -> Iterator[RuntimeClient]:
    is_cpu = set(evidence.ran_with.devices) <= {"cpu"}
    devices = f"cpu:{evidence.job.compute.num_accelerators}" if is_cpu else "auto"
    up = _nightlab("up", "--devices", devices, "--no-mlflow", "--port", "0", home=home)
    if up.returncode != 0:
        raise CannotRun(f"no runtime could be started: {up.stderr.strip() or up.stdout.strip()}")
    try:
        with RuntimeClient.from_home(home) as client:
            yield client
    finally:
        _nightlab("down", "--jobs", "cancel", home=home)


def _nightlab(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nightlab", *arguments, "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=_START_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
