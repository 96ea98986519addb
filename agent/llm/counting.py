"""How many tokens a request has, before any endpoint has counted them: an estimate. Pure.

No tokenizer is asked: each model has its own, and most endpoints are somebody's own model. Words cost a token for three
letters, digits one each (as in Llama 3 and Qwen, which split numbers), other signs one each, and text beyond ASCII one
for two bytes. Tables of numbers come out up to a fifth too low (measured on Qwen 2.5); whoever keeps accounts corrects
the estimate by what the endpoint counts.
"""

from __future__ import annotations

import json
import math
import string

from agent.llm.chat import Request, ToolCall, Usage

_FRAME = 32
"""Of one request: what chat templates put before it, such as a system message of their own, in tokens."""
_TOOLS_FRAME = 96
"""What they say of how tools are called, in tokens."""
_PER_MESSAGE = 8
"""Role and borders of one message, in tokens."""
_LETTERS = (string.ascii_letters + " \n\t_").encode()
_SIGNS = bytes(byte for byte in range(128) if byte not in _LETTERS)
"""Digits are among them."""


def tokens_of(text: str) -> int:
    """About how many tokens a text has."""
    data = text.encode("utf-8", errors="replace")
    without_letters = data.translate(None, _LETTERS)
    n_letters = len(data) - len(without_letters)
    n_other_bytes = len(without_letters.translate(None, _SIGNS))
    n_signs = len(without_letters) - n_other_bytes
    return math.ceil(n_letters / 3 + n_signs + n_other_bytes / 2)


def prompt_tokens(request: Request) -> int:
    """About how many tokens a request has: its messages, its tools, its schema."""
    n = _FRAME + (_TOOLS_FRAME if request.tools else 0)
    n += sum(_PER_MESSAGE + tokens_of(m.text) + _tokens_of_calls(m.tool_calls) for m in request.messages)
    n += sum(_PER_MESSAGE + tokens_of(f"{t.name} {t.description} {json.dumps(t.parameters)}") for t in request.tools)
    if request.schema is not None:
        n += _PER_MESSAGE + tokens_of(json.dumps(request.schema.schema))
    return n


def estimated_usage(request: Request, text: str, tool_calls: tuple[ToolCall, ...]) -> Usage:
    """What a call has cost where the endpoint told nothing."""
    return Usage(
        prompt_tokens=prompt_tokens(request),
        completion_tokens=tokens_of(text) + _tokens_of_calls(tool_calls),
        is_estimated=True,
    )


def _tokens_of_calls(tool_calls: tuple[ToolCall, ...]) -> int:
    return sum(_PER_MESSAGE + tokens_of(f"{call.name} {call.arguments}") for call in tool_calls)
