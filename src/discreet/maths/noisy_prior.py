"""A prior for many cells, estimated from the cells themselves, and how sure that estimate is.

It owns the estimate alone; what a prior is and what it says of one cell is noisy_intervals'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, gammaln, logit

from discreet.maths.noisy_counts import CountNoise
from discreet.maths.pmf import Floats

STEP = 1e-3  # of the finite differences
LIMITS = ((-9.0, 25.0), (-4.0, 6.0), (-9.0, 9.0))  # log mean, log shape, logit of the empty share
AT_LIMIT = 0.05  # a parameter this near to its limit is taken as known


@dataclass(frozen=True)
class NegativeBinomial:
    """Counts of this mean m and variance m + m^2 / shape, and an extra share of empty cells."""

    mean: float
    shape: float
    empty: float

    def weights(self, counts: Floats) -> Floats:
        """The probability of each count."""
        k, q = self.shape, self.mean / (self.mean + self.shape)
        logs = (
            gammaln(counts + k) - gammaln(k) - gammaln(counts + 1) + k * math.log1p(-q) + counts * math.log(q)
        )
        found: Floats = (1 - self.empty) * np.exp(logs)
        return found + np.where(counts == 0, self.empty, 0.0)

    @property
    def name(self) -> str:
        """The prior in words."""
        return (
            f"negative binomial with mean {self.mean:.4g} and shape {self.shape:.3g}, and {self.empty:.3g} of the "
            "cells empty besides, estimated from the cells"
        )


@dataclass(frozen=True, eq=False)
class CellsPrior:
    """The negative binomial law with extra empty cells that makes the published counts of many cells most probable.

    With a flat prior the small bias of each cell would add up over the cells (empirical Bayes, Robbins 1956).
    """

    noise: CountNoise
    counts: tuple[int, ...]

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """P(x | a) and a of all different x one after another, where each x begins, and how many cells have it."""
        values, number = np.unique(np.array(self.counts, dtype=np.int64), return_counts=True)
        columns = [self.noise.column(int(x)) for x in values]
        starts = np.concatenate([[0], np.cumsum([len(c.p) for c in columns])[:-1]]).astype(np.int64)
        a = np.concatenate([np.arange(c.first, c.last + 1, dtype=np.float64) for c in columns])
        return np.concatenate([c.p for c in columns]), a, starts, number

    @cached_property
    def _place(self) -> Floats:
        x = np.maximum(self.counts, 0)
        empty = min(max(float((x == 0).mean()), 0.02), 0.9)
        start = np.array([math.log(max(0.1, float(x.mean()) / (1 - empty))), 0.0, float(logit(empty))])
        found = minimize(lambda place: -self._log_likelihood(place), start, method="L-BFGS-B", bounds=LIMITS)
        return np.asarray(found.x, dtype=np.float64)

    @cached_property
    def prior(self) -> NegativeBinomial:
        """By maximum likelihood."""
        return _law(self._place)

    def _log_likelihood(self, place: Floats) -> float:
        p, a, starts, number = self._cells
        whole = np.add.reduceat(p * _law(place).weights(a), starts)
        return float(number @ np.log(np.maximum(whole, 1e-300)))

    def _total(self, place: Floats) -> float:
        """The expected sum of the true counts."""
        p, a, starts, number = self._cells
        weights = p * _law(place).weights(a)
        means = np.add.reduceat(weights * a, starts) / np.maximum(np.add.reduceat(weights, starts), 1e-300)
        return float(number @ means)

    @cached_property
    def total_variance(self) -> float:
        """What not knowing the prior adds to the variance of the total: g' I^-1 g, by finite differences.

        Directions in which the likelihood is flat tell nothing of the total; parameters at a limit are known.
        """
        place, free = self._place, [k for k, limits in enumerate(LIMITS) if _inside(self._place[k], limits)]
        if not free:
            return 0.0
        moves = STEP * np.eye(len(LIMITS))[free]
        gradient = np.array([(self._total(place + m) - self._total(place - m)) / (2 * STEP) for m in moves])
        information = -np.array([[self._bend(m, n) for n in moves] for m in moves])
        return float(max(0.0, gradient @ np.linalg.pinv(information, rcond=1e-6, hermitian=True) @ gradient))

    def _bend(self, m: Floats, n: Floats) -> float:
        """The second derivative of the log-likelihood along two moves."""
        f, at = self._log_likelihood, self._place
        return (f(at + m + n) - f(at + m - n) - f(at - m + n) + f(at - m - n)) / (4 * STEP**2)


def estimated_prior(noise: CountNoise, counts: Sequence[int]) -> CellsPrior:
    """The prior of these cells."""
    return CellsPrior(noise, tuple(int(x) for x in counts))


def _law(place: Floats) -> NegativeBinomial:
    return NegativeBinomial(math.exp(place[0]), math.exp(place[1]), float(expit(place[2])))


def _inside(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] + AT_LIMIT < value < limits[1] - AT_LIMIT
