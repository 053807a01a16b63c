"""Amounts of privacy losses as decimals that people read: exact where they are short, else rounded toward privacy."""

from __future__ import annotations

import decimal
from dataclasses import fields
from fractions import Fraction

from discreet.maths.privacy.accounting import ARITHMETIC, EpsilonDelta, Neighbours, PrivacyLoss, PureEpsilon

EXACT_DIGITS = 12  # a decimal of at most so many significant digits is shown as it is
SHOWN_DIGITS = 6  # of any other amount, which is rounded and marked
_SMALL = -5  # powers of ten below this are written as 1e-6


def decimal_text(amount: Fraction, *, down: bool = False) -> str:
    """An amount as a decimal: exact if it is a short one, else rounded and marked.

    What is spent or charged is rounded up, what is left is rounded down: neither understates a loss.
    """
    short = _decimal(amount, EXACT_DIGITS, decimal.ROUND_CEILING)
    if Fraction(short) == amount:
        return _written(short)
    rounded = _decimal(amount, SHOWN_DIGITS, decimal.ROUND_FLOOR if down else decimal.ROUND_CEILING)
    return f"{_written(rounded)} (rounded {'down' if down else 'up'})"


def readable(loss: PrivacyLoss, *, down: bool = False) -> str:
    """A loss for people, such as ``epsilon 0.5 and delta 1e-9``; a delta that is only rounding is named so."""
    parts = [(part.name, decimal_text(getattr(loss, part.name), down=down)) for part in fields(loss)]
    if isinstance(loss, EpsilonDelta) and 0 < loss.delta <= ARITHMETIC:
        return f"epsilon {parts[0][1]} and by rounding in the sampler delta {parts[1][1].partition(' ')[0]}"
    return " and ".join(f"{name} {amount}" for name, amount in parts)


def without_rounding(loss: PrivacyLoss) -> PrivacyLoss:
    """A loss without a delta that is only that of arithmetic, where that is stated elsewhere."""
    if isinstance(loss, EpsilonDelta) and loss.delta <= ARITHMETIC:
        return PureEpsilon(loss.epsilon)
    return loss


def compared(neighbours: Neighbours, unit: str) -> str:
    """Which populations a budget compares, for people."""
    if neighbours is Neighbours.ADD_REMOVE:
        return f"one {unit} more or less"
    return f"one {unit} with other values"


def amounts(loss: PrivacyLoss) -> dict[str, str]:
    """The exact amounts of a loss, by name."""
    return {part.name: exact_text(getattr(loss, part.name)) for part in fields(loss)}


def exact_text(amount: Fraction) -> str:
    """An amount without rounding: a decimal where it has one of at most 50 digits, else a fraction."""
    found = _decimal(amount, 50, decimal.ROUND_CEILING)
    return _written(found) if Fraction(found) == amount else str(amount)


def _decimal(amount: Fraction, digits: int, rounding: str) -> decimal.Decimal:
    context = decimal.Context(digits, rounding, -decimal.MAX_EMAX, decimal.MAX_EMAX)
    return context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))


def _written(value: decimal.Decimal) -> str:
    if not value:
        return "0"
    _, digits, exponent = value.as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    if power < _SMALL:
        return f"{shown[0]}{'.' if shown[1:] else ''}{shown[1:]}e{power}"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
