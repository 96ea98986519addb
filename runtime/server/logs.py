"""An attempt's output in pieces: bytes from the engine become text without a torn character."""

from __future__ import annotations

import asyncio

from runtime.engines.contract import MAIN_STREAM, AttemptKey, Engine
from runtime_client.models import LogChunk, LogErrorLine, LogErrors

from .error_lines import group_errors
from .log_ends import log_ends

ERRORS_OF_MAIN_BYTES = 8 * 2**20
MOST_RANKS = 64


async def read_chunk(
    engine: Engine, key: AttemptKey, *, offset: int, limit: int, has_ended: bool, stream: str = MAIN_STREAM
) -> LogChunk:
    """A piece of the output from a byte offset; a negative one counts from the end."""
    is_from_end = offset < 0
    if is_from_end:
        offset = max(0, (await engine.read_log(key, 0, 0, stream)).size + offset)
    piece = await engine.read_log(key, offset, limit, stream)
    start, content = piece.start, piece.content
    if is_from_end and start > 0:
        skipped = _n_torn_at_start(content)
        start, content = start + skipped, content[skipped:]
    is_complete = has_ended and start + len(content) >= piece.size
    if not is_complete:
        content = _without_torn_end(content, limit)
    text = content.decode("utf-8", "replace")
    if piece.n_cut:
        text = f"\n[nightlab: {piece.n_cut} bytes of output were cut out here]\n{text}"
    return LogChunk(
        job_id=key.job_id,
        attempt=key.attempt,
        stream=stream,
        text=text,
        next_offset=start + len(content),
        n_cut=piece.n_cut,
        is_complete=is_complete,
    )


async def read_errors(engine: Engine, key: AttemptKey, *, limit: int = ERRORS_OF_MAIN_BYTES) -> LogErrors:
    """The error lines of all ranks and how their outputs end, from the end of each stream.

    Args:
        limit: bytes that are read of the common output; of a rank's own, an eighth of it.
    """
    texts: list[tuple[int | None, str]] = []
    is_whole = True
    for stream in (await engine.log_streams(key))[: 2 * MOST_RANKS]:
        most = limit if stream == MAIN_STREAM else max(limit // 8, 1)
        size = (await engine.read_log(key, 0, 0, stream)).size
        content = (await engine.read_log(key, max(0, size - most), most, stream)).content
        is_whole = is_whole and size <= most
        texts.append((rank_of(stream), content.decode("utf-8", "replace")))
    groups, ends = await asyncio.to_thread(lambda: (group_errors(texts), log_ends(texts)))
    lines = tuple(LogErrorLine(text=one.text, count=one.count, ranks=tuple(sorted(one.ranks))) for one in groups)
    return LogErrors(job_id=key.job_id, attempt=key.attempt, lines=lines, is_whole=is_whole, ends=ends)


def rank_of(stream: str) -> int | None:
    """The rank whose stream it is; None: the leader's."""
    number = stream.partition(".")[0]
    return int(number) if number.isdigit() else None


def _n_torn_at_start(content: bytes) -> int:
    """How many bytes at the start continue a character whose first byte is missing (at most 3)."""
    n = 0
    while n < min(3, len(content)) and content[n] & 0xC0 == 0x80:
        n += 1
    return n


def _without_torn_end(content: bytes, limit: int) -> bytes:
    """Leave an unfinished character at the end for the next piece, unless nothing else would ever come."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        is_torn = length > back
        if is_torn and not (back == len(content) and len(content) >= limit):
            return content[:-back]
        return content
    return content
