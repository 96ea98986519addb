"""What waits for the loop: requests with someone waiting for the answer, and reports of engines."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from runtime.engines.contract import NodeReport
from runtime.model.events import Event
from runtime.model.state import State
from runtime.model.states import StopCause
from runtime.store.history import AttemptRow, JobRow
from runtime_client.doors.refusal import Refused
from runtime_client.models import JobSpec

from .arrays import ArraySubmission, TakenArray
from .draft import Actor
from .submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A job that is in, durably."""

    job_id: str
    is_existing: bool
    """Its idempotency token was known."""
    row: JobRow | None
    """As just written; None: it is from an earlier transaction."""
    attempts: tuple[AttemptRow, ...]
    spec: JobSpec


@dataclass(slots=True, kw_only=True)
class SubmitJobs:
    """Take these jobs in; each gets its own answer, in order."""

    submissions: Sequence[Submission]
    answer: asyncio.Future[list[Accepted | Refused]]


@dataclass(slots=True, kw_only=True)
class CancelJob:
    job_id: str
    reason: str
    actor: Actor
    answer: asyncio.Future[None]


@dataclass(slots=True, kw_only=True)
class PartWithJobs:
    """Start nothing more, and ask everything that runs to stop: the server is about to end."""

    cause: StopCause
    """SHUTDOWN: they checkpoint and are requeued. CANCEL: they end for good."""
    reason: str
    actor: Actor
    answer: asyncio.Future[None]


@dataclass(slots=True, kw_only=True)
class Instruct:
    """What a person who runs the machines wants, as the events that it means for the state as it then is."""

    meaning: Callable[[State, float], Sequence[Event]]
    """Of the state and the time; changes nothing. Raises `Refused`."""
    actor: Actor
    answer: asyncio.Future[None]


@dataclass(slots=True, kw_only=True)
class SubmitArray:
    """Take an array in, all of its tasks or none."""

    submission: ArraySubmission
    answer: asyncio.Future[TakenArray]


Request = SubmitJobs | SubmitArray | CancelJob | PartWithJobs | Instruct
Item = Request | NodeReport


@dataclass(slots=True)
class Inbox:
    """Filled from the event loop's thread; drained whole."""

    _items: deque[Item] = field(default_factory=deque)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, item: Item) -> None:
        self._items.append(item)
        self._has_news.set()

    def put_back(self, items: Iterable[Item]) -> None:
        """Before everything else, in order; wakes nobody."""
        self._items.extendleft(reversed(list(items)))

    def poke(self) -> None:
        """Wake the loop without an item."""
        self._has_news.set()

    async def wait(self, timeout_s: float) -> bool:
        """Until something new is put in, or the time is over; whether there is something new."""
        if timeout_s <= 0:
            return self._has_news.is_set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_news.wait()
        except TimeoutError:
            return False
        return True

    def drain(self) -> list[Item]:
        items = list(self._items)
        self._items.clear()
        self._has_news.clear()
        return items


def is_request(item: Item) -> bool:
    return isinstance(item, Request)
