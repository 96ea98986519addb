"""`OpenAIChat`: the one adapter, over the `openai` client, for every endpoint that speaks chat completions.

The client's own retries and timeouts are off: tries, waits and the deadline are here, in one place. What a model may
have worked on is not tried again, for it would be paid twice: only refusals that say "later" are, and connections that
were never made. Importing this imports the client (seconds): import it where a model is opened.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from openai import APIResponse, OpenAI, Stream

from agent.llm.answers import Answer, Piece, Unreadable, read_piece
from agent.llm.bounded_http import BoundedTransport, Bounds, BrokenOff, OutOfTime, TooMuch
from agent.llm.chat import ModelError, Reply, Request, Trouble
from agent.llm.dialect import Dialect, learned, payload
from agent.llm.guard import Calls, check_call, host_of
from agent.llm.redaction import redacted
from agent.llm.troubles import Refusal, refusal, retry_after_s, sense

MAX_TRIES = 4
"""Of one call; what is refused at once because of a dialect is not counted."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
MAX_BYTES = 16 * 2**20
"""Of one try, both head and body."""
NO_KEY = "not-needed"
"""What is sent where no key is needed: the client wants one."""
_TRY_SCHEMA = "set model.rung: schema or fenced if this goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model answers, and by what name."""

    base_url: str
    model: str
    key: str | None = None
    """None: none is needed."""
    calls: Calls
    """What may be called from here."""

    @property
    def words(self) -> str:
        return f"{self.model} at {self.base_url}"


