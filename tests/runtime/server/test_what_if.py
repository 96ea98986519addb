"""What would happen, over HTTP: told, and not done."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import lab, spec

from runtime.engines.fake import ByHand
from runtime_client.errors import Conflict, InvalidSpec
from runtime_client.models import SessionFence


def test_the_victims_are_foretold_and_nobody_leaves(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as made:
        assert made.client.what_if(spec()).prospect == "starts"
        made.client.submit(spec(priority_class="exploratory"))
        made.in_state("j1", "running")
        told = made.client.what_if(spec(priority_class="critical"))
        assert told.prospect == "preempts"
        assert [(victim.job_id, victim.priority_class) for victim in told.victims] == [("j1", "exploratory")]
        assert told.placements[0].devices == (0,)
        assert made.client.what_if(spec(priority_class="exploratory")).prospect == "waits"
        assert [job.job_id for job in made.client.jobs()] == ["j1"]
        assert made.client.job("j1").state == "running"


def test_what_can_not_be_is_told_or_refused_as_in_a_submission(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=1) as made:
        told = made.client.what_if(spec(compute={"num_accelerators": 5}))
        assert told.prospect == "never"
        assert "asks for 5 devices" in told.summary
        with pytest.raises(InvalidSpec, match="unknown"):
            made.client.what_if(spec(priority_class="urgent"))
        made.client.stop_agents(reason="runaway")
        with pytest.raises(Conflict, match="all agents were stopped"):
            made.client.what_if(spec(session=SessionFence(session_id="s1", fence=1)))
