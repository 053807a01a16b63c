"""A noise law on the integers: as probabilities (floats) and as exact exponents p(v) ~ exp(-h(v)) with rational h."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake

Floats = NDArray[np.float64]
UNSETTLED = int(np.iinfo(np.int64).max)  # beyond all counts: the noise of every count has a law of its own


class Loss(StrEnum):
    """How far a published count b lies from the true count a (Rinott et al. 2018, section 4.2).

    l1 = abs(a - b); l2 = (a - b)^2; l3 = abs(sqrt a - sqrt b), where a negative b has the root -sqrt(-b).
    """

    L1 = "l1"
    L2 = "l2"
    L3 = "l3"


@dataclass(frozen=True, eq=False)
class Pmf:
    """p[k] is the probability of the value first + k; mass of at most ``omitted`` lies beyond the array."""

    first: int
    p: Floats
    omitted: float = 0.0

    def __post_init__(self) -> None:
        self.p.setflags(write=False)

    @property
    def last(self) -> int:
        """The largest value of the array."""
        return self.first + len(self.p) - 1

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """The values, ascending."""
        return np.arange(self.first, self.first + len(self.p), dtype=np.int64)

    def at(self, value: int) -> float:
        """The probability of one value."""
        return float(self.p[value - self.first]) if self.first <= value <= self.last else 0.0

    def cdf(self, value: int) -> float:
        """Pr[at most value], a sum of positive terms from the left."""
        return float(self._from_left[min(value, self.last) - self.first]) if value >= self.first else 0.0

    def tail(self, value: int) -> float:
        """Pr[at least value], a sum of positive terms from the right: exact far below 1e-16, never 1 - cdf."""
        return float(self._from_right[max(value, self.first) - self.first]) if value <= self.last else 0.0

    def quantile(self, share: float) -> int:
        """The smallest value x with Pr[at most x] >= share; above the median it is found from the right tail."""
        if share <= 0.5:
            at = int(np.searchsorted(self._from_left, share, side="left"))
        else:
            beyond = np.append(self._from_right[1:], 0.0)
            at = len(self.p) - int(np.searchsorted(beyond[::-1], 1.0 - share, side="right"))
        return self.first + min(at, len(self.p) - 1)

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.p @ self.values)

    @property
    def variance(self) -> float:
        """The expected squared distance from the mean."""
        return float(self.p @ (self.values - self.mean) ** 2)

    def absolute_moment(self, order: int) -> float:
        """The expected abs(value)^order."""
        return float(self.p @ np.abs(self.values.astype(np.float64)) ** order)

    @property
    def entropy(self) -> float:
        """The entropy -sum p log p, in nats."""
        p = self.p[self.p > 0]
        return float(-(p @ np.log(p)))

    def within(self, centre: int, distance: int) -> float:
        """Pr[abs(value - centre) <= distance]."""
        return float(self.p[np.abs(self.values - centre) <= distance].sum())

    def shifted(self, by: int) -> Pmf:
        """The law of the value plus a constant."""
        return Pmf(self.first + by, self.p, self.omitted)

    def negatives_to_zero(self) -> Pmf:
        """The law after negative values are published as zero."""
        if self.first >= 0:
            return self
        p = np.zeros(max(self.last, 0) + 1)
        nonnegative = self.p[-self.first :]
        p[: len(nonnegative)] = nonnegative
        p[0] += self.cdf(-1)
        return Pmf(0, p, self.omitted)

    def expected_loss(self, count: int, loss: Loss) -> float:
        """The expected loss when the values are published for a true count."""
        return float(self.p @ losses(count, self.values, loss))

    @cached_property
    def _from_left(self) -> Floats:
        return np.cumsum(self.p)

    @cached_property
    def _from_right(self) -> Floats:
        return np.cumsum(self.p[::-1])[::-1]


def losses(count: int, published: NDArray[np.int64], loss: Loss) -> Floats:
    """The loss of each published value for a true count."""
    if loss is Loss.L3:
        roots = np.sign(published) * np.sqrt(np.abs(published))
        distances: Floats = np.abs(roots - np.sqrt(count))
        return distances
    distances = np.abs(published - count).astype(np.float64)
    return distances if loss is Loss.L1 else distances**2


LARGEST_SUPPORT = 2**21  # values; a table of thresholds takes two minutes then
REPORTED_BITS = 333  # infinite supports are reported down to a tail of 2^-333, about 1e-100


@dataclass(frozen=True)
class Symmetric:
    """h(v) = linear abs(v) + quadratic v^2 for abs(v) <= bound; no bound where the support is infinite."""

    linear: Fraction
    quadratic: Fraction
    bound: int | None

    def reach(self, bits: int) -> int:
        """The bound, or an m beyond which each side has at most 2^-bits.

        For a, b >= 0 h(a + b) >= h(a) + h(b), so the mass beyond m on one side is at most e^-h(m+1).
        """
        if self.bound is not None:
            return self.bound
        wanted, c1, c2 = bits * math.log(2), float(self.linear), float(self.quadratic)
        root = wanted / c1 if c2 == 0 else (math.sqrt(c1 * c1 + 4 * c2 * wanted) - c1) / (2 * c2)
        return math.ceil(root * (1 + 1e-9)) + 1

    def pmf(self) -> Pmf:
        """The law as floats, normalised by the sum over the reported support."""
        m = self.reach(REPORTED_BITS)
        checked_support(2 * m + 1)
        v = np.arange(m + 1, dtype=np.float64)
        half = np.exp(-(float(self.linear) * v + float(self.quadratic) * v * v))
        p = np.concatenate([half[:0:-1], half])
        return Pmf(-m, p / math.fsum(p), 0.0 if self.bound is not None else 2.0 ** (1 - REPORTED_BITS))

    def log_ratio(self, first: int, size: int, shift: int) -> Floats:
        """log p(v) - log p(v - shift) = h(v - shift) - h(v); inf where v - shift is out of the bound."""
        v = np.arange(first, first + size, dtype=np.float64)
        u = v - shift
        ratio: Floats = float(self.linear) * (np.abs(u) - np.abs(v)) + float(self.quadratic) * (u * u - v * v)
        if self.bound is not None:
            ratio[np.abs(u) > self.bound] = np.inf
        return ratio


@dataclass(frozen=True)
class Listed:
    """h(v) written out for v = first, first + 1, ..; the least exponent is 0."""

    first: int
    exponents: tuple[Fraction, ...]

    def pmf(self) -> Pmf:
        """The law as floats."""
        weights = np.exp(-np.array([float(exponent) for exponent in self.exponents]))
        return Pmf(self.first, weights / math.fsum(weights))

    def log_ratio(self, first: int, size: int, shift: int) -> Floats:
        """log p(v) - log p(v - shift); inf where v - shift is not listed."""
        ratio = np.full(size, np.inf)
        for at in range(size):
            there = first + at - self.first
            if 0 <= there - shift < len(self.exponents):
                ratio[at] = float(self.exponents[there - shift] - self.exponents[there])
        return ratio


Exponents = Symmetric | Listed


def checked_support(size: int) -> int:
    """Return the size of a support; raise where the noise is too wide."""
    if size > LARGEST_SUPPORT:
        raise mistake(
            "", "noise", f"{size} possible values", "take less noise: a larger epsilon or rho, or a bound"
        )
    return size
