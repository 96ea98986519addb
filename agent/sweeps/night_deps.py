"""`NightDeps`: the world around a night, as its process is given it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.store.store import AgentStore
from agent.sweeps.views import NightSummary, NightView
from runtime_client.protocol import Runtime

LOOK_EVERY_S = 1.0

Summarize = Callable[[AgentStore, Runtime | None, NightView, Sequence[NightView]], NightSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightDeps:
    store: AgentStore
    connect: Callable[[], Runtime]
    """Opens the runtime; raises `RuntimeClientError` while there is none."""
    summarize: Summarize
    write_reports: Callable[[str], Path | None]
    """Given the night's id, writes its pages; the path of the HTML one."""
    write_plain_reports: Callable[[str], Path | None]
    """The same with no more than the night's row, where the others could not be made."""
    tell: Callable[[NightView, NightSummary, Path | None], tuple[str, ...]]
    say: Callable[[str], None]
    """A line for the log."""
    should_leave: Callable[[], bool] = lambda: False
    pause: Callable[[float], None]
    """Waits seconds, or less when asked to leave."""
