"""The code of a job as it was when it was submitted: taken on the client's side, unpacked where the job runs.

A snapshot is a tar archive with a list of its contents, named by the hash of both and shared by all jobs that were
submitted from the same state of the same folder. What git ignores is data, not code: it is not copied but linked.
"""

from __future__ import annotations

from .archive import Manifest, SnapshotMissing, unpack
from .store import CodeStore, Snapshot
from .tree import SnapshotRefused

__all__ = ["CodeStore", "Manifest", "Snapshot", "SnapshotMissing", "SnapshotRefused", "unpack"]
