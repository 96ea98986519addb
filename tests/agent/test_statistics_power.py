"""Power and coverage of the sequential comparison, by simulation of whole sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.planner.statistics import SequentialTest, compare_sequentially, pairs_needed, smallest_detectable
from agent.task import Direction

pytestmark = pytest.mark.lives


def accepted(effect: float, *, n_pairs: int, alpha: float, n_sequences: int = 2000) -> float:
    """Share of sequences that end with better; the noise of a difference is 1."""
    differences = np.random.default_rng(17).normal(effect, 1.0, size=(n_sequences, n_pairs))
    test = SequentialTest(max_pairs=n_pairs, planned_alpha=alpha)
    return float(np.mean(test.p_values(differences)[:, -1] <= alpha))


@pytest.mark.parametrize(("effect", "alpha"), [(2.0, 0.025), (1.0, 0.025), (0.7, 0.025), (1.0, 0.0005), (0.7, 0.0005)])
def test_as_many_pairs_as_are_said_to_be_needed_show_the_effect_as_often_as_said(effect: float, alpha: float) -> None:
    n_pairs = pairs_needed(effect, 1.0, alpha, 0.8)
    assert n_pairs is not None
    assert 0.76 <= accepted(effect, n_pairs=n_pairs, alpha=alpha) <= 0.93
    assert accepted(effect, n_pairs=math.ceil(n_pairs / 2), alpha=alpha) < 0.76


@pytest.mark.parametrize(("n_pairs", "alpha"), [(10, 0.025), (30, 0.025), (30, 0.001), (60, 0.0005)])
def test_the_smallest_detectable_gain_is_detected_as_often_as_said(n_pairs: int, alpha: float) -> None:
    gain = smallest_detectable(1.0, n_pairs, alpha, 0.8)
    assert gain is not None
    assert 0.76 <= accepted(gain, n_pairs=n_pairs, alpha=alpha) <= 0.9


def test_power_scales_with_the_unit_of_the_metric() -> None:
    assert pairs_needed(0.02, 0.01, 0.025) == pairs_needed(2.0, 1.0, 0.025)
    assert pairs_needed(0.0, 1.0, 0.025) is None
    assert smallest_detectable(1.0, 5, 0.025) is None
    assert pairs_needed(1.0, 0.0, 0.025) == 7


def test_a_gain_of_one_sd_is_found_within_sixty_pairs_by_a_late_claim() -> None:
    # one evaluation's sd is 1/sqrt(2) of a difference's; a late one of 100 challengers has 1e-4
    assert accepted(math.sqrt(0.5), n_pairs=60, alpha=0.0001) >= 0.88


@pytest.mark.parametrize("n_pairs", [8, 14, 20])
def test_the_confidence_sequence_holds_the_truth_as_often_as_it_says(n_pairs: int) -> None:
    source = np.random.default_rng(23)
    n_found, n_missed = 0, 0
    for _ in range(150):
        pairs = [(float(0.3 + source.standard_t(3)), float(source.standard_t(3))) for _ in range(n_pairs)]
        found = compare_sequentially(pairs, direction=Direction.MINIMIZE, alpha=0.1, max_pairs=20)
        assert found.interval is not None
        assert found.interval.low <= found.interval.estimate <= found.interval.high
        n_found += 1
        n_missed += not found.interval.low <= 0.3 <= found.interval.high
    assert n_missed <= 0.2 * n_found


def test_the_interval_excludes_no_difference_exactly_when_better_or_worse_is_said() -> None:
    source = np.random.default_rng(29)
    for effect in (0.0, 0.6, 1.2, -1.2):
        for _ in range(20):
            pairs = [(float(effect + source.normal()), float(source.normal())) for _ in range(16)]
            found = compare_sequentially(pairs, direction=Direction.MAXIMIZE, alpha=0.05, max_pairs=16)
            assert found.interval is not None
            said = "better" if found.interval.low > 0 else "worse" if found.interval.high < 0 else "indistinguishable"
            assert found.comparison == said


def test_a_difference_within_min_effect_is_settled_before_all_pairs_are_used() -> None:
    source = np.random.default_rng(31)
    pairs = [(float(source.normal(0, 0.1)), float(source.normal(0, 0.1))) for _ in range(20)]
    found = compare_sequentially(pairs, direction=Direction.MAXIMIZE, alpha=0.05, max_pairs=100, min_effect=1.0)
    assert (found.comparison, found.is_decided) == ("indistinguishable", True)
    assert "lies within 1 either way" in found.reason
