"""`log_metrics`: to the metrics gateway, batched, from a thread; training never waits for it and never fails by it.

What was not sent yet goes into each checkpoint, and is sent again by whoever resumes from it: a curve has no hole
where the gateway was away, or the process was killed.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import posixpath
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

from . import ranks
from .process_context import Context, context

if TYPE_CHECKING:
    from .gateway import Gateway, Point

BATCH = 1000
"""Most points of one request; the gateway's limit."""
MOST_WAITING = 200_000
"""Points kept while the gateway is away; then the oldest go."""
LINGER_S = 0.1
"""How long a point may wait for others to travel with."""
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
EXIT_S = 30.0
"""How long the end of the process waits for a gateway that is being started again."""
UNSENT = "unsent-metrics.json"
_NAME = re.compile(r"[/\w.\- :]{1,250}")


class Sender:
    """A bounded queue and the thread that empties it."""

    def __init__(self, url: str, token: str | None, *, most_waiting: int = MOST_WAITING) -> None:
        self._url, self._token = url, token
        self._waiting: deque[Point] = deque()
        self._most_waiting = most_waiting
        self._changed = threading.Condition()
        self._is_urgent = False
        self._is_over = False
        self.n_dropped = 0
        """Points that were given up."""
        self._thread = threading.Thread(target=self._run, name="nightlab-metrics", daemon=True)
        self._thread.start()

    def put(self, points: list[Point]) -> None:
        with self._changed:
            if self._is_over:
                self.n_dropped += len(points)
                return
            self._waiting.extend(points)
            while len(self._waiting) > self._most_waiting:
                self._waiting.popleft()
                self._count_dropped(1, f"more than {self._most_waiting} points wait for the metrics gateway")
            self._changed.notify_all()

    def unsent(self) -> list[Point]:
        with self._changed:
            return list(self._waiting)

    def flush(self, timeout_s: float) -> bool:
        """Whether everything was sent in time."""
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._waiting, timeout_s)
            self._is_urgent = False
            return done

    def _run(self) -> None:
        from .gateway import Gateway  # not before the first point: it has to know TLS

        gateway = Gateway(self._url, self._token)
        n_failures = 0
        while True:
            batch = self._next_batch(PAUSES_S[min(n_failures, len(PAUSES_S)) - 1] if n_failures else None)
            n_failures = 0 if self._send(gateway, batch) else n_failures + 1

    def _next_batch(self, pause_s: float | None) -> list[Point]:
        with self._changed:
            if pause_s is not None:
                self._changed.wait_for(lambda: False, pause_s)
            self._changed.wait_for(lambda: bool(self._waiting))
            if pause_s is None:
                self._changed.wait_for(lambda: self._is_urgent or len(self._waiting) >= BATCH, LINGER_S)
            return [self._waiting[i] for i in range(min(BATCH, len(self._waiting)))]

    def _send(self, gateway: Gateway, batch: list[Point]) -> bool:
        """Whether the batch is done with."""
        outcome = gateway.send(batch)
        if outcome == "away":
            return False
        with self._changed:
            for point in batch:
                if self._waiting and self._waiting[0] is point:  # else it was dropped meanwhile, being the oldest
                    self._waiting.popleft()
            if outcome == "refused":
                self._count_dropped(len(batch), f"the metrics gateway refused a batch ({gateway.problem})")
            elif outcome == "over":
                self._is_over = True
                self._count_dropped(len(self._waiting) + len(batch), f"no metric is taken any more ({gateway.problem})")
                self._waiting.clear()
            self._changed.notify_all()
        return True

    def _count_dropped(self, n_points: int, why: str) -> None:
        if not self.n_dropped:
            print(f"nightlab: {why}; some points are lost", file=sys.stderr, flush=True)
        self.n_dropped += n_points


class _Senders:
    """The sender of this process: after a fork the child gets its own, when it needs one."""

    def __init__(self) -> None:
        self._sender: Sender | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def find(self) -> Sender | None:
        return self._sender if self._pid == os.getpid() else None

    def get(self, url: str, token: str | None) -> Sender:
        with self._lock:
            found = self.find()
            if found is None:
                found = Sender(url, token)
                self._sender, self._pid = found, os.getpid()
                atexit.unregister(flush_metrics)
                atexit.register(flush_metrics, EXIT_S)
            return found


_senders = _Senders()


def log_metrics(values: Mapping[str, SupportsFloat], *, step: int = 0, echo: bool | None = None) -> None:
    """Record values of metrics at a step; returns at once. With several ranks the first one's count.

    Args:
        values: by name; numbers, or what `float()` takes (scalars of numpy and torch).
        echo: whether to print a line too; None: outside nightlab, where there is no gateway.

    Raises:
        ValueError: a name that MLflow would not take.
        TypeError: a value that is no number.
    """
    found = context()
    if ranks.own_rank(found.rank) != 0:
        return
    at_ms = int(time.time() * 1000)
    points: list[Point] = [(_checked(name), float(value), int(step), at_ms) for name, value in values.items()]
    sender = _sender_of(found)
    if echo or (echo is None and sender is None):
        print(f"step {step}: " + ", ".join(f"{name} {value!r}" for name, value, *_ in points), flush=True)
    if sender is not None:
        sender.put(points)


def flush_metrics(timeout_s: float = EXIT_S) -> bool:
    """Wait until everything logged so far has arrived; whether it has. At the end of the process it is done anyway."""
    sender = _senders.find()
    return sender is None or sender.flush(timeout_s)


def do_not_wait_at_exit() -> None:
    """What is unsent is in the checkpoint: the process may end."""
    atexit.unregister(flush_metrics)


def take_unsent(folder: Path) -> None:
    """Put what was not sent yet into a checkpoint. Raises OSError."""
    sender = _senders.find()
    points = [] if sender is None else sender.unsent()
    if points:
        rows = [[name, value if math.isfinite(value) else repr(value), *rest] for name, value, *rest in points]
        (folder / UNSENT).write_text(json.dumps(rows))


def put_unsent(folder: Path) -> None:
    """Log again what a checkpoint kept; points that did arrive arrive twice, with the same values."""
    found = context()
    sender = _sender_of(found)
    path = folder / UNSENT
    if sender is not None and ranks.own_rank(found.rank) == 0 and path.exists():
        sender.put([(name, float(value), step, at_ms) for name, value, step, at_ms in json.loads(path.read_text())])


def _sender_of(found: Context) -> Sender | None:
    return None if found.tracking_url is None else _senders.get(found.tracking_url, found.tracking_token)


def _checked(name: str) -> str:
    plain = posixpath.normpath(name)
    if _NAME.fullmatch(name) is None or plain != name or plain.startswith(("..", "/")) or plain == ".":
        raise ValueError(
            f"{name!r} can not be the name of a metric: use letters, digits, `_`, `-`, `.`, `:`, spaces and `/` "
            "between parts, at most 250 characters"
        )
    return name
