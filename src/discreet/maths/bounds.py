"""Bounds on exp, log and sqrt of Fractions that hold with certainty; it knows nothing of privacy.

The decimal module rounds each of the three correctly, so that the true value lies within the next number
below and the next number above. Fractions go in and come out; only ``float_above`` makes a float.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

_DIGITS = 50
_LEAST, _MOST = (
    -400,
    9999,
)  # powers of ten; smaller numbers are bounded by multiples of 1e-449, which keeps them short


def _context(rounding: str, digits: int = _DIGITS) -> decimal.Context:
    return decimal.Context(digits, rounding, _LEAST, _MOST)


_DOWN, _UP = _context(decimal.ROUND_FLOOR), _context(decimal.ROUND_CEILING)


def _decimal(x: Fraction, context: decimal.Context) -> decimal.Decimal:
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def exp_below(x: Fraction) -> Fraction:
    """A Fraction that is at most exp(x)."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(_decimal(x, _DOWN))))


def exp_above(x: Fraction) -> Fraction:
    """A Fraction that is at least exp(x)."""
    return Fraction(_UP.next_plus(_UP.exp(_decimal(x, _UP))))


def log_below(x: Fraction) -> Fraction:
    """A Fraction that is at most log(x), for x > 0."""
    return Fraction(_DOWN.next_minus(_DOWN.ln(_decimal(x, _DOWN))))


def log_above(x: Fraction) -> Fraction:
    """A Fraction that is at least log(x), for x > 0."""
    return Fraction(_UP.next_plus(_UP.ln(_decimal(x, _UP))))


def sqrt_above(x: Fraction) -> Fraction:
    """A Fraction that is at least the square root of x >= 0."""
    return Fraction(_UP.next_plus(_UP.sqrt(_decimal(x, _UP)))) if x else Fraction(0)


def rounded_up(x: Fraction, digits: int = _DIGITS) -> Fraction:
    """A Fraction with so many significant decimal digits that is at least x."""
    return Fraction(_decimal(x, _context(decimal.ROUND_CEILING, digits)))


def float_above(x: Fraction) -> float:
    """The smallest float that is at least x: how a loss is reported."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)
