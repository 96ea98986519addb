"""All tools of the chat: what the model may call, and what people type as commands."""

from __future__ import annotations

from agent.chat.tool import ChatTool

from . import cancelling, gates, jobs, launching, machines, searching, sessions, steering, trials

ALL: tuple[ChatTool, ...] = (
    *sessions.TOOLS,
    *trials.TOOLS,
    *jobs.TOOLS,
    *machines.TOOLS,
    *searching.TOOLS,
    *steering.TOOLS,
    *gates.TOOLS,
    *cancelling.TOOLS,
    *launching.TOOLS,
)
