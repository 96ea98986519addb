"""The environment of a job, and what must be there before it can start: working directory, interpreter, command.

The environment is an allow-list: nothing of the server's own environment reaches a job unless it is named here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from runtime.model.states import ExitReason
from runtime.node.command import Rendered, parameter_variables, passed_parameters
from runtime.node.launch_errors import CannotLaunch
from runtime.node.processes import MARKER_VARIABLE
from runtime_client.models import JobSpec

_PLACES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LD_LIBRARY_PATH")
_LANGUAGE = ("LANG", "LANGUAGE", "TZ")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_PROCESSOR_WORKAROUNDS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_CBWR", "MKL_DEBUG_CPU_TYPE")
_PASSED = frozenset((*_PLACES, *_LANGUAGE, *_CERTIFICATES, *_PROCESSOR_WORKAROUNDS))
_PASSED_PREFIX = "LC_"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")
_LASTING = frozenset(
    {"MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "PYTHONUNBUFFERED", "CUDA_DEVICE_ORDER"}
)
"""Of our own: the same for every attempt."""
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """What one attempt is told about itself."""

    job_id: str
    attempt: int
    folder: Path
    """The attempt's own folder, for files of the runtime."""
    working_folder: Path
    checkpoint_dir: Path
    resume_from: Path | None
    marker: str
    """Tells its processes from all others on this machine; no secret."""
    attempt_token: str
    tracking_url: str
    devices: Sequence[int]
    """Indexes on this node, in rank order."""
    is_accelerator: bool
    """False: CPU slots."""
    uuids: Sequence[str]
    """Of these devices, in the same order."""
    cores: int | None
    """Its share of the cores; None: no limit on threads."""
    first_rank: int = 0
    n_ranks: int = 1
    node_rank: int = 0
    n_nodes: int = 1
    deadline_at: float | None = None
    """Seconds since the epoch when its run time is over; None: no limit."""
    master_addr: str = "127.0.0.1"
    """Address of the node with rank 0."""

    @property
    def notice(self) -> Path:
        return self.folder / "preempt-notice"

    @property
    def rank_logs(self) -> Path:
        return self.folder / "ranks"

    @property
    def hyperparameters(self) -> Path:
        return self.folder / "hyperparameters.yaml"


def job_environment(spec: JobSpec, facts: AttemptFacts, server_env: Mapping[str, str]) -> dict[str, str]:
    """Everything that the job's processes find in their environment.

    Allowed ones of the server, then ours, then parameters (`args_style: env`), then the user's own, which win.
    Raises CannotLaunch(BAD_PYTHON).
    """
    environment = {
        name: value for name, value in server_env.items() if name in _PASSED or name.startswith(_PASSED_PREFIX)
    }
    environment.setdefault("PATH", _DEFAULT_PATH)
    environment |= _own_variables(spec, facts)
    environment |= parameter_variables(spec)
    environment |= spec.env_variables
    if spec.environment.python is not None:
        _put_python_first(environment, Path(spec.environment.python), facts.folder)
    return environment


def lasting_environment(spec: JobSpec, facts: AttemptFacts, environment: Mapping[str, str]) -> dict[str, str]:
    """The part that is the same for all attempts of all jobs like this one: what imports may read and keep."""
    passing = {*_own_variables(spec, facts), *parameter_variables(spec), *_THREADS} - _LASTING
    return {name: value for name, value in environment.items() if name not in passing}


def _own_variables(spec: JobSpec, facts: AttemptFacts) -> dict[str, str]:
    own = {
        "NIGHTLAB_JOB_ID": facts.job_id,
        "NIGHTLAB_ATTEMPT": str(facts.attempt),
        "NIGHTLAB_CHECKPOINT_DIR": str(facts.checkpoint_dir),
        "NIGHTLAB_PREEMPT_FILE": str(facts.notice),
        "NIGHTLAB_RANK_LOG_DIR": str(facts.rank_logs),
        "NIGHTLAB_STACK_FILE": str(facts.folder / "stacks"),
        MARKER_VARIABLE: facts.marker,
        "HYPERPARAMETERS_PATH": str(facts.hyperparameters),
        "MLFLOW_TRACKING_URI": facts.tracking_url,
        "MLFLOW_TRACKING_TOKEN": facts.attempt_token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # At its end a run prints a link to its page on the tracking server; the gateway has no pages.
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "WORLD_SIZE": str(facts.n_ranks),
        "LOCAL_WORLD_SIZE": str(len(facts.devices)),
        "NUM_NODES": str(facts.n_nodes),
        "NODE_RANK": str(facts.node_rank),
        # The port is the supervisor's to add: it holds it until the command starts.
        "MASTER_ADDR": facts.master_addr,
        # Output goes to a file, where Python would hold lines back; logs and printed metrics are wanted at once.
        "PYTHONUNBUFFERED": "1",
        # Without it CUDA counts the fastest card first, and the indexes would mean other cards.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, facts.devices)) if facts.is_accelerator else "",
    }
    if facts.is_accelerator:
        # Indexes are what every library reads; the names tell which cards they are, whatever the order.
        own["NIGHTLAB_DEVICE_UUIDS"] = ",".join(facts.uuids)
    if spec.code_source is not None:
        own["CODE_SOURCE_PATH"] = str(facts.working_folder)
    if spec.array_task is not None:
        own["NIGHTLAB_ARRAY_ID"] = spec.array_task.array_id
        own["NIGHTLAB_ARRAY_INDEX"] = str(spec.array_task.index)
        own["NIGHTLAB_ARRAY_SIZE"] = str(spec.array_task.n_tasks)
    own |= _after(spec, facts)
    if spec.seed is not None:
        own["NIGHTLAB_SEED"] = str(spec.seed)
    if facts.n_ranks > 1:
        # torchrun takes these for its --log-dir and --tee: a file for each rank, besides the common output.
        own |= {"PET_LOG_DIR": str(facts.rank_logs), "PET_TEE": "3"}
    if facts.deadline_at is not None:
        own["NIGHTLAB_DEADLINE"] = f"{facts.deadline_at:.3f}"
    if facts.resume_from is not None:
        own["NIGHTLAB_RESUME_FROM"] = str(facts.resume_from)
    if facts.cores is not None:
        own |= dict.fromkeys(_THREADS, str(max(1, facts.cores)))
    return own


