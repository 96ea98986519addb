"""What the best is worth when it was chosen for its own values: the winner's curse, and its correction. Pure.

The best of many noisy values is best partly by luck. Values on fresh seeds, which had no part in the choice, need no
correction. Without them each configuration's mean is drawn towards where the means of its kind lie, as far as the
noise of one evaluation (pooled from repeated configurations) says: the posterior under a prior which is estimated
from all configurations at once, a mixture of normals on a grid. Configurations that are far worse get a place of
their own in it and change nothing for the good ones.

Sources: Robbins, An empirical Bayes approach to statistics, 1956; Efron, Tweedie's formula and selection bias,
Journal of the American Statistical Association 106, 2011; Stephens, False discovery rates: a new deal, Biostatistics
18(2), 2017 (mixtures on a grid).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from agent.planner.statistics.intervals import CONFIDENCE, mean_interval
from agent.store.views import Interval
from agent.task import Direction

Floats = NDArray[np.floating[Any]]

_REACH_SDS = 12.0
"""Configurations that are worse than the best by more than this many noises say nothing about it."""
_GRID_STEP = 0.25
"""Width and distance of the prior's components, in noises."""
_N_ROUNDS = 25
"""Of fitting the prior; more of them make it a few spikes, which draw too much."""
_PLACES = 20
"""Means are told apart by this part of a noise while the prior is fitted."""
_FEWEST = 4
"""Configurations from which a prior can be estimated."""


class Basis(StrEnum):
    FRESH = "fresh"
    """Mean over fresh seeds, t interval: free of the choice."""
    SHRUNK = "shrunk"
    """Values that the choice was made by, drawn towards the others'."""
    AS_MEASURED = "as_measured"
    """Values that the choice was made by, as they are: too little is known to correct them; too good on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    interval: Interval
    """In the metric's units; of no width where nothing is known of the noise."""
    basis: Basis
    naive: float
    """Plain mean of all the chosen one's values, for comparison."""
    noise: float | None
    """Standard deviation of one evaluation, pooled from repeated configurations; None: nothing was repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is believed of one configuration."""

    configuration: str
    mean: float
    """Posterior mean, in the metric's units; the plain mean where the noise is not known."""
    sd: float
    """Posterior standard deviation; 0 where the noise is not known."""
    n: int
    """Valid values."""


def pooled_noise(values: Mapping[str, Sequence[float]], direction: Direction) -> float | None:
    """Standard deviation of one evaluation, from the better half of the configurations with two values or more.

    Bad configurations often vary more; None where none was repeated.
    """
    pooled = _pooled(values, direction)
    return pooled[0] if pooled else None


def _pooled(values: Mapping[str, Sequence[float]], direction: Direction) -> tuple[float, int] | None:
    """The noise and its degrees of freedom."""
    repeated = [np.asarray(v, dtype=float) for v in values.values() if len(v) >= 2]
    if not repeated:
        return None
    sign = _sign(direction)
    repeated.sort(key=lambda v: -sign * float(np.mean(v)))
    good = repeated[: max(math.ceil(len(repeated) / 2), min(len(repeated), 3))]
    squares = math.fsum(float(np.sum((v - np.mean(v)) ** 2)) for v in good)
    n_free = sum(len(v) - 1 for v in good)
    return math.sqrt(squares / n_free), n_free


def standing(values: Mapping[str, Sequence[float]], direction: Direction) -> tuple[Standing, ...]:
    """What is believed of each configuration, the best first; ties in the order of their names.

    `values` are the valid values of each, whatever seed they ran on; configurations without any are left out.

    Raises:
        ValueError: a value is not finite.
    """
    known = {name: tuple(v) for name, v in values.items() if len(v)}
    if not all(math.isfinite(x) for v in known.values() for x in v):
        raise ValueError("values must be finite numbers: an invalid trial has no value")
    if not known:
        return ()
    names = sorted(known)
    sign = _sign(direction)
    counts = np.array([len(known[name]) for name in names], dtype=float)
    means = sign * np.array([math.fsum(known[name]) / len(known[name]) for name in names])
    noise = pooled_noise(known, direction)
    posterior: Floats
    sds: Floats
    if not noise or len(names) < _FEWEST:
        posterior, sds = means, (noise or 0.0) / np.sqrt(counts)
    else:
        posterior, sds = _shrunk(means, counts, noise)
    order = np.lexsort((np.arange(len(names)), -posterior)).tolist()  # names are sorted already
    found = list(zip((sign * posterior).tolist(), sds.tolist(), counts.astype(int).tolist(), strict=True))
    return tuple(Standing(configuration=names[i], mean=found[i][0], sd=found[i][1], n=found[i][2]) for i in order)


