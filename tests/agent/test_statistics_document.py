"""The numbers in docs/statistics.md are those of the kernel."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from agent.planner.statistics import (
    Comparison,
    ErrorBudget,
    compare_sequentially,
    corrected,
    pairs_needed,
    smallest_detectable,
)
from agent.task import Direction, Seeds, Trust

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "statistics.md").read_text()
BUDGET = ErrorBudget(total=Trust().error_budget, n_planned=100)
NOISE = math.sqrt(2)
"""Of a difference, in units of one evaluation's."""


def rows(header: str) -> list[list[str]]:
    """The table that starts with this header, without it."""
    table = TEXT[TEXT.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_pairs_needed_are_those_of_the_kernel() -> None:
    table = rows("| true gain |")
    assert len(table) == 7
    for gain, at_end, on_way in table:
        assert int(at_end) == pairs_needed(float(gain), NOISE, BUDGET.final_share)
        assert int(on_way) == pairs_needed(float(gain), NOISE, BUDGET.share(50))


def test_smallest_gains_are_those_of_the_kernel() -> None:
    table = rows("| pairs |")
    assert len(table) == 5
    for n, *cells in table:
        for cell, alpha in zip(cells, (BUDGET.final_share, BUDGET.share(50)), strict=True):
            gain = smallest_detectable(NOISE, int(n), alpha)
            assert cell == ("-" if gain is None else f"{gain:.2f}")


def test_the_shares_named_are_those_of_the_error_budget() -> None:
    assert f"the first gets\n{BUDGET.share(1):.4f}, the 50th {BUDGET.share(50):.4f}" in TEXT
    assert f"{BUDGET.final_share / BUDGET.total:.0%}".replace("%", " %") + " of it is for the claim at the end" in TEXT
    assert f"`trust.error_budget` ({BUDGET.total:g})" in TEXT


def test_a_gain_that_nobody_could_miss_takes_the_number_of_pairs_named() -> None:
    found = re.search(r"is called better after\n(\d+) pairs at the end where (\d+) are allowed", TEXT)
    assert found is not None
    n, most = map(int, found.groups())
    assert most == Seeds().max_pairs
    pairs = [(1.0 + i / 1000, 0.0) for i in range(n)]
    at = [
        compare_sequentially(p, direction=Direction.MAXIMIZE, alpha=BUDGET.final_share, max_pairs=most)
        for p in (pairs, pairs[:-1])
    ]
    assert [c.comparison for c in at] == [Comparison.BETTER, Comparison.INDISTINGUISHABLE]


def test_the_best_of_fifty_equal_ones_is_as_much_too_good_as_is_said() -> None:
    source = np.random.default_rng(53)
    naive, shrunk = [], []
    for _ in range(200):
        values = {f"c{i}": [x] for i, x in enumerate(source.normal(size=50).tolist())}
        top = sorted(values, key=lambda name: -values[name][0])[:3]
        for name in {*top, "c7"}:
            values[name] += source.normal(size=2).tolist()
        chosen = max(values, key=lambda name: np.mean(values[name]))
        found = corrected(values, chosen, direction=Direction.MAXIMIZE)
        assert found is not None
        naive.append(found.naive)
        shrunk.append(found.interval.estimate)
    said = re.search(
        r"about ([\d.]+) noises too good as measured, and about ([\d.]+) corrected", TEXT.replace("\n  ", " ")
    )
    assert said is not None
    assert abs(float(np.mean(naive)) - float(said[1])) < 0.2
    assert abs(float(np.mean(shrunk)) - float(said[2])) < 0.12
