"""`MeteredModel`: a `ChatModel` with accounts. No call is made that the budgets have no room for; none is forgotten.

Each call is booked with what it may use at most before it is made, and corrected after it. Secrets are taken out of
what is sent. Every call leaves a row and a line of the archive.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from agent.llm.archive import Archive, without_secrets
from agent.llm.chat import ChatModel, ModelError, Outcome, Reply, Request, Trouble, Usage
from agent.llm.counting import prompt_tokens
from agent.planner.budget import CallNeed
from agent.spending import Permit, Spending
from agent.store.calls import CallFacts
from agent.store.faults import DiskFull, full_disk_named
from agent.store.fenced import FenceLost
from agent.task import Prices

LEAST_ANSWER_TOKENS = 256
"""With room for less than this, the model is not asked: an answer that is cut is money for nothing."""
_MAY_HAVE_WORKED = frozenset({Trouble.TIMED_OUT, Trouble.GARBLED})
"""After these nobody knows what the call has used, so what was booked for it stays."""
_NOTHING_USED = Usage(prompt_tokens=0, completion_tokens=0)


class MeteredModel:
    """Implements `ChatModel` and `Judged`. Calls may come from several threads."""

    def __init__(
        self,
        inner: ChatModel,
        spending: Spending,
        *,
        price: Prices | None,
        archive: Archive | None = None,
        secrets: frozenset[str] = frozenset(),
        close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            price: None: unknown, then only tokens are counted.
            secrets: texts that are neither sent nor kept.
            close: ends the calls of `inner` that are under way.
        """
        self._inner = inner
        self._spending = spending
        self._price = price
        self._archive = archive
        self._secrets = secrets
        self._close = close
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._correction = 1.0
        """By so much the estimates of prompts were too low at most, as far as the endpoint has told."""

    @property
    def name(self) -> str:
        return self._inner.name

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        """
        Raises:
            ModelError: as the inner one; `OVER_BUDGET`, `FORBIDDEN` when the call was not made.
        """
        request = without_secrets(request, self._secrets)
        estimate = math.ceil(prompt_tokens(request) * self._correction)
        permit = self._permit(request, estimate)
        request = replace(request, max_tokens=permit.max_tokens)
        at, began = self._clock(), self._monotonic()
        try:
            reply = self._inner.complete(request, deadline_s=deadline_s, on_text=on_text)
        except ModelError as error:
            note = self._keep(permit, at, request, error) or str(error)
            usage = None if error.trouble in _MAY_HAVE_WORKED else _NOTHING_USED
            with _written():
                took_s = self._monotonic() - began
                self._spending.end(permit, error.trouble, usage=usage, took_s=took_s, note=note)
            raise
        self._learn(request, reply.usage)
        unkept = self._keep(permit, at, request, reply)
        with _written():
            self._spending.end(
                permit, Outcome.USED, usage=reply.usage, took_s=reply.took_s, model=reply.model, note=unkept
            )
        return replace(reply, call_id=permit.call_id)

    def judge(self, call_id: int, outcome: Outcome, note: str | None = None) -> None:
        """Where it can not be written down the reply counts as used; the session itself learns of the reason."""
        with suppress(ModelError), _written():
            self._spending.judge(call_id, outcome, note)

    def close(self) -> None:
        """End the calls that are under way; none is made any more."""
        self._close()

    def _permit(self, request: Request, estimate: int) -> Permit:
        facts = CallFacts(
            purpose=request.purpose,
            model=self._inner.name,
            prompt_version=request.prompt_version,
            rung=None if request.rung is None else request.rung.value,
        )
        need = CallNeed(
            prompt_tokens=estimate,
            max_tokens=request.max_tokens,
            least_tokens=LEAST_ANSWER_TOKENS,
            price=self._price,
        )
        with _written():
            permit = self._spending.begin(facts, need)
        if permit.refusal is not None:
            what = f"the model was not asked: {permit.refusal}; a session with larger budgets may go on asking"
            raise ModelError(Trouble.OVER_BUDGET, what)
        return permit

    def _learn(self, request: Request, usage: Usage) -> None:
        """Estimate longer from now on, where the endpoint has counted more."""
        if usage.is_estimated:
            return
        with self._lock:
            self._correction = max(self._correction, usage.prompt_tokens / max(prompt_tokens(request), 1))

    def _keep(self, permit: Permit, at: float, request: Request, outcome: Reply | ModelError) -> str | None:
        return None if self._archive is None else self._archive.keep(permit.call_id, at, request, outcome)


@contextmanager
def _written() -> Iterator[None]:
    """What can not be written down is not done, or does not count; the session itself learns of the reason."""
    try:
        with full_disk_named():
            yield
    except FenceLost as error:
        raise ModelError(Trouble.FORBIDDEN, f"another process works on the session now: {error}") from error
    except DiskFull as error:
        raise ModelError(Trouble.FORBIDDEN, f"no space to write down a call of the model: {error}") from error
