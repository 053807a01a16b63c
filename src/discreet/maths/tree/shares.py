"""The shares of a budget that make weighted variances of least squares estimates smallest, on the tree as it is.

Nodes whose trees below have the same form have the same covariances up (``least_squares``): C = sum_c C_up_c over the
children and C_up = (C^-1 + K)^-1, with the precision K = sum_lq s_lq B_q of the queries q of all levels l that the node
represents. The pass down is linear in the parent's V: V_c = C_up_c + G_c (V - C) G_c', so that the weighted variances
of a node and of everything below it are tr(T V) + k with

    T = H + C^-1 Y C^-1,  Y = sum_c C_up_c T_c C_up_c,  k = sum_c (k_c + tr(T_c C_up_c)) - tr(C^-1 Y),

H the node's own weights. So f(s) needs one pass over the forms, and its derivatives one pass back. f is convex and
homogeneous of degree -1 (A-optimal design). Each first step multiplies a share by the root of its derivative,

    s_i <- s_i g_i^(1/2) / sum_j s_j g_j^(1/2),  g = -df/ds,

which never increases f (Yu 2010, "Monotonic convergence of a general algorithm for computing optimal designs");
sequential quadratic programming (Kraft 1988) takes the last ones. f - min f <= max g - f proves how near the optimum
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily
from discreet.maths.tree.marginals import Basis, Blocks, Marginal, precision

if TYPE_CHECKING:
    from scipy import optimize, sparse
else:
    optimize = lazily("scipy.optimize")
    sparse = lazily("scipy.sparse")

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

ROUGH = 0.02  # the proven relative distance to the optimum that ends the first steps
MOST_STEPS = 500
MOST_LAST_STEPS = 200
EXACT = 1e7  # precision of a total that is known, where a whole budget has 1


@dataclass(frozen=True, eq=False)
class Optimum:
    """Shares by level and query, the value of f, and how far it can be above the smallest, relatively."""

    shares: Floats  # (level, query), sum 1
    value: float
    gap: float


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of all nodes of a tree, children before parents, the root last; equal trees below are one form."""

    below: sparse.csr_array  # (form, form) -> how many children of a form have which form
    levels: NDArray[np.bool_]  # (form, level) -> whether its nodes represent an area of the level
    exact: NDArray[np.bool_]  # form -> whether its total is known
    areas: NDArray[np.int64] | Floats  # level -> how many areas it has

    @cached_property
    def heights(self) -> list[Integers]:
        """The forms of leaves, of parents of leaves, and so on."""
        count = self.below.shape[0]
        height = np.zeros(count, dtype=np.int64)
        for form in range(count):
            children = self.below.indices[self.below.indptr[form] : self.below.indptr[form + 1]]
            height[form] = 0 if not len(children) else height[children].max() + 1
        return [np.flatnonzero(height == at) for at in range(int(height.max()) + 1)]


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
    basis: Basis, queries: Sequence[Marginal], forms: Forms, targets: Sequence[Blocks], least: Floats
) -> Optimum:
    """The best shares of all queries at all levels; ``targets`` has the weighted H of each level's mean variance.

    Shares stay at or above ``least`` (level, query), which must determine every cell of the last level. Values are
    for a budget in which a query with share s has noise of variance 1 / s.
    """
    problem = _Problem(basis, queries, forms, targets)
    shape = (forms.levels.shape[1], len(queries))
    shares = np.full(shape, 1 / (shape[0] * shape[1]))
    value, gap = np.inf, np.inf
    for _ in range(MOST_STEPS):
        value, slope = problem.value_and_slope(shares)
        gap = float(slope.max()) / value - 1
        if gap <= ROUGH:
            break
        shares = shares * np.sqrt(np.maximum(slope, 0.0))
        shares = np.maximum(shares / shares.sum(), least)
        shares /= shares.sum()
    return _polished(problem, Optimum(shares, value, gap), least)


def _polished(problem: _Problem, rough: Optimum, least: Floats) -> Optimum:
    """The last steps, which the first ones would take thousands for."""
    start = rough.value

    def scaled(flat: Floats) -> tuple[float, Floats]:
        shares = np.maximum(flat, 0.0).reshape(rough.shares.shape)
        value, slope = problem.value_and_slope(shares)
        return value / start, -slope.reshape(-1) / start

    bounds = [(float(low), 1.0) for low in np.maximum(least, 0.0).reshape(-1)]
    total = {"type": "eq", "fun": lambda flat: flat.sum() - 1, "jac": np.ones_like}
    found = optimize.minimize(
        scaled, rough.shares.reshape(-1), jac=True, method="SLSQP", bounds=bounds, constraints=[total],
        options={"maxiter": MOST_LAST_STEPS, "ftol": 1e-12},
    )  # fmt: skip
    shares = np.maximum(found.x, 0.0).reshape(rough.shares.shape)
    shares = shares / shares.sum()
    value, slope = problem.value_and_slope(shares)
    gap = float(slope.max()) / value - 1
    return Optimum(shares, value, gap) if np.isfinite(value) and value <= rough.value else rough


