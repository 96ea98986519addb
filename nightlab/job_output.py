"""The output of a job for a person: the common one, one rank's, or that of all ranks; and error lines alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial

from runtime_client.models import LogChunk, LogErrors
from runtime_client.protocol import Runtime

from .patience import patiently

ALL = "all"
BYTES_A_LINE = 200
CHUNK_LIMIT_BYTES = 16 * 1024 * 1024


def is_wanted(stream: str, rank: str | None) -> bool:
    """Whether a stream belongs to what was asked for: None: the common output; `all`; or a rank's number."""
    if rank is None:
        return stream == "main"
    if rank == ALL:
        return True
    return stream.partition(".")[0] == rank


def label(stream: str) -> str:
    """`[3] ` before each line; nothing before those of the common output."""
    return "" if stream == "main" else f"[{stream}] "


def print_last_lines(client: Runtime, job_id: str, attempt: int | None, rank: str, n_lines: int) -> list[str]:
    """Print the last lines of each stream that is wanted; the names of those that there are."""
    found = client.log_streams(job_id, attempt=attempt)
    for stream in found.streams:
        if is_wanted(stream, rank):
            chunk = last_lines(client, job_id, attempt, n_lines, stream=stream)
            for line in chunk.text.splitlines():
                sys.stdout.write(f"{label(stream) if rank == ALL else ''}{line}\n")
    return list(found.streams)


def last_lines(client: Runtime, job_id: str, attempt: int | None, n_lines: int, *, stream: str = "main") -> LogChunk:
    """The last lines of an attempt's output; reads backwards no further than needed, and 16 MiB at most."""
    size = min(CHUNK_LIMIT_BYTES, max(4096, n_lines * BYTES_A_LINE))
    while True:
        chunk = client.logs(job_id, attempt=attempt, offset=-size, limit=size, stream=stream)
        lines = chunk.text.splitlines(keepends=True)
        is_all = len(chunk.text.encode()) < size
        if len(lines) > n_lines or is_all or size >= CHUNK_LIMIT_BYTES:
            return chunk.model_copy(update={"text": "".join(lines[-n_lines:])})
        size = min(CHUNK_LIMIT_BYTES, size * 4)


@dataclass(slots=True, kw_only=True)
class StreamsFollower:
    """Prints what is new in the wanted streams of one attempt, whole lines only."""

    client: Runtime
    job_id: str
    attempt: int
    rank: str | None
    offsets: dict[str, int] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)

    def step(self) -> bool:
        """Whether anything was printed."""
        if self.rank is None:
            return self._print("main")
        streams = patiently(lambda: self.client.log_streams(self.job_id, attempt=self.attempt)).streams
        n_printed = sum(self._print(stream) for stream in streams if is_wanted(stream, self.rank))
        return n_printed > 0

    def _print(self, stream: str) -> bool:
        has_printed = False
        while True:
            offset = self.offsets.get(stream, 0)
            chunk = patiently(
                partial(self.client.logs, self.job_id, attempt=self.attempt, offset=offset, stream=stream)
            )
            has_printed |= bool(chunk.text)
            self._say(stream, chunk.text, is_last=chunk.is_complete)
            self.offsets[stream] = chunk.next_offset
            if chunk.next_offset == offset:
                return has_printed

    def _say(self, stream: str, text: str, *, is_last: bool) -> None:
        if self.rank != ALL:
            sys.stdout.write(text)
        else:
            *whole, rest = (self.unfinished.get(stream, "") + text).split("\n")
            if is_last and rest:
                whole, rest = [*whole, rest], ""
            self.unfinished[stream] = rest
            sys.stdout.writelines(f"{label(stream)}{line}\n" for line in whole)
        sys.stdout.flush()


def print_errors(found: LogErrors) -> None:
    for line in found.lines:
        ranks = f"  ranks {_ranges(line.ranks)}" if line.ranks else ""
        print(f"{line.count:>6}x{ranks}  {line.text}")
    if not found.lines:
        print("no error lines")
    if not found.is_whole:
        print("(the output is long: only the end of it was searched)")


def _ranges(ranks: tuple[int, ...]) -> str:
    """`0-3,7`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][-1] == rank - 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
