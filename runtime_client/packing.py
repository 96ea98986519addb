"""Make a spec ready to be sent: the key by which it can be sent again, and the snapshot of its code."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InvalidSpec
from .models import CodeSource, JobSpec, SnapshotMode

if TYPE_CHECKING:
    from .snapshot import CodeStore, Snapshot


class Packer:
    """Keeps what it knows of code folders, so that the hundredth job from one costs a look at its files."""

    def __init__(self, code_folder: Path | None) -> None:
        """`code_folder` is where snapshots are kept; None: this client does not know the server's home."""
        self._folder = code_folder
        self._store: CodeStore | None = None

    def pack(self, spec: JobSpec) -> JobSpec:
        """Raises InvalidSpec: the snapshot that it asks for can not be taken."""
        (packed,) = self.pack_many([spec])
        if isinstance(packed, InvalidSpec):
            raise packed
        return packed

    def pack_many(self, specs: Sequence[JobSpec]) -> list[JobSpec | InvalidSpec]:
        """One answer a spec, in order. Those from one folder share one snapshot."""
        taken: dict[CodeSource, Snapshot | InvalidSpec] = {}
        packed: list[JobSpec | InvalidSpec] = []
        for spec in specs:
            update: dict[str, object] = {}
            if spec.idempotency_token is None:
                update["idempotency_token"] = uuid.uuid4().hex
            source = spec.code_source
            if source is not None and source.snapshot is SnapshotMode.AUTO and source.snapshot_id is None:
                if source not in taken:
                    taken[source] = self._take(source)
                found = taken[source]
                if isinstance(found, InvalidSpec):
                    packed.append(found)
                    continue
                update["code_source"] = source.model_copy(update={"snapshot_id": found.snapshot_id})
                update["tags"] = {**_tags(found), **spec.tags}
            packed.append(spec.model_copy(update=update) if update else spec)
        return packed

    def _take(self, source: CodeSource) -> Snapshot | InvalidSpec:
        from .snapshot import CodeStore, SnapshotRefused

        if self._folder is None:
            return _refused(
                "this client does not know the server's home folder, where code snapshots are kept: make it by "
                "RuntimeClient.from_home(), or submit with code_source.snapshot: off"
            )
        if self._store is None:
            self._store = CodeStore(self._folder)
        try:
            return self._store.take(Path(source.root_path), limit_mb=source.snapshot_limit_mb, without=source.left_out)
        except SnapshotRefused as problem:
            return _refused(str(problem))


def with_sure_positions(packed: Sequence[JobSpec | InvalidSpec], batch_size: int) -> list[JobSpec | InvalidSpec]:
    """Those that name others by their place in the list are refused where the server would see another place."""
    if len(packed) <= batch_size and not any(isinstance(one, InvalidSpec) for one in packed):
        return list(packed)
    return [_without_position(one) if isinstance(one, JobSpec) else one for one in packed]


def _without_position(spec: JobSpec) -> JobSpec | InvalidSpec:
    named = next((wanted.job for wanted in spec.depends_on if wanted.job.startswith("#")), None)
    if named is None:
        return spec
    message = (
        f"depends_on: {named} is the place of a job in a list that can not be sent as it is (a part of it was refused, "
        "or it is too long for one request); name the job by token:, with an idempotency_token of its own"
    )
    return InvalidSpec(message, code="position_shifted", path="depends_on")


def _refused(message: str) -> InvalidSpec:
    return InvalidSpec(message, code="snapshot_refused", path="code_source")


def _tags(snapshot: Snapshot) -> dict[str, str]:
    """For the job's run: MLflow's own names where it has them."""
    tags = {"nightlab.code": snapshot.snapshot_id}
    commit = snapshot.commit
    if commit is not None and commit.commit is not None:
        tags["mlflow.source.git.commit"] = commit.commit
        tags["nightlab.code_is_dirty"] = str(commit.is_dirty).lower()
        if commit.branch is not None:
            tags["mlflow.source.git.branch"] = commit.branch
    return tags
