"""Curves over several attempts, how far one came, and a name that changed on the way."""

from __future__ import annotations

import pytest

from agent.planner.curve import Point, alike, last_finite, renamed_to, undisturbed


def points(*found: tuple[int, int, float | None]) -> list[Point]:
    """Attempt, step, value."""
    return [Point(attempt=attempt, step=step, value=value) for attempt, step, value in found]


def values(curve: list[Point]) -> list[float | None]:
    return [point.value for point in curve]


def test_an_attempt_that_goes_on_from_a_checkpoint_replaces_what_it_does_again() -> None:
    curve = points((1, 0, 0.1), (1, 1, 0.2), (1, 2, 0.9), (2, 2, 0.3), (2, 3, 0.4))
    assert values(undisturbed(curve)) == [0.1, 0.2, 0.3, 0.4]


def test_a_retry_from_the_start_leaves_nothing_of_the_attempt_before() -> None:
    assert values(undisturbed(points((1, 0, 0.1), (1, 1, 0.9), (2, 0, 0.1), (2, 1, 0.3)))) == [0.1, 0.3]


def test_without_steps_only_the_last_attempt_counts() -> None:
    assert values(undisturbed(points((1, 0, 0.1), (1, 0, 0.9), (2, 0, 0.2), (2, 0, 0.3)))) == [0.2, 0.3]


def test_one_attempt_is_left_as_it_is() -> None:
    curve = points((1, 5, 0.1), (1, 3, 0.2), (1, 3, None))
    assert undisturbed(curve) == curve


def test_how_far_a_curve_came_is_its_last_finite_point() -> None:
    found = last_finite(points((1, 0, 0.1), (1, 7, 0.2), (1, 8, None)))
    assert found is not None
    assert (found.step, found.value) == (7, 0.2)
    assert last_finite(points((1, 0, None))) is None
    assert last_finite([]) is None


@pytest.mark.parametrize(
    ("arrivals", "names", "expected"),
    [
        ("m m n n", ["n"], "n"),
        ("m m n", ["n"], None),
        ("m n m n m n", ["n"], None),
        ("n n m m", ["n"], None),
        ("m n n m", ["n"], None),
        ("n n", ["n"], None),
        ("m m o n n", ["o", "n"], "n"),
    ],
)
def test_a_name_changed_when_another_curve_begins_after_this_one_has_ended(
    arrivals: str, names: list[str], expected: str | None
) -> None:
    assert renamed_to("m", arrivals.split(), names) == expected


def test_only_names_that_are_alike_can_be_meant() -> None:
    names = ["val_acc", "val_accuracy", "train_loss", "lr", "val/accuracy"]
    assert set(alike("val_accuracy", names)) == {"val_acc", "val/accuracy"}
