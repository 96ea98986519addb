"""An evidence folder: one trial with all that is needed to hold it against a second run, elsewhere.

`trial.json`, `code/`, `scorer/` where what measured was kept apart from the code, `README.md`, and `SHA256SUMS` over
all of them. No secrets: the values of variables whose names say that they are secret are hidden.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.planner.compared import Held
from agent.store.views import ParamValue, TrialState
from agent.task import DataSource, Objective
from runtime.engines.provenance import shown
from runtime_client.home import CODE_FOLDER
from runtime_client.models import JobSpec, MetricPoint
from runtime_client.snapshot import archive

from .record import TrialRecord, manifest_of

SUMS = "SHA256SUMS"
TRIAL = "trial.json"
CODE = "code"
SCORER = "scorer"
FORMAT = 1

README = """\
# Evidence for trial {trial_id}

{metric} = {value} with seed {seed}, by the command `{command}`.

- `trial.json`: parameters, seed, value, curves, environment, data fingerprints, how it was compared
- `code/`: the code as it ran
{scorer}- `SHA256SUMS`: check that nothing was changed with `sha256sum -c SHA256SUMS`

`nightlab verify FOLDER` checks the sums, says what differs on your machine, runs the command again in a copy and holds
the new value against the recorded one. It runs the code in `code/`: look at it first if you do not know its author.
The sums say that the folder is whole, not who made it: ask the author for the digest of `SHA256SUMS` itself.
"""


SCORER_LINE = (
    "- `scorer/`: what measured, with its private files, which no training got to see: pass them on with care\n"
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RanWith(_Part):
    python_version: str | None
    packages: tuple[str, ...]
    devices: tuple[str, ...]


class CodePart(_Part):
    snapshot: str
    n_files: int
    left_out: tuple[str, ...]
    """Symbolic links, and what git ignores: they were not copied."""


class ComparisonPart(_Part):
    """Against the default of its session, over the replicates of both."""

    comparison: str
    reason: str
    n_pairs: int


class Evidence(_Part):
    format: Literal[1]
    nightlab: str
    trial_id: str
    objective: Objective
    value: float | None = Field(allow_inf_nan=False)
    note: str | None
    params: dict[str, ParamValue]
    seed: int
    suggested_by: str
    why: str
    job: JobSpec
    scorer: JobSpec | None
    """The job that measured it after its training; None: the script reported its own value."""
    curves: dict[str, tuple[tuple[int, float | None], ...]]
    """By metric: step and value, in the order of arrival; None: not a finite number."""
    replicates: tuple[float, ...]
    """Values of the same configuration with other seeds."""
    ran_with: RanWith
    data: tuple[DataSource, ...]
    data_fingerprint: str | None
    code: CodePart | None
    """None: the code was not pinned by a snapshot, or the snapshot was removed."""
    comparison: ComparisonPart
    scorer_code: CodePart | None = None
    """Of a scorer that was kept apart from the training; None: the training's code measured, or nothing did."""


class FolderTaken(Exception):
    """There is something already where the evidence should go."""


def write_evidence(folder: Path, record: TrialRecord, points: list[MetricPoint], held: Held, *, home: Path) -> Evidence:
    """Write the folder; it appears whole.

    Raises:
        FolderTaken: it exists.
        OSError: no space, no permission.
    """
    if folder.exists():
        raise FolderTaken(f"{folder} exists already; name another folder with -o, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    try:
        code = _copy_code(making / CODE, record.code, home)
        scorer = _copy_code(making / SCORER, _scorer_code(record), home)
        evidence = _evidence(record, points, held, code).model_copy(update={"scorer_code": scorer})
        (making / TRIAL).write_text(evidence.model_dump_json(indent=1) + "\n")
        (making / "README.md").write_text(_readme(evidence))
        (making / SUMS).write_text(_sums(making))
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return evidence


def digest_of_sums(folder: Path) -> str:
    return hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()


def _evidence(record: TrialRecord, points: list[MetricPoint], held: Held, code: CodePart | None) -> Evidence:
    assert record.job is not None, "a trial without a job is not exported"
    trial = record.trial
    curves: dict[str, list[tuple[int, float | None]]] = {}
    for point in points:
        curves.setdefault(point.key, []).append((point.step, point.value))
    others = [
        one.value
        for one in record.siblings
        if one.trial_id != trial.trial_id and one.state is TrialState.MEASURED and one.value is not None
    ]
    return Evidence(
        format=FORMAT,
        nightlab=version("nightlab"),
        trial_id=trial.trial_id,
        objective=record.task.objective,
        value=trial.value,
        note=trial.note,
        params=trial.params,
        seed=trial.seed,
        suggested_by=trial.suggested_by,
        why=trial.why,
        job=_without_secrets(record.job.spec),
        scorer=None if record.score_job is None else _without_secrets(record.score_job.spec),
        curves={name: tuple(curve) for name, curve in curves.items()},
        replicates=tuple(others),
        ran_with=RanWith(
            python_version=record.provenance.python_version,
            packages=record.provenance.packages,
            devices=record.provenance.devices,
        ),
        data=record.task.data,
        data_fingerprint=trial.facts.data,
        code=code,
        comparison=ComparisonPart(comparison=held.comparison.value, reason=held.reason, n_pairs=held.n_pairs),
    )


def _without_secrets(spec: JobSpec) -> JobSpec:
    """As it was submitted, without what belongs to the session that did it."""
    variables = {name: shown(name, value) for name, value in spec.env_variables.items()}
    own = ("session", "idempotency_token", "mlflow_parent_run_id", "worth", "finish_by", "continues")
    return spec.model_copy(update={"env_variables": variables, "tags": {}, "depends_on": (), **dict.fromkeys(own)})


def _scorer_code(record: TrialRecord) -> str | None:
    """The snapshot of a scorer that has another one than the training."""
    source = None if record.score_job is None else record.score_job.spec.code_source
    return None if source is None or source.snapshot_id == record.code else source.snapshot_id


def _copy_code(code: Path, snapshot_id: str | None, home: Path) -> CodePart | None:
    manifest = manifest_of(home, snapshot_id)
    if manifest is None:
        return None
    archive.unpack(home / CODE_FOLDER, manifest.snapshot_id, code)
    links = [*(path for path, _ in manifest.symlinks), *manifest.linked]
    for path in links:
        (code / path).unlink()
    return CodePart(snapshot=manifest.snapshot_id, n_files=len(manifest.files), left_out=tuple(sorted(links)))


def _readme(evidence: Evidence) -> str:
    command = evidence.job.command
    return README.format(
        trial_id=evidence.trial_id,
        metric=evidence.objective.metric,
        value=evidence.value,
        seed=evidence.seed,
        scorer="" if evidence.scorer_code is None else SCORER_LINE,
        command=command if isinstance(command, str) else json.dumps(list(command)),
    )


def _sums(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}" for path in files
    ]
    return "\n".join(lines) + "\n"
