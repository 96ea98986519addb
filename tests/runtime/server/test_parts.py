"""The parts of the server that need no server: text from bytes, shapes, suggestions, keys, reactions to reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab import key, spec

from runtime.engines.contract import Checkpointed, Exited, NotLaunched, Started
from runtime.engines.fake import FakeAttempt, FakeEngine, fake_node
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    JobSubmitted,
    NodeJoined,
    StartOrdered,
    StopOrdered,
)
from runtime.model.nouns import Needs, Placement, Shape
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause
from runtime.scheduling.policy import Policy
from runtime.server.draft import OWNER, SCHEDULER, Draft
from runtime.server.intake import job_from_spec, job_number, shape_of
from runtime.server.keys import open_keys
from runtime.server.logs import read_chunk
from runtime.server.reactor import CriteriaFacts, Rules, StateReport, events_from_cancel, events_from_report
from runtime_client.doors.refusal import Refused
from runtime_client.models import Compute

TEXT = "añ€😀b"


def chunk(log: bytes, offset: int, limit: int, *, has_ended: bool = True) -> tuple[str, int, bool]:
    engine = FakeEngine()
    engine.attempts[key("j1")] = FakeAttempt(order=None, generation=1, log=log)  # type: ignore[arg-type]
    found = asyncio.run(read_chunk(engine, key("j1"), offset=offset, limit=limit, has_ended=has_ended))
    return found.text, found.next_offset, found.is_complete


@pytest.mark.parametrize("limit", range(1, 12))
def test_pieces_of_output_join_to_the_whole_text(limit: int) -> None:
    text, offset, is_complete = "", 0, False
    for _ in range(40):
        piece, offset, is_complete = chunk(TEXT.encode(), offset, limit)
        text += piece
        if is_complete:
            break
    assert is_complete
    if limit >= 4:
        assert text == TEXT


def test_a_torn_character_waits_for_its_rest_while_the_attempt_runs() -> None:
    torn = "a€".encode()[:-1]
    assert chunk(torn, 0, 100, has_ended=False) == ("a", 1, False)
    assert chunk(torn, 0, 100, has_ended=True) == ("a\ufffd", 3, True)


@pytest.mark.parametrize(("back", "text"), [(1, "b"), (2, "b"), (5, "😀b"), (100, TEXT)])
def test_a_negative_offset_counts_from_the_end(back: int, text: str) -> None:
    assert chunk(TEXT.encode(), -back, 100) == (text, len(TEXT.encode()), True)


def test_output_that_is_no_text_is_shown_with_replacements() -> None:
    assert chunk(b"\xff\xfe\x00ok", 0, 100)[0] == "\ufffd\ufffd\x00ok"


@pytest.mark.parametrize(
    ("compute", "shape"),
    [
        ({}, Shape(n_devices=1)),
        ({"num_accelerators": 3}, Shape(n_devices=3)),
        ({"accelerator_type": "h100"}, Shape(n_devices=1, accelerator="H100")),
        ({"accelerator_type": "B300"}, Shape(n_devices=1, accelerator="B300")),
        ({"accelerator_type": "GPU_8xH100"}, Shape(n_devices=8, accelerator="H100", devices_per_node=8)),
        (
            {"accelerator_type": ["h100", "A100"]},
            Shape(n_devices=1, accelerator="H100", needs=Needs(or_accelerators=("A100",))),
        ),
        (
            {"accelerator_type": "GPU_8xH100|GPU_8xA100", "cpus": 2.5},
            Shape(
                n_devices=8,
                accelerator="H100",
                devices_per_node=8,
                needs=Needs(or_accelerators=("A100",), cpu_milli=2500),
            ),
        ),
        (
            {"accelerator_memory_gb": 80, "memory_gb": 1.048576, "exclusive": True},
            Shape(n_devices=1, needs=Needs(device_memory_mb=76294, memory_mb=1000, is_exclusive=True)),
        ),
        ({"accelerator_share": 0.25}, Shape(n_devices=1, needs=Needs(device_thousandths=250))),
        ({"accelerator_share": 1, "exclusive": False}, Shape(n_devices=1)),
        (
            {"accelerator_type": "GPU_8xH100", "num_accelerators": 16},
            Shape(n_devices=16, accelerator="H100", devices_per_node=8),
        ),
    ],
)
def test_accelerator_types_become_shapes(compute: dict[str, object], shape: Shape) -> None:
    assert shape_of(Compute.model_validate(compute), ["cpu", "H100"]) == shape


@pytest.mark.parametrize(
    ("job_id", "number"), [("j1", 1), ("j012", 12), ("j", None), ("1", None), ("j-1", None), ("j²", None)]
)
def test_job_ids_carry_their_number(job_id: str, number: int | None) -> None:
    assert job_number(job_id) == number


def test_attempt_tokens_are_bound_to_their_attempt(tmp_path: Path) -> None:
    keys = open_keys(tmp_path / "token", tmp_path / "secret")
    token = keys.attempt_token(key("j1", 2))
    assert keys.attempt_of(token) == key("j1", 2)
    assert keys.attempt_of(token.replace("j1.2", "j1.3")) is None
    assert keys.attempt_of(keys.owner_token) is None
    assert open_keys(tmp_path / "token", tmp_path / "secret") == keys
    assert open_keys(tmp_path / "token", tmp_path / "other").attempt_of(token) is None


RULES = Rules(retry=Policy(), patterns=())


def started_state(**job: object) -> State:
    """`j1`, attempt 1, running on device 0 of `local` under generation 3."""
    state = State()
    draft = Draft(state=state, at_s=10.0)
    draft.add(NodeJoined(node=replace(fake_node(), generation=3)), OWNER)
    made = job_from_spec(spec(**job), number=1, now_s=10.0, policy=Policy(), kinds=())
    draft.add(JobSubmitted(job=made), OWNER)
    where = (Placement(node_id="local", devices=(0,), first_rank=0),)
    draft.add(StartOrdered(job_id="j1", attempt=1, placements=where, reason="t"), SCHEDULER)
    draft.add(AttemptStarted(job_id="j1", attempt=1, pid=1), SCHEDULER)
    return state


def exited(**changes: object) -> Exited:
    facts: dict[str, object] = {
        "key": key("j1"),
        "generation": 3,
        "exit_code": 0,
        "was_killed": False,
        "ended_at_s": 20.0,
        "log_tail": "",
        "checkpoint_step": None,
    }
    return Exited(**{**facts, **changes})  # type: ignore[arg-type]


LATE: list[Callable[[], StateReport]] = [
    lambda: exited(generation=2),
    lambda: exited(key=key("j1", 2)),
    lambda: exited(key=key("j9")),
    lambda: Started(key=key("j1"), generation=3, pid=1, at_s=0.0),
    lambda: Checkpointed(key=key("j1"), generation=2, step=5),
    lambda: NotLaunched(key=key("j1"), generation=2, exit_reason=ExitReason.BAD_PYTHON, evidence=""),
]


@pytest.mark.parametrize("report", LATE)
def test_late_reports_and_known_facts_mean_nothing(report: Callable[[], StateReport]) -> None:
    assert events_from_report(started_state(), report(), CriteriaFacts(), now_s=20.0, rules=RULES) == []


def test_an_exit_brings_its_last_checkpoint_with_it() -> None:
    state = started_state()
    events = events_from_report(
        state, exited(checkpoint_step=7, exit_code=75), CriteriaFacts(), now_s=20.0, rules=RULES
    )
    assert [type(event) for event in events] == [CheckpointSeen, AttemptEnded]


def test_the_ending_is_judged_by_what_was_asked() -> None:
    state = started_state()
    draft = Draft(state=state, at_s=11.0)
    draft.add(
        StopOrdered(job_id="j1", attempt=1, cause=StopCause.PREEMPT, reason="r", beneficiary="j2", grace_s=1.0),
        SCHEDULER,
    )
    (ended,) = events_from_report(state, exited(exit_code=1), CriteriaFacts(), now_s=20.0, rules=RULES)
    assert isinstance(ended, AttemptEnded)
    assert (ended.outcome, ended.end_state) == (AttemptOutcome.PREEMPTED, None)


def test_missing_criteria_fail_a_clean_exit() -> None:
    facts = CriteriaFacts(missing_metrics=("acc",))
    (ended,) = events_from_report(started_state(), exited(), facts, now_s=20.0, rules=RULES)
    assert isinstance(ended, AttemptEnded)
    assert (ended.exit_reason, ended.end_state) == (ExitReason.CRITERIA_NOT_MET, JobState.FAILED)


def test_cancelling_twice_stops_once() -> None:
    state = started_state()
    draft = Draft(state=state, at_s=11.0)
    draft.add_all(events_from_cancel(state.jobs["j1"], ""), OWNER)
    assert len(draft.stops) == 1
    assert events_from_cancel(state.jobs["j1"], "") == []


def test_groups_must_be_whole() -> None:
    with pytest.raises(Refused, match="multiple of 8"):
        shape_of(Compute(accelerator_type="GPU_8xH100", num_accelerators=12), [])


@pytest.mark.parametrize(
    ("compute", "code"),
    [
        ({"accelerator_type": "GPU_8xH100|A100"}, "unequal_types"),
        ({"accelerator_type": "H100|"}, "unequal_types"),
        ({"accelerator_type": "GPU_8xH100", "accelerator_share": 0.5}, "share_of_a_group"),
    ],
)
def test_what_contradicts_itself_is_refused(compute: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refusal:
        shape_of(Compute.model_validate(compute), [])
    assert refusal.value.body.code == code
