"""Numbers that people write, read exactly and within bounds in which all later arithmetic is defined."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

LONGEST = 1_000  # characters
LEAST_POWER, MOST_POWER = -100, 15  # of ten: a delta may be tiny, but no amount of anything is larger
LEAST_AMOUNT, MOST_AMOUNT = Fraction(1, 10**15), 10**6  # of a privacy loss or of a scale of noise


def fraction(text: str) -> Fraction:
    """Read a decimal number or a fraction such as 1/3; ValueError where it is none, or beyond 1e-100 to 1e15.

    The power of ten is looked at first: 1e999999999 as a whole number would fill the memory.
    """
    if len(text) > LONGEST:
        raise ValueError("too long")
    try:
        exponent = Decimal(text).as_tuple().exponent if "/" not in text else 0
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not isinstance(exponent, int) or abs(exponent) > LONGEST:
        raise ValueError("not a finite number of ordinary size")
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    if value and not Fraction(10) ** LEAST_POWER <= abs(value) <= 10**MOST_POWER:
        raise ValueError("not a number of ordinary size")
    return value


def is_amount(value: Fraction) -> bool:
    """Whether a number can be a privacy loss or a scale of noise."""
    return LEAST_AMOUNT <= value <= MOST_AMOUNT
