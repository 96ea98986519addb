"""A sealed job leaves things and another one reads them: `python left_run.py HOME`. Prints what was read, as JSON."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import job, local_lab

from runtime.engines.contract import Exited
from runtime_client.models import DependsOn, Sandbox

LEAVE = """
import os, subprocess, sys
os.umask(0o077)
open("model.npz", "w").write("weights")
os.mkdir("out")
open("out/more", "w").write("more")
os.symlink(sys.argv[1], "linked")
try:
    os.mkfifo("pipe")
except PermissionError:
    open("no pipe", "w").close()
os.link("model.npz", "again")
open(os.path.join(os.environ["NIGHTLAB_CHECKPOINT_DIR"], "saved"), "w").write("state")
# What goes on in the background would change what was left while it is measured.
change = "import time, os; time.sleep(0.3); open('model.npz', 'w').write('changed')"
subprocess.Popen([sys.executable, "-c", change], start_new_session=True, stdout=-3, stderr=-3)
"""
READ = """
import json, os, sys, time
left = os.environ["NIGHTLAB_AFTER_FOLDERS"]
def how(attempt):
    try:
        return attempt()
    except OSError as error:
        return error.errno
read = lambda name: lambda: open(os.path.join(left, name)).read()
time.sleep(0.4)
print(json.dumps({
    "file": how(read("work/model.npz")), "deeper": how(read("work/out/more")), "state": how(read("checkpoints/saved")),
    "link": how(read("work/linked")), "other": how(lambda: os.listdir(os.path.join(left, "..", "j9"))),
    "records": how(lambda: sorted(os.listdir(left))),
    "change": how(lambda: open(os.path.join(left, "work/model.npz"), "w").write("x")),
    "pipe": os.path.exists(os.path.join(left, "work/no pipe")), "private": open(sys.argv[1]).read(),
}))
"""


async def measured(home: Path, private: Path) -> tuple[Exited, Exited]:
    (home / "attempts" / "j9" / "work").mkdir(parents=True)
    async with local_lab(home) as lab:
        training = job((sys.executable, "-c", LEAVE, str(private)), sandbox=Sandbox.SEALED)
        await lab.engine.start(training, 1)
        trained = await lab.next(Exited, training.key)
        scoring = job(
            (sys.executable, "-c", READ, str(private)),
            job_id="j2",
            sandbox=Sandbox.SEALED,
            depends_on=(DependsOn(job="j1"),),
            readable=(str(private),),
        )
        await lab.engine.start(scoring, 1)
        return trained, await lab.next(Exited, scoring.key)


def main() -> None:
    home = Path(sys.argv[1])
    private = home / "test.npy"
    private.write_text("the answers")
    trained, scored = asyncio.run(measured(home / "home", private))
    assert trained.exit_code == 0, trained.log_tail
    print(scored.log_tail)


if __name__ == "__main__":
    main()
