"""What a model sees of the tools: all of them where they fit, and the names of those that it does not have."""

from __future__ import annotations

import pytest

from agent.chat.toolbox import toolbox
from agent.chat.tools import ALL


def test_all_tools_fit_into_the_window_that_is_assumed_and_into_larger_ones() -> None:
    assert toolbox(ALL, 3_276).left_out == ()
    full = toolbox(ALL, 20_000)
    assert full.tokens > toolbox(ALL, 3_276).tokens
    assert all("description" in str(one.parameters) or not one.parameters["properties"] for one in full.tools)


@pytest.mark.parametrize("room", [0, 100, 1_000, 3_000])
def test_what_does_not_fit_is_named(room: int) -> None:
    box = toolbox(ALL, room)
    assert box.tokens <= room
    assert [one.name for one in box.tools] + list(box.left_out) == [one.name for one in ALL]
    assert box.left_out
    assert all(one.parameters["type"] == "object" for one in box.tools)
