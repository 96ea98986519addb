"""What differs between the code of two trials, file by file, by the lists of their snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from runtime_client.snapshot.archive import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDifference:
    changed: tuple[str, ...] = ()
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    @property
    def n_files(self) -> int:
        return len(self.changed) + len(self.only_first) + len(self.only_second)


def code_difference(first: Manifest, second: Manifest) -> CodeDifference:
    """By content and by whether it may be executed; symbolic links by where they point."""
    one, other = _contents(first), _contents(second)
    return CodeDifference(
        changed=tuple(sorted(path for path in one.keys() & other.keys() if one[path] != other[path])),
        only_first=tuple(sorted(one.keys() - other.keys())),
        only_second=tuple(sorted(other.keys() - one.keys())),
    )


def _contents(manifest: Manifest) -> dict[str, str]:
    files = {member.path: f"{member.mode:o} {member.sha256}" for member in manifest.files}
    return files | {path: f"link {target}" for path, target in manifest.symlinks}
