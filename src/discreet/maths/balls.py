"""Cumulative laws in units of 2^-128, rounded down, by ball arithmetic; every digit is proven or the sum is redone.

It owns the rigorous sums (python-flint's arb); what is built of the thresholds is in thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from flint import arb, ctx, fmpq

BITS = 128
UNIT = 2**BITS
FIRST_PRECISION, LAST_PRECISION = 320, 1280


def exp_lower(x: Fraction) -> tuple[int, int]:
    """Return (n, k) with n / 2^k <= e^x, next below it."""
    with ctx.workprec(FIRST_PRECISION):
        mantissa, exponent = arb(ball_of(x).exp().lower()).man_exp()
    return (int(mantissa) << int(exponent), 0) if exponent >= 0 else (int(mantissa), -int(exponent))


def log_upper(x: Fraction) -> float:
    """Return a double that is certainly at least log x, read as all parameters are: as the decimal it is written as."""
    with ctx.workprec(FIRST_PRECISION):
        bound = ball_of(x).log().upper()
        value = float(bound)
        while not ball_of(Fraction(repr(value))) >= bound:
            value = math.nextafter(value, math.inf)
        return value


def ball_of(x: Fraction) -> arb:
    """Enclose a rational number."""
    return arb(fmpq(x.numerator, x.denominator))


def floors(cumulative: Callable[[], Sequence[arb]]) -> list[int]:
    """Evaluate a cumulative law at growing precision until floor(F 2^128) is certain at every point.

    A sum that is an integer number of units can never be told from one next below; after the last precision, where
    balls are narrower than 2^-1000, such a point takes the integer that its ball holds.
    """
    precision = FIRST_PRECISION
    while True:
        with ctx.workprec(precision):
            found = [_floor(ball * UNIT, last=precision >= LAST_PRECISION) for ball in cumulative()]
        if None not in found:
            return [value for value in found if value is not None]
        precision *= 2


def _floor(scaled: arb, last: bool) -> int | None:
    unique = scaled.floor().unique_fmpz()
    if unique is None and last:
        unique = (scaled + arb(1) / 2).floor().unique_fmpz()
    return None if unique is None else int(unique)


def symmetric_cumulative(
    linear: Fraction, quadratic: Fraction, cut: int, reach: int, infinite: bool
) -> list[arb]:
    """Enclose F(-cut), .., F(-1) of p(v) = exp(-linear abs(v) - quadratic v^2) / Z, summed from abs(v) = reach inwards.

    Where the support is infinite, one side beyond reach holds at most e^-h(reach+1) of all mass (exponents.Symmetric),
    which enters as a ball from 0 to that.
    """
    weights = list(_weights(linear, quadratic, reach + 1))
    beyond = weights.pop()
    inward = list(accumulate(reversed(weights[1:])))  # sums over abs(v) >= reach, reach - 1, .., 1
    total = 1 + 2 * inward[-1]
    rest = beyond.union(arb(0)) / (1 - 2 * beyond) if infinite else arb(0)  # relative to the sum inside reach
    scale = 1 / (total * (1 + 2 * rest))
    return [(part + rest * total) * scale for part in inward[reach - cut :]]


def _weights(linear: Fraction, quadratic: Fraction, last: int) -> Iterator[arb]:
    """Yield e^-h(v), v = 0..last, by its ratios: h(v+1) - h(v) grows by 2 quadratic at each step."""
    weight = arb(1)
    ratio = (-ball_of(linear + quadratic)).exp()
    step = (-ball_of(2 * quadratic)).exp()
    for _ in range(last):
        yield weight
        weight, ratio = weight * ratio, ratio * step
    yield weight


def listed_cumulative(exponents: Sequence[Fraction]) -> list[arb]:
    """Enclose F at all values but the last, for p proportional to e^-h with h written out."""
    sums = list(accumulate((-ball_of(exponent)).exp() for exponent in exponents))
    return [part / sums[-1] for part in sums[:-1]]


def root_cumulative(c: Fraction, count: int, cut: int, tail: arb) -> list[arb]:
    """Enclose F(0), .., F(cut - 1) of p(j) proportional to e^(-c abs(sqrt j - sqrt count)); a ball holds the tail."""
    factor, root = -ball_of(c), arb(count).sqrt()
    sums = list(accumulate((factor * abs(arb(j).sqrt() - root)).exp() for j in range(cut + 1)))
    scale = 1 / (sums[-1] + tail)
    return [part * scale for part in sums[:-1]]
