"""Mean and variance of a published count when the true one is Poisson; it fits nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy

from discreet.maths.noisy_counts import CountNoise
from discreet.maths.pmf import Floats

EQUAL = 1e-12
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PublishedMoments:
    """E x, Var x and d E x / d mu for true counts Poisson(mu).

    For large a the published count has mean a + d and variance s^2, so only the small counts that differ are summed.
    Rounding leaves no such constant; there d and s^2 are averages over one period of the rounding.
    """

    noise: CountNoise

    @cached_property
    def _rows(self) -> tuple[float, float, Floats, Floats]:
        return _by_count(self.noise)

    def __call__(self, mu: Floats) -> tuple[Floats, Floats, Floats]:
        """The three of them in the shape of mu."""
        change, spread, means, seconds = self._rows
        mean, second, slope = mu + change, mu + (mu + change) ** 2 + spread, np.ones_like(mu)
        near = mu - 9 * np.sqrt(mu) < len(means)
        if len(means) and near.any():
            a = np.arange(len(means))
            p = np.exp(xlogy(a, mu[near][:, None]) - mu[near][:, None] - gammaln(a + 1))  # (cell, a)
            drift = means - (a + change)
            mean[near] += p @ drift
            second[near] += p @ (seconds - (a + change) ** 2 - spread)
            slope[near] += p @ (np.append(drift[1:], 0.0) - drift)
        return mean, np.maximum(second - mean**2, LEAST_VARIANCE), slope


def _by_count(noise: CountNoise) -> tuple[float, float, Floats, Floats]:
    """The mean change and variance of large counts, and E x and E x^2 of the counts 0, 1, .. that differ from it."""
    rule = noise.published
    if noise.is_additive:
        return noise.change.mean, noise.change.variance, np.zeros(0), np.zeros(0)
    reach = max(len(noise.rows), rule.threshold + rule.rounding - noise.span[0], 1)
    period = [noise.row(a) for a in range(reach, reach + rule.rounding)]
    change = float(np.mean([row.mean - a for a, row in enumerate(period, reach)]))
    spread = float(
        np.mean([row.variance + (row.mean - a - change) ** 2 for a, row in enumerate(period, reach)])
    )
    small = [noise.row(a) for a in range(reach)]
    means = np.array([row.mean for row in small])
    seconds = np.array([row.variance for row in small]) + means**2
    return change, spread, *_without_tail(means, seconds, change, spread)


def _without_tail(means: Floats, seconds: Floats, change: float, spread: float) -> tuple[Floats, Floats]:
    a = np.arange(len(means))
    same = (np.abs(means - a - change) < EQUAL) & (np.abs(seconds - means**2 - spread) < EQUAL)
    differing = np.flatnonzero(~same)
    keep = int(differing[-1]) + 1 if len(differing) else 0
    return means[:keep], seconds[:keep]
