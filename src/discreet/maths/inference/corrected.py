"""Estimates of true counts from post-processed ones, whose bias is bounded for every true count.

Setting negative counts to zero, thresholds and rounding bias a published count X, and the biases of many cells add up.
g(X) corrects it: E[g(X) | a] - a lies between two small limits whatever the true count a is, so an interval for a sum
needs no prior (a linear estimate with bounded bias: Donoho 1994, Annals of Statistics 22).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.maths.noise.law import Floats, Pmf
from discreet.maths.noise.publishing import PublishedLaw

Integers = NDArray[np.int64]

REMOTE = 1e-9  # changes less probable than this at either end are moved to the end
LARGEST_SYSTEM = 2 * 10**6  # entries of P(x | a) that are solved for; counts of wider noise are not corrected
MOST_ROWS = 100  # true counts at which the bias of such wide noise is worked out
PENALTIES = tuple(10.0 ** (k / 2) for k in range(13))  # of squared bias against variance
SMOOTHING = 1e-3


@dataclass(frozen=True, eq=False)
class Corrected:
    """g and h of the published counts 0, 1, .. that are listed; a larger x has x - change and the last variance."""

    values: Integers  # ascending
    estimates: Floats  # g(x)
    variances: Floats  # h(x), E[h(X) | a] >= Var[g(X) | a] for every a
    change: float
    least_bias: float  # of E[g(X) | a] - a over all a
    most_bias: float
    largest_variance: float

    def at(self, published: Integers) -> tuple[Floats, Floats]:
        """g(x) and h(x) of published counts."""
        place = np.minimum(np.searchsorted(self.values, published), len(self.values) - 1)
        listed = self.values[place] == published
        g = np.where(listed, self.estimates[place], published - self.change)
        return g, np.where(listed, self.variances[place], self.largest_variance)


@dataclass(frozen=True, eq=False)
class _Rows:
    """P(x | a) of all true counts at which the bias can differ, and the published counts that may be corrected."""

    true: Integers
    values: Integers
    p: Floats  # (a, x)
    free: NDArray[np.bool_]
    change: float  # the mean change of large counts


@lru_cache(maxsize=32)
def corrected(noise: PublishedLaw, cells: int, level: float) -> Corrected:
    """Choose g for the shortest interval of a sum of so many cells.

    g(x) = x - change + u(x) minimises sum_a t (E[g | a] - a)^2 + Var[g | a], and t the half length
    cells (most - least bias) / 2 + z sqrt(cells max_a Var[g | a]). Neither depends on the published counts.
    """
    rows = _rows(noise)
    plain: Floats = rows.values.astype(np.float64) - rows.change
    z, found = float(ndtri((1 + level) / 2)), [plain]
    if rows.free.any():
        found += [_corrections(rows, plain, penalty) for penalty in PENALTIES]
    return min((_measured(rows, g) for g in found), key=lambda one: _half_length(one, cells, z))


def _half_length(one: Corrected, cells: int, z: float) -> float:
    return cells * (one.most_bias - one.least_bias) / 2 + z * math.sqrt(cells * one.largest_variance)


def _corrections(rows: _Rows, plain: Floats, penalty: float) -> Floats:
    """The minimum of a quadratic form in u."""
    a, free = rows.true, rows.p[:, rows.free]
    mean, squares = rows.p @ plain, free.T @ free
    weights = (penalty - 1) * squares + np.diag(free.sum(axis=0) + 1e-12)
    wanted = penalty * (free.T @ (a - mean)) - (free.sum(axis=0) * plain[rows.free] - free.T @ mean)
    g = plain.copy()
    g[rows.free] += np.linalg.solve(weights, wanted)
    return g


def _measured(rows: _Rows, g: Floats) -> Corrected:
    mean = rows.p @ g
    bias, variance = mean - rows.true, np.maximum(rows.p @ g**2 - mean**2, 0.0)
    largest = float(variance.max())
    h = np.full(len(g), float(variance[-1]))
    if rows.free.any():
        free = rows.p[:, rows.free]
        ridge = np.diag(SMOOTHING * free.sum(axis=0) + 1e-12)
        h[rows.free] += np.linalg.solve(free.T @ free + ridge, free.T @ (variance - rows.p @ h))
    h += max(0.0, float((variance - rows.p @ h).max()))
    return Corrected(
        rows.values, g, h, rows.change, float(bias.min()), float(bias.max()), largest
    )  # fmt: skip


def _rows(noise: PublishedLaw) -> _Rows:
    """True counts 0, 1, .. until only one period of the rounding is left; published ones until they are regular."""
    rule, changes = noise.publishing, [_near(change) for change in noise.changes]
    low, high = min(one.first for one in changes), max(one.last for one in changes)
    regular = max(len(changes), rule.threshold + rule.rounding - low if rule.hides_negatives else 0, 1)
    beyond = regular + high + rule.rounding
    top = 1 if noise.is_additive else beyond - low + 2 * rule.rounding
    solved = top * (top + high - low) <= LARGEST_SYSTEM
    true = np.arange(top) if solved else np.unique(np.linspace(0, top - 1, MOST_ROWS).astype(np.int64))
    rows = [_published(noise, changes, int(a)) for a in true]
    first = min(row.first for row in rows)
    p = np.zeros((len(rows), max(row.last for row in rows) + 1 - first))
    for k, row in enumerate(rows):
        p[k, row.first - first : row.last + 1 - first] = row.p
    seen = p.any(axis=0)
    values = first + np.flatnonzero(seen)
    period = p[-rule.rounding :, seen]
    change = float((period @ values - true[-rule.rounding :]).mean())
    is_regular = noise.is_additive or not solved
    free = np.zeros(len(values), dtype=np.bool_) if is_regular else values < beyond
    return _Rows(true, values, p[:, seen], free, change)


def _near(change: Pmf) -> Pmf:
    """A law without remote ends, whose mass is moved to the new ends."""
    low, high = change.quantile(REMOTE), change.quantile(1 - REMOTE)
    p = change.p[low - change.first : high + 1 - change.first].copy()
    p[0] += change.cdf(low - 1)
    p[-1] += change.tail(high + 1)
    return Pmf(low, p / math.fsum(p))


def _published(noise: PublishedLaw, changes: Sequence[Pmf], count: int) -> Pmf:
    if noise.keeps_zeros and count == 0:
        return Pmf(0, np.ones(1))
    noisy = changes[min(count, len(changes) - 1)].shifted(count)
    shown = noise.publishing.publish(noisy.values)
    return Pmf(int(shown.min()), np.bincount(shown - shown.min(), weights=noisy.p).astype(np.float64))


@dataclass(frozen=True)
class Limits:
    """The estimate of a sum and the ends of its interval."""

    estimate: float
    low: float
    high: float


def corrected_sum(
    noise: PublishedLaw, counts: Sequence[int], weights: Sequence[int], level: float, total: int | None = None
) -> Limits:
    """sum w g(x) and its interval: bias within its limits, and the normal law of a sum of many independent changes.

    The variance is sum w^2 h(x), and that of z^2 more cells because it is estimated: where only a few cells are not
    empty the sum of h may be 0 by chance. It never exceeds sum w^2 max_a Var[g | a]. ``total`` is the same sum,
    published with its own noise: the mean of both is taken, weighted by the inverse variances.
    """
    x, w = np.array(counts, dtype=np.int64), np.array(weights, dtype=np.float64)
    one = corrected(noise, len(x), level)
    z = float(ndtri((1 + level) / 2))
    g, h = one.at(x)
    estimate, squares = float(w @ g), w**2
    largest = one.largest_variance * float(squares.sum())
    extra = z * z * float(squares.max()) * one.largest_variance
    variance = min(max(0.0, float(squares @ h)) + extra, largest)
    ups, downs = float(w[w > 0].sum()), float(-w[w < 0].sum())
    most, least = (
        ups * one.most_bias - downs * one.least_bias,
        ups * one.least_bias - downs * one.most_bias,
    )
    if total is not None and variance + one.largest_variance > 0:
        own = float(one.at(np.array([total]))[0][0])
        share = one.largest_variance / (variance + one.largest_variance)
        estimate = share * estimate + (1 - share) * own
        variance = share * variance
        most, least = (
            share * most + (1 - share) * one.most_bias,
            share * least + (1 - share) * one.least_bias,
        )
    half = z * math.sqrt(variance)
    return Limits(estimate, estimate - most - half, estimate - least + half)
