"""Threshold tables: a law as integers in units of 2^-128, which both draw the noise and certify what it guarantees.

It owns the table, its certificates and how a law becomes one; the random bits are exact_draws' and cell_bits'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.maths.balls import (
    BITS,
    UNIT,
    exp_lower,
    floors,
    listed_cumulative,
    log_upper,
    root_cumulative,
    symmetric_cumulative,
)
from discreet.maths.exponents import Listed, Symmetric, checked_support
from discreet.maths.laws import AdditiveLaw, exact
from discreet.maths.pmf import Pmf
from discreet.maths.row_laws import HellingerLaw, tail_bound

GUARD_BITS = 96  # infinite sums run this much beyond the cut, so that the floors are certain at once
GUIDE_BITS = 16
NEGLIGIBLE = Fraction(1, 2**100)  # the delta that stands for zero: 1e-30


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """The value first + k is drawn when the uniform 128-bit word lies in [T(k-1), T(k)), T(-1) = 0, T(last) = 2^128.

    hi and lo are the halves of T(0) .. T(last - 1). guide[s] = 2 k + (1 where a threshold falls inside the slot s),
    k the first value whose interval reaches beyond the slot's start; slots are the words' first 16 bits.
    ``distance`` bounds the total-variation distance between this law and the ideal one.
    """

    first: int
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    guide: NDArray[np.int32]  # (2^16,)
    distance: Fraction

    @property
    def last(self) -> int:
        """The largest value that can be drawn."""
        return self.first + len(self.hi)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """How many of the 2^128 words lead to each value: the law itself, as whole numbers."""
        inner = [(int(h) << 64) | int(low) for h, low in zip(self.hi.tolist(), self.lo.tolist(), strict=True)]
        return tuple(right - left for left, right in pairwise((0, *inner, UNIT)))

    def number(self, value: int) -> int:
        """How many words lead to one value."""
        return self.numbers[value - self.first] if self.first <= value <= self.last else 0

    def pmf(self) -> Pmf:
        """The law as floats, to report."""
        return Pmf(self.first, np.array([number / UNIT for number in self.numbers]))

    def total_variation(self) -> Fraction:
        """A bound of the total-variation distance per draw to the ideal law; add (1 + e^epsilon) of it to delta."""
        return self.distance

    def certified_delta(self, epsilon: float | Fraction, shift: int = 1) -> Fraction:
        """The delta at this epsilon of the integers that are drawn, for counts that differ by shift; rounded up.

        max over both directions of sum (n(v) - e^epsilon n(v -+ shift))_+ / 2^128, with e^epsilon rounded down.
        """
        return delta_between(self, self, epsilon, shift)

    def certified_epsilon(self, delta: float | Fraction = NEGLIGIBLE, shift: int = 1) -> float:
        """The smallest epsilon, rounded up, whose certified delta is at most this one; inf where there is none.

        Noise of bounded support is never pure epsilon-DP, so delta 0 has no epsilon; the default is 2^-100.
        """
        return epsilon_between(self, self, delta, shift)


def delta_between(
    p: ThresholdTable, q: ThresholdTable, epsilon: float | Fraction, shift: int = 0
) -> Fraction:
    """The certified delta between two tables, the second's values moved by shift, in both directions."""
    left, right = _aligned(p, q, shift)
    factor, bits = exp_lower(exact("epsilon", epsilon))
    excess = max(_excess(left, right, factor, bits), _excess(right, left, factor, bits))
    return Fraction(excess, UNIT << bits)


def epsilon_between(p: ThresholdTable, q: ThresholdTable, delta: float | Fraction, shift: int = 0) -> float:
    """The certified epsilon between two tables at a delta, in both directions, rounded up."""
    left, right = _aligned(p, q, shift)
    units = exact("delta", delta) * UNIT
    ratios = [_smallest_ratio(left, right, units), _smallest_ratio(right, left, units)]
    return math.inf if None in ratios else max(log_upper(ratio) for ratio in ratios if ratio is not None)


def _aligned(p: ThresholdTable, q: ThresholdTable, shift: int) -> tuple[list[int], list[int]]:
    low, high = min(p.first, q.first + shift), max(p.last, q.last + shift)
    return _padded(p.numbers, p.first - low, high - p.last), _padded(
        q.numbers, q.first + shift - low, high - q.last - shift
    )


def _padded(numbers: Sequence[int], before: int, after: int) -> list[int]:
    return [*[0] * before, *numbers, *[0] * after]


def _excess(left: Sequence[int], right: Sequence[int], factor: int, bits: int) -> int:
    over = ((n << bits) - factor * m for n, m in zip(left, right, strict=True))
    return sum(excess for excess in over if excess > 0)


