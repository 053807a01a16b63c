"""Goodness of fit of a binomial probability from one noisy count, by enumerating all possible published counts.

The likelihood-ratio test of Rinott et al. 2018, section 6.2, its exact size and power, and the interval of p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.inference.likelihood import log_likelihoods, peaks
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import Columns, PublishedLaw, packed

if TYPE_CHECKING:
    from scipy import optimize, stats
else:
    optimize = lazily("scipy.optimize")
    stats = lazily("scipy.stats")

LARGEST_N = 10**7
LARGEST_WORK = 2 * 10**7  # terms of all columns together
FAR = 1e-18  # true counts less probable than this on either side are left out
TIE = 1e-9  # statistics closer than this are equal: mirror images differ in the last digit


@dataclass(frozen=True, eq=False)
class BinomialTest:
    """All possible published values of a binomial(N, p0) count, and the statistic 2 log(max L / L(p0)) of each."""

    n: int
    p0: float
    noise: PublishedLaw
    values: NDArray[np.int64]  # (outcome) -> published count
    statistic: Floats
    probability: Floats  # under p0

    def p_value(self, statistic: float) -> float:
        """Pr under p0 of a statistic at least as large, exactly."""
        return float(min(1.0, self.probability[self.statistic >= statistic - TIE].sum()))

    def size(self, critical: float) -> float:
        """Pr under p0 that the statistic exceeds a critical value."""
        return float(self.probability[self.statistic > critical + TIE].sum())

    def critical(self, level: float) -> float:
        """The smallest statistic c with Pr(statistic > c) <= level."""
        order = np.argsort(-self.statistic)
        statistic, beyond = self.statistic[order], np.cumsum(self.probability[order])
        last = int(np.searchsorted(beyond, level, side="right"))
        return float(statistic[min(last, len(statistic) - 1)])

    def power(self, p: float, critical: float) -> float:
        """Pr under another p that the statistic of the test of p0 exceeds a critical value."""
        other = enumerated(self.n, p, self.noise)
        statistic = likelihood_ratios(self.n, self.p0, self.noise, other.values)
        return float(other.probability[statistic > critical + TIE].sum())


@dataclass(frozen=True, eq=False)
class _Outcomes:
    values: NDArray[np.int64]
    probability: Floats


@dataclass(frozen=True, eq=False)
class BinomialFit:
    """Inference on p from one published count x of N: the most probable value and the interval of likely ones."""

    n: int
    published: int
    noise: PublishedLaw

    @cached_property
    def _columns(self) -> Columns:
        return packed(self.noise, np.array([self.published]), self.n)

    @cached_property
    def _peak(self) -> tuple[float, float]:
        at, most = peaks(self._columns, self.n)
        return float(at[0]) / self.n, float(most[0])

    @property
    def estimate(self) -> float:
        """The p with the largest likelihood."""
        return self._peak[0]

    def log_likelihood(self, p: float) -> float:
        """log P(published | p)."""
        return float(
            log_likelihoods(np.array([p * self.n]), np.zeros(1, dtype=np.int64), self._columns, self.n)[0]
        )

    def statistic(self, p0: float) -> float:
        """2 log(max L / L(p0))."""
        return max(0.0, 2 * (self._peak[1] - self.log_likelihood(p0)))

    def interval(self, level: float) -> tuple[float, float]:
        """The p that the likelihood-ratio test does not reject at 1 - level by the chi-square law (1 df)."""
        limit, at = float(stats.chi2.ppf(level, 1)), self.estimate

        def excess(p: float) -> float:
            return min(self.statistic(p), 1e6) - limit

        low = 0.0 if excess(0.0) <= 0 else optimize.brentq(excess, 0.0, at, xtol=1e-12)
        high = 1.0 if excess(1.0) <= 0 else optimize.brentq(excess, at, 1.0, xtol=1e-12)
        return float(low), float(high)


def binomial_test(n: int, p0: float, noise: PublishedLaw) -> BinomialTest:
    """Enumerate the test of H0: p = p0 for a published count of N records."""
    found = enumerated(n, p0, noise)
    return BinomialTest(
        n, p0, noise, found.values, likelihood_ratios(n, p0, noise, found.values), found.probability
    )


def enumerated(n: int, p: float, noise: PublishedLaw) -> _Outcomes:
    """Every published count and its probability when the true count is binomial(N, p)."""
    checked(n, p)
    counts = _near(n, p)
    if len(counts) * len(noise.change.p) > LARGEST_WORK:
        raise mistake(
            "", "n", str(n), "take fewer records or noise with a bound: this is too much to enumerate"
        )
    weights = stats.binom.pmf(np.array(counts), n, p)
    rows = [noise.row(a) for a in counts]
    first = min(row.first for row in rows)
    total = np.zeros(max(row.last for row in rows) - first + 1)
    for weight, row in zip(weights, rows, strict=True):
        total[row.first - first : row.last + 1 - first] += weight * row.p
    seen = np.flatnonzero(total > FAR)
    return _Outcomes(seen + first, total[seen])


def _near(n: int, p: float) -> range:
    """The true counts without a probability of FAR at either end, by Bernstein's inequality."""
    log = -math.log(FAR)
    reach = log / 3 + math.sqrt(log * log / 9 + 2 * log * n * p * (1 - p))
    return range(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1)


def likelihood_ratios(n: int, p0: float, noise: PublishedLaw, values: NDArray[np.int64]) -> Floats:
    """2 log(max over p of L / L(p0)) of each published count."""
    packs = packed(noise, values, n)
    most = peaks(packs, n)[1]
    at_p0 = log_likelihoods(np.full(len(most), p0 * n), np.arange(len(most)), packs, n)
    found: Floats = np.maximum(0.0, 2 * (most - at_p0))[packs.indices(values)]
    return found


def checked(n: int, p0: float) -> None:
    """Refuse parameters that no binomial law has."""
    if not 1 <= n <= LARGEST_N:
        raise mistake("", "n", str(n), f"give a whole number of 1 to {LARGEST_N}")
    if not 0 < p0 < 1:
        raise mistake("", "p0", f"{p0:g}", "give a probability between 0 and 1")
