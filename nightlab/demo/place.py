"""Where the demo lives, what it trains, and on how many slots."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

import nightlab
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.task import Task
from agent.task_file import load_task
from nightlab.failure import work_failed, wrong_use
from nightlab.services.control import is_up
from nightlab.services.ports import is_free
from runtime.node.devices import usable_cores
from runtime_client.home import default_home
from runtime_client.models import Environment

MAX_SLOTS = 8
"""More would leave no queue: the demo has 18 trials, and shows what happens when all slots are busy."""
BYTES_PER_SLOT = 700 * 1024 * 1024
SHORT_TRIALS = 6
SHORT_SEEDS = 7
"""The fewest pairs that can support a claim."""
SHORT_EPOCHS = 240
"""More than in the whole demo: of few trials, one must train long enough to be asked to leave meanwhile."""
NEEDED = ("sklearn", "mlflow")


def default_devices() -> str:
    """As many CPU slots as this machine bears, by cores and free memory."""
    by_memory = psutil.virtual_memory().available // BYTES_PER_SLOT
    return f"cpu:{max(1, min(usable_cores(), int(by_memory), MAX_SLOTS))}"


def free_or_any(port: int) -> int:
    """The port that `nightlab up` takes later on, so that addresses stay good; 0, any free one, where it is taken."""
    return port if is_free(port) else 0


def examples_folder(package: Path | None = None) -> Path:
    """The examples that came with this installation: in the wheel below the package, in a checkout beside it.

    Raises:
        Failure: neither is there.
    """
    package = package or Path(nightlab.__file__).resolve().parent
    for folder in (package / "_examples", package.parent / "examples"):
        if (folder / "digits" / "task.yaml").is_file():
            return folder
    raise work_failed(f"the examples are missing from {package}; install nightlab again", code="no_examples")


def digits_task(*, is_short: bool) -> Task:
    """The task of `examples/digits`, to be run by this Python.

    Raises:
        Failure: a package that the training script needs is not installed.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise wrong_use(
            f"the demo trains with {' and '.join(missing)}, which this Python lacks; "
            f"install it with: {sys.executable} -m pip install 'nightlab[examples]'",
            code="missing_package",
        )
    task = load_task(examples_folder() / "digits" / "task.yaml")
    job = task.job.model_copy(update={"environment": Environment(python=sys.executable)})
    task = task.model_copy(update={"job": job})
    return _shortened(task) if is_short else task


def _shortened(task: Task) -> Task:
    assert task.fidelity is not None, "the task of the example has one"
    return task.model_copy(
        update={
            "fidelity": task.fidelity.model_copy(update={"value": SHORT_EPOCHS}),
            "budgets": task.budgets.model_copy(update={"trials": SHORT_TRIALS}),
            "seeds": task.seeds.model_copy(update={"fresh": SHORT_SEEDS, "max_pairs": SHORT_SEEDS}),
        }
    )


def prepare_home(home: Path | None, *, say: Callable[[str], None]) -> Path:
    """The folder to work in. Our own one is emptied first, unless it holds a demo that was stopped half-way.

    Raises:
        Failure: a demo runs there already.
    """
    folder = (home or default_home() / "demo").expanduser().resolve()
    if is_up(folder):
        raise wrong_use(f"nightlab is already up for {folder}; stop it with: nightlab down --home {folder}", code="up")
    unfinished = unfinished_session(folder)
    if unfinished is not None:
        say(f"Going on with session {unfinished} in {folder} (delete that folder to begin anew).")
    elif home is None and folder.exists():
        shutil.rmtree(folder)
    return folder


def unfinished_session(home: Path) -> str | None:
    """The session that an earlier demo left half-way."""
    if not (home / "agent.db").is_file():
        return None
    with closing(AgentStore.open(home)) as store:
        states = {SessionState.RUNNING, SessionState.STOPPING, SessionState.STOPPED}
        return next((s.session_id for s in store.sessions() if s.state in states), None)
