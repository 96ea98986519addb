"""A trial that was run again, held against its record."""

import pytest

from agent.planner.reproduction import Reproduced, held_against_record

REPLICATES = [0.70, 0.72, 0.68, 0.71]


@pytest.mark.parametrize(
    ("recorded", "again", "outcome"),
    [
        (0.70, 0.70, Reproduced.EQUAL),
        (0.70, 0.70 + 1e-12, Reproduced.EQUAL),
        (0.70, 0.73, Reproduced.WITHIN_NOISE),
        (0.70, 0.95, Reproduced.DIFFERENT),
        (0.70, None, Reproduced.NO_VALUE),
        (None, 0.70, Reproduced.NO_VALUE),
    ],
)
def test_the_noise_of_the_replicates_decides(recorded: float | None, again: float | None, outcome: Reproduced) -> None:
    held = held_against_record(recorded, again, REPLICATES)
    assert held.outcome is outcome
    assert held.is_held is (outcome in (Reproduced.EQUAL, Reproduced.WITHIN_NOISE))


def test_without_replicates_only_the_same_number_is_held() -> None:
    assert held_against_record(0.7, 0.7001, []).outcome is Reproduced.DIFFERENT
    assert held_against_record(0.7, 0.7, []).outcome is Reproduced.EQUAL


def test_a_tolerance_takes_the_place_of_the_noise() -> None:
    assert held_against_record(0.7, 0.7001, [], tolerance=0.001).outcome is Reproduced.WITHIN_NOISE
    assert held_against_record(0.7, 0.73, REPLICATES, tolerance=0.001).outcome is Reproduced.DIFFERENT
