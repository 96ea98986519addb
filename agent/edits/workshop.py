"""The place where a session edits its code: a git repository of its own, with the user's code as its first commit.

Nothing is ever written into the user's folder or repository. Several threads and processes may use one workshop.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.store.views import CodeState
from runtime_client.snapshot.git import GitFailed
from runtime_client.snapshot.store import DEFAULT_LIMIT_MB

from . import checkout
from .base import BaseCode, BaseFile, CodeRefused, base_code
from .form import NotApplied
from .repository import LINK, Entry, FileDifference, Repository, locked
from .rules import EditRules

BASE = "base"
"""The branch of the code as it was; those of trials are `trial/<trial id>`."""
_VERSION = 1
_RECORD = "nightlab.json"
_TRIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def workshop_folder(home: Path, session_id: str) -> Path:
    return home / "workshops" / session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the base comes from in the user's repository."""

    root: str
    """Folder of the code."""
    commit: str | None
    """None: nothing was committed, or there is no repository."""
    branch: str | None
    is_repository: bool
    uncommitted: tuple[str, ...]


class Workshop:
    def __init__(self, folder: Path, rules: EditRules, record: dict[str, Any]) -> None:
        """Use `open` or `existing`."""
        self._folder = folder
        self._rules = rules
        self._linked: tuple[str, ...] = tuple(record["linked"])
        self._at: int = record["at"]
        self._repository = Repository(_place(folder), _lock(folder))
        base = record["base"]
        self.base = CodeState(**{**base, "files": tuple(base["files"])})
        """The user's code as it was when the workshop was first opened."""
        self.note: str | None = record["note"]
        """What is unusual about the base, in a sentence; None: it is exactly a commit."""
        origin = record["origin"]
        self.origin = Origin(**{**origin, "uncommitted": tuple(origin["uncommitted"])})
        self._root = Path(origin["root"])

    @classmethod
    def open(cls, folder: Path, root: Path, rules: EditRules, *, limit_mb: int = DEFAULT_LIMIT_MB) -> Workshop:
        """The workshop in a folder (`workshop_folder`); made from the code in `root` where it is not there yet.

        The base stays what it was at first. A home of nightlab that lies in the code is no part of it.

        Raises:
            CodeRefused: the code can not be edited as it is, or its copy can not be kept; the message says what to do.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _place(folder).is_dir():
                with locked(_lock(folder)) as held:
                    if not _place(folder).is_dir():
                        _make(folder, root.resolve(), rules, limit_mb, held)
        except GitFailed as error:
            raise CodeRefused(str(error)) from error
        except OSError as error:
            raise CodeRefused(f"{folder} can not be written: {error.strerror}; free some space there") from error
        return cls.existing(folder, rules)

    @classmethod
    def existing(cls, folder: Path, rules: EditRules) -> Workshop:
        """Raises CodeRefused: there is none in the folder."""
        try:
            record = json.loads((_place(folder) / _RECORD).read_bytes())
        except FileNotFoundError as error:
            raise CodeRefused(
                f"there is no edited code in {folder}; it was removed, or the session edits none"
            ) from error
        return cls(folder, rules, record)

    @property
    def repository(self) -> Path:
        """The git repository, for `git fetch`."""
        return self._repository.place

    def paths(self, state: CodeState) -> tuple[str, ...]:
        """All files of a state that jobs have."""
        entries = self._repository.entries(state.tree)
        return tuple(path for path in entries if not self._rules.is_private(path))

    def sources(self, state: CodeState) -> dict[str, bytes]:
        """The editable files, as bytes. Links are none."""
        entries = self._repository.entries(state.tree)
        blobs = {p: e.blob for p, e in entries.items() if e.mode != LINK and self._rules.is_editable(p)}
        contents = self._repository.contents(list(blobs.values()))
        return {path: contents[blob] for path, blob in blobs.items()}

    def commit(
        self, parent: CodeState, changed: Mapping[str, bytes], *, trial: str, message: str, parent_trial: str | None
    ) -> CodeState:
        """The parent's code with these files changed, as a commit on the branch of a trial.

        The same again gives the same commit; another edit for the same trial takes its branch.

        Raises:
            NotApplied: a file may not be changed, or is a link or a folder; nothing changes; more lines differ from the
                base than may.
        """
        if not _TRIAL.fullmatch(trial):
            raise ValueError(f"{trial!r} is no trial id")
        entries = self._repository.entries(parent.tree)
        for path in changed:
            self._check_place(path, entries, changed)
        files = {
            path: BaseFile(mode=entries[path].mode if path in entries else 0o100644, content=content)
            for path, content in changed.items()
        }
        branch = f"trial/{trial}"
        commit, tree = self._repository.commit(branch, parent.commit, files, message=message, at=self._at)
        found = self._repository.differences(self.base.tree, tree)
        added, removed = sum(one.added for one in found), sum(one.removed for one in found)
        n_changed = added + removed
        if tree == parent.tree or n_changed > self._rules.max_changed_lines:
            self._repository.forget(branch)
            raise NotApplied(
                "the edit changes nothing: every file would be as it is"
                if tree == parent.tree
                else f"with this edit {n_changed} lines differ from the base, and {self._rules.max_changed_lines} are "
                "allowed (code.max_changed_lines); change less"
            )
        return CodeState(
            tree=tree,
            commit=commit,
            branch=branch,
            parent=parent_trial,
            added=added,
            removed=removed,
            files=tuple(one.path for one in found),
            summary=message.partition("\n")[0].strip(),
        )

    def _check_place(self, path: str, entries: Mapping[str, Entry], changed: Mapping[str, bytes]) -> None:
        if not self._rules.is_editable(path):
            raise NotApplied(f"{path} may not be edited; editable: {', '.join(self._rules.editable)}")
        if path in entries and entries[path].mode == LINK:
            raise NotApplied(f"{path} is a symbolic link; edit the file that it leads to")
        above = path
        while above := os.path.dirname(above):
            if above in entries or above in changed:
                raise NotApplied(f"{path} can not be made: {above} is a file, no folder")
        if any(other.startswith(f"{path}/") for other in entries):
            raise NotApplied(f"{path} is a folder; name a file in it")

    def checkout(self, state: CodeState) -> Path:
        """A folder with the code of a state, named by its tree: complete, and exactly that, each time this is called.

        Private files are left out; what git ignores in the user's code is linked.
        """
        entries = self._repository.entries(state.tree)
        want = checkout.wanted(entries, self._linked, self._root, self._rules)
        folder = self._trees / state.tree
        with locked(self._folder / "checkouts.lock"):
            checkout.place(folder, want, self._repository.contents)
        return folder

    def keep_only(self, trees: Collection[str]) -> None:
        """Remove the checkouts of other trees, and tidy up. Commits all stay."""
        with locked(self._folder / "checkouts.lock"):
            checkout.sweep(self._trees, lambda name: name in trees)
        self._repository.tidy()

    def patch(self, state: CodeState, against: CodeState | None = None) -> bytes:
        """What a state changes, for `git apply` and `patch -p1` in the code's folder.

        Args:
            against: None: the base.
        """
        return self._repository.patch((against or self.base).tree, state.tree)

    def differences(self, state: CodeState, against: CodeState | None = None) -> list[FileDifference]:
        """The files that a state changes; against the base, if nothing else is said."""
        return self._repository.differences((against or self.base).tree, state.tree)

    def files(self, state: CodeState, paths: Collection[str]) -> dict[str, BaseFile]:
        """Those of these files that a state has."""
        entries = self._repository.entries(state.tree)
        here = {path: entries[path] for path in paths if path in entries}
        contents = self._repository.contents([entry.blob for entry in here.values()])
        return {path: BaseFile(mode=entry.mode, content=contents[entry.blob]) for path, entry in here.items()}

    @property
    def _trees(self) -> Path:
        return self._folder / "trees"


def _place(folder: Path) -> Path:
    return folder / "code.git"


def _lock(folder: Path) -> Path:
    return folder / "writing.lock"


def _make(folder: Path, root: Path, rules: EditRules, limit_mb: int, held: int) -> None:
    for left in folder.glob(".making-*"):
        checkout.remove(left)
    code = base_code(root, rules, left_out=_left_out(folder, root), limit_mb=limit_mb)
    at = int(time.time())
    making = folder / f".making-{os.getpid()}"
    place = making / "code.git"
    commit = Repository.make(place, code.files, branch=BASE, message="The code as it was", at=at, held=held)
    tree = Repository(place, _lock(folder)).tree_of(commit)
    base = CodeState(tree=tree, commit=commit, branch=BASE, summary="the code as it was")
    record = {"version": _VERSION, "at": at, "base": asdict(base), "note": code.note, "linked": code.linked}
    record["origin"] = asdict(_origin(code, root))
    (place / _RECORD).write_text(json.dumps(record))
    place.rename(_place(folder))
    checkout.remove(making)


def _origin(code: BaseCode, root: Path) -> Origin:
    found = code.commit
    return Origin(
        root=str(root),
        commit=None if found is None else found.commit,
        branch=None if found is None else found.branch,
        is_repository=found is not None,
        uncommitted=code.uncommitted,
    )


def _left_out(folder: Path, root: Path) -> frozenset[str]:
    """The home that the workshop is in, where it lies below the code."""
    place = folder.resolve()
    above = (place, place.parent, place.parent.parent)
    return frozenset(str(one) for one in above if root in one.parents)


__all__ = ["BASE", "CodeRefused", "Origin", "Workshop", "workshop_folder"]
