"""Text of models, jobs, files and people, made inert before it is printed. Pure, and imports nothing."""

from __future__ import annotations


def clean(text: str) -> str:
    """One printable line: it must neither steer the terminal nor turn the direction of reading."""
    return "".join(c if c.isprintable() else " " for c in text)


def clean_lines(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(clean(line) for line in text.split("\n"))
