"""Marginals of a histogram, and the basis in which the precision of noisy marginals is small.

A histogram's cells are pairs (a, r): r runs over the product of the *regular* variables, of n_v categories each, and a
over the d cells of one *dense factor*, the product of all other variables without structural zeros. A marginal keeps
some regular variables, sums the others, and sends a to a row. With independent noise of variance s_q^2 its precision is

    K = sum_q Q_q' Q_q / s_q^2 = sum over S of M_S (x) P_S,
    M_S = sum over q that keep S of (product of the summed sizes) / s_q^2  A_q' A_q,

S the subsets of the regular variables, P_S the projection on their residual (ANOVA) space: means are removed along
the variables of S and taken along the others, and A_q the 0/1 matrix from dense cells to rows (Xiao, He, Zhang and
Kifer 2023, for d = 1, where M_S is one number). So
every matrix here is an array (subset, d, d). Groupings of unequal sizes and structural zeros have no such diagonal
form; their variables form the dense factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.tree.matrices import multiply, product, total_of

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Blocks = NDArray[np.floating[Any]]  # (subset, d, d): one matrix of the dense factor for each residual space


@dataclass(frozen=True)
class Basis:
    """The shape of a histogram: the size of its dense factor and of its regular variables."""

    d: int
    regular: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many cells the histogram has, structural zeros left out."""
        return self.d * self.width

    @property
    def width(self) -> int:
        """The product of the regular sizes."""
        return prod(self.regular)

    @property
    def subsets(self) -> int:
        """How many subsets of the regular variables there are; bit v of a subset's number is variable v."""
        return 1 << len(self.regular)

    @cached_property
    def widths(self) -> Integers:
        """The product of the sizes in each subset."""
        return np.array([prod(self._sizes(kept)) for kept in range(self.subsets)], dtype=np.int64)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """(subset, r) -> the cell of the subset's product that r belongs to."""
        codes = np.unravel_index(np.arange(self.width), self.regular) if self.regular else ()
        places = np.zeros((self.subsets, self.width), dtype=np.int32)
        for kept in range(self.subsets):
            for v, size in enumerate(self.regular):
                if kept >> v & 1:
                    places[kept] = places[kept] * size + codes[v]
        return places

    @cached_property
    def sums(self) -> Integers:
        """How the sums over the variables outside of each subset follow from those of a larger one.

        (subset, 5): the larger subset, the product of its sizes before the summed variable, its size, the product of
        the sizes after it, and where the subset's sums of one dense cell begin. Larger subsets have larger numbers.
        """
        found = np.zeros((self.subsets, 5), dtype=np.int64)
        found[:, 4] = np.cumsum(self.widths) - self.widths
        for kept in range(self.subsets - 1):
            larger = [kept | 1 << v for v in range(len(self.regular)) if not kept >> v & 1]
            above = min(larger, key=lambda subset: int(self.widths[subset]))
            v = (above ^ kept).bit_length() - 1
            before, after = self._sizes(above & ((1 << v) - 1)), self._sizes(above >> (v + 1) << (v + 1))
            found[kept, :4] = above, prod(before), self.regular[v], prod(after)
        return found

    def _sizes(self, kept: int) -> tuple[int, ...]:
        return tuple(size for v, size in enumerate(self.regular) if kept >> v & 1)


@dataclass(frozen=True, eq=False)
class Marginal:
    """Which cells are summed: the row of each dense cell, and the regular variables that stay (a subset's number)."""

    rows: NDArray[np.int32]  # (d,)
    kept: int

    @property
    def row_count(self) -> int:
        """How many rows the dense factor is summed to."""
        return int(self.rows.max()) + 1


def size_of(basis: Basis, marginal: Marginal) -> int:
    """How many cells a marginal has."""
    return marginal.row_count * int(basis.widths[marginal.kept])


@lru_cache(maxsize=256)
def positions(basis: Basis, marginal: Marginal) -> NDArray[np.int32]:
    """The marginal's cell of each histogram cell (a, r), flat."""
    found = (
        marginal.rows[:, None].astype(np.int64) * basis.widths[marginal.kept]
        + basis.places[marginal.kept][None, :]
    )
    places: NDArray[np.int32] = found.reshape(-1).astype(np.int32)
    places.setflags(write=False)
    return places


def precision(basis: Basis, marginals: Sequence[Marginal], weights: Sequence[float]) -> Blocks:
    """M_S of noisy marginals whose noise has the variances 1 / weights."""
    blocks = np.zeros((basis.subsets, basis.d, basis.d))
    for marginal, weight in zip(marginals, weights, strict=True):
        same_row = (marginal.rows[:, None] == marginal.rows[None, :]).astype(np.float64)
        summed = basis.width / basis.widths[marginal.kept]
        for subset in range(basis.subsets):
            if subset & ~marginal.kept == 0:
                blocks[subset] += weight * summed * same_row
    return blocks


def undetermined(blocks: Blocks) -> bool:
    """Whether a precision is singular, so that some count cannot be estimated from the measurements."""
    lowest = min(float(np.linalg.eigvalsh(block)[0]) for block in blocks)
    return lowest <= 1e-10 * float(max(np.abs(blocks).max(), 1e-300))


def by_sums(basis: Basis, blocks: Blocks) -> Blocks:
    """N_T with sum_S M_S P_S x = sum_T N_T sum_T(x), sum_T along the variables outside of T (Moebius inversion).

    N_T = sum over S that contain T of (-1)^(|S| - |T|) M_S / (product of the summed sizes). ``blocks`` may have
    further axes in front.
    """
    found = blocks.copy()
    for v in range(len(basis.regular)):
        bit = 1 << v
        for subset in range(basis.subsets):
            if not subset & bit:
                found[..., subset, :, :] -= found[..., subset | bit, :, :]
    found *= (basis.widths / basis.width)[:, None, None]
    return found


