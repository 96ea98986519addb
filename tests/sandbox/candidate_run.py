"""A sealed scorer asks a hostile candidate: `python candidate_run.py HOME`. Prints what came of it, as JSON."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import job, local_lab

import runtime_client
from runtime.engines.contract import Exited
from runtime_client.models import DependsOn, Sandbox

HOSTILE = Path(__file__).parents[1] / "runtime_client" / "scoring" / "hostile.py"
SCORE = """
import json, os, sys
from runtime_client.scoring import Candidate, training_folder
private = sys.argv[1]
assert open(private).read() == "the answers"
with Candidate(training_folder() / "work", "model") as candidate:
    told = candidate.call("tried", private, os.getpid())
    print(json.dumps({"layers": candidate.layers, "double": candidate.call("double", 21), "told": told}))
"""


async def asked(home: Path) -> Exited:
    private, code, installed = home / "test.npy", home / "code", home / "installed"
    private.write_text("the answers")
    # Where these tests run from is no installation, and by Landlock alone its folder can not be listed.
    shutil.copytree(Path(*runtime_client.__path__), installed / "runtime_client")
    code.mkdir()
    shutil.copy(HOSTILE, code / "model.py")
    async with local_lab(home / "home") as lab:
        leave = f"cp {code}/model.py . && ln -s {private} linked"
        training = job(leave, sandbox=Sandbox.SEALED, readable=(str(code),))
        await lab.engine.start(training, 1)
        trained = await lab.next(Exited, training.key)
        assert trained.exit_code == 0, trained.log_tail
        scoring = job(
            (sys.executable, "-c", SCORE, str(private)),
            job_id="j2",
            sandbox=Sandbox.SEALED,
            depends_on=(DependsOn(job="j1"),),
            readable=(str(private), str(installed)),
            env_variables={"PYTHONPATH": str(installed)},
        )
        await lab.engine.start(scoring, 1)
        return await lab.next(Exited, scoring.key)


def main() -> None:
    print(asyncio.run(asked(Path(sys.argv[1]))).log_tail)


if __name__ == "__main__":
    main()
