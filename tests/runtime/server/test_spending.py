"""Where device time went: every second is in exactly one account, and no price is invented."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.model.nouns import Placement
from runtime.model.states import AttemptOutcome, JobState, StopCause
from runtime.server.spending import (
    Account,
    Group,
    Purpose,
    Used,
    Window,
    accounts,
    kinds_of,
    name_by,
    present_seconds,
)
from runtime.store.usage import NodeEvent, UseRow

WINDOW = Window(since_s=100.0, until_s=200.0)
KINDS = {("a", 0): "H100", ("a", 1): "H100", ("b", 0): "cpu"}
PREEMPTED, FAILED, SUCCEEDED = AttemptOutcome.PREEMPTED, AttemptOutcome.FAILED, AttemptOutcome.SUCCEEDED


def row(
    outcome: AttemptOutcome | None, *, state: JobState = JobState.SUCCEEDED, begin: float = 110.0, end: float = 150.0
) -> UseRow:
    return UseRow(
        job_id="j1",
        attempt=1,
        placements=(Placement(node_id="a", devices=(0, 1), first_rank=0),),
        ordered_at=begin,
        ended_at=None if outcome is None else end,
        stop_cause=None,
        outcome=outcome,
        project="vision",
        session_id="s1",
        state=state,
    )


def used(*rows: UseRow, saved_at: float | None = None, replicates: frozenset[str] = frozenset()) -> Used:
    checkpoints = {} if saved_at is None else {("j1", 1): saved_at}
    return Used(attempts=rows, replicates=replicates, checkpoints=checkpoints, node_events=())


def split(found: Used) -> dict[str, float]:
    (account,) = accounts(found, WINDOW, KINDS, name_by(Group.PROJECT, "owner")).values()
    return {purpose.value: seconds for purpose in Purpose if (seconds := account.device_seconds(purpose))}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (used(row(SUCCEEDED)), {"useful": 80.0}),
        (used(row(None, state=JobState.RUNNING)), {"useful": 180.0}),
        (used(row(SUCCEEDED), replicates=frozenset({"j1"})), {"replicate": 80.0}),
        (used(row(PREEMPTED, state=JobState.QUEUED)), {"lost_to_preemption": 80.0}),
        (used(row(PREEMPTED), saved_at=140.0), {"useful": 60.0, "lost_to_preemption": 20.0}),
        (used(row(FAILED), saved_at=140.0), {"useful": 60.0, "failed": 20.0}),
        (used(replace(row(AttemptOutcome.TIMED_OUT), stop_cause=StopCause.RENEW)), {"lost_to_preemption": 80.0}),
        (used(replace(row(AttemptOutcome.TIMED_OUT), stop_cause=StopCause.TIMEOUT)), {"failed": 80.0}),
        (used(row(AttemptOutcome.NODE_LOST)), {"failed": 80.0}),
        (used(row(PREEMPTED, state=JobState.FAILED), saved_at=140.0), {"failed": 60.0, "lost_to_preemption": 20.0}),
        (used(row(SUCCEEDED, begin=50.0, end=120.0)), {"useful": 40.0}),
        (used(row(PREEMPTED, begin=50.0, end=120.0), saved_at=90.0), {"lost_to_preemption": 40.0}),
    ],
)
def test_device_time_is_split_by_what_became_of_it(found: Used, expected: dict[str, float]) -> None:
    assert split(found) == expected


def test_accounts_go_by_session_project_or_user() -> None:
    rows = (row(SUCCEEDED), replace(row(SUCCEEDED), job_id="j2", session_id=None, project="text"))
    names = {group: list(accounts(used(*rows), WINDOW, KINDS, name_by(group, "ann"))) for group in Group}
    assert names == {
        Group.SESSION: ["(no session)", "s1"],
        Group.PROJECT: ["text", "vision"],
        Group.USER: ["ann"],
    }


def test_what_held_nothing_in_the_window_has_no_account() -> None:
    assert accounts(used(row(SUCCEEDED, begin=1.0, end=99.0)), WINDOW, KINDS, name_by(Group.USER, "ann")) == {}


def test_a_price_counts_for_its_kind_alone() -> None:
    account = Account()
    account.add(Purpose.USEFUL, "H100", 7200.0)
    account.add(Purpose.USEFUL, "cpu", 3600.0)
    account.add(Purpose.LOST, "H100", 1800.0)
    assert account.cost(Purpose.USEFUL, {"H100": 2.5}) == 5.0
    assert account.cost(Purpose.LOST, {"H100": 2.5}) == 1.25
    assert account.kinds == {"H100", "cpu"}


def joined(at_s: float, node_id: str, n: int) -> NodeEvent:
    return NodeEvent(at_s=at_s, node_id=node_id, devices=tuple((index, "H100") for index in range(n)))


def test_devices_were_there_from_registration_to_departure() -> None:
    left = NodeEvent(at_s=180.0, node_id="a", devices=None)
    history = [joined(50.0, "a", 2), joined(150.0, "a", 3), left, joined(190.0, "a", 1)]
    assert present_seconds(history, {"a": 1}, WINDOW) == 2 * 50 + 3 * 30 + 1 * 10


def test_a_node_that_the_journal_no_longer_knows_of_was_always_there() -> None:
    assert present_seconds([], {"a": 4}, WINDOW) == 400.0


def test_a_device_is_what_it_was_last_registered_as() -> None:
    assert kinds_of([joined(1.0, "gone", 1)], {("a", 0): "cpu"}) == {("gone", 0): "H100", ("a", 0): "cpu"}
