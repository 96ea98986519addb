"""Artifacts kept by their paths, seen as folders: for runtimes that live in memory."""

from __future__ import annotations

from collections.abc import Mapping

from .models import ArtifactView


def in_folder(content_by_path: Mapping[str, bytes], folder: str) -> list[ArtifactView]:
    """What is directly below a folder ("": the top), by name."""
    found: dict[str, ArtifactView] = {}
    prefix = f"{folder}/" if folder else ""
    for path, content in content_by_path.items():
        if path.startswith(prefix):
            name, slash, _ = path.removeprefix(prefix).partition("/")
            found[name] = ArtifactView(path=name, is_dir=bool(slash), file_size=None if slash else len(content))
    return [found[name] for name in sorted(found)]
