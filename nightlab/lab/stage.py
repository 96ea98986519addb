"""`Stage`: sessions side by side in virtual time. Each lives in a thread of its own, and one of them runs at a time.

A session that waits gives the turn back; the stage gives it to the next one for whom something has happened, and moves
the clock only when nobody has anything to do. So the order of everything is fixed, and time passes only between turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from agent.waiting import Interest, Wake, matters, merged

from .cluster import LabCluster
from .world import LabError

PATIENCE_S = 60.0
"""A session looks again after so long without news, where it asked to be woken sooner: nothing is missed by it."""
_MAX_IDLE_TURNS = 10_000
"""Timers in a row without any event; more means that nothing will ever happen."""


@dataclass(slots=True)
class Actor:
    """One session on the stage. Implements `agent.waiting.Waiter`."""

    name: str
    stage: Stage
    position: int = 0
    """How much of the feed it has seen."""
    interest: Interest | None = None
    """What it waits for; None: it does not wait, or only for its time."""
    until_s: float = 0.0
    wake: Wake = field(default_factory=Wake)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def wait(self, interest: Interest) -> Wake:
        self.interest = interest
        self.until_s = self.stage.cluster.now + max(interest.timeout_s, PATIENCE_S)
        return self._give_turn()

    def pause(self, seconds: float) -> None:
        """Wait for a time, whatever happens."""
        self.interest = None
        self.until_s = self.stage.cluster.now + seconds
        self._give_turn()

    def wake_at(self, at_s: float) -> None:
        """End the present or next wait at a time, without an event."""
        self.stage.cluster.plan(at_s, self._cut_wait)

    def close(self) -> None:
        """Nothing to close."""

    def look(self) -> Wake | None:
        """Whether its wait is over, and why; None: it goes on."""
        feed = self.stage.cluster.feed
        found: Wake | None = None
        while self.position < len(feed):
            event = feed[self.position]
            self.position += 1
            wake = None if self.interest is None else matters(event, self.interest)
            if wake is not None:
                found = wake if found is None else merged(found, wake)
        if found is None and self.until_s <= self.stage.cluster.now:
            return Wake()
        return found

    def _cut_wait(self) -> None:
        self.until_s = min(self.until_s, self.stage.cluster.now)

    def _give_turn(self) -> Wake:
        self.stage.turn.release()
        self.go.acquire()
        return self.wake


class Stage:
    def __init__(self, cluster: LabCluster) -> None:
        self.cluster = cluster
        self.turn = threading.Semaphore(0)
        """Released by whoever gives the turn back to the stage."""
        self.is_leaving = False
        """Set: sessions are to leave at their next look."""
        self._lives: list[tuple[Actor, Callable[[Actor], None]]] = []

    def add(self, name: str, live: Callable[[Actor], None]) -> None:
        """Have `live` called with its actor, in a thread of its own."""
        self._lives.append((Actor(name=name, stage=self), live))

    def run(self) -> None:
        """Until every life has ended.

        Raises:
            LabError: sessions wait for what can never come.
            Exception: what a life raised; the others are asked to leave first.
        """
        futures: dict[str, Future[None]] = {}
        with ThreadPoolExecutor(max_workers=max(len(self._lives), 1), thread_name_prefix="session") as pool:
            for actor, live in self._lives:
                futures[actor.name] = pool.submit(live, actor)
                futures[actor.name].add_done_callback(lambda _: self.turn.release())
                self.turn.acquire()
            try:
                self._play(futures)
            finally:
                self._clear(futures)
        for future in futures.values():
            future.result()

    def _play(self, futures: dict[str, Future[None]]) -> None:
        n_idle = 0
        while waiting := [actor for actor, _ in self._lives if not futures[actor.name].done()]:
            if any(future.done() and future.exception() is not None for future in futures.values()):
                return
            n_seen = len(self.cluster.feed)
            n_turns = sum(self._turn_of(actor) for actor in waiting)
            if n_turns == 0:
                self._advance(waiting)
            n_idle = 0 if len(self.cluster.feed) > n_seen else n_idle + 1
            if n_idle > _MAX_IDLE_TURNS:
                names = ", ".join(actor.name for actor in waiting)
                raise LabError(f"{names}: nothing more happens at {self.cluster.now:.0f} s, and no session ends")

    def _turn_of(self, actor: Actor) -> bool:
        wake = actor.look()
        if wake is None:
            return False
        actor.wake = wake
        actor.go.release()
        self.turn.acquire()
        return True

    def _advance(self, waiting: list[Actor]) -> None:
        next_s = self.cluster.next_s()
        timer_s = min(actor.until_s for actor in waiting)
        self.cluster.advance_to(timer_s if next_s is None else min(next_s, timer_s))

    def _clear(self, futures: dict[str, Future[None]]) -> None:
        """Let the threads of those who still wait end."""
        self.is_leaving = True
        for actor, _ in self._lives:
            while not futures[actor.name].done():
                actor.wake = Wake()
                actor.go.release()
                self.turn.acquire()
