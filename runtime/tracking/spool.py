"""Artifacts on their way to MLflow: files on disk, named by number; the outbox says what they are.

A file is written beside its place, then renamed, then its outbox row is committed: a row without its file can only
mean that somebody removed the file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from .answers import MlflowRefusal

_PIECE_BYTES = 1 << 20


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def take(self, content: AsyncIterator[bytes], *, limit_bytes: int) -> str:
        """Write a stream to disk; return the name to find it by.

        Raises:
            MlflowRefusal: longer than `limit_bytes`, or the disk took no more; nothing is left behind.
        """
        name = uuid4().hex
        part = self._folder / f"{name}.part"
        try:
            await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
            with part.open("xb") as file:
                async for chunk in _limited(content, limit_bytes):
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(_settle, file)
            part.rename(self.path(name))
        except OSError as error:
            raise MlflowRefusal(
                "TEMPORARILY_UNAVAILABLE", f"The artifact can not be stored here: {error.strerror}.", retry_after_s=5
            ) from error
        finally:
            part.unlink(missing_ok=True)
        return name

    def put(self, content: bytes) -> str:
        """The same for bytes at hand; call it on a thread.

        Raises:
            OSError: the disk took no more.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        name = uuid4().hex
        part = self._folder / f"{name}.part"
        try:
            with part.open("xb") as file:
                file.write(content)
                _settle(file)
            part.rename(self.path(name))
        finally:
            part.unlink(missing_ok=True)
        return name

    def path(self, name: str) -> Path:
        return self._folder / name

    def remove(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    def sweep(self, keep: Collection[str] | None = None) -> None:
        """Remove what interrupted uploads left; call it once, before uploads begin.

        `keep` names the files that the outbox knows (`queries.spooled_files`); None: only unfinished ones go.
        """
        for file in self._folder.glob("*"):
            if file.suffix == ".part" or (keep is not None and file.name not in keep):
                file.unlink(missing_ok=True)


def is_safe_path(path: str) -> bool:
    """Whether an artifact path is a plain relative one."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and all(part not in ("", ".", "..") for part in parts)


async def _limited(content: AsyncIterator[bytes], limit_bytes: int) -> AsyncIterator[bytes]:
    """The stream in pieces of some size, refused once it is longer than the limit."""
    size, piece = 0, bytearray()
    async for chunk in content:
        size += len(chunk)
        if size > limit_bytes:
            raise MlflowRefusal(
                "INVALID_PARAMETER_VALUE", f"The artifact is larger than the allowed {limit_bytes} bytes."
            )
        piece += chunk
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
