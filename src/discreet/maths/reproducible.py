"""Sums, logarithms and inverses of floats that have the same bits on every processor.

BLAS, LAPACK and the system's mathematical library choose their kernels by the processor: these add in another order, or
round once where others round twice. What is published must not depend on that. This module uses only operations that
IEEE 754 rounds correctly (+, -, x, /), one at a time and in a fixed order, sums that are rounded once (Shewchuk 1997),
and logarithms that are rounded from far more digits. They suit small systems; for large ones BLAS is faster.

Whole arrays are computed by NumPy, many numbers or matrices at once: loading Numba and the machine code of a kernel
takes longer than the p-table of an ordinary D. Only the inverses of larger matrices have a kernel.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import is_loaded, njit

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FEW = 16  # numbers for which Python is as fast as a kernel
FEW_AT_FIRST = 48  # .. and for which it is faster than loading Numba
LARGE = 48  # lines of a matrix; a kernel inverts larger ones
LOG_DIGITS = decimal.Context(
    prec=40
)  # a double has 16: the nearest one is found unless 22 further digits agree
TABLE_DIGITS = decimal.Context(prec=50)
LOG_PARTS = 128  # logarithms are looked up at multiples of 1/128
LEAST_MANTISSA = 0.70703125  # those from here to its double are looked up: 90.5 to 181 parts
LOG_TERMS = 7  # of the series of atanh, whose argument is below 1/360: what is left is below 2^-110
LOG_FINE_TERMS = 3  # of them with two doubles; the error of the others, times q^3 < 2^-50, is below 2^-100
LOG_SURE = (
    2.0**-90
)  # relative error within which a sum of two doubles must round alike; the true one is below 2^-96
AT_ONCE = 4096  # logarithms whose parts stay in the cache
SPLIT = 134217729.0  # 2^27 + 1, which cuts a double in two halves (Veltkamp)


def few(size: int) -> bool:
    """Whether so many numbers are left to Python; a kernel would find the same bits."""
    return size <= (FEW if is_loaded("numba") else FEW_AT_FIRST)


def total(values: Floats) -> float:
    """The sum, rounded once."""
    return math.fsum(values.tolist())


def totals(values: Floats) -> Floats:
    """The sum of each line, rounded once; NaN if one of its numbers is not finite."""
    finite = np.logical_and.reduce(np.isfinite(values), axis=1)
    out = np.full(len(values), np.nan)
    out[finite] = [math.fsum(line) for line in values[finite].tolist()]
    return out


def dot(left: NDArray[np.float64 | np.int64], right: Floats) -> float:
    """The sum of the rounded products, rounded once."""
    return total(np.multiply(left, right, dtype=np.float64))


def in_order(values: Floats) -> Floats:
    """The sums along the last axis, each from its first number to its last; zeros at the end change nothing."""
    out: Floats = np.add.accumulate(values, axis=-1)[..., -1]
    return out


def log(values: Floats) -> Floats:
    """The natural logarithm of each positive number, correctly rounded; NaN for all others.

    Most are found as sums of two doubles; those that lie too near to the middle of two doubles take more digits.
    """
    flat = values.ravel()
    out = np.empty(len(flat))
    with np.errstate(invalid="ignore"):
        for first in range(0, len(flat), AT_ONCE):
            out[first : first + AT_ONCE] = _logarithms(flat[first : first + AT_ONCE], *_log_table())
    for at in np.flatnonzero(np.isnan(out)).tolist():
        out[at] = _slow_log(float(flat[at]))
    return out.reshape(values.shape)


def _slow_log(value: float) -> float:
    return float(Decimal(value).ln(LOG_DIGITS)) if 0 < value < math.inf else value if value > 0 else math.nan


@cache
def _log_table() -> tuple[Floats, Floats]:
    """log(i/128), i as they occur, and log 2 at 0: the nearest doubles, and those of what they leave."""
    high, low = np.zeros((2, int(2 * LEAST_MANTISSA * LOG_PARTS) + 1))
    for at in (0, *range(int(LEAST_MANTISSA * LOG_PARTS), len(high))):
        exact = Decimal(at / LOG_PARTS if at else 2).ln(TABLE_DIGITS)
        high[at] = float(exact)
        low[at] = float(TABLE_DIGITS.subtract(exact, Decimal(high[at])))
    return high, low


def _product(a: Any, b: Any) -> Any:
    """a b as a sum of two doubles, without error (Dekker 1971)."""
    p = a * b
    c = SPLIT * a
    a1 = c - (c - a)
    a2 = a - a1
    c = SPLIT * b
    b1 = c - (c - b)
    b2 = b - b1
    return p, a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


def _sum(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """The sum of two sums of two doubles (Knuth's exact sum of the leading ones, then the rest)."""
    s = a + b
    v = s - a
    rest = (a - (s - v)) + (b - v)
    rest += a_low + b_low
    high = s + rest
    return high, rest - (high - s)


def _times(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    p, rest = _product(a, b)
    rest += a * b_low + a_low * b
    high = p + rest
    return high, rest - (high - p)


def _over(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    q = a / b
    p, rest = _times(q, 0.0, b, b_low)
    left, left_low = _sum(a, a_low, -p, -rest)
    more = left / b
    p, rest = _times(more, 0.0, b, b_low)
    left, left_low = _sum(left, left_low, -p, -rest)
    return _sum(q, 0.0, more, left / b)


def _logarithms(values: Floats, high: Floats, low: Floats) -> Floats:
    """log(2^e m) = e log 2 + log c + 2 atanh(s), c the nearest multiple of 1/128 to m and s = (m - c) / (m + c).

    NaN where two doubles do not show the nearest one.
    """
    usable = (values > 1e-300) & (values < 1e300)
    m, e = np.frexp(np.where(usable, values, 1.0))
    below = m < LEAST_MANTISSA
    m, e = np.where(below, 2.0 * m, m), np.where(below, e - 1, e)
    place = (m * LOG_PARTS + 0.5).astype(np.int64)
    c = place / LOG_PARTS
    d, d_low = _sum(m, 0.0, c, 0.0)
    s, s_low = _over(m - c, 0.0, d, d_low)
    q, q_low = _times(s, s_low, s, s_low)
    t, t_low = np.zeros(len(m)), 0.0
    for term in range(LOG_TERMS - 1, LOG_FINE_TERMS - 1, -1):
        t = t * q + 2.0 / (2.0 * term + 1.0)
    for term in range(LOG_FINE_TERMS - 1, -1, -1):
        t, t_low = _times(t, t_low, q, q_low)
        t, t_low = _sum(t, t_low, *_over(2.0, 0.0, 2.0 * term + 1.0, 0.0))
    t, t_low = _times(t, t_low, s, s_low)
    moved, moved_low = _sum(high[place], low[place], t, t_low)
    t, t_low = np.where(place != LOG_PARTS, moved, t), np.where(place != LOG_PARTS, moved_low, t_low)
    power, power_low = _times(e.astype(np.float64), 0.0, high[0], low[0])
    moved, moved_low = _sum(power, power_low, t, t_low)
    t, t_low = np.where(e != 0, moved, t), np.where(e != 0, moved_low, t_low)
    sure = LOG_SURE * np.abs(t)
    certain = usable & (t + (t_low + sure) == t) & (t + (t_low - sure) == t)
    return np.where(certain, t, np.nan)


def inverses(matrices: Floats) -> tuple[Floats, Flags]:
    """(matrix, line, column) -> the inverse of each by Gauss and Jordan, with partial pivoting; and which have one."""
    work = matrices.copy()
    count, size, _ = work.shape
    pivots = np.zeros((count, size), dtype=np.int64)
    if size <= LARGE:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            regular = _eliminate_together(work, pivots)
    else:
        regular = np.array([bool(_eliminate(*one)) for one in zip(work, pivots, strict=True)])
    every = np.arange(count)
    for at in range(size - 1, -1, -1):  # lines were exchanged: so are the columns of the inverse
        there = work[every, :, pivots[:, at]]
        work[every, :, pivots[:, at]] = work[:, :, at]
        work[:, :, at] = there
    return work, regular


def _eliminate_together(work: Floats, pivots: NDArray[np.int64]) -> Flags:
    """What ``_eliminate`` does, for many matrices at once."""
    count, size, _ = work.shape
    every = np.arange(count)
    regular = np.ones(count, dtype=bool)
    for at in range(size):
        pivot = pivots[:, at] = at + np.abs(work[:, at:, at]).argmax(axis=1)  # the first NaN, if there is one
        found = work[every, pivot]
        work[every, pivot] = work[:, at]
        divisor = found[:, at].copy()
        regular &= np.abs(divisor) > 0.0
        found[:, at] = 1.0
        found /= divisor[:, None]
        factors = work[:, :, at].copy()
        factors[:, at] = 0.0
        work[:, :, at] = 0.0
        work -= factors[:, :, None] * found[:, None, :]
        work[:, at] = found
    return regular


@njit(cache=True)  # type: ignore[untyped-decorator]
def _eliminate(work: Any, pivots: Any) -> Any:
    """Turn a matrix into its inverse, columns still to be exchanged as lines were; whether that was possible.

    A line that has a zero below or above the pivot stays as it is.
    """
    size = work.shape[0]
    for at in range(size):
        pivot = at
        for line in range(at, size):
            if np.isnan(work[line, at]):
                return False
            if abs(work[line, at]) > abs(work[pivot, at]):
                pivot = line
        pivots[at] = pivot
        divisor = work[pivot, at]
        if not abs(divisor) > 0:
            return False
        for k in range(size):
            upper, found = work[at, k], work[pivot, k]
            work[pivot, k] = upper
            work[at, k] = found / divisor
        work[at, at] = 1.0 / divisor
        for line in range(size):
            factor = work[line, at]
            if line != at and factor != 0.0:
                work[line, at] = 0.0
                for k in range(size):
                    work[line, k] -= factor * work[at, k]
    return True
