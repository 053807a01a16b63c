"""Threshold tables: a law as integers in units of 2^-128 by rigorous ball arithmetic.

The same integers draw the noise and certify its guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily
from discreet.maths.noise.additive import AdditiveLaw, exact
from discreet.maths.noise.exponential import UtilityLaw
from discreet.maths.noise.hellinger import HellingerLaw, tail_bound
from discreet.maths.noise.law import Listed, Pmf, Symmetric, checked_support
from discreet.maths.privacy.accounting import exp_above

if TYPE_CHECKING:
    import flint
else:
    flint = lazily("flint")

BITS = 128
UNIT = 2**BITS
RowLaw = HellingerLaw | UtilityLaw  # laws whose noise depends on the count
FIRST_PRECISION, LAST_PRECISION = 320, 1280


def exp_lower(x: Fraction) -> tuple[int, int]:
    """Return (n, k) with n / 2^k <= e^x, just below it."""
    with flint.ctx.workprec(FIRST_PRECISION):
        mantissa, exponent = flint.arb(ball_of(x).exp().lower()).man_exp()
    return (int(mantissa) << int(exponent), 0) if exponent >= 0 else (int(mantissa), -int(exponent))


def log_upper(x: Fraction) -> float:
    """Return a double that is certainly at least log x, also when read as the decimal that it is written as."""
    with flint.ctx.workprec(FIRST_PRECISION):
        bound = ball_of(x).log().upper()
        value = float(bound)
        while not ball_of(Fraction(repr(value))) >= bound:
            value = math.nextafter(value, math.inf)
        return value


def ball_of(x: Fraction) -> flint.arb:
    """Enclose a rational number."""
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def floors(cumulative: Callable[[], Sequence[flint.arb]]) -> list[int]:
    """Evaluate a cumulative law at growing precision until floor(F 2^128) is certain at every point.

    A sum that is an integer number of units can never be distinguished from one just below; after the last precision,
    where balls are narrower than 2^-1000, such a point takes the integer that its ball contains.
    """
    precision = FIRST_PRECISION
    while True:
        with flint.ctx.workprec(precision):
            found = [_floor(ball * UNIT, last=precision >= LAST_PRECISION) for ball in cumulative()]
        if None not in found:
            return [value for value in found if value is not None]
        precision *= 2


def _floor(scaled: flint.arb, last: bool) -> int | None:
    unique = scaled.floor().unique_fmpz()
    if unique is None and last:
        unique = (scaled + flint.arb(1) / 2).floor().unique_fmpz()
    return None if unique is None else int(unique)


def symmetric_cumulative(
    linear: Fraction, quadratic: Fraction, cut: int, reach: int, infinite: bool
) -> list[flint.arb]:
    """Enclose F(-cut), .., F(-1) of p(v) = exp(-linear abs(v) - quadratic v^2) / Z, summed from abs(v) = reach inwards.

    Where the support is infinite, one side beyond reach has at most e^-h(reach+1) of all mass (``law.Symmetric``),
    which enters as a ball from 0 to that.
    """
    weights = list(_weights(linear, quadratic, reach + 1))
    beyond = weights.pop()
    inward = list(accumulate(reversed(weights[1:])))  # sums over abs(v) >= reach, reach - 1, .., 1
    total = 1 + 2 * inward[-1]
    rest = (
        beyond.union(flint.arb(0)) / (1 - 2 * beyond) if infinite else flint.arb(0)
    )  # relative to the sum inside reach
    scale = 1 / (total * (1 + 2 * rest))
    return [(part + rest * total) * scale for part in inward[reach - cut :]]


def _weights(linear: Fraction, quadratic: Fraction, last: int) -> Iterator[flint.arb]:
    """Yield e^-h(v), v = 0..last, by its ratios: h(v+1) - h(v) grows by 2 quadratic at each step."""
    weight = flint.arb(1)
    ratio = (-ball_of(linear + quadratic)).exp()
    step = (-ball_of(2 * quadratic)).exp()
    for _ in range(last):
        yield weight
        weight, ratio = weight * ratio, ratio * step
    yield weight


def listed_cumulative(exponents: Sequence[Fraction]) -> list[flint.arb]:
    """Enclose F at all values but the last, for p proportional to e^-h with h written out."""
    sums = list(accumulate((-ball_of(exponent)).exp() for exponent in exponents))
    return [part / sums[-1] for part in sums[:-1]]


def root_cumulative(c: Fraction, count: int, cut: int, tail: flint.arb) -> list[flint.arb]:
    """Enclose F(0), .., F(cut - 1) of p(j) proportional to e^(-c abs(sqrt j - sqrt count)); a ball covers the tail."""
    factor, arb = -ball_of(c), flint.arb
    root = arb(count).sqrt()
    sums = list(accumulate((factor * abs(arb(j).sqrt() - root)).exp() for j in range(cut + 1)))
    scale = 1 / (sums[-1] + tail)
    return [part * scale for part in sums[:-1]]


GUARD_BITS = 96  # infinite sums run this much beyond the cut, so that the floors are certain at once
GUIDE_BITS = 16
NEGLIGIBLE = Fraction(1, 2**100)  # the delta that counts as zero: 1e-30


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

    @cached_property
    def variance(self) -> float:
        """The variance of what is drawn, rounded once: the same on every processor."""
        numbers = list(enumerate(self.numbers, self.first))
        mean = Fraction(sum(value * number for value, number in numbers), UNIT)
        squares = Fraction(sum(value * value * number for value, number in numbers), UNIT)
        return float(squares - mean * mean)

    def total_variation(self) -> Fraction:
        """A bound of the total-variation distance per draw to the ideal law; add (1 + e^epsilon) of it to delta."""
        return self.distance

    def certified_delta(self, epsilon: float | Fraction, shift: int = 1) -> Fraction:
        """The delta at this epsilon of the integers that are drawn, for counts that differ by shift; rounded up.

        max over both directions of sum (n(v) - e^epsilon n(v -+ shift))_+ / 2^128, with e^epsilon rounded down.
        """
        return delta_between(self, self, epsilon, shift)

    def delta_per_change(self, epsilon: Fraction, largest: int) -> Fraction:
        """The largest d(k)/k for counts that differ by k = 1..largest, d(k) being their delta at k epsilon; rounded up.

        Values that only one of the two can have count whole: the k outermost ones. Inside, n(v) exceeds e^epsilon
        n(v -+ 1) only by rounding, by x in all; k steps exceed e^(k epsilon) by at most x (1 + .. + e^((k-1) epsilon)).
        """
        inside = self._rounding(epsilon)
        growth, outside, worst = Fraction(0), [0, 0], Fraction(0)
        for k in range(1, largest + 1):
            growth += exp_above((k - 1) * epsilon)
            for end, value in enumerate((self.first + k - 1, self.last - k + 1)):
                outside[end] += self.number(value)
            worst = max(worst, (max(outside) + growth * inside) / (k * UNIT))
        return worst

    def _rounding(self, epsilon: Fraction) -> Fraction:
        """By how many words neighbouring values differ by more than e^epsilon, in all, in the worse direction."""
        factor, bits = exp_lower(epsilon)
        inner, outer = self.numbers[1:], self.numbers[:-1]
        excess = max(_excess(inner, outer, factor, bits), _excess(outer, inner, factor, bits))
        return Fraction(excess, 1 << bits)

    def certified_epsilon(self, delta: float | Fraction = NEGLIGIBLE, shift: int = 1) -> float:
        """The smallest epsilon, rounded up, whose certified delta is at most this one; inf where none exists.

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


