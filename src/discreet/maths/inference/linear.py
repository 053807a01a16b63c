"""Differences, quotients and independence of estimates with a known covariance, as least squares gives them.

The errors of the estimates are taken as normal: each is a sum of many independent noises.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Combination:
    """A sum of estimates with coefficients: its standard error, a normal interval, and the test that it is zero."""

    estimate: float
    error: float
    low: float
    high: float
    statistic: float | None  # None where it is exact
    p_value: float


def combination(values: Floats, covariance: Floats, coefficients: Floats, level: float) -> Combination:
    """w'x with the variance w' V w."""
    estimate = float(coefficients @ values)
    error = sqrt(max(float(coefficients @ covariance @ coefficients), 0.0))
    reach = float(ndtri((1 + level) / 2)) * error
    if error == 0:
        return Combination(estimate, 0.0, estimate, estimate, None, float(estimate == 0))
    statistic = estimate / error
    return Combination(
        estimate, error, estimate - reach, estimate + reach, statistic, float(2 * ndtr(-abs(statistic)))
    )


@dataclass(frozen=True)
class Quotient:
    """A quotient of two estimates, its standard error to first order, and Fieller's interval."""

    estimate: float | None  # None where the denominator's estimate is not above 0
    error: float | None
    low: float
    high: float
    bounded: bool  # False: the denominator may be 0, so that the data do not bound the quotient


def quotient(values: Floats, covariance: Floats, level: float) -> Quotient:
    """Fieller's set of all q with (a - q b)^2 <= z^2 Var(a - q b), for a quotient q >= 0.

    It has the stated confidence whatever a and b are, for a - q b is normal with mean 0 at the true q (Fieller 1954).
    """
    a, b = values.tolist()
    (v_a, c), (_, v_b) = covariance.tolist()
    z2 = float(ndtri((1 + level) / 2)) ** 2
    square, middle, rest = b * b - z2 * v_b, a * b - z2 * c, a * a - z2 * v_a
    estimate = a / b if b > 0 else None
    error = None if estimate is None else sqrt(max(v_a - 2 * estimate * c + estimate**2 * v_b, 0.0)) / b
    if square <= 0 or b <= 0:
        return Quotient(estimate, error, 0.0, inf, False)
    root = sqrt(max(middle * middle - square * rest, 0.0))
    low, high = ((middle + side * root) / square for side in (-1, 1))
    return Quotient(estimate, error, max(low, 0.0), max(high, 0.0), True)


@dataclass(frozen=True)
class Independence:
    """A test of independence of rows and columns."""

    statistic: float
    df: int
    p_value: float


def independence(table: Floats, covariance: Floats) -> Independence:
    """Test rows and columns of estimated counts (r, c) whose errors have this covariance (r c, r c).

    e = x - r c'/n is, to first order, (I - p 1') x (I - 1 q') with the shares p and q of rows and columns. Under
    independence persons fall into cells by a multinomial law, so that Cov(e) is

        n (D_p - p p') (x) (D_q - q q') + J V J',  J = (I - p 1') (x) (I - q 1');

    e' Cov(e)^-1 e over all rows and columns but the last has the chi-square law.
    """
    rows, columns = table.shape
    n = float(table.sum())
    p, q = table.sum(axis=1) / n, table.sum(axis=0) / n
    rest = table - n * np.outer(p, q)
    sampled = n * np.kron(np.diag(p) - np.outer(p, p), np.diag(q) - np.outer(q, q))
    moved = np.kron(
        np.eye(rows) - np.outer(p, np.ones(rows)), np.eye(columns) - np.outer(q, np.ones(columns))
    )
    whole = sampled + moved @ covariance @ moved.T
    kept = np.arange(rows * columns).reshape(rows, columns)[:-1, :-1].reshape(-1)
    e = rest.reshape(-1)[kept]
    statistic = float(e @ np.linalg.solve(whole[np.ix_(kept, kept)], e))
    df = (rows - 1) * (columns - 1)
    return Independence(statistic, df, float(chdtrc(df, statistic)))
