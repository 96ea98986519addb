"""A `ChatModel` that says what it was told to say: for tests, rehearsals and the virtual-time lab.

It answers from a list or from a function of the request, fails where the script says so, and takes as long as it says
by a clock that is given. It keeps every request, so a test can look at what a model would have been shown.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.llm.chat import Finish, ModelError, Reply, Request, ToolCall, Trouble, Usage
from agent.llm.counting import estimated_usage

_PIECES = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer of a script."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    took_s: float = 0.0
    """Longer than the deadline: it is a `TIMED_OUT`, after the deadline."""
    finish: Finish | None = None
    """None: `TOOLS` where it calls one, else `STOP`."""
    usage: Usage | None = None
    """None: estimated."""


Scripted = str | Said | ModelError
"""A text, an answer in full, or the error that is raised."""


def called(name: str, arguments: str, *, took_s: float = 0.0) -> Said:
    """An answer that calls one tool; `arguments` is JSON."""
    return Said(tool_calls=(ToolCall(call_id="call-1", name=name, arguments=arguments),), took_s=took_s)


class ScriptedModel:
    """Implements `ChatModel`. Calls may come from several threads."""

    def __init__(
        self,
        script: Sequence[Scripted] | Callable[[Request], Scripted],
        *,
        name: str = "scripted",
        pause: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        """
        Args:
            script: Answers in this order, and none after the last; or what answers each request.
            pause: Waits what an answer takes, in seconds. The default waits nothing and only reports it.
        """
        self._script = script
        self._name = name
        self._pause = pause
        self._lock = threading.Lock()
        self._requests: list[Request] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def requests(self) -> tuple[Request, ...]:
        """All that it was asked, in order."""
        with self._lock:
            return tuple(self._requests)

    @property
    def n_calls(self) -> int:
        return len(self.requests)

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        scripted = self._next(request)
        if isinstance(scripted, ModelError):
            raise scripted
        said = Said(text=scripted) if isinstance(scripted, str) else scripted
        self._pause(min(said.took_s, deadline_s))
        if said.took_s > deadline_s:
            raise ModelError(Trouble.TIMED_OUT, f"{self._name} gave no answer within {deadline_s:g} s")
        if on_text is not None:
            for piece in _PIECES.findall(said.text):
                on_text(piece)
        return Reply(
            text=said.text,
            tool_calls=said.tool_calls,
            usage=said.usage or estimated_usage(request, said.text, said.tool_calls),
            finish=said.finish or (Finish.TOOLS if said.tool_calls else Finish.STOP),
            model=self._name,
            took_s=said.took_s,
            first_token_s=None if on_text is None else said.took_s,
        )

    def _next(self, request: Request) -> Scripted:
        with self._lock:
            self._requests.append(request)
            n = len(self._requests)
        if callable(self._script):
            return self._script(request)
        if n > len(self._script):
            only = f"its script has {len(self._script)} answers and this is question {n}"
            return ModelError(Trouble.FAILED, f"{self._name} has nothing more to say: {only}")
        return self._script[n - 1]
