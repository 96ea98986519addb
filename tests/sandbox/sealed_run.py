"""Run a script in a real sealed job: `python sealed_run.py HOME WISHES SCRIPT`. Prints what came, as JSON.

`WISHES` is JSON: `abi`, the version of Landlock that the kernel is to have here; `way`, the only one that it is to let
us have; `readable`, `network` and `launch` of the job.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
import left_out
from local_engine_lab import job, local_lab

from runtime.engines import launcher_link, sealing
from runtime.engines.conformance import Lab
from runtime.engines.contract import Exited, NotLaunched, Started
from runtime_client.models import Network, Sandbox


def pretend(wishes: dict[str, Any]) -> None:
    """In this process, and in the launcher with all that it starts."""
    left_out.pretend(wishes)
    launcher_link._BOOT = (
        f"import sys; sys.path.append(sys.argv[1]); sys.path.append({str(Path(__file__).parent)!r}); import left_out; "
        f"left_out.pretend({wishes!r}); left_out.by_attempt(); from runtime.node.launcher import main; "
        "main(*sys.argv[2:])"
    )
    if "way" in wishes:
        sealing.refusal = lambda way: None if way == wishes["way"] else "left out"


class _Silent(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def gateway() -> Iterator[str]:
    """What stands for the metrics gateway: it answers, to all, that it can not."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """One job of these tests."""

    script: Path
    job_id: str = "j1"
    without: tuple[str, ...] = ()
    """Layers that are left out."""
    limits: dict[str, int] = field(default_factory=dict)
    readable: tuple[str, ...] = ()
    network: str = Network.NONE
    launch: str = "cold"


async def run(home: Path, jobs: list[Sealed]) -> list[dict[str, Any]]:
    """What was reached and printed by each, one after another, or why it did not start."""
    with gateway() as url:
        async with local_lab(home) as lab:
            return [await _run_one(lab, home, one, url) for one in jobs]


async def _run_one(lab: Lab, home: Path, one: Sealed, url: str) -> dict[str, Any]:
    copy = code_folder(home, one.job_id) / one.script.name
    shutil.copy(one.script, copy)
    launch = job(
        (sys.executable, str(copy)),
        job_id=one.job_id,
        sandbox=Sandbox.SEALED,
        readable=(str(copy.parent), *one.readable),
        limits=one.limits,
        network=one.network,
        launch=one.launch,
        environment={"preload": ["json"]} if one.launch == "warm" else {},
        env_variables={left_out.VARIABLE: json.dumps(one.without)},
    )
    launch = replace(launch, tracking_url=url)
    await lab.engine.start(launch, 1)
    mine = lambda kind: [told for told in lab.all(kind) if told.key == launch.key]  # noqa: E731
    begun = await lab.until(lambda: next(iter([*mine(Started), *mine(NotLaunched)]), None), "a start or none")
    if isinstance(begun, NotLaunched):
        return {"reason": begun.exit_reason, "evidence": begun.evidence}
    assert begun is not None
    assert begun.sandbox is not None
    ended = await lab.next(Exited, launch.key)
    folder = home / "attempts" / one.job_id / "1"
    return {
        "sandbox": asdict(begun.sandbox),
        "launch": begun.launch,
        "code": ended.exit_code,
        "log": (folder / "out.log").read_text(),
        "left": [str(path) for path in (folder / "box").glob("[ht]*/*")],
    }


def code_folder(home: Path, job_id: str) -> Path:
    """Which a sealed job may read."""
    folder = home / "attempts" / f"code-{job_id}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return folder


def main() -> None:
    home, wishes, script = sys.argv[1:]
    told = json.loads(wishes)
    pretend(told)
    wanted = {name: told[name] for name in ("network", "launch") if name in told}
    one = Sealed(script=Path(script), readable=tuple(told.get("readable", ())), **wanted)
    print(json.dumps(asyncio.run(run(Path(home), [one]))[0]))


if __name__ == "__main__":
    main()
