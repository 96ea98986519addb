"""One message to people, in text that no service takes for anything else. Pure; `telling` sends it."""

from __future__ import annotations

import re
from dataclasses import dataclass

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CALLS = re.compile(r"@(?=everyone|here|channel|all\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Plain text: no service takes any of it for markup, a link or a call to everybody."""

    title: str
    body: str


def trial_notice(name: str, what: str) -> Notice:
    """A test message: `what` will be told here, `the nights of this sweep`."""
    return Notice(
        title=plain(f"{name}: a test"),
        body=plain(f"This is a test message of nightlab. {what} will be told here."),
    )


def plain(text: str) -> str:
    """Without control characters; what chat services take for a link or a call is broken up."""
    told = CONTROL.sub(" ", text).replace("<", "‹").replace(">", "›")
    return CALLS.sub("@\u200b", told)
