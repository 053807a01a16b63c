"""The shares of a budget that make weighted variances of least squares estimates smallest.

In a tree where an area of level l has b_l children the covariances of ``least_squares`` need one matrix per level: up
C = b_l C_child, C_up = (I + C K)^-1 C, and down V_child = C_child + (V - C) / b_l^2. The precision
K_l = sum_q s_lq B_q is linear in the shares s, so that

    f(s) = sum over targets of weight * mean variance

is convex and homogeneous of degree -1 (A-optimal design). Each step multiplies a share by the root of its derivative,

    s_i <- s_i g_i^(1/2) / sum_j s_j g_j^(1/2),  g = -df/ds,

which never increases f (Yu 2010, "Monotonic convergence of a general algorithm for computing optimal designs"), and
f - min f <= max g - f proves how near the optimum is. Derivatives are exact to rounding, by a complex step (Squire and
Trapp 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.maths.tree.marginals import Basis, Blocks, Marginal, precision

Floats = NDArray[np.floating[Any]]

STEP = 1e-30  # of the complex derivative
GAP = 0.01  # the proven relative distance to the optimum that ends the search
MOST_STEPS = 2000


@dataclass(frozen=True, eq=False)
class Optimum:
    """Shares by level and query, the value of f, and how far it can be above the smallest, relatively."""

    shares: Floats  # (level, query), sum 1
    value: float
    gap: float


def mean_variance(basis: Basis, marginal: Marginal) -> Blocks:
    """H with mean variance of the marginal's cells = sum_S tr(H_S V_S); see ``marginals.cell_variances``."""
    indicator = (marginal.rows[None, :] == np.arange(marginal.row_count)[:, None]).astype(np.float64)
    inner = indicator.T @ indicator / marginal.row_count
    found = np.zeros((basis.subsets, basis.d, basis.d))
    for subset in range(basis.subsets):
        if subset & ~marginal.kept == 0:
            factors = [
                n if not marginal.kept >> v & 1 else 1 - 1 / n if subset >> v & 1 else 1 / n
                for v, n in enumerate(basis.regular)
            ]
            found[subset] = float(np.prod(factors)) * inner
    return found


def optimal_shares(
    basis: Basis,
    queries: Sequence[Marginal],
    branching: Sequence[float],
    targets: Sequence[Blocks],
    least: Floats,
) -> Optimum:
    """The best shares of all queries at all levels; ``targets`` has the weighted H of each level, from the root down.

    Shares stay near or above ``least`` (level, query), which must determine every cell of the last level. Values are
    for a budget in which a query with share s has noise of variance 1 / s.
    """
    parts = np.stack([precision(basis, [query], [1.0]) for query in queries])  # B_q
    levels = len(branching) + 1
    shares = np.full((levels, len(queries)), 1 / (levels * len(queries)))
    value, gap = np.inf, np.inf
    for _ in range(MOST_STEPS):
        value, slope = _slopes(shares, parts, branching, targets)
        gap = float(slope.max()) / value - 1
        if gap <= GAP:
            break
        shares = shares * np.sqrt(np.maximum(slope, 0.0))
        shares = np.maximum(shares / shares.sum(), least)
        shares /= shares.sum()
    return Optimum(shares, value, gap)


def weighted_variance(
    basis: Basis,
    queries: Sequence[Marginal],
    branching: Sequence[float],
    targets: Sequence[Blocks],
    shares: Floats,
) -> float:
    """The value f of given shares."""
    parts = np.stack([precision(basis, [query], [1.0]) for query in queries])
    own = np.einsum("lq,qsab->lsab", shares, parts)[None]
    return float(_value(own, branching, targets)[0].real)


def _slopes(
    shares: Floats, parts: Floats, branching: Sequence[float], targets: Sequence[Blocks]
) -> tuple[float, Floats]:
    own = np.einsum("lq,qsab->lsab", shares, parts)
    levels, count = shares.shape
    slope = np.empty((levels, count))
    value = 0.0
    for level in range(levels):  # one batch for each level: all its queries at once
        batch = np.repeat(own[None].astype(np.complex128), count, axis=0)
        batch[:, level] += 1j * STEP * parts
        found = _value(batch, branching, targets)
        value, slope[level] = float(found[0].real), -found.imag / STEP
    return value, slope


def _value(
    own: NDArray[np.complex128] | Floats, branching: Sequence[float], targets: Sequence[Blocks]
) -> NDArray[np.complex128]:
    """F for each precision in a batch, (batch, level, subset, d, d)."""
    levels = own.shape[1]
    up = [np.linalg.inv(own[:, -1])]
    for level in range(levels - 2, -1, -1):
        below = branching[level] * up[0]
        unit = np.eye(own.shape[-1])
        up.insert(0, np.linalg.solve(unit + below @ own[:, level], below))
    final = up[0]
    found = np.einsum("sab,nsab->n", targets[0], final)
    for level in range(1, levels):
        b = branching[level - 1]
        final = up[level] + (final - b * up[level]) / b**2
        found = found + np.einsum("sab,nsab->n", targets[level], final)
    return np.asarray(found, dtype=np.complex128)


def exact_shares(shares: Floats, parts: int, needed: NDArray[np.bool_]) -> list[list[Fraction]]:
    """Shares as whole numbers of parts that sum to one, by largest remainders; a needed one has at least one part."""
    flat = shares.reshape(-1) * parts
    whole = np.floor(flat).astype(np.int64)
    whole = np.maximum(whole, needed.reshape(-1).astype(np.int64))
    left = parts - int(whole.sum())
    order = np.argsort(whole - flat, kind="stable")
    for at in order[: max(left, 0)]:
        whole[at] += 1
    while whole.sum() > parts:
        whole[int(np.argmax(whole))] -= 1
    return [[Fraction(int(one), parts) for one in row] for row in whole.reshape(shares.shape)]