def applied(basis: Basis, blocks: Blocks, x: Floats) -> Floats:
    """sum_S (M_S (x) P_S) x for x of shape (.., d, width)."""
    shape = x.shape
    found = np.empty((prod(shape[:-2]), basis.d, basis.width))
    flat = np.ascontiguousarray(x, dtype=np.float64).reshape(found.shape)
    _apply_all(by_sums(basis, blocks), basis.sums, basis.widths, flat, found)
    return found.reshape(shape)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _apply_all(means: Any, sums: Any, widths: Any, x: Any, out: Any) -> None:
    work = np.empty((2, x.shape[1] * widths.sum()))
    for i in range(x.shape[0]):
        apply_sums(means, sums, widths, x[i], out[i], work)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def apply_sums(blocks: Any, sums: Any, widths: Any, x: Any, out: Any, work: Any) -> None:
    """out = sum_T N_T sum_T(x) for one histogram (d, width); ``work`` has two rows of d times all widths.

    The sums of each subset come from those of a larger one, and what belongs to a subset is added to that larger one.
    """
    d, width = x.shape
    full = widths.size - 1
    below, spread = work[0], work[1]
    start = sums[full, 4] * d
    for i in range(d):
        for j in range(width):
            below[start + i * width + j] = x[i, j]
    for subset in range(full - 1, -1, -1):
        above, before, size, after, start = sums[subset]
        _add_along(below, sums[above, 4] * d, d * before, size, after, start * d)
    for subset in range(full):
        first, last = sums[subset, 4] * d, (sums[subset, 4] + widths[subset]) * d
        shape = (d, widths[subset])
        multiply(blocks[subset], below[first:last].reshape(shape), spread[first:last].reshape(shape))
    multiply(blocks[full], x, out)
    flat = out.reshape(d * width)
    for subset in range(full):
        above, before, size, after, start = sums[subset]
        if above == full:
            _spread_along(spread, start * d, d * before, size, after, flat, 0)
        else:
            _spread_along(spread, start * d, d * before, size, after, spread, sums[above, 4] * d)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_along(x: Any, source: Any, before: Any, size: Any, after: Any, target: Any) -> None:
    """Sum numbers (before, size, after) from ``source`` on along the middle, to ``target``."""
    for p in range(before):
        begin, to = source + p * size * after, target + p * after
        if after == 1:
            x[to] = total_of(x, begin, begin + size)
            continue
        for q in range(after):
            x[to + q] = 0.0
        for i in range(size):
            for q in range(after):
                x[to + q] += x[begin + i * after + q]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _spread_along(x: Any, source: Any, before: Any, size: Any, after: Any, out: Any, target: Any) -> None:
    """Add numbers (before, after) from ``source`` on to all along the middle of (before, size, after)."""
    for p in range(before):
        begin, to = source + p * after, target + p * size * after
        if after == 1:
            value = x[begin]
            for i in range(size):
                out[to + i] += value
            continue
        for i in range(size):
            for q in range(after):
                out[to + i * after + q] += x[begin + q]


def answers(basis: Basis, marginal: Marginal, x: NDArray[Any]) -> NDArray[Any]:
    """Q x for x of shape (.., d, width); the result is (.., cells of the marginal)."""
    lead = x.shape[:-2]
    by_row = np.zeros((*lead, marginal.row_count, basis.width), dtype=x.dtype)
    for a, row in enumerate(marginal.rows.tolist()):
        by_row[..., row, :] += x[..., a, :]
    shaped = by_row.reshape((*lead, marginal.row_count, *basis.regular))
    gone = tuple(len(lead) + 1 + v for v in range(len(basis.regular)) if not marginal.kept >> v & 1)
    return shaped.sum(axis=gone).reshape((*lead, -1)) if gone else by_row.reshape((*lead, -1))


def spread(basis: Basis, marginal: Marginal, y: NDArray[Any]) -> NDArray[Any]:
    """Q' y: each cell of the histogram takes the value of its marginal's cell; (.., d, width)."""
    return y[..., positions(basis, marginal)].reshape((*y.shape[:-1], basis.d, basis.width))


def cell_variances(basis: Basis, covariance: Blocks, marginal: Marginal) -> Floats:
    """The variance of each row of a marginal's estimate when the histogram's covariance is sum_S V_S (x) P_S.

    sum over S of (A V_S A')_ii, S within the variables that stay, times (1 - 1/n) for each variable of S, 1/n for
    each other that stays and n for each summed one; it does not depend on the regular variables' codes.
    ``covariance`` may have further axes in front: (.., subset, d, d) -> (.., row).
    """
    indicator = (marginal.rows[None, :] == np.arange(marginal.row_count)[:, None]).astype(np.float64)
    found = np.zeros((*covariance.shape[:-3], marginal.row_count))
    for subset in range(basis.subsets):
        if subset & ~marginal.kept:
            continue
        factor = 1.0
        for v, size in enumerate(basis.regular):
            if subset >> v & 1:
                factor *= 1 - 1 / size
            elif marginal.kept >> v & 1:
                factor /= size
            else:
                factor *= size
        summed = product(indicator, covariance[..., subset, :, :])  # (.., row, a)
        found += factor * (summed * indicator).sum(axis=-1)
    return found


def matrix(basis: Basis, marginal: Marginal) -> Floats:
    """Q as a dense matrix, for small histograms."""
    found = np.zeros((size_of(basis, marginal), basis.cells))
    found[positions(basis, marginal), np.arange(basis.cells)] = 1
    return found
