"""What a model was asked and what it said, kept for people: JSON lines, a file a session, bounded, without secrets."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from agent.llm.chat import ModelError, Reply, Request
from agent.llm.redaction import redacted
from agent.log_files import cut

MAX_TEXT_CHARS = 100_000
"""Of one text; the middle of a longer one is left out."""


class Archive:
    """May be written from several threads. Files are the owner's alone."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self._path = path
        self._secrets = frozenset(secrets)
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        return self._path

    def keep(self, call_id: int, at: float, request: Request, outcome: Reply | ModelError) -> str | None:
        """Write one call as a line; returns why it could not be written.

        Beyond 10 MiB the file goes on anew, and one predecessor is kept.
        """
        line = json.dumps(self._shown(_record(call_id, at, request, outcome)), ensure_ascii=False) + "\n"
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                return f"not archived: {error.strerror or error}"
        return None

    def _append(self, line: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        cut(self._path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(self._path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
            file.write(line)

    def _shown(self, value: object) -> object:
        """The same without secrets, in every text inside."""
        match value:
            case str():
                return redacted(_bounded(value), self._secrets)
            case Mapping():
                return {redacted(str(key), self._secrets): self._shown(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._shown(inner) for inner in value]
            case _:
                return value


def without_secrets(request: Request, secrets: Iterable[str]) -> Request:
    """The request as it may leave this machine: what looks like a secret in a log is nobody else's business."""
    kept = frozenset(secrets)
    messages = tuple(replace(message, text=redacted(message.text, kept)) for message in request.messages)
    return replace(request, messages=messages)


def _record(call_id: int, at: float, request: Request, outcome: Reply | ModelError) -> dict[str, object]:
    if isinstance(outcome, ModelError):
        came: dict[str, object] = {"trouble": outcome.trouble.value, "message": str(outcome), "status": outcome.status}
    else:
        came = asdict(outcome)
    return {"call_id": call_id, "at": at, "request": asdict(request), "reply": came}


def _bounded(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    half = MAX_TEXT_CHARS // 2
    return f"{text[:half]}[... {len(text) - 2 * half} characters ...]{text[-half:]}"