def weighted_variance(
    basis: Basis, queries: Sequence[Marginal], forms: Forms, targets: Sequence[Blocks], shares: Floats
) -> float:
    """The value f of given shares."""
    return _Problem(basis, queries, forms, targets).value_and_slope(shares)[0]


class _Problem:
    """f and its derivatives for one tree; arrays are (form, subset, d, d)."""

    def __init__(
        self, basis: Basis, queries: Sequence[Marginal], forms: Forms, targets: Sequence[Blocks]
    ) -> None:
        self._forms = forms
        self._parts = np.stack([precision(basis, [query], [1.0]) for query in queries])  # B_q
        self._shape = self._parts.shape[1:]
        weights = forms.levels / forms.areas
        self._own = np.einsum("fl,lsab->fsab", weights, np.stack(list(targets)))  # H
        total = Marginal(np.zeros(basis.d, dtype=np.int32), 0)
        self._exact = forms.exact[:, None, None, None] * precision(basis, [total], [EXACT])

    def _summed(self, rows: Integers, values: Floats) -> Floats:
        """Sum over the children of some forms."""
        flat = values.reshape(len(values), -1)
        return np.asarray(self._forms.below[rows] @ flat).reshape(len(rows), *values.shape[1:])

    def _spread(self, rows: Integers, values: Floats) -> Floats:
        """What each form receives from the parents that it is a child of."""
        flat = values.reshape(len(values), -1)
        return np.asarray(self._forms.below[rows].T @ flat).reshape(-1, *values.shape[1:])

    def value_and_slope(self, shares: Floats) -> tuple[float, Floats]:
        """F, and minus its derivative by every share."""
        by_level = np.einsum("lq,qsab->lsab", shares, self._parts)
        k_own = np.einsum("fl,lsab->fsab", self._forms.levels.astype(np.float64), by_level) + self._exact
        count = len(k_own)
        up, inverse, y = (
            np.zeros_like(k_own) for _ in range(3)
        )  # forms that are not reached yet count nothing
        t = self._own.copy()
        value = np.zeros(count)
        for height, rows in enumerate(self._forms.heights):
            if height:
                inverse[rows] = np.linalg.inv(self._summed(rows, up))
                y[rows] = self._summed(rows, up @ t @ up)
                t[rows] += inverse[rows] @ y[rows] @ inverse[rows]
                value[rows] = self._summed(rows, value[:, None])[:, 0] - _traces(inverse[rows], y[rows])
            up[rows] = np.linalg.inv(inverse[rows] + k_own[rows])
            value[rows] += _traces(t[rows], up[rows])
        return float(value[-1]), self._slope(up, t, inverse, y)

    def _slope(self, up: Floats, t: Floats, inverse: Floats, y: Floats) -> Floats:
        """The pass back: how f changes with C_up, T and k of every form, from the root down."""
        count = len(up)
        times, of_t, of_up = np.zeros(count), np.zeros_like(up), np.zeros_like(up)
        times[-1] = 1.0
        of_own = np.zeros_like(up)
        for height in range(len(self._forms.heights) - 1, -1, -1):
            rows = self._forms.heights[height]
            k = times[rows, None, None, None]
            of_t[rows] += k * up[rows]
            of_up[rows] += k * t[rows]
            of_own[rows] = -up[rows] @ of_up[rows] @ up[rows]
            if not height:
                continue
            inner, sums = inverse[rows], y[rows]
            of_y = inner @ of_t[rows] @ inner - k * inner
            crossed = sums @ inner @ of_t[rows]
            of_inverse = crossed + np.swapaxes(crossed, -1, -2) - k * sums + of_own[rows]
            of_sum = -inner @ of_inverse @ inner
            times += self._spread(rows, times[rows][:, None])[:, 0]
            received = self._spread(rows, of_y)
            of_t += up @ received @ up
            crossed = t @ up @ received
            of_up += crossed + np.swapaxes(crossed, -1, -2) + self._spread(rows, of_sum)
        by_level = np.einsum("fl,fsab->lsab", self._forms.levels.astype(np.float64), of_own)
        found: Floats = -np.einsum("lsab,qsab->lq", by_level, self._parts)
        return found


def _traces(first: Floats, second: Floats) -> Floats:
    """The trace of each product of symmetric blocks, summed over subsets."""
    found: Floats = np.einsum("fsab,fsab->f", first, second)
    return found


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
