"""What the values so far say about configurations near them: a Gaussian process, small and bounded in cost. Pure.

Matérn 5/2 with one length per parameter, fitted by the most probable hyperparameters. Values are told as goodness
(higher is better), with the bad tail compressed: how bad a bad configuration is does not matter near the good ones.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr

from agent.planner.geometry import Geometry, Vector

_ROOT5 = 5.0**0.5
_N_ITERATIONS = 25
_LENGTH_PRIOR = (0.0, 1.0)
"""Mean and standard deviation of the logarithm of a length, in units of the whole range."""
_NOISE_PRIOR = (-2.5, 1.5)
"""The same of the noise variance, in units of the variance of the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    mean: Vector
    """Expected goodness, on the compressed scale."""
    sd: Vector
    """Of the true goodness of the configuration: the noise of one evaluation is not in it."""


class Surrogate:
    """Fitted to points and their mean goodness over `n_seeds` evaluations each."""

    def __init__(self, geometry: Geometry, points: Vector, goodness: Vector, n_seeds: Vector) -> None:
        self._geometry = geometry
        self._points = points
        self._scale = Compression.of(goodness)
        self._values = self._scale.to(goodness)
        self._apart = geometry.differences(points, points) ** 2
        self._n_seeds = n_seeds
        self._center = float(np.mean(self._values))
        self._spread = float(np.std(self._values)) or 1.0
        self._z = (self._values - self._center) / self._spread
        self._theta = self._fitted()
        self._factor, self._weights = self._solved(self._theta)

    @property
    def noise_sd(self) -> float:
        """Of one evaluation, on the compressed scale."""
        return float(np.exp(self._theta[-1] / 2)) * self._spread

    def believe(self, points: Vector) -> Belief:
        across = self._kernel(self._geometry.differences(points, self._points) ** 2, self._theta)
        mean = across @ self._weights
        part = solve_triangular(self._factor, across.T, lower=True, check_finite=False)
        variance = np.exp(self._theta[-2]) - np.sum(part**2, axis=0)
        return Belief(
            mean=mean * self._spread + self._center,
            sd=np.sqrt(np.maximum(variance, 1e-12)) * self._spread,
        )

    def in_units(self, compressed: Vector) -> Vector:
        """Goodness in the metric's units."""
        return self._scale.back(compressed)

    def believing(self, points: Vector) -> Surrogate:
        """With points that are being evaluated, as if they had given what is expected of them."""
        other = copy(self)
        other._points = np.vstack([self._points, points])
        other._apart = self._geometry.differences(other._points, other._points) ** 2
        other._z = np.concatenate([self._z, (self.believe(points).mean - self._center) / self._spread])
        other._n_seeds = np.concatenate([self._n_seeds, np.ones(len(points))])
        other._factor, other._weights = other._solved(self._theta)
        return other

    def _kernel(self, apart: Any, theta: Vector) -> Any:
        scaled = apart @ np.exp(-2 * theta[:-2])
        r = np.sqrt(scaled)
        return np.exp(theta[-2]) * (1 + _ROOT5 * r + 5 / 3 * scaled) * np.exp(-_ROOT5 * r)

    def _solved(self, theta: Vector) -> tuple[Any, Any]:
        covariance = self._kernel(self._apart, theta) + np.diag(np.exp(theta[-1]) / self._n_seeds + 1e-8)
        factor = np.linalg.cholesky(covariance)
        return factor, cho_solve((factor, True), self._z, check_finite=False)

    def _fitted(self) -> Vector:
        n_parameters = self._points.shape[1]
        start = np.concatenate([np.full(n_parameters, _LENGTH_PRIOR[0]), [0.0, _NOISE_PRIOR[0]]])
        if len(self._z) < 4:
            return start
        bounds = [(-3.0, 3.0)] * n_parameters + [(-3.0, 3.0), (-9.0, 1.0)]
        found = minimize(
            self._loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _N_ITERATIONS}
        )
        return np.asarray(found.x)

    def _loss(self, theta: Vector) -> tuple[float, Vector]:
        """Minus the log posterior of the hyperparameters, and its gradient."""
        lengths = np.exp(-2 * theta[:-2])
        scaled = self._apart @ lengths
        r = np.sqrt(scaled)
        decay = np.exp(theta[-2]) * np.exp(-_ROOT5 * r)
        kernel = decay * (1 + _ROOT5 * r + 5 / 3 * scaled)
        noise = np.exp(theta[-1]) / self._n_seeds
        try:
            factor = cho_factor(kernel + np.diag(noise + 1e-8), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        weights = cho_solve(factor, self._z, check_finite=False)
        inverse = cho_solve(factor, np.eye(len(self._z)), check_finite=False)
        outer = np.outer(weights, weights) - inverse
        gradient = np.empty_like(theta)
        gradient[:-2] = -0.5 * np.einsum("ij,ijp->p", outer * decay * (5 / 3) * (1 + _ROOT5 * r), self._apart) * lengths
        gradient[-2] = -0.5 * np.sum(outer * kernel)
        gradient[-1] = -0.5 * np.sum(np.diag(outer) * noise)
        loss = 0.5 * float(self._z @ weights) + float(np.sum(np.log(np.diag(factor[0]))))
        for at, (middle, sd) in ((slice(None, -2), _LENGTH_PRIOR), (slice(-1, None), _NOISE_PRIOR)):
            off = (theta[at] - middle) / sd
            loss += 0.5 * float(np.sum(off**2))
            gradient[at] += off / sd
        loss += 0.5 * float(theta[-2] ** 2)
        gradient[-2] += theta[-2]
        return loss, gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """Values better than the median stay as they are; worse ones are taken by the logarithm of their distance."""

    middle: float
    unit: float

    @classmethod
    def of(cls, goodness: Vector) -> Compression:
        middle = float(np.median(goodness))
        upper = goodness[goodness > middle]
        unit = float(np.mean(upper - middle)) if len(upper) else 1.0
        return cls(middle=middle, unit=unit if unit > 0 else 1.0)

    def to(self, goodness: Vector) -> Vector:
        z = (goodness - self.middle) / self.unit
        return np.asarray(np.where(z < 0, -np.log1p(np.maximum(-z, 0.0)), z))

    def back(self, compressed: Vector) -> Vector:
        z = np.where(compressed < 0, -np.expm1(np.maximum(-compressed, 0.0)), compressed)
        return z * self.unit + self.middle


def expected_gain(belief: Belief, over: float) -> Vector:
    """Expected improvement over a known goodness, on the compressed scale; never negative.

    Source: Jones, Schonlau and Welch, Journal of Global Optimization 13, 1998.
    """
    z = (belief.mean - over) / belief.sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.asarray(np.maximum(belief.sd * (z * ndtr(z) + density), 0.0))