class _Again(Exception):
    """A try failed, and another one may do."""

    def __init__(self, error: ModelError, wait_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_s = wait_s
        """What the endpoint asks for; None: it does not say."""


class OpenAIChat:
    """Implements `ChatModel`. Calls may come from several threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[float], float] = lambda most_s: random.uniform(0.0, most_s),
    ) -> None:
        """
        Args:
            jitter: given the longest wait in seconds, how long to wait before the next try.
        """
        self._endpoint = endpoint
        self._monotonic = monotonic
        self._clock = clock
        self._jitter = jitter
        self._bounds = Bounds(monotonic)
        self._transport = BoundedTransport(
            self._bounds, endpoint.calls, is_secure=endpoint.base_url.lower().startswith("https:")
        )
        self._closed = threading.Event()
        self._dialect = Dialect()
        key = endpoint.key or NO_KEY
        self._secrets = frozenset({endpoint.key} if endpoint.key else ())
        self._client = OpenAI(
            api_key=key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=None,
            default_headers={"Accept-Encoding": "identity"},
            http_client=httpx2.Client(transport=self._transport, trust_env=False, follow_redirects=False),
        )

    @property
    def name(self) -> str:
        return self._endpoint.model

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        began = self._monotonic()
        ends_at = began + deadline_s
        check_call(host_of(self._endpoint.base_url), self._endpoint.calls)
        for n_tries in range(1, MAX_TRIES + 1):
            try:
                return self._try(request, began, ends_at, on_text)
            except _Again as again:
                if n_tries == MAX_TRIES:
                    raise again.error from again
                self._wait(again, n_tries, ends_at)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """End the calls that are under way, in whatever thread; none can be made any more."""
        self._closed.set()
        self._transport.hang_up()

    def _wait(self, again: _Again, n_tries: int, ends_at: float) -> None:
        """Full jitter below a bound that doubles; what an endpoint asks for goes before.

        Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        if again.wait_s is None:
            wait_s = self._jitter(min(FIRST_WAIT_S * 2 ** (n_tries - 1), LONGEST_WAIT_S))
        else:
            wait_s = again.wait_s + self._jitter(FIRST_WAIT_S)
        if self._monotonic() + wait_s >= ends_at or self._closed.wait(wait_s):
            raise again.error from again

    def _try(self, request: Request, began: float, ends_at: float, on_text: Callable[[str], None] | None) -> Reply:
        """One try, and once more for each thing that the endpoint is found not to take."""
        while True:
            dialect = self._dialect
            try:
                with self._bounds.of_call(ends_at, MAX_BYTES):
                    return self._call(request, dialect, began, on_text)
            except openai.APIStatusError as error:
                refused = refusal(error.status_code, error.response.text)
                better = learned(dialect, request, refused.words, is_streamed=on_text is not None)
                if better is None or error.status_code >= 500:
                    raise self._refused(refused, error.response.headers) from error
                self._dialect = better
            except (openai.APIConnectionError, httpx2.HTTPError) as error:
                raise self._unanswered(error) from error
            except openai.APIError as error:
                # The answer had begun, and an error came in the middle of it.
                raise self._refused(refusal(None, _body_of(error)), {}).error from error
            except Unreadable as error:
                raise self._error(Trouble.GARBLED, f"gave no answer that can be read: {error}", _TRY_SCHEMA) from error

    def _call(self, request: Request, dialect: Dialect, began: float, on_text: Callable[[str], None] | None) -> Reply:
        first_at: list[float] = []

        def hear(text: str) -> None:
            if not first_at:
                first_at.append(self._monotonic() - began)
            if on_text is not None:
                on_text(text)

        answer, is_streamed = Answer(hear), on_text is not None
        body: dict[str, Any] = payload(request, self._endpoint.model, dialect, is_streamed=is_streamed)
        with self._client.chat.completions.with_streaming_response.create(**body) as response:
            for piece in _pieces(response, is_streamed=is_streamed):
                answer.add(piece)
                if answer.is_cut:
                    break
        if not answer.has_ended and not answer.is_cut:
            raise Unreadable("it was cut off before its end")
        return Reply(
            text=answer.text,
            tool_calls=answer.tool_calls,
            usage=answer.usage(request),
            finish=answer.finish,
            model=answer.model or self._endpoint.model,
            took_s=self._monotonic() - began,
            first_token_s=first_at[0] if first_at and is_streamed else None,
        )

    def _refused(self, refused: Refusal, headers: Mapping[str, str]) -> _Again:
        """Of an endpoint that said no, or that it can not."""
        meant = sense(refused)
        wait_s = retry_after_s(headers, self._clock())
        status = "" if refused.status is None else f" ({refused.status})"
        asked = "" if wait_s is None else f" (wait {wait_s:.0f} s, it says)"
        error = self._error(meant.trouble, f"said{status}: {refused.words}{asked}", meant.advice, refused.status)
        if not meant.is_worth_another_try:
            raise error
        return _Again(error, wait_s)

    def _unanswered(self, error: Exception) -> _Again:
        """Of an endpoint that can not be reached, or with which the talk broke off."""
        cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
        if isinstance(cause, OutOfTime):
            advice = "give it more time with model.call_seconds, or ask for less with model.max_tokens"
            raise self._error(Trouble.TIMED_OUT, "gave no answer by the deadline of the call", advice)
        if isinstance(cause, TooMuch | BrokenOff):
            raise self._error(Trouble.GARBLED, f"gave no answer that can be read: {cause}", _TRY_SCHEMA)
        said = str(cause or error) or type(cause or error).__name__
        is_speechless = isinstance(cause, httpx2.RemoteProtocolError) and "disconnected" not in said
        if is_speechless or isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            advice = "is model.base_url the address of a chat API, with the right http or https?"
            raise self._error(Trouble.UNREACHABLE, f"does not speak HTTP: {said}", advice)
        advice = "is it running, and is model.base_url right?"
        unreachable = self._error(Trouble.UNREACHABLE, f"can not be reached: {said}", advice)
        if "CERTIFICATE" in said or self._closed.is_set():
            raise unreachable
        return _Again(unreachable)

    def _error(self, trouble: Trouble, what: str, advice: str, status: int | None = None) -> ModelError:
        sentence = redacted(f"{self._endpoint.words} {what}; {advice}", self._secrets)
        return ModelError(trouble, sentence, status=status)


def _pieces(response: APIResponse[Any], *, is_streamed: bool) -> Iterator[Piece]:
    """An answer that was asked for in pieces comes whole from some endpoints.

    Raises:
        Unreadable: it is no answer of this protocol.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise Unreadable(f"it is packed ({encoding}), which was not asked for")
    kind = response.headers.get("content-type", "").lower()
    try:
        if is_streamed and "json" not in kind:
            with response.parse(to=Stream[object]) as stream:
                for data in stream:
                    yield read_piece(data)
        else:
            yield read_piece(response.json())
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"it is no JSON ({kind or 'no content type'}): {error}") from error


def _body_of(error: openai.APIError) -> str:
    return json.dumps(error.body) if isinstance(error.body, Mapping) else str(error.body or error.message)
