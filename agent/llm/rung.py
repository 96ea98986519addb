"""The rungs by which a model gives an answer of a known shape, the best first."""

from __future__ import annotations

from enum import StrEnum


class Rung(StrEnum):
    TOOLS = "tools"
    """It calls a tool whose arguments are the answer."""
    SCHEMA = "schema"
    """The endpoint holds it to a JSON schema."""
    FENCED = "fenced"
    """It writes a block of JSON, which is read with forbearance."""
    MENU = "menu"
    """It picks from numbered choices that code has made."""
    NONE = "none"
    """It is not asked: the session goes on without it."""
