"""From a launch order to an attempt folder that a supervisor can be started on."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runtime.engines.box_plan import BoxFacts, box_record
from runtime.engines.contract import LaunchOrder
from runtime.engines.warm_plan import WarmPlan, warm_plan
from runtime.model.states import ExitReason
from runtime.node import checkpoints, command, environment, metric_sources, output, records
from runtime.node.devices import memory_mb, usable_cores
from runtime.node.launch_errors import CannotLaunch
from runtime_client.models import JobSpec, Sandbox
from runtime_client.snapshot import SnapshotMissing, unpack
from runtime_client.training.manifest import folder_name, is_complete

CHECKPOINTS = "checkpoints"
"""A job's folder for them."""
WORK = "work"
"""Its working folder, where that is its own."""
ARRIVING = ".arriving"
"""What a checkpoint of another job is called until it is whole."""
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What preparation must know of the node."""

    node_id: str
    attempts_dir: Path
    code_dir: Path
    """Where clients put code snapshots."""
    cores_per_slot: int | None
    """None: devices are real accelerators, and threads are the user's affair."""
    poke: str
    """Path of the datagram socket that the engine listens at."""
    environ: Mapping[str, str]
    log_cap_bytes: int
    """Of each file of output; the middle of what is longer is cut out."""
    uuids: Mapping[int, str]
    """Of the devices, by index."""
    use_locks: Mapping[int, str]
    """Paths of the locks that a supervisor shares while its attempt is on these devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    folder: Path
    checkpoint_dir: Path
    marker: str
    readers: list[metric_sources.Reader]
    record: dict[str, Any] | None = None
    """The order, to be written by `write_order`. None: a supervisor has it already."""
    snapshot_id: str | None = None
    device_kinds: tuple[str, ...] = ()
    warm: WarmPlan | str = ""
    """How it could be started warm, or why not."""


def attempt_folder(attempts_dir: Path, job_id: str, attempt: int) -> Path:
    return attempts_dir / job_id / str(attempt)


def devices_on(order: LaunchOrder, node_id: str) -> tuple[int, ...]:
    """The devices of an attempt on one node."""
    return tuple(index for placement in order.placements if placement.node_id == node_id for index in placement.devices)


def marker_of(attempt_token: str) -> str:
    """What the attempt's processes are known by; tells nothing about the token."""
    return hashlib.sha256(attempt_token.encode()).hexdigest()[:32]


def has_snapshot(spec: JobSpec) -> bool:
    return spec.code_source is not None and spec.code_source.snapshot_id is not None


def place_code(job_id: str, spec: JobSpec, node: NodeFacts) -> None:
    """Unpack the code snapshot of a job that has one, unless it is there already. Takes a while for many files.

    Raises CannotLaunch, OSError.
    """
    assert spec.code_source is not None
    assert spec.code_source.snapshot_id is not None
    job_folder = node.attempts_dir / job_id
    job_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        unpack(node.code_dir, spec.code_source.snapshot_id, _working_folder(spec, job_folder))
    except SnapshotMissing as problem:
        raise CannotLaunch(ExitReason.BAD_COMMAND, str(problem)) from problem


def continue_from(job_id: str, spec: JobSpec, node: NodeFacts) -> None:
    """Give a job that goes on from another one that one's newest complete checkpoint, if it has none of its own.

    The files become its own at one stroke, as further names of the same files: so the other job's may go at any time,
    and nothing is copied. Nobody writes into a complete checkpoint. Raises OSError.
    """
    if spec.continues is None:
        return
    own = node.attempts_dir / job_id / CHECKPOINTS
    found = checkpoints.newest_complete(node.attempts_dir / spec.continues / CHECKPOINTS)
    if found is None or checkpoints.newest_complete(own) is not None:
        return
    step, folder = found
    own.mkdir(parents=True, exist_ok=True, mode=0o700)
    torn = own / ARRIVING
    if torn.exists():
        shutil.rmtree(torn)
    try:
        shutil.copytree(folder, torn, symlinks=True, copy_function=_link)
    except OSError:
        if is_complete(folder):
            raise
        shutil.rmtree(torn, ignore_errors=True)  # Somebody has just deleted it: it begins anew, as if there were none.
        return
    torn.rename(own / folder_name(step))


