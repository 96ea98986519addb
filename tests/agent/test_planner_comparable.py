"""Which trials may form a pair, what is left out of a comparison, and what is not known of it."""

from __future__ import annotations

from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_trial

from agent.planner.comparable import (
    OTHER_USER,
    SEALED,
    WITHIN_REACH,
    caveats,
    comparable_pairs,
    measured_apart,
    needs_exclusive,
    unpinned,
    why_invalid,
    why_not_comparable,
)
from agent.store.views import TrialFacts, TrialState, TrialView

DATA = [{"path": "/d/train"}, {"path": "/d/test"}]
CODE_A, CODE_B = "a" * 64, "b" * 64


def pair(one: dict[str, Any], other: dict[str, Any]) -> tuple[TrialView, TrialView]:
    task = a_task()
    first = a_trial(task, 1, {"x": 0.2, "kind": "a"}, 1.0, facts=TrialFacts(**one))
    return first, a_trial(task, 2, {"x": 0.3, "kind": "a"}, 2.0, facts=TrialFacts(**other))


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ({}, {}, None),
        ({"device_model": "H100"}, {"device_model": "H100"}, None),
        ({"device_model": "H100"}, {"device_model": "A100"}, "the accelerator models differ: A100 and H100"),
        ({"device_model": "mixed"}, {"device_model": "mixed"}, "attempts on several accelerator models gave one value"),
        ({"device_model": "H100"}, {}, None),
        ({"code": CODE_A}, {"code": CODE_B}, "the code differs: aaaaaaaaaaaa and bbbbbbbbbbbb"),
        ({"code": CODE_A}, {"code": CODE_A}, None),
        ({"scorer": CODE_A}, {"scorer": CODE_B}, "the scorer differs: aaaaaaaaaaaa and bbbbbbbbbbbb"),
        ({"scorer": CODE_A}, {}, "one value comes from the scorer, the other from the script itself"),
        ({"data": "m:1 m:2"}, {"data": "m:1 m:3"}, "the data changed between them (/d/test)"),
        ({"data": "m:1 m:2"}, {"data": "m:1"}, "the data changed between them (another list of sources)"),
        ({"data": "m:1 m:2"}, {}, None),
        ({"data": "m:1 m:2", "data_after": "m:9 m:2"}, {}, "the data changed while it ran (/d/train)"),
    ],
)
def test_a_pair_needs_the_same_devices_data_code_and_scorer(
    one: dict[str, Any], other: dict[str, Any], reason: str | None
) -> None:
    task = a_task(data=DATA)
    first, second = pair(one, other)
    assert why_not_comparable(first, second, task) == reason
    assert why_not_comparable(second, first, task) == reason


def test_the_task_may_allow_pairs_across_devices() -> None:
    first, second = pair({"device_model": "H100"}, {"device_model": "mixed"})
    assert why_not_comparable(first, second, a_task(comparable={"across_devices": True})) is None


TIMED = {"parameter": "seconds", "value": 60, "unit": "seconds"}


@pytest.mark.parametrize(
    ("changes", "is_needed"),
    [
        ({}, False),
        ({"objective": {"metric": "tokens_per_s", "direction": "maximize", "kind": "speed"}}, True),
        ({"objective": {"metric": "peak_mb", "direction": "minimize", "kind": "memory"}}, True),
        ({"fidelity": TIMED}, True),
        ({"fidelity": {"parameter": "epochs", "value": 60}}, False),
    ],
)
def test_what_depends_on_the_machine_is_invalid_unless_it_ran_alone(changes: dict[str, Any], is_needed: bool) -> None:
    task = a_task(**changes)
    assert needs_exclusive(task) is is_needed
    assert (why_invalid(TrialFacts(is_alone=False), task) is not None) is is_needed
    assert why_invalid(TrialFacts(is_alone=True), task) is None
    first, second = pair({"is_alone": True}, {"is_alone": False})
    assert (why_not_comparable(first, second, task) is not None) is is_needed


