"""The kernels of noise-aware likelihoods: sums of P(x | a) times a Poisson or binomial law of a, and their peaks.

They know neither laws nor tables. Both laws have the form exp(base(a) + a theta + c(theta)): theta = log mu, c = -mu,
and theta = log(p / (1 - p)), c = N log(1 - p), where N = 0 stands for Poisson.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

NEGLIGIBLE = 40.0  # terms below e^-40 of the largest are left out of long concave sums
SHORT = 64
GRID = 32
GOLDEN = (math.sqrt(5) - 1) / 2
STEPS = 44


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
    """The terms of a long concave sum that matter."""
    peak = _peak_term(base, start, end, theta)
    least = base[peak] + peak * theta - NEGLIGIBLE
    low, high = peak, peak + 1
    while low > start and base[low - 1] + (low - 1) * theta > least:
        low -= 1
    while high < end and base[high] + high * theta > least:
        high += 1
    return low, high


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tilted(k: int, theta: float, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
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
        away = at + shift - centre
        total += weight
        mean += weight * away
        square += weight * away * away
    mean /= total
    return largest + math.log(total), centre + mean, max(0.0, square / total - mean * mean)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tilted_many(theta: Any, which: Any, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """``tilted`` for each cell: theta and column of cell i stand at i."""
    logs, means, variances = np.empty(theta.size), np.empty(theta.size), np.empty(theta.size)
    for i in range(theta.size):
        logs[i], means[i], variances[i] = tilted(which[i], theta[i], first, offsets, base, concave)
    return logs, means, variances


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def log_likelihood(k: int, mean: float, n: int, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """log P(x) when the true count is Poisson (n = 0) or binomial with this mean."""
    if mean <= 0:
        return base[offsets[k]] if first[k] == 0 else -np.inf
    if n > 0 and mean >= n:
        return base[offsets[k + 1] - 1] if first[k] + offsets[k + 1] - offsets[k] - 1 == n else -np.inf
    theta = math.log(mean) if n == 0 else math.log(mean / (n - mean))
    constant = -mean if n == 0 else n * math.log1p(-mean / n)
    return tilted(k, theta, first, offsets, base, concave)[0] + constant


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _peak(k: int, n: int, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """The mean with the largest likelihood of column k: a grid, then golden section around its best point.

    It lies within the true counts that can lead to x, because it equals their expected value.
    """
    bottom, top = float(first[k]), float(first[k] + offsets[k + 1] - offsets[k] - 1)
    step = (top - bottom) / GRID
    best, most = 0, -np.inf
    for point in range(GRID + 1):
        value = log_likelihood(k, bottom + point * step, n, first, offsets, base, concave)
        if value > most:
            best, most = point, value
    low, high = bottom + max(best - 1, 0) * step, bottom + min(best + 1, GRID) * step
    at = bottom + best * step
    for _ in range(STEPS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left = log_likelihood(k, left, n, first, offsets, base, concave)
        at_right = log_likelihood(k, right, n, first, offsets, base, concave)
        if at_left >= at_right:
            high = right
        else:
            low = left
        if max(at_left, at_right) > most:
            at, most = (left, at_left) if at_left >= at_right else (right, at_right)
    return at, most


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def peaks(n: int, first: Any, offsets: Any, base: Any, concave: Any) -> Any:
    """The most likely mean and the largest log-likelihood of each column."""
    at, most = np.empty(first.size), np.empty(first.size)
    for k in range(first.size):
        at[k], most[k] = _peak(k, n, first, offsets, base, concave)
    return at, most


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _expected(
    cells: Any, rows: Any, columns: Any, expected: Any, first: Any, offsets: Any, base: Any, concave: Any
) -> float:
    """The E-step: the expected true counts under mu_ij = exp(rows_i + columns_j), and the log-likelihood."""
    total = 0.0
    for i in range(rows.size):
        for j in range(columns.size):
            theta = rows[i] + columns[j]
            log_sum, mean, _ = tilted(cells[i, j], theta, first, offsets, base, concave)
            expected[i, j] = mean
            total += log_sum - math.exp(theta)
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fitted(expected: Any, effects: Any) -> None:
    """The M-step: mu_ij = r_i c_j / n, as the logarithms of r_i / sqrt n and c_j / sqrt n."""
    effects[:] = 0.0
    rows, columns = expected.shape
    for i in range(rows):
        for j in range(columns):
            effects[i] += expected[i, j]
            effects[rows + j] += expected[i, j]
    half = 0.5 * math.log(max(1e-12, expected.sum()))
    for at in range(effects.size):
        effects[at] = math.log(max(1e-12, effects[at])) - half


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def independent(
    cells: Any, start: Any, cycles: int, first: Any, offsets: Any, base: Any, concave: Any
) -> Any:
    """EM for independent rows and columns, two steps and an extrapolation a cycle (Varadhan & Roland 2008, S3).

    Returns for each table the effects, the largest log-likelihood and whether it settled.
    """
    tables, rows, columns = cells.shape
    effects, most = np.empty((tables, rows + columns)), np.empty(tables)
    settled = np.zeros(tables, dtype=np.bool_)
    one, two, far = np.empty(rows + columns), np.empty(rows + columns), np.empty(rows + columns)
    expected = np.empty((rows, columns))
    for t in range(tables):
        here = effects[t]
        _fitted(start[t], here)
        log_here = _expected(cells[t], here[:rows], here[rows:], expected, first, offsets, base, concave)
        for _ in range(cycles):
            _fitted(expected, one)
            log_one = _expected(cells[t], one[:rows], one[rows:], expected, first, offsets, base, concave)
            _fitted(expected, two)
            step, bend = one - here, two - 2 * one + here
            length = math.sqrt((step * step).sum() / max((bend * bend).sum(), 1e-300))
            far[:] = two
            if length > 1:
                far[:] = here + 2 * length * step + length * length * bend
            log_far = _expected(cells[t], far[:rows], far[rows:], expected, first, offsets, base, concave)
            if not log_far >= log_one and length > 1:  # an extrapolation must gain what a plain step gains
                far[:] = two
                log_far = _expected(cells[t], far[:rows], far[rows:], expected, first, offsets, base, concave)
            gained = log_far - log_here
            here[:] = far
            log_here = log_far
            if gained < 1e-9 or np.abs(step).max() < 1e-8:
                settled[t] = True
                break
        most[t] = log_here
    return effects, most, settled
