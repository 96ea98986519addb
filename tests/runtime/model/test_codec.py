"""What was stored can be read, today and by later programs."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from core_language import cluster, queued, running

from runtime.model import codec
from runtime.model.check import check
from runtime.model.codec import (
    EVENT_VERSIONS,
    decode_event,
    decode_recorded,
    decode_state,
    encode_event,
    encode_recorded,
    encode_state,
    upcast,
)
from runtime.model.errors import BadPayload
from runtime.model.events import BudgetSet, CheckpointSeen, StopOrdered
from runtime.model.holds import AgentsStop
from runtime.model.names import EVENT_CLASSES, event_type_name
from runtime.model.states import StopCause

SAMPLES = Path(__file__).parent / "samples"
STORED = sorted(path for path in SAMPLES.glob("*.json") if not path.name.startswith("snapshot."))


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def test_every_version_of_every_event_has_a_stored_sample() -> None:
    expected = {f"{name}.v{v}.json" for name, version in EVENT_VERSIONS.items() for v in range(1, version + 1)}
    assert {path.name for path in STORED} == expected


def test_every_event_has_a_name_in_snake_case() -> None:
    assert set(EVENT_CLASSES) == {
        "node_joined",
        "node_left",
        "session_fenced",
        "job_submitted",
        "start_ordered",
        "attempt_started",
        "checkpoint_seen",
        "stop_ordered",
        "attempt_ended",
        "job_ended",
        "hold_placed",
        "hold_lifted",
        "agents_stopped",
        "agents_allowed",
        "budget_set",
        "budget_lifted",
        "node_state_set",
        "devices_reserved",
        "devices_unreserved",
        "devices_busy_seen",
    }
    assert event_type_name(CheckpointSeen(job_id="j1", attempt=1, step=1)) == "checkpoint_seen"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_event_is_read_and_written_back_the_same(path: Path) -> None:
    stored = load(path)
    recorded = decode_recorded(stored)
    assert event_type_name(recorded.event) == stored["type"]
    if stored["version"] == EVENT_VERSIONS[stored["type"]]:
        assert encode_recorded(recorded) == stored


def test_a_stored_stop_means_what_it_says() -> None:
    assert decode_recorded(load(SAMPLES / "stop_ordered.v1.json")).event == StopOrdered(
        job_id="j1", attempt=1, cause=StopCause.PREEMPT, reason="j2 needs it", beneficiary="j2", grace_s=30.0
    )


def test_a_stored_snapshot_is_read_and_written_back_the_same() -> None:
    stored = load(SAMPLES / "snapshot.v3.json")
    state = decode_state(stored)
    check(state)
    assert encode_state(state) == stored
    assert state.fences == {"s1": 4}
    assert list(state.holds) == ["class exploratory"]
    assert state.agents_stop == AgentsStop(reason="runaway", since_s=1000.0)


def test_a_node_of_an_older_snapshot_counts_as_able_to_seal() -> None:
    state = decode_state(load(SAMPLES / "snapshot.v2.json"))
    check(state)
    assert {node.why_not_sealed for node in state.nodes.values()} == {None}


def test_a_budget_of_which_nothing_tells_who_set_it_counts_as_a_persons() -> None:
    """A session may not raise what somebody may have set by hand."""
    state = decode_state(load(SAMPLES / "snapshot.v2.json"))
    check(state)
    assert [budget.is_brought for budget in state.budgets.values()] == [False]
    old = decode_recorded(load(SAMPLES / "budget_set.v1.json")).event
    assert isinstance(old, BudgetSet)
    assert not old.budget.is_brought


def test_a_snapshot_of_version_1_has_no_estimates_and_nobody_in_the_way_of_work() -> None:
    stored = load(SAMPLES / "snapshot.v1.json")
    state = decode_state(stored)
    check(state)
    assert (state.estimates.run_times, state.jobs["j1"].done_s) == ({}, 0.0)
    assert (state.holds, state.agents_stop, state.standings) == ({}, None, {})


def test_a_snapshot_brings_the_indexes_back() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2", not_before_s=9.0, queue_timeout_s=5.0))
    assert decode_state(json.loads(json.dumps(encode_state(state)))) == state


def test_an_old_payload_is_upcast_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "EVENT_VERSIONS", {**EVENT_VERSIONS, "checkpoint_seen": 3})
    steps = {
        ("checkpoint_seen", 1): lambda old: {"job": old["job"], "attempt": old["attempt"], "at": old["step"]},
        ("checkpoint_seen", 2): lambda old: {"job_id": old["job"], "attempt": old["attempt"], "step": old["at"]},
    }
    monkeypatch.setattr(codec, "UPCASTS", MappingProxyType(steps))
    old = {"job": "j1", "attempt": 2, "step": 3}
    assert decode_event("checkpoint_seen", 1, old) == CheckpointSeen(job_id="j1", attempt=2, step=3)


def test_a_missing_step_between_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "EVENT_VERSIONS", {**EVENT_VERSIONS, "checkpoint_seen": 2})
    with pytest.raises(BadPayload, match="no step leads on from version 1"):
        upcast("checkpoint_seen", 1, {})


def test_a_payload_of_a_newer_program_is_refused() -> None:
    with pytest.raises(BadPayload, match="version 99 is newer"):
        decode_event("checkpoint_seen", 99, {})


def test_a_field_with_a_default_may_be_missing() -> None:
    stored = load(SAMPLES / "job_submitted.v1.json")["payload"]
    del stored["job"]["queued_since_s"]
    assert encode_event(decode_event("job_submitted", 1, stored))["job"]["queued_since_s"] == 0.0


def test_a_stored_job_of_which_nobody_said_what_it_is_worth_is_read() -> None:
    stored = load(SAMPLES / "job_submitted.v2.json")["payload"]
    del stored["job"]["worth"]
    assert encode_event(decode_event("job_submitted", 2, stored))["job"]["worth"] is None


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"job_id": "j1", "attempt": 1}, r"checkpoint_seen\.step: missing"),
        ({"job_id": "j1", "attempt": 1, "step": "7"}, r"step: expected int, got '7'"),
        ({"job_id": "j1", "attempt": True, "step": 7}, r"attempt: expected int, got True"),
        ({"job_id": "j1", "attempt": 1, "step": 7, "x": 1}, r"unknown x; known are job_id, attempt, step"),
        ([], r"expected an object, got \[\]"),
    ],
)
def test_a_bad_payload_names_the_field(payload: Any, message: str) -> None:
    with pytest.raises(BadPayload, match=message):
        decode_event("checkpoint_seen", 1, payload)


def test_a_bad_part_inside_names_its_path() -> None:
    stored = load(SAMPLES / "start_ordered.v1.json")["payload"]
    stored["placements"][1]["devices"] = 3
    with pytest.raises(BadPayload, match=r"start_ordered\.placements\[1\]\.devices: expected a list, got 3"):
        decode_event("start_ordered", 1, stored)


def test_a_value_outside_an_enum_is_refused() -> None:
    stored = load(SAMPLES / "stop_ordered.v1.json")["payload"]
    with pytest.raises(BadPayload, match=r"cause: 'tired' is none of preempt, cancel"):
        decode_event("stop_ordered", 1, {**stored, "cause": "tired"})


def test_an_unknown_event_type_is_refused() -> None:
    with pytest.raises(BadPayload, match="unknown event type"):
        decode_event("job_dreamt", 1, {})


@pytest.mark.parametrize("snapshot", [{}, {"version": 3}, {"version": 4}, {"version": 1, "jobs": []}])
def test_a_snapshot_that_does_not_fit_is_refused(snapshot: Any) -> None:
    with pytest.raises(BadPayload, match="snapshot"):
        decode_state(snapshot)


def test_an_incomplete_journal_entry_is_refused() -> None:
    with pytest.raises(BadPayload, match="missing actor, at_s, payload"):
        decode_recorded({"seq": 1, "type": "node_left", "version": 1})


@pytest.mark.parametrize(("version", "missing"), [(1, "peak_memory_mb"), (2, "run_s")])
def test_a_stored_end_without_memory_or_run_time_is_read(version: int, missing: str) -> None:
    stored = load(SAMPLES / f"attempt_ended.v{version}.json")["payload"]
    assert encode_event(decode_event("attempt_ended", version, stored))[missing] is None


def test_a_stored_job_without_an_hour_is_read() -> None:
    stored = load(SAMPLES / "job_submitted.v2.json")["payload"]
    del stored["job"]["finish_by_s"]
    assert encode_event(decode_event("job_submitted", 2, stored))["job"]["finish_by_s"] is None