def replicates(x: float, first_number: int, models: str, *, value: float | None = 1.0) -> list[TrialView]:
    """One on each seed from 1000; `h` ran on an H100, `a` on an A100."""
    names = {"h": "H100", "a": "A100"}
    return [
        a_trial(
            a_task(),
            first_number + offset,
            {"x": x, "kind": "a"},
            value,
            seed=1000 + offset,
            state=TrialState.INVALID if value is None else None,
            facts=TrialFacts(device_model=names[letter]),
        )
        for offset, letter in enumerate(models)
    ]


def test_pairs_that_may_not_be_compared_are_left_out_and_counted_by_reason() -> None:
    found = comparable_pairs(replicates(0.7, 1, "hhhah", value=2.0), replicates(0.2, 11, "hahhh"), a_task())
    assert [(a.seed, b.seed) for a, b in found.pairs] == [(1000, 1000), (1002, 1002), (1004, 1004)]
    assert found.values == [(2.0, 1.0)] * 3
    assert found.left_out == {"the accelerator models differ: A100 and H100": 2}
    sentence = found.sentence()
    assert sentence == "2 pairs left out as not comparable (2: the accelerator models differ: A100 and H100)."


def test_an_invalid_trial_is_in_no_pair_and_is_not_counted_as_incomparable() -> None:
    found = comparable_pairs(replicates(0.7, 1, "hh", value=None), replicates(0.2, 11, "aa"), a_task())
    assert (found.pairs, found.left_out, found.sentence()) == ((), {}, None)


def test_what_is_not_known_is_named() -> None:
    known = TrialFacts(device_model="H100", data="m:1 m:2", data_after="m:1 m:2", code=CODE_A)
    task = a_task(data=DATA)
    trial = a_trial(task, 1, {"x": 0.2, "kind": "a"}, 1.0, facts=known)
    assert unpinned([trial], task) == ()
    assert unpinned([trial], a_task()) == ("data: the task names none",)
    blank = a_trial(task, 2, {"x": 0.2, "kind": "a"}, 1.0)
    assert unpinned([trial, blank], task) == (
        "data: no fingerprint of 1 of 2 trials",
        "code: no snapshot of 1 of 2 trials",
        "device: the model is not known of 1 of 2 trials",
    )


def test_a_verdict_says_what_it_rests_on_unseen() -> None:
    known = TrialFacts(device_model="H100", data="m:1", data_after="m:1", code=CODE_A, scorer=CODE_B)
    pinned = a_task(data=DATA[:1], score={"command": "python score.py"})
    trial = a_trial(pinned, 1, {"x": 0.2, "kind": "a"}, 1.0, facts=known)
    assert caveats(pinned, [trial]) == ""
    said = "Unpinned (data: the task names none); values self-reported by the training script."
    assert caveats(a_task(), [trial]) == said
    assert caveats(a_task(data=DATA[:1]), [trial]) == "Values self-reported by the training script."


@pytest.mark.parametrize(
    ("reached", "apart", "caveat"),
    [
        ((SEALED, SEALED), "Measured by a scorer that was kept apart from the training (sealed).", ""),
        (
            (OTHER_USER, SEALED),
            "Measured by a scorer that was kept apart from the training (sealed; or sealed, other user).",
            "",
        ),
        ((SEALED, None), "", ""),
        ((None, None), "", ""),
        (
            (SEALED, WITHIN_REACH),
            "",
            "The scorer and its private files were within reach of the training of 1 of 2 trials.",
        ),
    ],
)
def test_a_verdict_says_how_far_the_scorer_was_from_the_training(
    reached: tuple[str | None, ...], apart: str, caveat: str
) -> None:
    task = a_task(data=DATA[:1], score={"command": "python score.py"})
    known = {"device_model": "H100", "data": "m:1", "data_after": "m:1", "code": CODE_A, "scorer": CODE_B}
    trials = [
        a_trial(task, at, {"x": 0.2, "kind": "a"}, 1.0, facts=TrialFacts(**known, scorer_reach=one))  # type: ignore[arg-type]
        for at, one in enumerate(reached, 1)
    ]
    assert measured_apart(trials) == apart
    assert caveats(task, trials) == caveat
