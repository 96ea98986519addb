"""All tools of the chat: what the model may call, and what people type as commands."""

from __future__ import annotations

from agent.chat.tool import ChatTool

from . import cancelling, gates, jobs, launching, machines, searching, sessions, steering, trials

ALL: tuple[ChatTool, ...] = (
    *sessions.TOOLS,
    *trials.TOOLS,
    *launching.TOOLS,
    *searching.TOOLS,
    *jobs.TOOLS,
    *cancelling.TOOLS,
    *steering.TOOLS,
    *gates.TOOLS,
    *machines.TOOLS,
)
"""The most needed first: a model with a small window is shown the first ones alone."""
