"""Products and inverses of matrices with the same bits on every processor, compiled.

BLAS and LAPACK choose their kernels by the processor and add in another order on each; what is published must
not depend on that (see ``maths.reproducible``). The loops here add in one fixed order. They are vectorised only along
the columns of a result, where every number has a sum of its own, and never contracted to fused operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

Floats = NDArray[np.floating[Any]]

AT_ONCE = 4  # terms of each sum that one pass over a row adds, and rows that one pass eliminates


def product(left: Floats, right: Floats) -> Floats:
    """left @ right for matrices or stacks of them; a single matrix is repeated for all of the other's."""
    if left.ndim == right.ndim == 2:  # most products, and most of their time was this function's
        found = np.empty((len(left), right.shape[1]))
        multiply(np.ascontiguousarray(left, np.float64), np.ascontiguousarray(right, np.float64), found)
        return found
    stacked = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    one = np.ascontiguousarray(np.broadcast_to(left, (*stacked, *left.shape[-2:])), dtype=np.float64)
    other = np.ascontiguousarray(np.broadcast_to(right, (*stacked, *right.shape[-2:])), dtype=np.float64)
    found = np.empty((*stacked, left.shape[-2], right.shape[-1]))
    _multiply_all(one.reshape(-1, *one.shape[-2:]), other.reshape(-1, *other.shape[-2:]), _stack(found))
    return found


def inverse(matrices: Floats) -> Floats:
    """The inverses of symmetric positive definite matrices (.., n, n), themselves symmetric."""
    found = np.array(matrices, dtype=np.float64)
    _invert_all(_stack(found))
    mirrored: Floats = (found + np.swapaxes(found, -1, -2)) / 2
    return mirrored


def solved(left: Floats, right: Floats) -> Floats:
    """x with left x = right for stacks of square matrices, by Gauss and Jordan with partial pivoting."""
    stacked = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    work = np.array(np.broadcast_to(left, (*stacked, *left.shape[-2:])), dtype=np.float64)
    found = np.array(np.broadcast_to(right, (*stacked, *right.shape[-2:])), dtype=np.float64)
    if not _eliminate_all(_stack(work), _stack(found)):
        raise ArithmeticError("a singular system of equations")
    return found


def _stack(matrices: Floats) -> Floats:
    return matrices.reshape(-1, *matrices.shape[-2:])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def total_of(v: Any, first: Any, last: Any) -> Any:
    """The sum of v from first to last, in four parts: quick, and in a fixed order."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    end = last - (last - first) % 4
    for at in range(first, end, 4):
        a += v[at]
        b += v[at + 1]
        c += v[at + 2]
        d += v[at + 3]
    for at in range(end, last):
        a += v[at]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def multiply(left: Any, right: Any, out: Any) -> None:
    """out = left @ right, two rows at a time; every sum runs from its first term to its last."""
    rows, terms = left.shape
    width = right.shape[1]
    last = terms - terms % AT_ONCE
    out[:, :] = 0.0
    for i in range(0, rows - 1, 2):
        row, next_row = out[i], out[i + 1]
        for t in range(0, last, AT_ONCE):
            a, b, c, d = left[i, t], left[i, t + 1], left[i, t + 2], left[i, t + 3]
            e, f, g, h = left[i + 1, t], left[i + 1, t + 1], left[i + 1, t + 2], left[i + 1, t + 3]
            for j in range(width):
                p, q, r, s = right[t, j], right[t + 1, j], right[t + 2, j], right[t + 3, j]
                row[j] = row[j] + a * p + b * q + c * r + d * s
                next_row[j] = next_row[j] + e * p + f * q + g * r + h * s
        for t in range(last, terms):
            a, e = left[i, t], left[i + 1, t]
            for j in range(width):
                row[j] += a * right[t, j]
                next_row[j] += e * right[t, j]
    if rows % 2:
        row = out[rows - 1]
        for t in range(terms):
            a = left[rows - 1, t]
            for j in range(width):
                row[j] += a * right[t, j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _multiply_all(left: Any, right: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        multiply(left[i], right[i], out[i])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _copy(given: Any, out: Any) -> None:
    """Copy a matrix; assigning it to a slice compiles the texts of all errors, for seconds."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = given[i, j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def invert(a: Any) -> None:
    """Replace a positive definite matrix by its inverse: Gauss and Jordan, four pivots P at a time.

    With D = a_PP^-1 and R = D a_P: rows i outside of P become a_i - a_iP R, their columns P -a_iP D; rows P become R
    with D in the columns P.
    """
    n = a.shape[0]
    pivots, rows = np.empty((AT_ONCE, AT_ONCE)), np.empty((AT_ONCE, n))
    for first in range(0, n, AT_ONCE):
        size = min(AT_ONCE, n - first)
        small = pivots[:size, :size]
        _copy(a[first : first + size, first : first + size], small)
        _invert_small(small)
        rows[size:] = 0.0
        multiply(small, a[first : first + size], rows[:size])
        _copy(small, rows[:size, first : first + size])
        r, s, u, v = rows[0], rows[1], rows[2], rows[3]
        for i in range(n):
            if first <= i < first + size:
                continue
            row = a[i]
            b, c, d, e = row[first], 0.0, 0.0, 0.0
            if size > 1:
                c = row[first + 1]
            if size > 2:
                d = row[first + 2]
            if size > 3:
                e = row[first + 3]
            row[first : first + size] = 0.0
            for j in range(n):
                row[j] = row[j] - b * r[j] - c * s[j] - d * u[j] - e * v[j]
        _copy(rows[:size], a[first : first + size])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _invert_small(a: Any) -> None:
    n = a.shape[0]
    for p in range(n):
        pivot = 1.0 / a[p, p]
        a[p, p] = 1.0
        for j in range(n):
            a[p, j] *= pivot
        for i in range(n):
            if i != p:
                factor = a[i, p]
                a[i, p] = 0.0
                for j in range(n):
                    a[i, j] -= factor * a[p, j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _invert_all(stack: Any) -> None:
    for i in range(stack.shape[0]):
        invert(stack[i])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _eliminate_all(left: Any, right: Any) -> bool:
    regular = True
    for i in range(left.shape[0]):
        regular &= _eliminate(left[i], right[i])
    return regular


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _largest_below(a: Any, p: Any) -> Any:
    """The row from p on with the largest number in column p."""
    best = p
    for i in range(p + 1, a.shape[0]):
        if abs(a[i, p]) > abs(a[best, p]):
            best = i
    return best


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _eliminate(a: Any, b: Any) -> bool:
    """Replace b by a^-1 b; false if a is singular."""
    n, m = b.shape
    for p in range(n):
        best = _largest_below(a, p)
        if not abs(a[best, p]) > 0.0:
            return False
        pivot = a[best, p]
        for j in range(n):
            a[best, j], a[p, j] = a[p, j], a[best, j] / pivot
        for j in range(m):
            b[best, j], b[p, j] = b[p, j], b[best, j] / pivot
        for i in range(n):
            factor = a[i, p]
            if i != p:
                for j in range(n):
                    a[i, j] -= factor * a[p, j]
                for j in range(m):
                    b[i, j] -= factor * b[p, j]
    return True
