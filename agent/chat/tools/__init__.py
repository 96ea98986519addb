"""All tools of the chat: what the model may call, and what people type as commands."""

from __future__ import annotations

from agent.chat.tool import ChatTool

from . import jobs, sessions, steering, trials

ALL: tuple[ChatTool, ...] = (*sessions.TOOLS, *trials.TOOLS, *jobs.TOOLS, *steering.TOOLS)