def _smallest_ratio(left: Sequence[int], right: Sequence[int], units: Fraction) -> Fraction | None:
    """Find the smallest r >= 1 with sum (n - r m)_+ <= units, exactly; none where even the largest r has more.

    The sum is convex and piecewise linear in r, so Newton's steps from the left never pass the root and reach it.
    """
    ratio = Fraction(1)
    while True:
        num, den = ratio.numerator, ratio.denominator
        over = [(n, m) for n, m in zip(left, right, strict=True) if n * den > num * m]
        mass, other = sum(n for n, _ in over), sum(m for _, m in over)
        if mass - ratio * other <= units:
            return ratio
        if other == 0:
            return None
        ratio = (mass - units) / other


def threshold_table(law: AdditiveLaw) -> ThresholdTable:
    """Make the table of an additive law: T(v) = floor(F(v) 2^128), every floor proven by ball arithmetic.

    An infinite support is cut where each tail is below 2^-128; the end values take the tails. A word draws another
    value than the ideal law does only if F(v) lies inside the word's unit or the value is cut, so the distance is at
    most one unit for each threshold and each cut tail.
    """
    shape = law.exponents
    if isinstance(shape, Listed):
        return _listed(shape)
    if shape.linear == shape.quadratic == 0:
        m = shape.reach(BITS)
        return table_of_shares(-m, [Fraction(1, 2 * m + 1)] * (2 * m + 1))
    return _symmetric(shape)


def row_table(law: HellingerLaw, count: int) -> ThresholdTable:
    """Make the table of the published counts of one true count under Hellinger-type noise."""
    cut = law.last_target(count, BITS)
    summed = law.last_target(count, BITS + GUARD_BITS)
    c = law.epsilon_parameter / 2
    rest = arb(2 * tail_bound(float(c), math.sqrt(count), math.sqrt(summed))).union(arb(0))
    inner = floors(lambda: root_cumulative(c, count, summed, rest)[:cut])
    return table_of_thresholds(0, inner, cut_tails=1)


def table_of_shares(first: int, shares: Sequence[Fraction]) -> ThresholdTable:
    """Make the table of a law given as exact shares of consecutive values, summing to 1."""
    inner, cumulative = [], Fraction(0)
    for share in shares[:-1]:
        cumulative += share
        inner.append(int(cumulative * UNIT))
    return table_of_thresholds(first, inner, cut_tails=0)


def table_of_thresholds(first: int, inner: Sequence[int], cut_tails: int) -> ThresholdTable:
    """Make a table of the thresholds of all values but the last."""
    checked_support(len(inner) + 1)
    hi = np.array([threshold >> 64 for threshold in inner], dtype=np.uint64)
    lo = np.array([threshold & (2**64 - 1) for threshold in inner], dtype=np.uint64)
    table = ThresholdTable(first, hi, lo, _guide(hi, lo), Fraction(len(inner) + cut_tails, UNIT))
    for array in (table.hi, table.lo, table.guide):
        array.setflags(write=False)
    return table


def _symmetric(shape: Symmetric) -> ThresholdTable:
    cut, infinite = shape.reach(BITS), shape.bound is None
    summed = shape.reach(BITS + GUARD_BITS)
    checked_support(2 * summed + 1)
    below = floors(lambda: symmetric_cumulative(shape.linear, shape.quadratic, cut, summed, infinite))
    # F(v) = 1 - F(-v-1), and no F(v) 2^128 is whole, so its floor follows from the other side's
    above = [UNIT - 1 - threshold for threshold in reversed(below)]
    return table_of_thresholds(-cut, [*below, *above], cut_tails=2 if infinite else 0)


def _listed(shape: Listed) -> ThresholdTable:
    if len(set(shape.exponents)) == 1:
        size = len(shape.exponents)
        return table_of_shares(shape.first, [Fraction(1, size)] * size)
    return table_of_thresholds(shape.first, floors(lambda: listed_cumulative(shape.exponents)), cut_tails=0)


def _guide(hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> NDArray[np.int32]:
    starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    below = np.append(
        np.searchsorted(hi, starts, side="left"), len(hi)
    )  # thresholds before each slot's start
    at_start = hi[(lo == 0) & ((hi << np.uint64(GUIDE_BITS)) == 0)] >> np.uint64(64 - GUIDE_BITS)
    first = below[:-1] + np.bincount(at_start.astype(np.int64), minlength=2**GUIDE_BITS)
    return (2 * first + (below[1:] > first)).astype(np.int32)
