"""A sealed job is refused when it is submitted, if no node can seal it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lab import lab, spec

from runtime.engines.fake import FakeEngine, fake_node
from runtime_client.errors import InvalidSpec

WHY = "this machine refuses user namespaces: start the server as root"
UNABLE = replace(fake_node("a"), why_not_sealed=WHY)


def test_a_sealed_job_is_refused_at_once_where_no_node_can_seal(tmp_path: Path) -> None:
    with lab(tmp_path, engine=FakeEngine(nodes=(UNABLE,))) as at:
        with pytest.raises(InvalidSpec, match=f"a: {WHY}") as caught:
            at.client.submit(spec(sandbox="sealed"))
        assert caught.value.code == "sandbox_unavailable"
        assert at.client.nodes()[0].why_not_sealed == WHY
        assert at.client.submit(spec()).job_id == "j1"


def test_one_node_that_can_seal_is_enough(tmp_path: Path) -> None:
    able = replace(fake_node("b"), sealed_by="landlock")
    with lab(tmp_path, engine=FakeEngine(nodes=(UNABLE, able))) as at:
        assert [node.sealed_by for node in at.client.nodes()] == [None, "landlock"]
        assert at.client.info().sealed_by == ("landlock",)
        assert at.client.submit(spec(sandbox="sealed")).job_id == "j1"
