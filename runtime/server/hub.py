"""The event hub: what has just been committed goes to every open event stream.

Lives on the event loop's thread. Slow readers are dropped, never waited for: they connect again and replay.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from runtime_client.models import EventView

QUEUE_LIMIT = 8192
"""Messages that may wait for one reader. Passing events stop at half of it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One event, already written as server-sent event."""

    seq: int | None
    data: bytes


def message_of(event: EventView) -> Message:
    head = "" if event.seq is None else f"id: {event.seq}\n"
    body = event.model_dump_json()
    return Message(event.seq, f"{head}event: {event.type}\ndata: {body}\n\n".encode())


class Subscription:
    """One reader's queue. `with hub.subscribe() as subscription`."""

    def __init__(self, hub: EventHub) -> None:
        self._hub = hub
        self._queue: deque[Message] = deque()
        self._has_news = asyncio.Event()
        self.is_over = False
        """Nothing more will come: the hub closed, or this reader was too slow."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hub.remove(self)

    def push(self, message: Message) -> None:
        n_waiting = len(self._queue)
        if message.seq is None and n_waiting >= QUEUE_LIMIT // 2:
            return
        if n_waiting >= QUEUE_LIMIT:
            self.end()
            return
        self._queue.append(message)
        self._has_news.set()

    def end(self) -> None:
        self.is_over = True
        self._has_news.set()

    async def next_batch(self, wait_s: float) -> list[Message]:
        """What has come since; empty after `wait_s` seconds without anything, or when `is_over`."""
        if not self._queue and not self.is_over:
            try:
                async with asyncio.timeout(wait_s):
                    await self._has_news.wait()
            except TimeoutError:
                return []
        batch = list(self._queue)
        self._queue.clear()
        self._has_news.clear()
        return batch


class EventHub:
    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        self.is_closed = False
        self.on_event: Callable[[EventView], None] | None = None
        """Told of every event, on the spot."""

    def subscribe(self) -> Subscription:
        subscription = Subscription(self)
        if self.is_closed:
            subscription.end()
        self._subscriptions.add(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def publish(self, events: Iterable[EventView]) -> None:
        """Hand events on, in order. Journalled ones only after their commit."""
        if self.on_event is not None:
            events = list(events)
            for event in events:
                self.on_event(event)
        if not self._subscriptions:
            return
        for event in events:
            message = message_of(event)
            for subscription in tuple(self._subscriptions):
                subscription.push(message)

    def close(self) -> None:
        """End every stream, so that an orderly shutdown does not wait for them."""
        self.is_closed = True
        for subscription in tuple(self._subscriptions):
            subscription.end()
