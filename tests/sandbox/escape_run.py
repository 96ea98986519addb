"""Try the ways out from inside a real sealed job: `python escape_run.py HOME`. Prints what came of it, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import job, local_lab

from runtime.engines.contract import Exited, NotLaunched, Started
from runtime_client.models import Sandbox

SCRIPT = Path(__file__).with_name("escape_attempts.py")


async def tried(home: Path) -> tuple[Started | NotLaunched, Exited | None]:
    """The second is None where the job did not start."""
    secret = home / "secret.txt"
    secret.write_text("private")
    other = home / "attempts" / "j9" / "work" / "loss.txt"
    other.parent.mkdir(parents=True)
    other.write_text("0.5")
    script = home / "attempts" / "code" / "attempts.py"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [str(secret), str(other), str(os.getpid()), str(server.getsockname()[1]), str(home / "attempts/j1/1")]
        async with local_lab(home) as lab:
            launch = job((sys.executable, str(script), *words), sandbox=Sandbox.SEALED, readable=(str(script.parent),))
            await lab.engine.start(launch, 1)
            begun = await lab.until(
                lambda: next(iter([*lab.all(Started), *lab.all(NotLaunched)]), None), "a start or none"
            )
            assert begun is not None
            return begun, await lab.next(Exited, launch.key) if isinstance(begun, Started) else None


def main() -> None:
    begun, ended = asyncio.run(tried(Path(sys.argv[1])))
    if isinstance(begun, NotLaunched):
        print(json.dumps({"reason": begun.exit_reason, "evidence": begun.evidence}))
        return
    assert begun.sandbox is not None
    assert ended is not None
    print(json.dumps({"sandbox": asdict(begun.sandbox), "log": ended.log_tail}))


if __name__ == "__main__":
    main()