def _after(spec: JobSpec, facts: AttemptFacts) -> dict[str, str]:
    """The jobs that had to end first, and the folders with what they left (`checkpoints`, `work`)."""
    jobs = [wanted.job for wanted in spec.depends_on if wanted.job.startswith("j")]
    if not jobs:
        return {}
    attempts_dir = facts.checkpoint_dir.parent.parent
    folders = os.pathsep.join(str(attempts_dir / job) for job in jobs)
    return {"NIGHTLAB_AFTER_JOBS": ",".join(jobs), "NIGHTLAB_AFTER_FOLDERS": folders}


def _put_python_first(environment: dict[str, str], python: Path, folder: Path) -> None:
    check_python(python)
    first = [str(python.parent)]
    if not (python.parent / "python").exists():
        # `python3.12` alone in a folder: give commands that say `python` this one.
        names = folder / "bin"
        names.mkdir(exist_ok=True)
        for name in ("python", "python3"):
            (names / name).unlink(missing_ok=True)
            (names / name).symlink_to(python)
        first.insert(0, str(names))
    environment["PATH"] = os.pathsep.join([*first, environment["PATH"]])
    root = python.parent.parent
    if (root / "pyvenv.cfg").is_file():
        environment["VIRTUAL_ENV"] = str(root)
    elif (root / "conda-meta").is_dir():
        environment["CONDA_PREFIX"] = str(root)


def check_python(python: Path) -> None:
    """Raises CannotLaunch(BAD_PYTHON) unless it is the absolute path of a program that may be run."""
    if not python.is_absolute():
        problem = "is not an absolute path"
    elif python.is_dir():
        problem = f"is a folder; its interpreter would be {python}/bin/python"
    elif not python.exists():
        problem = "does not exist"
    elif not os.access(python, os.X_OK):
        problem = "may not be executed"
    else:
        return
    raise CannotLaunch(
        ExitReason.BAD_PYTHON,
        f"environment.python {str(python)!r} {problem}. Give the path of an interpreter on this machine "
        f"(`command -v python3` prints one), or leave it out",
    )


def check_folder(folder: Path) -> None:
    """Raises CannotLaunch(BAD_COMMAND) unless it can be the working directory."""
    if not folder.is_absolute():
        problem = "is not an absolute path"
    elif not folder.exists():
        problem = "does not exist on this machine"
    elif not folder.is_dir():
        problem = "is not a folder"
    elif not os.access(folder, os.R_OK | os.X_OK):
        problem = "may not be entered by the user that nightlab runs as"
    else:
        return
    raise CannotLaunch(
        ExitReason.BAD_COMMAND, f"code_source.root_path {str(folder)!r} {problem}: give the folder with the code"
    )


def check_command(rendered: Rendered, folder: Path, environment: Mapping[str, str]) -> None:
    """Raises CannotLaunch(BAD_COMMAND) when the program of an argument vector can not be found.

    Shell text is left to the shell: it says itself what it can not find, and ends with 126 or 127.
    """
    program = rendered.argv[0]
    if rendered.is_shell:
        return
    if "/" in program:
        found = folder / program
        is_there = found.is_file() and os.access(found, os.X_OK)
        advice = f"looked for {found}; is it there, and executable?"
    else:
        is_there = shutil.which(program, path=environment["PATH"]) is not None
        advice = f"it is not on PATH ({environment['PATH']}); give its full path, or set environment.python"
    if not is_there:
        raise CannotLaunch(ExitReason.BAD_COMMAND, f"command {program!r} can not be run: {advice}")


def hyperparameters_yaml(spec: JobSpec) -> str:
    """The text of the file at HYPERPARAMETERS_PATH."""
    text: str = yaml.safe_dump(passed_parameters(spec), sort_keys=False, allow_unicode=True)
    return text


def find_shell() -> str:
    """bash where there is one, since people write for it; else sh."""
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
