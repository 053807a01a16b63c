"""Laws as exponents: p(v) is proportional to exp(-h(v)) with rational h, so that nothing is lost before the last step.

It owns the two shapes that h has and their cuts; the laws that use them are in laws, their balls in balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import mistake
from discreet.maths.pmf import Floats, Pmf

LARGEST_SUPPORT = 2**22  # values; beyond this a table of thresholds no longer pays
REPORTED_BITS = 333  # infinite supports are reported down to a tail of 2^-333, about 1e-100


@dataclass(frozen=True)
class Symmetric:
    """h(v) = linear abs(v) + quadratic v^2 for abs(v) <= bound; no bound where the support is infinite."""

    linear: Fraction
    quadratic: Fraction
    bound: int | None

    def reach(self, bits: int) -> int:
        """The bound, or an m beyond which each side holds at most 2^-bits.

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
    """Return the size of a support, or say that the noise is too wide."""
    if size > LARGEST_SUPPORT:
        raise mistake(
            "", "noise", f"{size} possible values", "take less noise: a larger epsilon or rho, or a bound"
        )
    return size
