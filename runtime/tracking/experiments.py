"""Experiments as the gateway knows them: a name, and an id derived from it. No table: a fact for each name seen.

The ids are ours; MLflow has its own for the same names, and the mirror finds them.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa

from runtime.store import records

DEFAULT_ID = "0"
"""What MLflow clients send when a script has chosen no experiment."""
DEFAULT_NAME = "Default"


def experiment_id(name: str) -> str:
    """Up to 15 digits, the same for the same name for ever."""
    if name == DEFAULT_NAME:
        return DEFAULT_ID
    return str(int(hashlib.sha256(name.encode()).hexdigest()[:12], 16) + 1)


def register(connection: sa.Connection, name: str) -> str:
    """Remember a name so that its id can be asked back; return the id."""
    identifier = experiment_id(name)
    if identifier != DEFAULT_ID and records.get_fact(connection, _fact(identifier)) != name:
        records.set_fact(connection, _fact(identifier), name)
    return identifier


def name_of(connection: sa.Connection, identifier: str) -> str | None:
    """The name behind an id of ours; None: no such id was ever given out."""
    if identifier == DEFAULT_ID:
        return DEFAULT_NAME
    if len(identifier) > 20:
        return None
    name = records.get_fact(connection, _fact(identifier))
    return name if isinstance(name, str) else None


def _fact(identifier: str) -> str:
    return f"experiment:{identifier}"
