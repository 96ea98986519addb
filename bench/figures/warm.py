"""Figures of warm starts and of code snapshots."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.figure import Figure, Unavailable, median_of, quartiles
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import CodeSource, Environment, JobSpec, JobView, LaunchMode
from runtime_client.snapshot import CodeStore

IMPORTS = ("numpy", "sklearn.linear_model", "mlflow", "torch")
"""Those of them that are installed."""
FIRST_LINE = "import sys, time\nopen(sys.argv[1], 'w').write(repr(time.time()))\n"
N_FILES = 5000


def warm_speedup(quick: bool) -> Figure:
    """Submit to the first line after the imports: a cold start over a warm one, interleaved."""
    names = [name for name in IMPORTS if _is_installed(name.partition(".")[0])]
    n = 5 if quick else 15
    with running_server("cpu:2") as (client, _), tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "t.py")
        script.write_text("".join(f"import {name}\n" for name in names) + FIRST_LINE)
        _until_warm(client, script)
        cold, warm = [], []
        for i in range(n):
            cold.append(_started(client, script, f"cold{i}", LaunchMode.COLD))
            warm.append(_started(client, script, f"warm{i}", LaunchMode.WARM))
    ratios = [c / w for c, w in zip(cold, warm, strict=True)]
    return Figure(
        id="start.warm_speedup",
        value=median_of(cold) / median_of(warm),
        unit="ratio",
        control=1.0,
        n=n,
        spread=quartiles(ratios),
        note=f"{', '.join(names)}: p50 cold {median_of(cold):.2f} s, warm {median_of(warm) * 1000:.0f} ms",
    )


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _until_warm(client: RuntimeClient, script: Path) -> None:
    for i in range(20):
        job = _run(client, script, f"first{i}", LaunchMode.WARM)
        if job.attempts[-1].launch == "warm":
            return
        time.sleep(1)
    raise Unavailable(f"no warm start here: {job.attempts[-1].launch_why}")


def _started(client: RuntimeClient, script: Path, name: str, launch: LaunchMode) -> float:
    began = time.time()
    job = _run(client, script, name, launch)
    if job.attempts[-1].launch != launch.value:
        raise Unavailable(f"asked for a {launch.value} start: {job.attempts[-1].launch_why}")
    return float((script.parent / name).read_text()) - began


def _run(client: RuntimeClient, script: Path, name: str, launch: LaunchMode) -> JobView:
    spec = JobSpec(
        experiment_name="bench",
        command=("python", "t.py", name),
        code_source=CodeSource(root_path=str(script.parent)),
        environment=Environment(python=sys.executable),
        launch=launch,
    )
    return client.await_end(client.submit(spec).job_id, timeout_s=120)


def snapshot_ms(quick: bool) -> Figure:
    """A snapshot of an unchanged tree of 5,000 files, by a process that has taken one before."""
    n = 15 if quick else 60
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "code")
        for number in range(N_FILES):
            path = root / f"package{number % 10}" / f"module{number % 250}" / f"f{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"x = {number}\n" * 20)
        time.sleep(0.2)  # So that nothing counts as changed just now.
        store = CodeStore(Path(folder, "store"))
        began = time.perf_counter()
        first = store.take(root)
        first_ms = (time.perf_counter() - began) * 1000
        warm, fresh = [], []
        for _ in range(n):
            for took, taker in ((warm, store), (fresh, CodeStore(store.folder))):
                began = time.perf_counter()
                if taker.take(root) != first:
                    raise RuntimeError("the unchanged tree was not recognised")
                took.append((time.perf_counter() - began) * 1000)
    return Figure(
        id="snapshot.ms",
        value=median_of(warm),
        unit="ms",
        control=first_ms,
        n=n,
        spread=quartiles(warm),
        note=f"control: the first snapshot of the tree; in a new process {median_of(fresh):.1f} ms",
    )
