"""All tools of the chat, in the order in which they are listed."""

from __future__ import annotations

from agent.chat.tool import ChatTool
from agent.chat.tools.sessions import Sessions, Stop

ALL: tuple[ChatTool, ...] = (Sessions(), Stop())
