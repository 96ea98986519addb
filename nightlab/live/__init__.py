"""What a person sees while a session runs: slots, queue, best so far, spend, and what the agent does and why."""

from .snapshot import LiveSnapshot, Phase
from .source import SnapshotSource
from .view import LiveView, screenshot

__all__ = ["LiveSnapshot", "LiveView", "Phase", "SnapshotSource", "screenshot"]
