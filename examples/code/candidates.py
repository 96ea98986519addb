"""What the scorers of these tasks share: how they ask what a training left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime_client.scoring import Candidate, CandidateFailed


def left() -> Path:
    """The working directory of the training; this folder where a scorer is run by hand."""
    after = os.environ.get("NIGHTLAB_AFTER_FOLDERS")
    return Path(after) / "work" if after else Path.cwd()


@contextmanager
def opened(module: str) -> Iterator[Candidate]:
    """A module that training left, in a process that can reach neither this one nor the private files."""
    try:
        with Candidate(left(), module) as candidate:
            yield candidate
    except CandidateFailed as why:
        raise SystemExit(f"not scored: {why}") from None
