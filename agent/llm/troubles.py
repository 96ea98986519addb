"""What an endpoint's refusal means, by its status and its words, and what to do about it. Pure.

There is no common vocabulary: the same trouble has another status and another text at every vendor. The texts here are
those of OpenAI, Azure, Anthropic, Google, Mistral, Groq, OpenRouter, DeepSeek, vLLM, TGI, llama.cpp, Ollama and LM
Studio, from their documentation and their source code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from agent.llm.chat import Trouble

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context size|context length|context window"
    r"|prompt is too long|input is too long|too large for model|reduce the length|max_new_tokens. must be"
    r"|input token count|max_prompt_tokens|longer than the maximum|request too large|too many tokens in",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|not a valid model|unknown model|no such model|invalid model|DeploymentNotFound"
    r"|models?\b.{0,120}?\b(?:not found|does not exist|is not available|not supported for)",
    re.IGNORECASE | re.DOTALL,
)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|no credit|out of credits", re.IGNORECASE)
_NO_TOOLS = re.compile(r"tool use|tools?\b[^.]{0,40}not support|not support[^.]{0,40}\btools?\b", re.IGNORECASE)
_BAD_OUTPUT = re.compile(
    r"peg-native|failed to parse (?:tool|output|input at)|does not match the expected", re.IGNORECASE
)
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What came instead of an answer."""

    status: int | None
    """HTTP status; None: the answer had begun already."""
    words: str
    """As the endpoint said it, shortened."""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """What it means."""

    trouble: Trouble
    advice: str
    is_worth_another_try: bool = False


def refusal(status: int | None, text: str) -> Refusal:
    """Reads the body of an error, whatever shape the endpoint gives it."""
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    code = ""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            code = str(inner.get("code") or inner.get("type") or "")
            told = inner.get("message") or inner.get("detail") or inner.get("msg")
            body = told if told is not None else inner
        else:
            body = inner
    words = body if isinstance(body, str) else json.dumps(body)
    return Refusal(status=status, words=_one_line(words), code=code[:100])


def sense(refused: Refusal) -> Sense:
    """What a refusal means."""
    status = refused.status or _status_in(refused.code) or 500
    said = f"{refused.code} {refused.words}"
    if status == 413 or _TOO_LONG.search(said):
        return Sense(trouble=Trouble.TOO_LONG, advice="set model.context_tokens to what fits into this model")
    if _NO_CREDIT.search(said) or status == 402:
        advice = "the account behind the key has no credit left: pay in, or name another key with model.key_env"
        return Sense(trouble=Trouble.UNAUTHORIZED, advice=advice)
    if status in (401, 403):
        advice = "give a valid key in the variable that model.key_env names, or in the file of model.key_file"
        return Sense(trouble=Trouble.UNAUTHORIZED, advice=advice)
    if _NO_TOOLS.search(said) and status < 500:
        return Sense(trouble=Trouble.REFUSED, advice="set model.rung: schema or fenced")
    if _UNKNOWN_MODEL.search(said) and status < 500:
        return Sense(trouble=Trouble.UNKNOWN_MODEL, advice="give model.name as the endpoint lists it under /models")
    return _by_status(status, said)


def _by_status(status: int, said: str) -> Sense:
    match status:
        case 404 | 405:
            advice = "there is no chat API at this address: model.base_url usually ends in /v1"
            return Sense(trouble=Trouble.UNREACHABLE, advice=advice)
        case 408 | 504 | 524:
            advice = "give it more time with model.call_seconds, or ask for shorter answers with model.max_tokens"
            return Sense(trouble=Trouble.TIMED_OUT, advice=advice, is_worth_another_try=True)
        case 429:
            advice = "fewer sessions at once, or a higher limit at the vendor"
            return Sense(trouble=Trouble.RATE_LIMITED, advice=advice, is_worth_another_try=True)
        case _ if 300 <= status < 400:
            advice = "it sends elsewhere: give the final address in model.base_url"
            return Sense(trouble=Trouble.UNREACHABLE, advice=advice)
        case _ if status >= 500 and status != 501:
            if _BAD_OUTPUT.search(said):
                # llama.cpp: the model wrote a tool call that its own grammar can not read.
                return Sense(trouble=Trouble.GARBLED, advice="set model.rung: schema if this goes on")
            is_passing = status != 505
            advice = "the endpoint failed: look into its log"
            return Sense(trouble=Trouble.FAILED, advice=advice, is_worth_another_try=is_passing)
        case _:
            is_passing = status in (409, 425)
            advice = "set model.rung: schema, fenced or menu if the endpoint takes no such request"
            return Sense(trouble=Trouble.REFUSED, advice=advice, is_worth_another_try=is_passing)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long an endpoint asks to wait, in seconds; None: it does not say.

    Args:
        now: seconds since the epoch, for answers that name a date.
    """
    by_ms = _number(headers.get("retry-after-ms"))
    if by_ms is not None:
        return max(by_ms / 1000, 0.0)
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None:
        return max(seconds, 0.0)
    if told is None:
        return None
    try:
        return max(parsedate_to_datetime(told).timestamp() - now, 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", text):
        return None
    return float(text)


def _status_in(code: str) -> int | None:
    return int(code) if re.fullmatch(r"[45]\d\d", code) else None


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 3] + "..."
