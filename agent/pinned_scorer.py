"""The scorer of a session, as it was when the session began: a folder of its own with the code and the private files.

Training jobs never get it, and nothing that is edited gets into it. What it is, is one digest, which is looked at again
whenever it measures. A scorer without private files, of a task that edits no code, needs none of this.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from agent.data import DataFingerprints
from agent.private_files import private_elsewhere, private_in_code
from agent.task import DataSource, Score, Task
from runtime_client.models import CodeSource, SnapshotMode
from runtime_client.snapshot import CodeStore, SnapshotRefused, archive, unpack
from runtime_client.snapshot.tree import ALL_IS_CODE

_RECORD = "scorer.json"
_CODE = "code"
_N_NAMED = 3


class ScorerRefused(ValueError):
    """The scorer can not be kept as it is; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedScorer:
    digest: str
    """Of command, code and private files; the same for all trials of the session."""
    code: CodeSource
    """To submit its jobs with: nothing else is measured by."""
    readable: tuple[str, ...]
    """Private files that stay where they are."""
    _snapshot_id: str
    _store: CodeStore
    _score: Score
    _elsewhere: DataFingerprints

    @classmethod
    def open(cls, place: Path, task: Task) -> PinnedScorer:
        """The scorer in a folder of the session's own, made there by the first call, of the code as it is then.

        A call that was cut off is made again.

        Raises:
            ScorerRefused: it is too large, or can not be read.
        """
        source, score = task.job.code_source, task.score
        assert source is not None
        assert score is not None
        store = CodeStore(place / "archives")
        record = place / _RECORD
        if not record.exists():
            _make(place, task, store)
        found = json.loads(record.read_text())
        stay = (*private_elsewhere(task), *found["in_place"])
        return cls(
            digest=found["digest"],
            code=_source(place, source),
            readable=stay,
            _snapshot_id=found["snapshot_id"],
            _store=store,
            _score=score,
            _elsewhere=_fingerprints(stay),
        )

    def digest_of(self, snapshot_id: str | None) -> str:
        """The digest of a scorer's job that has this snapshot of code; None: it is not told, and taken for ours."""
        text = self._elsewhere.look(must_be_fresh=True).text
        return _digest(self._score, snapshot_id or self._snapshot_id, text)

    def changed(self) -> str | None:
        """What is not as it was when the session began, in words; None: nothing."""
        try:
            now = self._store.take(Path(self.code.root_path), limit_mb=self.code.snapshot_limit_mb)
        except SnapshotRefused as problem:
            return f"its code can not be read any more: {problem}"
        if now.snapshot_id != self._snapshot_id:
            return _differences(self._store.folder, self._snapshot_id, now.snapshot_id)
        return None if self.digest_of(None) == self.digest else f"one of {', '.join(self.readable)}"


def is_pinned(task: Task) -> bool:
    """Whether a task's scorer is kept apart: its training runs code that nobody has read, or something is private."""
    return (
        task.score is not None
        and task.job.code_source is not None
        and (task.code is not None or bool(task.score.private))
    )


def _make(place: Path, task: Task, store: CodeStore) -> None:
    source, score = task.job.code_source, task.score
    assert source is not None
    assert score is not None
    code, root = place / _CODE, Path(source.root_path)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.rmtree(code, ignore_errors=True)  # Of a call that was cut off.
    try:
        unpack(
            store.folder, store.take(root, limit_mb=source.snapshot_limit_mb, without=source.left_out).snapshot_id, code
        )
        in_place = [str(root / path) for path in private_in_code(task) if not _copied(root, code, path)]
        (code / ALL_IS_CODE).touch()
        snapshot_id = store.take(code, limit_mb=source.snapshot_limit_mb).snapshot_id
    except SnapshotRefused as problem:
        what = f"{problem}. Private data that lies outside of the code's folder is read in place, whatever its size"
        raise ScorerRefused(f"the scorer can not be kept: {what}") from problem
    except OSError as error:
        raise ScorerRefused(f"the scorer can not be kept: {error.filename or place}: {error.strerror}") from error
    text = _fingerprints((*private_elsewhere(task), *in_place)).look(must_be_fresh=True).text
    record = {"digest": _digest(score, snapshot_id, text), "snapshot_id": snapshot_id, "in_place": in_place}
    archive.put(place / _RECORD, json.dumps(record).encode())  # Last: who finds it finds the rest.


def _copied(root: Path, code: Path, path: str) -> bool:
    """False: it lies in a folder that is linked, not copied, and stays there."""
    source, target = root / path, code / path
    if any((code / part).is_symlink() for part in list(Path(path).parents)[:-1]):
        return False
    if target.is_symlink():
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)
    return True


def _source(place: Path, source: CodeSource) -> CodeSource:
    update = {"root_path": str(place / _CODE), "snapshot": SnapshotMode.AUTO, "left_out": ()}
    return source.model_copy(update=update)


def _fingerprints(paths: tuple[str, ...]) -> DataFingerprints:
    return DataFingerprints(sources=[DataSource(path=path, fingerprint="sha256") for path in paths])


def _digest(score: Score, snapshot_id: str, elsewhere: str | None) -> str:
    command = score.command if isinstance(score.command, str) else list(score.command)
    return hashlib.sha256(json.dumps([command, snapshot_id, elsewhere]).encode()).hexdigest()


def _differences(store: Path, before: str, now: str) -> str:
    """Names of files that differ between two snapshots."""
    try:
        old, new = (
            {**{file.path: (file.sha256, file.mode) for file in one.files}, **dict(one.symlinks)}
            for one in (archive.read(store, before), archive.read(store, now))
        )
    except archive.SnapshotMissing:
        return "its code"
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return ", ".join(map(os.fsdecode, names[:_N_NAMED])) + more if names else "its folders"
