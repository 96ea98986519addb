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
_MAX_LIVES = 1000
"""Side by side."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, nothing runs after it."""


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
    is_killed: bool = False

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
        if self.is_killed:
            return Wake()
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

    def kill(self) -> None:
        """As SIGKILL does: the life ends at the wait that it is in, and nothing of it runs after that."""
        self.is_killed = True

    def _give_turn(self) -> Wake:
        self.stage.turn.release()
        self.go.acquire()
        if self.is_killed:
            raise Killed
        return self.wake


@dataclass(slots=True, kw_only=True)
class _Life:
    actor: Actor
    live: Callable[[Actor], None]
    future: Future[None] | None = None
    """None: not begun."""

    @property
    def is_over(self) -> bool:
        return self.future is not None and self.future.done()

    @property
    def failure(self) -> BaseException | None:
        """What it raised; being killed is none."""
        found = self.future.exception() if self.future is not None and self.future.done() else None
        return None if isinstance(found, Killed) else found


class Stage:
    def __init__(self, cluster: LabCluster) -> None:
        self.cluster = cluster
        self.turn = threading.Semaphore(0)
        """Released by whoever gives the turn back to the stage."""
        self.is_leaving = False
        """Set: sessions are to leave at their next look."""
        self._lives: list[_Life] = []
        """All that are not over, in the order in which they came."""

    def add(self, name: str, live: Callable[[Actor], None]) -> Actor:
        """Have `live` called with its actor, in a thread of its own; also by a life that has its turn."""
        actor = Actor(name=name, stage=self, position=len(self.cluster.feed))
        self._lives.append(_Life(actor=actor, live=live))
        return actor

    def run(self) -> None:
        """Until every life has ended.

        Raises:
            LabError: sessions wait for what can never come.
            BaseException: what a life raised; the others are asked to leave first.
        """
        with ThreadPoolExecutor(max_workers=_MAX_LIVES, thread_name_prefix="session") as pool:
            try:
                self._play(pool)
            finally:
                self._clear()

    def _play(self, pool: ThreadPoolExecutor) -> None:
        n_idle = 0
        while self._begin_new(pool):
            n_seen = len(self.cluster.feed)
            n_turns = sum(self._turn_of(life.actor) for life in self._lives if life.future and not life.future.done())
            self._forget_ended()
            if n_turns == 0 and self._lives:
                self._advance()
            n_idle = 0 if len(self.cluster.feed) > n_seen else n_idle + 1
            if n_idle > _MAX_IDLE_TURNS:
                names = ", ".join(life.actor.name for life in self._lives)
                raise LabError(f"{names}: nothing more happens at {self.cluster.now:.0f} s, and no session ends")

    def _begin_new(self, pool: ThreadPoolExecutor) -> bool:
        """Give each new life its first turn, and the ones that those bring; whether there is any life."""
        while new := [life for life in self._lives if life.future is None]:
            for life in new:
                life.future = pool.submit(life.live, life.actor)
                life.future.add_done_callback(lambda _: self.turn.release())
                self.turn.acquire()
            self._forget_ended()
        return bool(self._lives)

    def _forget_ended(self) -> None:
        """
        Raises:
            BaseException: what a life raised.
        """
        for life in self._lives:
            if life.failure is not None:
                raise life.failure
        self._lives = [life for life in self._lives if not life.is_over]

    def _turn_of(self, actor: Actor) -> bool:
        wake = actor.look()
        if wake is None:
            return False
        actor.wake = wake
        actor.go.release()
        self.turn.acquire()
        return True

    def _advance(self) -> None:
        next_s = self.cluster.next_s()
        timer_s = min(life.actor.until_s for life in self._lives)
        self.cluster.advance_to(timer_s if next_s is None else min(next_s, timer_s))

    def _clear(self) -> None:
        """Let the threads of those who still wait end."""
        self.is_leaving = True
        for life in self._lives:
            while life.future is not None and not life.future.done():
                life.actor.wake = Wake()
                life.actor.go.release()
                self.turn.acquire()