@lru_cache(maxsize=64)  # a programme asks for few laws, in many places
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


def row_table(law: RowLaw, count: int) -> ThresholdTable:
    """Make the table of the published counts of one true count under a law that depends on the count."""
    if isinstance(law, UtilityLaw):
        return _listed(law.exponents(count))
    cut = law.last_target(count, BITS)
    summed = law.last_target(count, BITS + GUARD_BITS)
    c = law.epsilon_parameter / 2
    rest = flint.arb(2 * tail_bound(float(c), math.sqrt(count), math.sqrt(summed))).union(flint.arb(0))
    inner = floors(lambda: root_cumulative(c, count, summed, rest)[:cut])
    return table_of_thresholds(0, inner, cut_tails=1)


def zero_table(law: AdditiveLaw | RowLaw) -> ThresholdTable:
    """Make the table that draws the noise of an empty cell."""
    return threshold_table(law) if isinstance(law, AdditiveLaw) else row_table(law, 0)


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
    found = floors(lambda: listed_cumulative(shape.exponents))
    # F < 1 before the last value, however near
    return table_of_thresholds(shape.first, [min(floor, UNIT - 1) for floor in found], cut_tails=0)


def _guide(hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> NDArray[np.int32]:
    starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    below = np.append(
        np.searchsorted(hi, starts, side="left"), len(hi)
    )  # thresholds before each slot's start
    at_start = hi[(lo == 0) & ((hi << np.uint64(GUIDE_BITS)) == 0)] >> np.uint64(64 - GUIDE_BITS)
    first = below[:-1] + np.bincount(at_start.astype(np.int64), minlength=2**GUIDE_BITS)
    return (2 * first + (below[1:] > first)).astype(np.int32)
