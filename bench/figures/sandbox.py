"""Figures of sealed jobs: what sealing adds to a start, and whether anything gets out."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from bench.figure import Figure, Unavailable, median_of, quartiles
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import CodeSource, Environment, JobSpec, JobView, LaunchMode, Sandbox

ATTEMPTS = Path(__file__).resolve().parents[2] / "tests" / "sandbox" / "escape_attempts.py"
N_ATTEMPTS = 30


def start_ms(quick: bool) -> Figure:
    """From the order to the running command, sealed minus not: pairs, cold and warm, in turns."""
    n = 8 if quick else 30
    added: dict[LaunchMode, list[float]] = {}
    with running_server("cpu:2") as (client, _), tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "t.py").write_text("import json\n")
        _until_warm(client, folder)
        for launch in (LaunchMode.COLD, LaunchMode.WARM):
            pairs = [_pair(client, folder, launch, is_sealed_first=i % 2 == 0) for i in range(n)]
            added[launch] = [sealed - plain for sealed, plain in pairs]
    cold, warm = added[LaunchMode.COLD], added[LaunchMode.WARM]
    return Figure(
        id="sandbox.start_ms",
        value=max(median_of(cold), median_of(warm)),
        unit="ms",
        control=None,
        n=n,
        spread=quartiles(cold if median_of(cold) > median_of(warm) else warm),
        note=f"added to a start: cold {median_of(cold):.0f} ms, warm {median_of(warm):.0f} ms (medians of pairs)",
    )


def _pair(client: RuntimeClient, folder: str, launch: LaunchMode, *, is_sealed_first: bool) -> tuple[float, float]:
    levels = (Sandbox.SEALED, Sandbox.NONE) if is_sealed_first else (Sandbox.NONE, Sandbox.SEALED)
    took = {level: _start_ms(client, folder, launch, level) for level in levels}
    return took[Sandbox.SEALED], took[Sandbox.NONE]


def _start_ms(client: RuntimeClient, folder: str, launch: LaunchMode, level: Sandbox) -> float:
    attempt = _run(client, folder, launch, level).attempts[-1]
    if attempt.started_at is None or attempt.launch != launch.value:
        raise Unavailable(f"no {launch.value} {level.value} start here: {attempt.evidence or attempt.launch_why}")
    return (attempt.started_at - attempt.ordered_at) * 1000


def _until_warm(client: RuntimeClient, folder: str) -> None:
    job = _run(client, folder, LaunchMode.WARM, Sandbox.NONE)
    if job.attempts[-1].launch != "warm":
        raise Unavailable(f"no warm start here: {job.attempts[-1].launch_why}")


def _run(client: RuntimeClient, folder: str, launch: LaunchMode, level: Sandbox) -> JobView:
    spec = JobSpec(
        experiment_name="bench",
        command=("python", "t.py"),
        code_source=CodeSource(root_path=folder),
        environment=Environment(python=sys.executable, preload=("json",)),
        launch=launch,
        sandbox=level,
    )
    return client.await_end(client.submit(spec).job_id, timeout_s=120)


def escapes(quick: bool) -> Figure:
    """Ways out of a sealed job that were tried from inside one, and were not stopped."""
    with running_server("cpu:1") as (client, home), tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "t.py").write_bytes(ATTEMPTS.read_bytes())
        words = (str(home / "runtime.db"), str(home / "owner.token"), str(os.getpid()), "1", str(home))
        spec = JobSpec(
            experiment_name="bench",
            command=("python", "t.py", *words),
            code_source=CodeSource(root_path=folder),
            environment=Environment(python=sys.executable),
            sandbox=Sandbox.SEALED,
        )
        job = client.await_end(client.submit(spec).job_id, timeout_s=120)
        text = client.logs(job.job_id).text
    told = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
    if len(told) != N_ATTEMPTS:
        raise Unavailable(f"only {len(told)} of {N_ATTEMPTS} attempts were made: {job.state_reason} {text[-300:]}")
    out = [name for name, how in told if how == "escaped"]
    note = f"of {N_ATTEMPTS} attempts{': ' + ', '.join(out) if out else ''}"
    return Figure(id="sandbox.escapes", value=len(out), unit="attempts", control=None, n=1, spread=(0, 0), note=note)
