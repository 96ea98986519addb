"""Figures of the judgement: how often a session claims what is not so, and how often it finds what is.

The noise is normal with a standard deviation of 1 for one evaluation. The policy is the most error-prone one that the
error budget allows: every one of 100 configurations is opened as a challenger in the order of its search value, gets
60 pairs on racing seeds against the same runs of the default, and is looked at after every pair; at the end the best
by all its values is tested on 30 fresh pairs.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from agent.planner.statistics import ErrorBudget, SequentialTest
from bench.figure import Figure

N_CANDIDATES, N_PAIRS, N_FINAL = 100, 60, 30
BUDGET = ErrorBudget(total=0.05, n_planned=N_CANDIDATES)


def null_sessions_percent(quick: bool) -> Figure:
    """Sessions with any false claim of better where no configuration differs: upper one-sided 95 % bound.

    Control: sessions in which keep-if-better keeps anything, one evaluation for each of 100 proposals.
    """
    n = 400  # of 100 sessions the bound of a true rate of 2.5 % is 5 % or more in most runs
    source = np.random.default_rng(20261202)
    n_false = sum(_claims_anything(source) for _ in range(n))
    n_greedy = sum(_keeps_anything(source) for _ in range(n))
    return Figure(
        id="agent.null_sessions_percent",
        value=100 * _upper(n_false, n),
        unit="%",
        control=100 * _upper(n_greedy, n),
        n=n,
        spread=(100 * _lower(n_false, n), 100 * _upper(n_false, n)),
        note=f"{n_false} of {n} sessions; control: keep-if-better, {n_greedy}; spread: one-sided 95 % bounds; "
        "kernel and error budget, all 100 challengers opened with 60 pairs each and 30 at the end",
    )


def power_percent(quick: bool) -> Figure:
    """One of 100 configurations is truly better by 1 sd of an evaluation: claimed within 60 pairs on it, on the way.

    The claim at the end, which would find some of the rest, is not counted. Control: a paired t test of all 60 pairs,
    once, with the error shared evenly (Bonferroni).
    """
    n = 500 if quick else 2000
    source = np.random.default_rng(20261203)
    found = [_true_gain_is_claimed(source) for _ in range(n)]
    n_found, n_t = sum(sequential for sequential, _ in found), sum(t for _, t in found)
    return Figure(
        id="agent.power_percent",
        value=100 * n_found / n,
        unit="%",
        control=100 * n_t / n,
        n=n,
        spread=(100 * _lower(n_found, n), 100 * _upper(n_found, n)),
        note=f"{n_found} of {n}; control: t test at .05/100 with all 60 pairs, {n_t}; spread: one-sided 95 % bounds",
    )


def _claims_anything(source: np.random.Generator) -> bool:
    search = source.normal(size=N_CANDIDATES)
    default = source.normal(size=N_PAIRS)
    racing = source.normal(size=(N_CANDIDATES, N_PAIRS))
    accepted: set[int] = set()
    for order, candidate in enumerate(np.argsort(-search), start=1):
        planned, alpha = BUDGET.share(order), BUDGET.share(order, accepted)
        test = SequentialTest(max_pairs=N_PAIRS, planned_alpha=planned)
        if test.p_values(racing[candidate] - default)[-1] <= alpha:
            accepted.add(order)
    final = SequentialTest(max_pairs=N_FINAL, planned_alpha=BUDGET.final_share)
    fresh = source.normal(size=N_FINAL) - source.normal(size=N_FINAL)  # whichever is chosen: none differs
    return bool(accepted) or bool(final.p_values(fresh)[-1] <= BUDGET.final_share)


def _keeps_anything(source: np.random.Generator) -> bool:
    values = source.normal(size=N_CANDIDATES + 1)
    return bool(np.any(values[1:] > values[0]))


def _true_gain_is_claimed(source: np.random.Generator) -> tuple[bool, bool]:
    """By the sequential claim, and by the t test."""
    own = 1.0 + source.normal()
    order = 1 + int(np.sum(source.normal(size=N_CANDIDATES - 1) > own))
    differences = 1.0 + source.normal(size=N_PAIRS) - source.normal(size=N_PAIRS)
    alpha = BUDGET.share(order)
    p = SequentialTest(max_pairs=N_PAIRS, planned_alpha=alpha).p_values(differences)[-1]
    t = math.sqrt(N_PAIRS) * float(np.mean(differences)) / float(np.std(differences, ddof=1))
    return bool(p <= alpha), bool(stats.t.sf(t, N_PAIRS - 1) <= BUDGET.total / N_CANDIDATES)


def _upper(k: int, n: int) -> float:
    """Clopper-Pearson, one-sided 95 %."""
    return float(stats.beta.ppf(0.95, k + 1, n - k)) if k < n else 1.0


def _lower(k: int, n: int) -> float:
    return float(stats.beta.ppf(0.05, k, n - k + 1)) if k > 0 else 0.0
