"""Running a recorded job once more: what is needed of it, and what can no longer be had."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.data import DataFingerprints
from agent.planner.objective import read_value
from agent.task import DataSource, Objective
from nightlab.patience import patiently
from runtime.engines import provenance
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec, JobView, SnapshotMode

from .comparing import packages_apart
from .record import TrialRecord, manifest_of

_N_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Something of the record that can no longer be had."""

    what: str
    """code, python, packages, data, device."""
    text: str
    is_blocking: bool
    """Without it the same trial can not be run; else it can, and the value may be another one for that reason."""


def lacks(record: TrialRecord, client: RuntimeClient, home: Path) -> list[Lack]:
    """What a second run could not have as the first one had it."""
    assert record.job is not None
    spec = record.job.spec
    data = data_lack(record.task.data, record.trial.facts.data)
    found = [_code(record, home), _python(spec, record), data, _device(record, client)]
    return [one for one in found if one is not None]


def data_lack(sources: Sequence[DataSource], recorded: str | None) -> Lack | None:
    """Data that is not as recorded, or can not be told to be."""
    if not sources or recorded is None:
        return None
    now = DataFingerprints(sources).look(must_be_fresh=True).text or ""
    words = zip(sources, recorded.split(), now.split(), strict=False)
    changed = [source.path for source, before, after in words if before != after]
    if not changed:
        return None
    return Lack(what="data", text=f"not as recorded, or not here: {', '.join(changed)}", is_blocking=False)


def value_of(client: RuntimeClient, job: JobView, objective: Objective) -> tuple[float | None, str | None]:
    """What a job came to, or why there is no value."""
    if job.state != "succeeded":
        return None, job.state_reason or job.exit_reason or job.state
    curve = [point.value for point in patiently(lambda: client.metrics(job.job_id, keys=[objective.metric]))]
    reading = read_value(curve, objective)
    return reading.value, reading.note


def packages_lack(recorded: Sequence[str], python: str | None) -> Lack | None:
    """Packages of an interpreter's environment that are not as recorded."""
    if not recorded or python is None:
        return None
    apart = packages_apart(tuple(recorded), provenance.packages(Path(python).parent.parent))
    if not apart:
        return None
    named = ", ".join(f"{name} {a or 'none'} -> {b or 'none'}" for name, (a, b) in list(apart.items())[:_N_NAMED])
    more = f" and {len(apart) - _N_NAMED} more" if len(apart) > _N_NAMED else ""
    return Lack(what="packages", text=f"other versions than recorded: {named}{more}", is_blocking=False)


def _code(record: TrialRecord, home: Path) -> Lack | None:
    assert record.job is not None
    source = record.job.spec.code_source
    if source is None:
        return None
    if source.snapshot is SnapshotMode.OFF:
        if not Path(source.root_path).is_dir():
            return Lack(what="code", text=f"its folder {source.root_path} is gone", is_blocking=True)
        text = f"there is no snapshot: it runs {source.root_path} as that is now"
        return Lack(what="code", text=text, is_blocking=False)
    if manifest_of(home, source.snapshot_id) is None:
        digest = (source.snapshot_id or "")[:12]
        return Lack(what="code", text=f"its code snapshot {digest} was removed", is_blocking=True)
    return None


def _python(spec: JobSpec, record: TrialRecord) -> Lack | None:
    python = spec.environment.python
    if python is not None and not os.access(python, os.X_OK):
        return Lack(what="python", text=f"its interpreter {python} is gone", is_blocking=True)
    return packages_lack(record.provenance.packages, record.provenance.python)


def _device(record: TrialRecord, client: RuntimeClient) -> Lack | None:
    model = record.device_model
    if model in (None, "mixed"):
        return None
    kinds = {device.kind for node in client.nodes() for device in node.devices}
    if model in kinds:
        return None
    text = f"no device of model {model} is here; there are: {', '.join(sorted(kinds)) or 'none'}"
    return Lack(what="device", text=text, is_blocking=True)
