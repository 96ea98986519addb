"""The exact test by flipping signs, for one look at a number of pairs that was planned. Pure.

When nothing differs, the signs of the differences are fair coins, their sizes given. So the sum of the differences
is compared with all sums that other signs would have given, counted exactly, not sampled. The sizes enter as whole
numbers and large ones are cut, so one outlier can not drown the rest; any use of the sizes leaves the test exact.

Source: Fisher, The Design of Experiments, section 21, 1935; Pagano and Tritchler, On obtaining permutation
distributions in polynomial time, Journal of the American Statistical Association 78, 1983 (counting by Fourier
transform).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

_STEPS = 8
"""Whole numbers per median size."""
_LARGEST = 3
"""Sizes are cut at this many medians."""
_ROWS = 400
"""Sequences worked on at once, so that memory stays small."""


def flip_p_values(differences: Floats) -> Floats:
    """One-sided p-values of the claim that differences are centered above 0; pairs along the last axis.

    1 where all differences are 0. Exact to about 1e-13.
    """
    sizes = _whole_sizes(differences)
    signed = np.where(differences < 0, -sizes, sizes)
    rows = sizes.reshape(-1, sizes.shape[-1])
    totals = np.sum(signed, axis=-1).reshape(-1)
    found = [_tails(rows[i : i + _ROWS], totals[i : i + _ROWS]) for i in range(0, len(rows), _ROWS)]
    return np.concatenate(found).reshape(differences.shape[:-1]) if found else np.ones(differences.shape[:-1])


def _whole_sizes(differences: Floats) -> NDArray[np.int64]:
    sizes = np.abs(differences)
    n_zero = np.sum(sizes == 0, axis=-1, keepdims=True)
    middle = np.minimum((n_zero + sizes.shape[-1]) // 2, sizes.shape[-1] - 1)  # of those that are not 0
    scale = np.take_along_axis(np.sort(sizes, axis=-1), middle, axis=-1)
    relative = np.divide(sizes, scale, out=np.zeros_like(sizes), where=scale > 0)
    whole: NDArray[np.int64] = np.rint(np.minimum(relative, _LARGEST) * _STEPS).astype(np.int64)
    return whole


def _tails(sizes: NDArray[np.int64], totals: NDArray[np.int64]) -> Floats:
    """Chance that fair signs give a sum of at least the total, for each row.

    The sum of those with a positive sign has the characteristic function prod (1 + exp(i w size)) / 2, whose values at
    enough frequencies give its distribution; the powers of equal sizes are taken through logarithms.
    """
    sums = np.sum(sizes, axis=1)
    n_points = 1 << int(np.max(sums)).bit_length()
    frequencies = np.arange(n_points // 2 + 1) * (math.pi / n_points)
    kinds = np.arange(1, _LARGEST * _STEPS + 1)
    counts = np.sum(sizes[:, None, :] == kinds[None, :, None], axis=-1)
    factors = np.cos(frequencies[None, :] * kinds[:, None])  # never 0 in floating point
    strength = np.exp(counts @ np.log(np.abs(factors)))
    is_negative = (counts @ (factors < 0)) % 2 == 1
    spectrum = np.where(is_negative, -strength, strength) * np.exp(-1j * frequencies[None, :] * sums[:, None])
    chances = np.fft.irfft(spectrum, n=n_points, axis=1)
    tails = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    at = (totals + sums) // 2
    chance: Floats = np.clip(tails[np.arange(len(sizes)), at], 2.0 ** -sizes.shape[1], 1.0)
    return chance