def _link(source: str, target: str) -> str:
    """A further name for a file; where there can be none, a copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def prepare(order: LaunchOrder, spec: JobSpec, node: NodeFacts) -> Prepared:
    """Make the folders and the order, unless a supervisor has this attempt already.

    Raises CannotLaunch, OSError (a full disk among others).
    """
    folder = attempt_folder(node.attempts_dir, order.key.job_id, order.key.attempt)
    job_folder = folder.parent
    checkpoint_dir = job_folder / CHECKPOINTS
    for path in (folder, folder / output.RANKS, checkpoint_dir):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    working_folder = _working_folder(spec, job_folder)
    try:
        readers = metric_sources.readers(spec, log=folder / records.LOG, folder=working_folder, job_id=order.key.job_id)
    except ValueError as error:
        raise CannotLaunch(ExitReason.BAD_COMMAND, str(error)) from error
    prepared = Prepared(
        folder=folder, checkpoint_dir=checkpoint_dir, marker=marker_of(order.attempt_token), readers=readers
    )
    if (folder / records.SUPERVISOR).exists():
        _load_positions(prepared)
        return prepared
    return _with_order(spec, order, node, prepared, working_folder)


def write_order(prepared: Prepared, *, why: str) -> None:
    """Write the order; `why` says why it starts warm or cold. Raises OSError."""
    if prepared.record is not None:
        # Not durable: after a power cut the server orders this attempt again, whole.
        record = {**prepared.record, "launch_why": why[:300]}
        records.write(str(prepared.folder / records.ORDER), record, is_durable=False)


def spec_of(order: LaunchOrder) -> JobSpec:
    """Raises CannotLaunch."""
    try:
        return JobSpec.model_validate_json(order.spec_json)
    except ValidationError as error:
        raise CannotLaunch(ExitReason.BAD_COMMAND, f"the job's specification can not be read: {error}") from error


def _working_folder(spec: JobSpec, job_folder: Path) -> Path:
    """One for all attempts of a job, so that a resumed one finds what an earlier one wrote."""
    if spec.code_source is None or has_snapshot(spec):
        return job_folder / WORK
    return Path(spec.code_source.root_path)


def _with_order(
    spec: JobSpec, order: LaunchOrder, node: NodeFacts, prepared: Prepared, working_folder: Path
) -> Prepared:
    facts = replace(_facts(order, spec, node, prepared, working_folder), deadline_at=_deadline(spec))
    if spec.code_source is None:
        working_folder.mkdir(exist_ok=True, mode=0o700)
    environment.check_folder(working_folder)
    rendered = command.render(
        spec,
        hyperparameters=str(facts.hyperparameters),
        shell=environment.find_shell(),
        places={
            "job_id": facts.job_id,
            "attempt": str(facts.attempt),
            "checkpoint_dir": str(facts.checkpoint_dir),
            **({} if spec.array_task is None else {"index": str(spec.array_task.index)}),
        },
    )
    variables = environment.job_environment(spec, facts, node.environ)
    environment.check_command(rendered, working_folder, variables)
    records.write_text(str(facts.hyperparameters), environment.hyperparameters_yaml(spec))
    for reader in prepared.readers:
        reader.skip_existing()
    save_positions(prepared)
    record: dict[str, Any] = {
        "job_id": facts.job_id,
        "attempt": facts.attempt,
        "argv": rendered.argv,
        "env": variables,
        "cwd": str(working_folder),
        "marker": prepared.marker,
        "poke": node.poke,
        "grace_s": spec.grace_seconds,
        "log_cap_bytes": node.log_cap_bytes,
        "locks": [node.use_locks[index] for index in devices_on(order, node.node_id) if index in node.use_locks],
    }
    lasting = environment.lasting_environment(spec, facts, variables)
    plan = warm_plan(spec, rendered, working_folder, lasting, own_folder=prepared.folder)
    if spec.sandbox is Sandbox.SEALED:
        record["sandbox"] = box_record(spec, _box_facts(spec, facts, rendered, node), variables)
    else:
        record["sandbox"] = {"level": spec.sandbox.value}
    record["warm"] = plan.as_record() if isinstance(plan, WarmPlan) else None
    snapshot_id = None if spec.code_source is None else spec.code_source.snapshot_id
    return replace(prepared, record=record, warm=plan, snapshot_id=snapshot_id, device_kinds=order.device_kinds)


def _box_facts(spec: JobSpec, facts: environment.AttemptFacts, rendered: command.Rendered, node: NodeFacts) -> BoxFacts:
    return BoxFacts(
        job_id=facts.job_id,
        folder=facts.folder,
        working_folder=facts.working_folder,
        is_own_folder=spec.code_source is None or has_snapshot(spec),
        checkpoint_dir=facts.checkpoint_dir,
        left=[
            node.attempts_dir / wanted.job / name
            for wanted in spec.depends_on
            if wanted.job.startswith("j")
            for name in (CHECKPOINTS, WORK)
        ],
        argv=rendered.argv,
        tracking_url=facts.tracking_url,
        devices=facts.devices,
        is_accelerator=facts.is_accelerator,
        n_cores=usable_cores() if facts.cores is None else facts.cores,
        memory_bytes=memory_mb() * 2**20,
    )


def _deadline(spec: JobSpec) -> float | None:
    """When the run time of an attempt that starts now is over, or the hour comes by which its job is to be over."""
    limits = [] if spec.timeout_minutes is None else [time.time() + 60.0 * spec.timeout_minutes]
    return min([*limits, *([] if spec.finish_by is None else [spec.finish_by])], default=None)


def _facts(
    order: LaunchOrder, spec: JobSpec, node: NodeFacts, prepared: Prepared, working_folder: Path
) -> environment.AttemptFacts:
    node_rank, placement = next((i, p) for i, p in enumerate(order.placements) if p.node_id == node.node_id)
    resumes = order.resume_step is not None or spec.continues is not None
    newest = checkpoints.newest_complete(prepared.checkpoint_dir) if resumes else None
    cores = None if node.cores_per_slot is None else node.cores_per_slot * len(placement.devices)
    return environment.AttemptFacts(
        job_id=order.key.job_id,
        attempt=order.key.attempt,
        folder=prepared.folder,
        working_folder=working_folder,
        checkpoint_dir=prepared.checkpoint_dir,
        resume_from=newest[1] if newest else None,
        marker=prepared.marker,
        attempt_token=order.attempt_token,
        tracking_url=order.tracking_url,
        devices=placement.devices,
        is_accelerator=any(kind != "cpu" for kind in order.device_kinds),
        uuids=[node.uuids[index] for index in placement.devices if index in node.uuids],
        cores=cores,
        n_ranks=sum(len(p.devices) for p in order.placements),
        node_rank=node_rank,
        n_nodes=len(order.placements),
    )


def save_positions(prepared: Prepared) -> None:
    """Record how far the metric sources were read. Raises OSError."""
    if prepared.readers:
        positions = {"positions": [reader.save() for reader in prepared.readers]}
        records.write(str(prepared.folder / records.METRICS), positions, is_durable=False)


def _load_positions(prepared: Prepared) -> None:
    """Without a sound record they are read from the start: some points come twice, none is lost."""
    saved = records.read(str(prepared.folder / records.METRICS))
    for reader, position in zip(prepared.readers, saved["positions"] if saved else (), strict=False):
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            reader.load(position)
