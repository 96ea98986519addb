"""Follows a session on a console: a live screen on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from .lines import Narrator
from .screen import STOPS_IN_ORDER, render
from .snapshot import LiveSnapshot
from .source import SnapshotSource

PERIOD_S = 0.5

Watch = Callable[[LiveSnapshot], bool]
"""Sees each snapshot; True ends the following."""


class LiveView:
    """Shows snapshots of one session until told to stop. `follow` may be called again: nothing is told twice.

    `ctrl_c` says in the footer what Ctrl-C does to the session; the caller does it.
    """

    def __init__(
        self, source: SnapshotSource, console: Console, *, ctrl_c: str = STOPS_IN_ORDER, period_s: float = PERIOD_S
    ) -> None:
        self._source = source
        self._ctrl_c = ctrl_c
        self._console = console
        self._period_s = period_s
        self._narrator = Narrator()

    def follow(self, watch: Watch) -> LiveSnapshot:
        """Returns the snapshot at which `watch` said True.

        Raises RuntimeClientError when the runtime does not answer, KeyboardInterrupt on Ctrl-C.
        """
        return self._on_screen(watch) if self._console.is_terminal else self._in_lines(watch)

    def _on_screen(self, watch: Watch) -> LiveSnapshot:
        with Live(console=self._console, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                snapshot = self._source.snapshot()
                height = self._console.height - 1
                live.update(render(snapshot, self._console.width, height, ctrl_c=self._ctrl_c), refresh=True)
                if watch(snapshot):
                    return snapshot
                time.sleep(self._period_s)

    def _in_lines(self, watch: Watch) -> LiveSnapshot:
        while True:
            snapshot = self._source.snapshot()
            for line in self._narrator.news(snapshot):
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)
            if watch(snapshot):
                return snapshot
            time.sleep(self._period_s)


def screenshot(snapshot: LiveSnapshot, *, width: int = 100, height: int = 30) -> str:
    """The screen as an SVG image that asks for nothing outside: Rich's web fonts are left to the viewer's own."""
    console = Console(record=True, width=width, height=height, file=io.StringIO(), force_terminal=True)
    console.print(render(snapshot, width, height))
    svg = console.export_svg(title="nightlab")
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    return re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
