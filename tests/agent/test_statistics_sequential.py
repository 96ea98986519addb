"""Sequential comparisons and the error budget: their rules, and what the simulation of whole sequences shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.planner.statistics import Comparison, ErrorBudget, SequentialTest, compare_sequentially
from agent.task import Direction

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE
VALUES = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_swapped_sides_swap_better_and_worse(pairs: list[tuple[float, float]]) -> None:
    swapped = [(b, a) for a, b in pairs]
    found = compare_sequentially(pairs, direction=UP, alpha=0.05, max_pairs=30)
    other = compare_sequentially(swapped, direction=UP, alpha=0.05, max_pairs=30)
    assert (found.e_better, found.p_better) == (other.e_worse, other.p_worse)
    opposite = {Comparison.BETTER: Comparison.WORSE, Comparison.WORSE: Comparison.BETTER}
    assert other.comparison is opposite.get(found.comparison, found.comparison)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_the_other_direction_swaps_better_and_worse(pairs: list[tuple[float, float]]) -> None:
    found = compare_sequentially(pairs, direction=UP, alpha=0.05, max_pairs=30)
    other = compare_sequentially(pairs, direction=DOWN, alpha=0.05, max_pairs=30)
    assert (found.e_better, found.p_better) == (other.e_worse, other.p_worse)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS, st.sampled_from([2.0**-30, 0.25, 1024.0, 2.0**40]))
def test_the_unit_of_the_metric_changes_nothing(pairs: list[tuple[float, float]], unit: float) -> None:
    found = compare_sequentially(pairs, direction=UP, alpha=0.05, max_pairs=30)
    scaled = compare_sequentially([(a * unit, b * unit) for a, b in pairs], direction=UP, alpha=0.05, max_pairs=30)
    assert scaled.e_better == pytest.approx(found.e_better, rel=1e-9)
    assert scaled.comparison is found.comparison


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -math.inf])
def test_pairs_without_two_finite_values_never_count(missing: float | None) -> None:
    pairs = [(float(i % 3), 0.5) for i in range(6)]
    whole = compare_sequentially(pairs, direction=UP, alpha=0.05, max_pairs=30)
    broken = compare_sequentially([(missing, 1.0), *pairs, (1.0, missing)], direction=UP, alpha=0.05, max_pairs=30)
    assert (broken.e_better, broken.n, broken.n_dropped) == (whole.e_better, 6, 2)


def test_fewer_than_two_usable_pairs_are_invalid() -> None:
    found = compare_sequentially([(1.0, 0.0), (math.nan, 0.0)], direction=UP, alpha=0.05, max_pairs=8)
    assert (found.comparison, found.is_decided, found.interval) == (Comparison.INVALID, False, None)


def test_equal_values_are_no_evidence() -> None:
    found = compare_sequentially([(0.5, 0.5)] * 10, direction=UP, alpha=0.05, max_pairs=10)
    assert (found.e_better, found.e_worse, found.comparison) == (1.0, 1.0, Comparison.INDISTINGUISHABLE)


def test_a_clear_gain_needs_eight_pairs_at_the_end_and_is_better_only_beyond_min_effect() -> None:
    pairs = [(1.0 + 0.001 * (i % 4), 0.0) for i in range(8)]
    found = compare_sequentially(pairs, direction=UP, alpha=0.025, max_pairs=30)
    assert found.comparison is Comparison.BETTER
    too_small = compare_sequentially(pairs, direction=UP, alpha=0.025, max_pairs=30, min_effect=1.1)
    assert too_small.comparison is Comparison.INDISTINGUISHABLE


@pytest.mark.parametrize("noise", ["gauss", "t2", "cauchy", "coarse", "skewed sides", "changing scale"])
def test_false_claims_stay_below_alpha_with_a_look_after_every_pair(noise: str) -> None:
    n_sequences, n_pairs, alpha = 4_000, 24, 0.05
    source = np.random.default_rng(5)
    shape = (n_sequences, n_pairs)
    differences = {
        "gauss": lambda: source.normal(size=shape),
        "t2": lambda: source.standard_t(2, size=shape),
        "cauchy": lambda: source.standard_cauchy(size=shape),
        "coarse": lambda: source.binomial(20, 0.9, size=shape) - 1.0 * source.binomial(20, 0.9, size=shape),
        "skewed sides": lambda: source.exponential(size=shape) ** 2 - source.exponential(size=shape) ** 2,
        "changing scale": lambda: source.normal(size=shape) * 10.0 ** source.uniform(-3, 3, size=shape),
    }[noise]()
    test = SequentialTest(max_pairs=n_pairs, planned_alpha=alpha)
    share = float(np.mean(test.p_values(differences)[:, -1] <= alpha))
    assert share <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / n_sequences)
    assert share > 0.005


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(0.001, 0.4), st.integers(1, 200), st.data())
def test_shares_of_a_session_never_exceed_its_error_budget(total: float, n_planned: int, data: st.DataObject) -> None:
    budget = ErrorBudget(total=total, n_planned=n_planned)
    accepted = data.draw(st.sets(st.integers(1, 300)))
    still_open = [order for order in range(1, 301) if order not in accepted]
    spent = budget.final_share + math.fsum(budget.share(order, accepted) for order in still_open)
    assert spent <= total * (1 + 1e-12)


def test_an_accepted_claim_hands_its_share_to_the_next() -> None:
    budget = ErrorBudget(total=0.05, n_planned=10)
    assert budget.share(3, {2}) == pytest.approx(budget.share(2) + budget.share(3))
    assert budget.share(4, {2}) == budget.share(4)
    assert budget.final_share == pytest.approx(0.025)
