"""Noise-aware likelihoods: sums of P(x | a) times a Poisson or binomial law of a, and where they are largest.

Kernels over packed columns. Both laws have the form exp(base(a) + a theta + c(theta)): theta = log mu, c = -mu, and
theta = log(p / (1 - p)), c = N log(1 - p), where N = 0 means Poisson.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import Columns, PublishedLaw, packed

NEGLIGIBLE = 40.0  # terms below e^-40 of the largest are left out of long concave sums
SHORT = 64
GRID = 32
GOLDEN = (math.sqrt(5) - 1) / 2
STEPS = 44
EMPTY = 1e-12  # a most likely count that is 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _peak_term(base: Any, start: int, end: int, theta: float) -> int:
    """Where base(a) + a theta is largest, for a concave base."""
    low, high = start, end - 1
    while low < high:
        middle = (low + high) // 2
        if base[middle + 1] - base[middle] + theta > 0:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _window(base: Any, start: int, end: int, theta: float) -> Any:
    """The terms of a long concave sum that are not negligible."""
    peak = _peak_term(base, start, end, theta)
    least = base[peak] + peak * theta - NEGLIGIBLE
    low, high = peak, peak + 1
    while low > start and base[low - 1] + (low - 1) * theta > least:
        low -= 1
    while high < end and base[high] + high * theta > least:
        high += 1
    return low, high


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tilted(k: int, theta: float, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """log sum exp(base(a) + a theta), and the mean and variance of a under these weights, for column k."""
    start, end = offsets[k], offsets[k + 1]
    low, high = start, end
    if concave[k] and end - start > SHORT:
        low, high = _window(base, start, end, theta)
    shift = first[k] - start
    largest = -np.inf
    for at in range(low, high):
        largest = max(largest, base[at] + (at + shift) * theta)
    total = mean = square = 0.0
    centre = first[k] + (low + high) // 2 - start
    for at in range(low, high):
        weight = math.exp(base[at] + (at + shift) * theta - largest)
        offset = at + shift - centre
        total += weight
        mean += weight * offset
        square += weight * offset * offset
    mean /= total
    return largest + math.log(total), centre + mean, max(0.0, square / total - mean * mean)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tilted_many(theta: Any, which: Any, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """``_tilted`` for each cell: theta and column of cell i are at index i."""
    logs, means, variances = np.empty(theta.size), np.empty(theta.size), np.empty(theta.size)
    for i in range(theta.size):
        logs[i], means[i], variances[i] = _tilted(which[i], theta[i], first, offsets, base, concave)
    return logs, means, variances


def tilted_sums(theta: Floats, which: NDArray[np.int64], columns: Columns) -> tuple[Floats, Floats, Floats]:
    """log sum exp(base(a) + a theta) of each cell's column, and the mean and variance of a, in the cells' shape."""
    found = _tilted_many(
        theta.ravel(), which.ravel(), columns.first, columns.offsets, columns.base, columns.concave
    )
    logs, means, variances = (part.reshape(theta.shape) for part in found)
    return logs, means, variances


def log_likelihoods(mean: Floats, which: NDArray[np.int64], columns: Columns, n: int = 0) -> Floats:
    """log P(x) of each cell when its true count is Poisson (n = 0) or binomial(n) with this mean."""
    last = columns.first + np.diff(columns.offsets) - 1
    found = np.full(len(mean), -np.inf)
    none, all_ = mean <= 0, (mean >= n) & (n > 0)
    at_none, at_all = none & (columns.first[which] == 0), all_ & (last[which] == n)
    found[at_none] = columns.base[columns.offsets[which[at_none]]]
    found[at_all] = columns.base[columns.offsets[which[at_all] + 1] - 1]
    within = ~none & ~all_
    m = mean[within]
    theta = np.log(m) if n == 0 else np.log(m) - np.log(n - m)
    constant = -m if n == 0 else n * np.log1p(-m / n)
    found[within] = tilted_sums(theta, which[within], columns)[0] + constant
    return found


def peaks(columns: Columns, n: int = 0) -> tuple[Floats, Floats]:
    """The most likely mean and the largest log-likelihood of each column: a grid, then golden section at its best.

    The best mean lies within the true counts that can lead to x, because it equals their expected value.
    """
    which = np.arange(len(columns.first))
    bottom, length = columns.first.astype(np.float64), np.diff(columns.offsets) - 1.0
    grid = np.stack([log_likelihoods(bottom + length * k / GRID, which, columns, n) for k in range(GRID + 1)])
    best = grid.argmax(axis=0)
    low, high = (bottom + length * np.clip(best + move, 0, GRID) / GRID for move in (-1, 1))
    at, most = bottom + length * best / GRID, grid.max(axis=0)
    for _ in range(STEPS):
        sides = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        values = [log_likelihoods(side, which, columns, n) for side in sides]
        to_left = values[0] >= values[1]
        low, high = np.where(to_left, low, sides[0]), np.where(to_left, sides[1], high)
        point, value = np.where(to_left, *sides), np.where(to_left, *values)
        at, most = np.where(value > most, point, at), np.maximum(most, value)
    return at, most


def filled(counts: NDArray[np.int64], noise: PublishedLaw) -> NDArray[np.bool_]:
    """Which cells are not most likely empty; without noise, those whose count is not 0."""
    columns = packed(noise, counts)
    found: NDArray[np.bool_] = (peaks(columns)[0] > EMPTY)[columns.indices(counts)]
    return found
