"""From the words behind a slash command to a tool's arguments, and the arguments that several tools take. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Words = Sequence[str]
_SESSION = re.compile(r"s\d+")


def _job_id(value: object) -> object:
    """`42` means `j42`, from people and from models."""
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else value
    return f"j{text}" if isinstance(text, str) and text.isdecimal() else text


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


JobId = Annotated[str, BeforeValidator(_job_id), Field(description="Id of a job, such as j12.", max_length=64)]
SessionId = Annotated[
    str | None, Field(description="Id of a session, such as s3; left out: the one that this chat belongs to.")
]
TrialId = Annotated[str, Field(description="Id of a trial, such as s3-t7; t7 in a chat of s3.", max_length=120)]


class Nothing(Arguments):
    pass


class OfSession(Arguments):
    session: SessionId = None


class OfJob(Arguments):
    job: JobId


class OfTrial(Arguments):
    trial: TrialId


def nothing(words: Words) -> dict[str, Any]:
    return taken(words)


def of_session(words: Words) -> dict[str, Any]:
    session, rest = session_first(words)
    if rest and not session:
        raise ValueError(f"{rest[0]!r} is no id of a session, such as s3")
    return {**session, **taken(rest)}


def of_job(words: Words) -> dict[str, Any]:
    return taken(words, "job")


def of_trial(words: Words) -> dict[str, Any]:
    return taken(words, "trial")


def taken(words: Words, *needed: str, optional: Sequence[str] = ()) -> dict[str, Any]:
    """The words by name, in their order.

    Raises:
        ValueError: there are too few or too many.
    """
    names = (*needed, *optional)
    if len(words) < len(needed):
        raise ValueError(f"{needed[len(words)].upper()} is missing")
    if len(words) > len(names):
        raise ValueError(f"{' '.join(words[len(names) :])!r} is too much")
    return dict(zip(names, words, strict=False))


def session_first(words: Words) -> tuple[dict[str, Any], Words]:
    """A session that is named before the rest, and the rest."""
    if words and _SESSION.fullmatch(words[0]):
        return {"session": words[0]}, words[1:]
    return {}, words


def session_and_text(name: str) -> Callable[[Words], dict[str, Any]]:
    """`[S] any words`."""

    def parsed(words: Words) -> dict[str, Any]:
        session, rest = session_first(words)
        if not rest:
            raise ValueError(f"{name.upper()} is missing")
        return {**session, name: " ".join(rest)}

    return parsed


def session_and_number(name: str) -> Callable[[Words], dict[str, Any]]:
    """`[S] [N]`."""

    def parsed(words: Words) -> dict[str, Any]:
        session, rest = session_first(words)
        return {**session, **taken(rest, optional=(name,))}

    return parsed
