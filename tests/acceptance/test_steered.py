"""A real session over its HTTP API: it asks, is steered and paused, is killed, and goes on by all of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from fault_lab import FaultLab, curve_task, eventually, holds

from agent.store.steering import SteeringStore
from agent.store.views import Purpose, SessionState
from agent.task import Autonomy, Budgets, SearchMethod
from agent.web.address import url_of
from agent.web.keys import OWNER_FILE

pytestmark = pytest.mark.acceptance


def test_asked_approved_steered_paused_killed_and_ended_in_order(tmp_path: Path) -> None:
    with FaultLab(tmp_path) as lab:
        task = curve_task(lab.starts_file).model_copy(
            update={
                "search": SearchMethod(use=("sampler", "outside")),
                "budgets": Budgets(trials=12),
                "autonomy": Autonomy(trials="propose", answer_within_minutes=20.0),
            }
        )
        lab.start_session(task)
        address = eventually(lambda: url_of(lab.home, lab.service_pid("agent")), what="the address of the API")
        token = (lab.home / OWNER_FILE).read_text().strip()

        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=30) as api:

            def read(path: str) -> Any:
                answer = api.get(path)
                assert answer.status_code == 200, answer.text
                return answer.json()["data"]

            def say(*words: dict[str, Any]) -> None:
                answer = api.post("/v1/sessions/s1/steer", json={"words": list(words), "by": "ann"})
                assert answer.status_code == 200, answer.text

            lab.store.suggest("s1", {"x": 0.31}, why="from outside", suggested_by="coder", arm="outside")
            [asked] = eventually(lambda: read("/v1/gates"), within_s=60, what="the question")
            gate_id = asked["gate"]["gate_id"]
            assert api.post(f"/v1/gates/{gate_id}/approve", json={"by": "ann"}).status_code == 200
            mine = eventually(lambda: [t for t in lab.trials() if t.params == {"x": 0.31}], what="the approved trial")
            eventually(lambda: lab.store.trial(mine[0].trial_id).is_ended, within_s=60, what="its end")

            say({"kind": "pause", "text": "lunch"}, {"kind": "forbid", "text": "x > 0.95"})
            eventually(lambda: all(one["taken_at"] for one in read("/v1/sessions/s1/steerings")), what="the pause")
            eventually(lambda: not any(t.is_in_flight for t in lab.trials()), within_s=60, what="quiet")
            n_jobs = len(lab.jobs())
            os.kill(lab.session_pid(), signal.SIGKILL)
            holds(lambda: len(lab.jobs()) == n_jobs, for_s=3.0)
            assert read("/v1/sessions/s1")["is_paused"]

            say({"kind": "budget", "budget": "trials", "value": 14}, {"kind": "go_on"})
            ended = lab.await_end()
            assert ended.state is SessionState.FINISHED
            reasons = [one["reason"] for one in read("/v1/sessions/s1")["revisions"]]
            assert reasons.count("ann pauses the session (lunch); ann forbids x > 0.95") == 1
            assert reasons.count("ann sets budgets.trials to 14; ann lets the session go on") == 1
        searched = [t for t in lab.trials() if t.purpose is Purpose.SEARCH]
        assert len(searched) == 14
        since = SteeringStore(lab.store).steerings("s1")[-1].at
        assert all(float(t.params["x"] or 0) <= 0.95 for t in searched if t.proposed_at > since)
