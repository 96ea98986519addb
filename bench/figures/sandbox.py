"""Figures of sealed jobs, by each way of sealing that is to be had here: what sealing adds to a start, what gets out.

Run as a script (`python sandbox.py HOME N`) it measures the starts of whoever runs it, and prints them as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[2])]

from bench.figure import Figure, Unavailable, median_of, quartiles
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import CodeSource, Environment, JobSpec, JobView, LaunchMode, Sandbox

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "sandbox"
WAYS = {"root": ("0", "root"), "user namespace": ("1234", ""), "landlock": ("1234", "no user namespaces")}
"""The user, and what `other_user` does before it becomes that one."""
LONGEST_S = 300.0
N_ATTEMPTS = 55


def start_ms(quick: bool) -> Figure:
    """From the order to the running command, sealed minus not: pairs, cold and warm, in turns."""
    n = 5 if quick else 30
    found = {way: json.loads(text) for way, text in _by_way(Path(__file__), str(n))}
    medians = {way: {launch: median_of(added) for launch, added in by.items()} for way, by in found.items()}
    slowest, launch = max(
        ((way, launch) for way in found for launch in found[way]), key=lambda at: medians[at[0]][at[1]]
    )
    told = "; ".join(f"by {way} cold {by['cold']:.0f}, warm {by['warm']:.0f}" for way, by in medians.items())
    return Figure(
        id="sandbox.start_ms",
        value=medians[slowest][launch],
        unit="ms",
        control=None,
        n=n,
        spread=quartiles(found[slowest][launch]),
        note=f"added to a start (medians of pairs, ms): {told}",
    )


def escapes(quick: bool) -> Figure:
    """Ways out of a sealed job that were tried from inside one, and were not stopped."""
    out: list[str] = []
    ways: list[str] = []
    for way, text in _by_way(TESTS / "escape_run.py", "{}"):
        found = json.loads(text)[0]
        lines = found.get("log", "").splitlines()
        told = dict(json.loads(line) for line in lines if line.startswith("["))
        if len(told) != N_ATTEMPTS or found["sandbox"]["how"] != way:
            raise Unavailable(f"only {len(told)} of {N_ATTEMPTS} attempts were made by {way}: {found}")
        out += [f"{name} (by {way})" for name, how in told.items() if how == "escaped"]
        ways.append(way)
    note = f"of {N_ATTEMPTS} attempts by each of {', '.join(ways)}{': ' + ', '.join(out) if out else ''}"
    return Figure(id="sandbox.escapes", value=len(out), unit="attempts", control=None, n=1, spread=(0, 0), note=note)


def _by_way(script: Path, word: str) -> Iterator[tuple[str, str]]:
    """What a script prints for each way: `script HOME WORD`."""
    if os.geteuid() != 0:
        raise Unavailable("only root can be each of the users that seal")
    for way, (uid, before) in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="nl-bench-", ignore_cleanup_errors=True) as home:
            os.chown(home, int(uid), int(uid))
            _place_program(Path(home))
            command = [sys.executable, str(TESTS / "other_user.py"), uid, before, str(script), home, word]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        if done.returncode != 0:
            raise Unavailable(f"not by {way}: {done.stderr.strip()[-300:]}")
        yield way, done.stdout


def _place_program(home: Path) -> None:
    """One with root's rights, for an attempt to gain them."""
    shutil.copy("/usr/bin/id", home / "who")
    (home / "who").chmod(0o4755)


def _added_ms(n: int) -> dict[str, list[float]]:
    """By launch mode."""
    added: dict[str, list[float]] = {}
    with running_server("cpu:2") as (client, _), tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "t.py").write_text("import json\n")
        _until_warm(client, folder)
        for launch in (LaunchMode.COLD, LaunchMode.WARM):
            pairs = [_pair(client, folder, launch, is_sealed_first=i % 2 == 0) for i in range(n)]
            added[launch.value] = [sealed - plain for sealed, plain in pairs]
    return added


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


if __name__ == "__main__":
    print(json.dumps(_added_ms(int(sys.argv[2]))))
