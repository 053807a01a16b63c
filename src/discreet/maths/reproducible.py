"""Sums, products, logarithms and inverses of floats that have the same bits on every processor.

BLAS, LAPACK and the system's mathematical library choose their kernels by the processor: these add in another order, or
round once where others round twice. What is published must not depend on that. This module uses only operations that
IEEE 754 rounds correctly (+, -, x, /), one at a time and in a fixed order, sums that are rounded once (Shewchuk 1997),
and logarithms that are rounded from far more digits. They suit small systems; for large ones BLAS is faster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import arb, ctx
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOG_BITS = 128  # a double has 53: the nearest one is found unless 75 further bits are all equal


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
    """The natural logarithm of each positive number, correctly rounded; NaN for all others."""
    with ctx.workprec(LOG_BITS):
        return np.array(
            [float(arb(value).log().mid()) if value > 0 else math.nan for value in values.tolist()]
        )


def inverse(matrix: Floats) -> Floats | None:
    """The inverse of a square matrix by Gauss and Jordan, with partial pivoting; None if it is singular."""
    size = len(matrix)
    work = np.hstack([matrix, np.eye(size)])
    return work[:, size:] if _eliminate(work) else None


@njit(cache=True)  # type: ignore[untyped-decorator]
def _eliminate(work: Any) -> Any:
    """Turn (matrix, identity) into (identity, inverse); whether that was possible."""
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
        for k in range(width):
            work[at, k], work[pivot, k] = work[pivot, k], work[at, k]
        for k in range(width):
            work[at, k] /= divisor
        for row in range(size):
            factor = 0.0 if row == at else work[row, at]
            for k in range(width):
                work[row, k] -= factor * work[at, k]
    return True
