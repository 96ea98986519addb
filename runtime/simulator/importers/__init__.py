"""Traces as jobs, one module a format. They read row by row; what they can not use they count, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from runtime.simulator.workload import Skipped, TraceJob

from . import hp_spot, journal, openb, philly, sacct

Reader = Callable[[Path, Skipped], Iterator[TraceJob]]


class Format(StrEnum):
    PHILLY = "philly"
    OPENB = "openb"
    HP_SPOT = "hp-spot"
    SACCT = "sacct"
    JOURNAL = "journal"


READERS: dict[Format, Reader] = {
    Format.PHILLY: philly.read,
    Format.OPENB: openb.read,
    Format.HP_SPOT: hp_spot.read,
    Format.SACCT: sacct.read,
    Format.JOURNAL: journal.read,
}
