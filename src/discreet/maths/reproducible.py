"""Sums, products, logarithms and inverses of floats that have the same bits on every processor.

BLAS, LAPACK and the system's mathematical library choose their kernels by the processor: these add in another order, or
round once where others round twice. What is published must not depend on that. This module uses only operations that
IEEE 754 rounds correctly (+, -, x, /), one at a time and in a fixed order, sums that are rounded once (Shewchuk 1997),
and logarithms that are rounded from far more digits. They suit small systems; for large ones BLAS is faster.

Kernels and NumPy do the same operations in the same order. For few numbers NumPy is used: loading Numba and the
machine code of a kernel takes longer than the p-table of an ordinary D.
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

FEW = 16  # numbers for which NumPy is as fast as a kernel
FEW_AT_FIRST = 48  # .. and for which it is faster than loading Numba
LOG_DIGITS = decimal.Context(
    prec=40
)  # a double has 16: the nearest one is found unless 22 further digits agree
TABLE_DIGITS = decimal.Context(prec=80)
LOG_PARTS = 128  # logarithms are looked up at multiples of 1/128
LOG_TERMS = 7  # of the series of atanh, whose argument is below 1/360: what is left is below 2^-110
LOG_SURE = (
    2.0**-90
)  # relative error within which a sum of two doubles must round alike; the true one is below 2^-96
SPLIT = 134217729.0  # 2^27 + 1, which cuts a double in two halves (Veltkamp)


def few(size: int) -> bool:
    """Whether so many numbers are left to NumPy; a kernel would find the same bits."""
    return size <= (FEW if is_loaded("numba") else FEW_AT_FIRST)


def total(values: Floats) -> float:
    """The sum, rounded once."""
    return math.fsum(values.tolist())


def dot(left: NDArray[np.float64 | np.int64], right: Floats) -> float:
    """The sum of the rounded products, rounded once."""
    return total(np.multiply(left, right, dtype=np.float64))


def product(matrix: Floats, other: Floats) -> Floats:
    """The product of a matrix with a vector or a matrix; the sums run from the first column to the last.

    A single sum is NumPy's pairwise one, whose order is fixed too: published p-tables were solved with it.
    """
    columns = other if other.ndim > 1 else other[:, None]
    if len(matrix) * columns.shape[1] == 1:
        single = np.add.reduce(np.multiply(matrix[0], columns[:, 0]))
        return np.full((1,) * other.ndim, single)
    if few(max(*matrix.shape, columns.shape[1])):
        planes = np.multiply(matrix.T[:, :, None], columns[:, None, :], order="C")
        out: Floats = np.add.reduce(planes, axis=0, initial=0.0)  # adds one plane after the other
        return out if other.ndim > 1 else out[:, 0]
    out = np.zeros((len(matrix), columns.shape[1]))
    _multiply(
        np.ascontiguousarray(matrix), np.ascontiguousarray(columns), out, bool(np.isfinite(columns).all())
    )
    return out if other.ndim > 1 else out[:, 0]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _multiply(left: Any, right: Any, out: Any, finite: Any) -> None:
    """Add left[i, c] right[c, j] for c = 0, 1, ..; LLVM fuses no x and + unless fast mathematics is requested.

    Zeros add nothing where the other matrix is finite.
    """
    for i in range(left.shape[0]):
        for c in range(left.shape[1]):
            factor = left[i, c]
            if finite and factor == 0.0:
                continue
            for j in range(right.shape[1]):
                out[i, j] += factor * right[c, j]


def log(values: Floats) -> Floats:
    """The natural logarithm of each positive number, correctly rounded; NaN for all others.

    Most are found as sums of two doubles; those that lie too near to the middle of two doubles take more digits.
    """
    if few(len(values)):
        out = _few_logarithms(values, *_log_table())
    else:
        out = np.empty(len(values))
        _logarithms(np.ascontiguousarray(values), *_log_table(), out)
    for at in np.flatnonzero(np.isnan(out)).tolist():
        out[at] = _slow_log(float(values[at]))
    return out


def _slow_log(value: float) -> float:
    return float(Decimal(value).ln(LOG_DIGITS)) if 0 < value < math.inf else value if value > 0 else math.nan


@cache
def _log_table() -> tuple[Floats, Floats]:
    """log(i/128), i from 1 to 256, and log 2 at 0: the nearest doubles, and those of what they leave."""
    high, low = np.zeros(2 * LOG_PARTS + 1), np.zeros(2 * LOG_PARTS + 1)
    for at in range(2 * LOG_PARTS + 1):
        exact = Decimal(at / LOG_PARTS if at else 2).ln(TABLE_DIGITS)
        high[at] = float(exact)
        low[at] = float(TABLE_DIGITS.subtract(exact, Decimal(high[at])))
    return high, low


@njit(cache=True)  # type: ignore[untyped-decorator]
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


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sum(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """The sum of two sums of two doubles (Knuth's exact sum of the leading ones, then the rest)."""
    s = a + b
    v = s - a
    rest = (a - (s - v)) + (b - v)
    rest += a_low + b_low
    high = s + rest
    return high, rest - (high - s)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _times(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    p, rest = _product(a, b)
    rest += a * b_low + a_low * b
    high = p + rest
    return high, rest - (high - p)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _over(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    q = a / b
    p, rest = _times(q, 0.0, b, b_low)
    left, left_low = _sum(a, a_low, -p, -rest)
    more = left / b
    p, rest = _times(more, 0.0, b, b_low)
    left, left_low = _sum(left, left_low, -p, -rest)
    return _sum(q, 0.0, more, left / b)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _logarithms(values: Any, high: Any, low: Any, out: Any) -> None:
    """log(2^e m) = e log 2 + log c + 2 atanh(s), c the nearest multiple of 1/128 to m and s = (m - c) / (m + c).

    NaN where two doubles do not show the nearest one.
    """
    for at in range(len(values)):
        value = values[at]
        out[at] = np.nan
        if not 1e-300 < value < 1e300:
            continue
        m, e = math.frexp(value)
        if m < 0.70703125:
            m, e = 2.0 * m, e - 1
        place = int(m * LOG_PARTS + 0.5)
        c = place / LOG_PARTS
        d, d_low = _sum(m, 0.0, c, 0.0)
        s, s_low = _over(m - c, 0.0, d, d_low)
        q, q_low = _times(s, s_low, s, s_low)
        t, t_low = 0.0, 0.0
        for term in range(LOG_TERMS - 1, -1, -1):
            share, share_low = _over(2.0, 0.0, 2.0 * term + 1.0, 0.0)
            t, t_low = _times(t, t_low, q, q_low)
            t, t_low = _sum(t, t_low, share, share_low)
        t, t_low = _times(t, t_low, s, s_low)
        if place != LOG_PARTS:
            t, t_low = _sum(high[place], low[place], t, t_low)
        if e != 0:
            a, a_low = _times(float(e), 0.0, high[0], low[0])
            t, t_low = _sum(a, a_low, t, t_low)
        sure = LOG_SURE * abs(t)
        if t + (t_low + sure) == t and t + (t_low - sure) == t:
            out[at] = t


def _few_logarithms(values: Floats, high: Floats, low: Floats) -> Floats:
    """What ``_logarithms`` finds, for all values at once."""
    sums, times, over = _sum.interpreted, _times.interpreted, _over.interpreted
    usable = (values > 1e-300) & (values < 1e300)
    m, e = np.frexp(np.where(usable, values, 1.0))
    below = m < 0.70703125
    m, e = np.where(below, 2.0 * m, m), np.where(below, e - 1, e)
    place = (m * LOG_PARTS + 0.5).astype(np.int64)
    c = place / LOG_PARTS
    d, d_low = sums(m, 0.0, c, 0.0)
    s, s_low = over(m - c, 0.0, d, d_low)
    q, q_low = times(s, s_low, s, s_low)
    t, t_low = np.zeros(len(m)), np.zeros(len(m))
    for term in range(LOG_TERMS - 1, -1, -1):
        share, share_low = over(2.0, 0.0, 2.0 * term + 1.0, 0.0)
        t, t_low = times(t, t_low, q, q_low)
        t, t_low = sums(t, t_low, share, share_low)
    t, t_low = times(t, t_low, s, s_low)
    moved, moved_low = sums(high[place], low[place], t, t_low)
    t, t_low = np.where(place != LOG_PARTS, moved, t), np.where(place != LOG_PARTS, moved_low, t_low)
    moved, moved_low = sums(*times(e.astype(np.float64), 0.0, high[0], low[0]), t, t_low)
    t, t_low = np.where(e != 0, moved, t), np.where(e != 0, moved_low, t_low)
    sure = LOG_SURE * np.abs(t)
    certain = usable & (t + (t_low + sure) == t) & (t + (t_low - sure) == t)
    return np.where(certain, t, np.nan)


def inverse(matrix: Floats) -> Floats | None:
    """The inverse of a square matrix by Gauss and Jordan, with partial pivoting; None if it is singular."""
    size = len(matrix)
    work = np.hstack([matrix, np.eye(size)])
    done = _eliminate_few(work) if few(size) else _eliminate(work)
    return work[:, size:] if done else None


def _eliminate_few(work: Floats) -> bool:
    """What ``_eliminate`` does, for whole rows."""
    for at in range(len(work)):
        column = np.abs(work[at:, at])
        if np.isnan(column).any():
            return False
        pivot = at + int(column.argmax())
        divisor = work[pivot, at]
        if not abs(divisor) > 0:
            return False
        found = work[pivot, at:] / divisor
        work[pivot, at:] = work[at, at:]
        work[at, at:] = found
        rows = np.flatnonzero(work[:, at])
        rows = rows[rows != at]
        work[rows, at:] -= work[rows, at, None] * found
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _eliminate(work: Any) -> Any:
    """Turn (matrix, identity) into (identity, inverse); whether that was possible.

    Left of the pivot all is done, and a row that has a zero below or above it stays as it is.
    """
    size, width = work.shape
    for at in range(size):
        pivot = at
        for row in range(at, size):
            if np.isnan(work[row, at]):
                return False
            if abs(work[row, at]) > abs(work[pivot, at]):
                pivot = row
        divisor = work[pivot, at]
        if not abs(divisor) > 0:
            return False
        for k in range(at, width):
            upper, found = work[at, k], work[pivot, k]
            work[pivot, k] = upper
            work[at, k] = found / divisor
        for row in range(size):
            factor = work[row, at]
            if row == at or factor == 0.0:
                continue
            for k in range(at, width):
                work[row, k] -= factor * work[at, k]
    return True
