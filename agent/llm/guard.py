"""Which model endpoints may be called from here: a test suite allows the loopback alone, so that no test ever pays."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from agent.llm.chat import ModelError, Trouble
from runtime_client.loopback import is_loopback

VARIABLE = "NIGHTLAB_MODEL_CALLS"


class Calls(StrEnum):
    FORBID = "forbid"
    """None at all."""
    LOOPBACK = "loopback"
    """To this machine alone."""
    ALLOW = "allow"


def calls_allowed(environ: Mapping[str, str]) -> Calls:
    """What the environment says; without a word, all are allowed. A word that is none of these forbids them."""
    word = environ.get(VARIABLE, Calls.ALLOW).strip().lower()
    return Calls(word) if word in set(Calls) else Calls.FORBID


def check_call(host: str, calls: Calls) -> None:
    """
    Raises:
        ModelError: `FORBIDDEN`, when no model at this host may be called.
    """
    if calls is Calls.ALLOW or (calls is Calls.LOOPBACK and is_loopback(host)):
        return
    only = "models on this machine alone may be called" if calls is Calls.LOOPBACK else "no model may be called"
    how = f"set {VARIABLE}=allow to allow all, or use a ScriptedModel"
    raise ModelError(Trouble.FORBIDDEN, f"{host} was not called: here {only} ({VARIABLE}={calls.value}); {how}")


def host_of(base_url: str) -> str:
    """The host in an address, empty where there is none."""
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""
