"""How a start becomes a night: at once, after the night before, instead of it, or not at all. A thin shell."""

from __future__ import annotations

from collections.abc import Callable

from agent.store.nights import NightStore, Start
from agent.sweeps.prepare import PreparedNight
from agent.sweeps.views import NightOutcome, NightView

POLL_S = 1.0
LONGEST_WAIT_S = 24 * 3600.0
"""For the night before, where this one has no hour of its own."""


def begin_night(
    nights: NightStore,
    prepared: PreparedNight,
    *,
    pause: Callable[[float], None],
    say: Callable[[str], None],
) -> NightView:
    """The night that was begun, or the row of one that was skipped; waits for the one before as the sweep says.

    Args:
        pause: waits seconds; called between looks at the night before.
    """
    sweep, file, clock = prepared.sweep, str(prepared.file), nights.store.clock
    if prepared.outside is not None:
        return nights.skip(sweep, file=file, message=prepared.outside)
    until = prepared.finish_by or clock() + LONGEST_WAIT_S
    waited_for: str | None = None
    while True:
        if clock() >= until:  # also when the machine slept through it
            why = f"{waited_for} still ran when its hour came" if waited_for else "its hour came before it could begin"
            return nights.skip(sweep, file=file, message=why)
        found = nights.begin(sweep, file=file, cells=prepared.cells, finish_by=prepared.finish_by)
        if found.start is not Start.WAIT:
            assert found.night is not None, "begun or skipped: there is a row"
            return found.night
        assert found.other is not None, "there is nothing else to wait for"
        if sweep.overlap == "replace":
            nights.request_stop(found.other.night_id, NightOutcome.REPLACED)
        if waited_for is None:
            waited_for = found.other.night_id
            say(f"waiting for {waited_for}, which still runs (overlap: {sweep.overlap})")
        pause(POLL_S)