def corrected(
    values: Mapping[str, Sequence[float]],
    chosen: str,
    *,
    direction: Direction,
    fresh: Sequence[float] = (),
    confidence: float = CONFIDENCE,
) -> Corrected | None:
    """What the chosen configuration is worth, free of the luck by which it was chosen; None: it has no value.

    `values` are those that the choice may have been made by (search and racing seeds), of every configuration;
    `fresh` are the chosen one's on seeds that had no part in the choice: two or more, and they alone count. A shrunk
    interval is moved, not narrowed: it is as wide as the noise of the chosen one's own values makes it.
    """
    own = [*values.get(chosen, ()), *fresh]
    if not own:
        return None
    naive = math.fsum(own) / len(own)
    pooled = _pooled(values, direction)
    noise = pooled[0] if pooled else None
    unbiased = mean_interval(fresh, confidence=confidence)
    if unbiased is not None:
        return Corrected(interval=unbiased, basis=Basis.FRESH, naive=naive, noise=noise)
    found = next((s for s in standing({**values, chosen: own}, direction) if s.configuration == chosen), None)
    assert found is not None
    half = 0.0
    if pooled is not None:
        half = float(stdtrit(pooled[1], 0.5 + confidence / 2)) * pooled[0] / math.sqrt(found.n)
    is_shrunk = noise is not None and len(values) >= _FEWEST
    return Corrected(
        interval=Interval(
            estimate=found.mean, low=found.mean - half, high=found.mean + half, confidence=confidence, n=found.n
        ),
        basis=Basis.SHRUNK if is_shrunk else Basis.AS_MEASURED,
        naive=naive,
        noise=noise,
    )


def _sign(direction: Direction) -> float:
    return 1.0 if direction is Direction.MAXIMIZE else -1.0


def _shrunk(means: Floats, counts: Floats, noise: float) -> tuple[Floats, Floats]:
    """Posterior means and standard deviations of gains (larger is better), for those within reach of the best."""
    errors = noise / np.sqrt(counts)
    best = float(np.max(means))
    is_near = means >= best - _REACH_SDS * noise
    posterior, sds = means.copy(), errors.copy()
    if np.count_nonzero(is_near) < _FEWEST:
        return posterior, sds
    width = _GRID_STEP * noise
    grid = np.arange(float(np.min(means[is_near])) - width, best + 2 * width, width)
    posterior[is_near], sds[is_near] = _posterior(means[is_near], errors[is_near], grid, width, noise)
    return posterior, sds


def _posterior(means: Floats, errors: Floats, grid: Floats, width: float, noise: float) -> tuple[Floats, Floats]:
    """Under the prior that these means suggest: normals of this width at the points of the grid."""
    # alike means are fitted as one, so that ten thousand of them take no longer than a few hundred
    places = np.stack([np.rint(means / (noise / _PLACES)), errors], axis=1)
    kinds, counts = np.unique(places, axis=0, return_counts=True)
    density = _density(kinds[:, 0] * (noise / _PLACES), kinds[:, 1], grid, width)
    weights = np.full(len(grid), 1.0 / len(grid))
    for _ in range(_N_ROUNDS):  # expectation and maximization
        share = density * weights
        share *= (counts / np.sum(share, axis=1))[:, None]
        weights = np.sum(share, axis=0) / len(means)
    share = _density(means, errors, grid, width) * weights
    share /= np.sum(share, axis=1, keepdims=True)
    variances = errors[:, None] ** 2 + width**2
    centers = grid[None, :] + (width**2 / variances) * (means[:, None] - grid[None, :])
    posterior = np.sum(share * centers, axis=1)
    inside = width**2 * errors[:, None] ** 2 / variances
    spread: Floats = np.sqrt(np.sum(share * (inside + (centers - posterior[:, None]) ** 2), axis=1))
    return posterior, spread


def _density(means: Floats, errors: Floats, grid: Floats, width: float) -> Floats:
    """How likely each mean is from each point of the grid, up to a factor."""
    variances = errors[:, None] ** 2 + width**2
    likely: Floats = np.exp(-0.5 * (means[:, None] - grid[None, :]) ** 2 / variances) / np.sqrt(variances)
    return likely
