"""Thirty nights of a sweep in virtual time, the machine sleeping and dying now and then, people by day."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from bench.figure import Figure
from bench.nightly import Calendar, Trouble
from nightlab.lab.nights import live_nights, live_without_nights
from nightlab.lab.nights_account import Delay, NightsAccount, account, delay

SLEEPS = (
    Trouble(night=5, begin="21:50", end="23:10"),  # over the start
    Trouble(night=9, begin="05:30", end="09:20"),  # over the hour
    Trouble(night=15, begin="21:00", end="11:00"),  # over the whole night
    Trouble(night=20, begin="01:40", end="03:10"),  # inside of it
)
KILLS = (
    Trouble(night=3, begin="02:00", end="02:10"),
    Trouble(night=11, begin="23:00", end="23:05"),
    Trouble(night=13, begin="02:30", end="02:31"),
    Trouble(night=18, begin="06:58", end="07:04"),  # over the hour
    Trouble(night=25, begin="06:40", end="06:45"),
)
BY_HAND = (
    Trouble(night=4, begin="23:30", end="07:00"),
    Trouble(night=14, begin="02:15", end="07:00"),
    Trouble(night=22, begin="06:59", end="07:00"),
)
"""Nights that are started while the one before still runs."""
N_NIGHTS = 30
N_DAYS = 32
"""Two starts are slept through."""
AUTUMN = Calendar(first=date(2026, 10, 11), n_days=N_DAYS, sleeps=SLEEPS, kills=KILLS, by_hand=BY_HAND)
"""The clock is set back in the night after day 13 (0: the first)."""
SPRING = replace(AUTUMN, first=date(2027, 3, 14), overlap="replace")
"""It is set forward in the night after day 13."""
LEAP = replace(AUTUMN, first=date(2028, 2, 14), overlap="queue")
"""Nights 14 and 15 begin on 28 and 29 February."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    name: str
    account: NightsAccount
    delay: Delay
    n_missed: int
    wall_s: float

    @property
    def n_faults(self) -> int:
        found = self.account
        return len(found.overlaps) + len(found.lost) + len(found.doubled) + len(self.delay.not_started)


def nights(quick: bool) -> Figure:
    """Nights of 30 that had nothing running or waiting at their hour. The control ignores the hour: it ends at noon."""
    calendars = {"autumn": AUTUMN} if quick else {"autumn": AUTUMN, "spring": SPRING, "leap year": LEAP}
    lived = [lived_through(name, calendar) for name, calendar in calendars.items()]
    late = replace(AUTUMN, n_days=4, finish_by="12:00", n_configurations=80, sleeps=(), kills=(), by_hand=())
    control = lived_through("ignored", late, due=replace(late, finish_by=AUTUMN.finish_by))
    kept = [one.account.n_kept for one in lived]
    return Figure(
        id="sweeps.nights",
        value=min(kept),
        unit=f"of {N_NIGHTS}",
        control=control.account.n_kept,
        n=len(lived),
        spread=(min(kept), max(kept)),
        note="; ".join(_told(one) for one in (*lived, control)),
    )


def lived_through(name: str, calendar: Calendar, due: Calendar | None = None) -> Lived:
    """
    Args:
        due: by whose hours it is judged; None: its own.
    """
    hours = (due or calendar).hours()
    days, began = calendar.days(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        lived = live_nights(days, calendar.nightly(Path(folder)), home)
    return Lived(
        name=name,
        account=account(lived, days, hours=hours),
        delay=delay(days, hours, lived.waits, live_without_nights(days)),
        n_missed=len(lived.missed),
        wall_s=time.perf_counter() - began,
    )


def _told(one: Lived) -> str:
    found, late = one.account, one.delay
    return (
        f"{one.name}: kept {found.n_kept}/{found.n_nights}, {found.n_skipped} skipped, {one.n_missed} missed, "
        f"{len(found.overlaps)} overlaps, {found.n_trials} trials ({found.n_continued} in two nights), "
        f"{len(found.lost)} lost, {len(found.doubled)} doubled, {late.n_by_day} critical jobs by day delayed "
        f"{late.worst_by_day_s:.3f} s at most, {late.n_woken} on days after an hour that was slept through "
        f"{late.worst_woken_s:.0f} s, {late.n_by_night} by night {late.worst_by_night_s:.0f} s, "
        f"{one.wall_s:.0f} s"
    )
