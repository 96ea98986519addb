"""The research brief: a text file of the researcher, said to the model with every question."""

from __future__ import annotations

from pathlib import Path

from agent.task import BRIEF_CHARACTERS

_MAX_BYTES = 4 * (BRIEF_CHARACTERS + 1)
"""A character of UTF-8 has four at most; one more than may be is enough to see that it is too much."""


def brief_text(path: Path) -> str:
    """What the researcher wants said to the model.

    Raises:
        ValueError: it can not be read, says nothing, or is too long; the sentence says what to do.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        text = raw.decode("utf-8", errors="strict" if len(raw) <= _MAX_BYTES else "ignore").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(f"{path} can not be read: {reason}; a brief is a text file beside the task file") from error
    if not text:
        raise ValueError(f"{path} is empty; write goals, directions not to take, known facts, or leave brief out")
    if len(text) > BRIEF_CHARACTERS:
        what = f"{path} has more than {BRIEF_CHARACTERS:,} characters"
        raise ValueError(f"{what}; a model reads it with every question: shorten it")
    return text
