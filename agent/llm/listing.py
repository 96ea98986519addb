"""What an endpoint says of its models: their names, and how much fits into one. No model is called, nothing is paid.

Servers differ in where they say it; one that says nothing is asked in the ways of llama.cpp and Ollama too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx

from agent.llm.chat import ModelError, Trouble
from agent.llm.guard import Calls, check_call, host_of

MAX_BYTES = 4 * 2**20
_TIMEOUT_S = 10.0
_LEAST_CONTEXT = 256
"""Less than this is no number of tokens of a context."""
_KEYS = ("max_model_len", "n_ctx", "max_context_length", "loaded_context_length", "context_length", "context_window")
"""vLLM, llama.cpp, LM Studio, OpenRouter and Ollama, Groq."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is known without a call."""

    names: tuple[str, ...] = ()
    """Of models; empty: it does not say."""
    context_tokens: int | None = None
    """Of the model that is asked for; None: it does not say."""


def look(base_url: str, model: str, key: str | None, calls: Calls) -> Listing:
    """What the endpoint says of itself. What it does not answer is left out: only a call tells whether it works.

    Raises:
        ModelError: `UNREACHABLE`, nobody is there; `FORBIDDEN`, it may not be asked from here.
    """
    check_call(host_of(base_url), calls)
    base_url = base_url.rstrip("/")
    root = base_url.removesuffix("/v1")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(headers=headers, timeout=_TIMEOUT_S, trust_env=False, follow_redirects=False) as client:
        listed = _json(client, f"{base_url}/models", is_needed=True)
        context = context_in(listed, model)
        for path in ("/props", "/api/ps"):
            context = context or context_in(_json(client, f"{root}{path}"), model)
    return Listing(names=names_in(listed), context_tokens=context)


def names_in(listed: object) -> tuple[str, ...]:
    """The ids of models in a list of `/models`."""
    return tuple(str(entry["id"]) for entry in _entries(listed) if isinstance(entry.get("id"), str))


def context_in(told: object, model: str) -> int | None:
    """Tokens that fit into the model, by what was told: the smallest number where several are given for it.

    A server of one model tells it of itself; of several, only the entry of this one counts.
    """
    entries = list(_entries(told))
    own = [one for one in entries if model in (one.get("id"), one.get("name"), one.get("model"))]
    chosen: list[Mapping[str, object]] = own or (entries if len(entries) == 1 else [])
    if not entries and isinstance(told, Mapping):
        chosen = [told]
    found = [number for one in chosen for number in _contexts(one, 0)]
    return min(found, default=None)


def _entries(told: object) -> Iterator[Mapping[str, object]]:
    """Of `{"data": [...]}` (OpenAI) or `{"models": [...]}` (Ollama)."""
    if not isinstance(told, Mapping):
        return
    for key in ("data", "models"):
        entries = told.get(key)
        if isinstance(entries, list) and entries:
            yield from (entry for entry in entries if isinstance(entry, Mapping))
            return


def _contexts(node: object, depth: int) -> Iterator[int]:
    if not isinstance(node, Mapping) or depth > 3:
        return
    for key, value in node.items():
        if key in _KEYS and isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST_CONTEXT:
            yield value
        elif isinstance(value, Mapping):
            yield from _contexts(value, depth + 1)


def _json(client: httpx.Client, url: str, *, is_needed: bool = False) -> object:
    """What is there, None where nothing is that can be read."""
    ends_at = time.monotonic() + _TIMEOUT_S
    try:
        with client.stream("GET", url) as response:
            body = b""
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_BYTES or time.monotonic() > ends_at:
                    return None
        return json.loads(body) if response.status_code == httpx.codes.OK else None
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        if not is_needed:
            return None
        advice = "is it running, and is model.base_url right? For most servers it ends with /v1"
        raise ModelError(Trouble.UNREACHABLE, f"{url} can not be reached: {error}; {advice}") from error
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
