"""An attempt's output in pieces: bytes from the engine become text without a torn character."""

from __future__ import annotations

from runtime.engines.contract import AttemptKey, Engine
from runtime_client.models import LogChunk


async def read_chunk(engine: Engine, key: AttemptKey, *, offset: int, limit: int, has_ended: bool) -> LogChunk:
    """A piece of the output from a byte offset; a negative one counts from the end."""
    if offset < 0:
        _, size = await engine.read_log(key, 0, 0)
        start = max(0, size + offset)
    else:
        start = offset
    content, size = await engine.read_log(key, start, limit)
    if offset < 0 and start > 0:
        skipped = _n_torn_at_start(content)
        start, content = start + skipped, content[skipped:]
    reaches_end = start + len(content) >= size
    is_complete = has_ended and reaches_end
    if not is_complete:
        content = _without_torn_end(content, limit)
    return LogChunk(
        job_id=key.job_id,
        attempt=key.attempt,
        text=content.decode("utf-8", "replace"),
        next_offset=start + len(content),
        is_complete=is_complete,
    )


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
