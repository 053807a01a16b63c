"""Sums, products, logarithms and inverses of floats that have the same bits on every processor.

BLAS, LAPACK and the system's mathematical library choose their kernels by the processor: these add in another order, or
round once where others round twice. What is published must not depend on that. This module uses only operations that
IEEE 754 rounds correctly (+, -, x, /), one at a time and in a fixed order, sums that are rounded once (Shewchuk 1997),
and logarithms that are rounded from far more digits. They suit small systems; for large ones BLAS is faster.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx
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
    """The product of a matrix with a vector or a matrix; the sums run from the first column to the last."""
    across = (slice(None), slice(None), *(None,) * (other.ndim - 1))
    terms = np.multiply(matrix.T[across], other[:, None], order="C")  # (column, row of the result, ..)
    return np.asarray(np.add.reduce(terms, axis=0))


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
    for at in range(size):
        pivot = at + int(np.argmax(np.abs(work[at:, at])))
        if not abs(work[pivot, at]) > 0:
            return None
        work[[at, pivot]] = work[[pivot, at]]
        work[at] /= work[at, at]
        factors = work[:, at].copy()
        factors[at] = 0.0
        work -= np.multiply.outer(factors, work[at])
    return work[:, size:]
