"""Tables whose margins add up: least squares over all noisy margins of a cube, non-negative, then whole numbers.

A cube is a product of trees. Its finest cells x determine every margin, v = A x; noisy values y of all margins with
variances 1/w are fitted by

    minimise 1/2 sum_c w_c ((A x)_c - y_c)^2  subject to x >= 0, and sum of x over each group = a settled number,

(Hay, Rastogi, Miklau and Suciu 2010 for one tree; Barak et al. 2007 for margins that add up). Without the bound at zero
the fit is the generalised least squares estimate: unbiased, and no linear unbiased estimate has a smaller variance. The
whole numbers are then chosen cell by cell so that the same sum of squares grows least. Margins are sums of the finest
cells, so that they add up whatever the fit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import njit

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOLERANCE = 1e-3  # of the fit, in standard deviations of the noise: far below the rounding to whole numbers
MOST_STEPS = 1500  # of one least squares solution
MOST_EXCHANGES = 40  # of the cells that are held at zero
FEW = 1e-3  # of the cells may be held or free wrongly: whole numbers hide it
FARTHEST = 40.0  # standard deviations of the noise: of millions of counts none has noise beyond 15
SWEEPS = 4  # over all cells, after each was rounded once
MOST_ANCESTORS = 1 << 16  # margins that contain one finest cell


@dataclass(frozen=True, eq=False)
class Lattice:
    """Some finest cells of a product of trees and every margin that contains one of them.

    Cells are numbered: the finest first, in the order that was given, then margins, each after the cells that it sums.
    """

    shape: tuple[int, ...]
    positions: Integers  # cell -> flat position in the grid of all nodes
    finest: int  # how many of the cells are finest ones
    above: NDArray[
        np.int32
    ]  # (axis, cell) -> the cell with the parent node, where all later axes are finest, else -1
    source: NDArray[
        np.int32
    ]  # v[target] += v[source], in this order, makes every margin from the finest cells
    target: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.positions)

    def sums(self, x: Floats) -> Floats:
        """All cells from the finest: A x."""
        v = np.zeros(len(self))
        v[: self.finest] = x
        _sum_up(v, self.source, self.target)
        return v

    def spread(self, u: Floats) -> Floats:
        """For each finest cell the sum over all cells that contain it: the transpose of ``sums``."""
        v = u.copy()
        _spread(v, self.source, self.target)
        return v[: self.finest]

    @cached_property
    def nodes(self) -> tuple[Integers, ...]:
        """The nodes of each cell, one array per axis."""
        return tuple(np.unravel_index(self.positions, self.shape)) if self.shape else ()


def lattice(parents: Sequence[NDArray[np.int32]], finest: Integers) -> Lattice:
    """The lattice of some finest cells (flat positions); a node's parent precedes it, the root's is -1."""
    shape = tuple(len(tree) for tree in parents)
    cells = finest.astype(np.int64)
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    axis_of = [np.zeros(0, np.int8)]
    for k, tree in enumerate(parents):
        stride = prod(shape[k + 1 :])
        depths = node_depths(tree)
        node = (cells // stride) % shape[k]
        for depth in range(int(depths.max(initial=0)), 0, -1):
            lower = np.flatnonzero(depths[node] == depth)
            moved = cells[lower] + (tree[node[lower]].astype(np.int64) - node[lower]) * stride
            made, where = np.unique(moved, return_inverse=True)
            sources.append(lower)
            targets.append(where.reshape(-1) + len(cells))
            axis_of.append(np.full(len(lower), k, np.int8))
            cells = np.concatenate([cells, made])
            node = np.concatenate([node, (made // stride) % shape[k]])
    source, target, axis = np.concatenate(sources), np.concatenate(targets), np.concatenate(axis_of)
    above = np.full((len(shape), len(cells)), -1, np.int32)
    above[axis, source] = target
    return Lattice(shape, cells, len(finest), above, source.astype(np.int32), target.astype(np.int32))


def node_depths(parents: NDArray[np.int32]) -> Integers:
    """How far each node is below the root."""
    depths = np.zeros(len(parents), np.int64)
    for node in range(1, len(parents)):
        depths[node] = depths[parents[node]] + 1
    return depths


@dataclass(frozen=True, eq=False)
class Settled:
    """Sums that are fixed: each finest cell belongs to one group; whole numbers need sums that are whole and >= 0."""

    group: Integers  # finest cell -> group
    sums: Integers | Floats  # group -> its sum


def least_squares(
    cells: Lattice, y: Floats, w: Floats, settled: Settled | None = None, start: Floats | None = None
) -> Floats:
    """The generalised least squares estimate of the finest cells, by conjugate gradients; it may be negative."""
    free = np.ones(cells.finest, dtype=bool)
    first = np.zeros(cells.finest) if start is None else start
    return _solve(_Fit(cells, y, w, settled), free, first)


def non_negative(cells: Lattice, y: Floats, w: Floats, settled: Settled | None = None) -> Floats:
    """The same with x >= 0, by block principal pivoting (Portugal, Judice and Vicente 1994).

    Cells with a negative estimate are fixed at zero, cells at zero that the fit pulls up are released, all at once,
    until almost none are left; these are cut off at zero.
    """
    fit = _Fit(cells, y, w, settled)
    free = np.ones(cells.finest, dtype=bool) if settled is None else settled.sums[settled.group] > 0
    x = _solve(fit, free, np.zeros(cells.finest))
    fewest, patience = cells.finest + 1, 3
    for _ in range(MOST_EXCHANGES):
        pulled = ~free & (fit.pull(x, free) > fit.scale * TOLERANCE)
        wrong = pulled | (free & (x < 0))
        if settled is not None:
            wrong &= settled.sums[settled.group] > 0
        number = int(np.count_nonzero(wrong))
        if number <= FEW * cells.finest:
            break
        if number < fewest:
            fewest, patience = number, 3
        elif patience:
            patience -= 1
        else:  # the exchange goes in a circle: only hold, release nothing
            wrong &= free
        free ^= wrong
        x = _solve(fit, free, np.where(free, np.maximum(x, 0), 0.0))
    x = np.maximum(x, 0)
    return x if settled is None else _scaled(x, free, settled)


def whole_numbers(
    cells: Lattice, x: Floats, y: Floats, w: Floats, settled: Settled | None = None
) -> Integers:
    """Round a non-negative fit so that all margins stay near: each cell down or up, whichever fits the margins better.

    The margins that later cells see contain the rounding of the earlier ones, so that it does not add up. Settled sums
    are met exactly.
    """
    weights, wanted = w.copy(), y.copy()
    sums = cells.sums(x)
    rest = weights * (sums - wanted)  # the gradient of each cell of the lattice
    rounded = x.copy()
    _round(rounded, rest, weights, cells.above, settled is not None, *_grouped(settled, x))
    if settled is None:
        for _ in range(SWEEPS):
            if not _descend(rounded, rest, weights, cells.above):
                break
    else:
        _settle(rounded, rest, weights, cells.above, settled.group, settled.sums)
    found: Integers = np.rint(rounded).astype(np.int64)
    return found


def consistent_cells(cells: Lattice, y: Floats, w: Floats, settled: Settled | None = None) -> Integers:
    """The published finest cells: fitted, non-negative, whole; all margins are their sums.

    A fit that ended too early is refused: no count lies as far from its noisy value as noise never does.
    """
    found = whole_numbers(cells, non_negative(cells, y, w, settled), y, w, settled)
    away = np.sqrt(w) * np.abs(cells.sums(found.astype(np.float64)) - y)
    if away.max(initial=0.0) > FARTHEST:
        value = (
            f"a count would be {away.max():.3g} standard deviations of the noise away from its noisy value"
        )
        remedy = (
            "use coarser breakdowns or fewer tables, or leave out consistent: the fit did not come to its end"
        )
        raise mistake("", "release.consistent", value, remedy)
    return found


class _Fit:
    """The sum of squares and what its solution needs."""

    def __init__(self, cells: Lattice, y: Floats, w: Floats, settled: Settled | None) -> None:
        self.cells, self.w, self.settled = cells, w, settled
        self.right = cells.spread(w * y)
        self.scale = float(np.sqrt(w.max(initial=0.0))) or 1.0

    def gradient(self, x: Floats) -> Floats:
        """A' W (A x - y)."""
        return self.times(x) - self.right

    def times(self, x: Floats) -> Floats:
        """A' W A x."""
        return self.cells.spread(self.w * self.cells.sums(x))

    def pull(self, x: Floats, free: NDArray[np.bool_]) -> Floats:
        """How strongly each cell is pulled up, against the free cells of its group where its sum is settled."""
        down = -self.gradient(x)
        return down if self.settled is None else down - _means(down, free, self.settled)[self.settled.group]

    def inside(self, z: Floats, free: NDArray[np.bool_]) -> Floats:
        """The part of a direction that moves only free cells and keeps the settled sums."""
        kept = np.where(free, z, 0.0)
        if self.settled is None:
            return kept
        return np.where(free, z - _means(z, free, self.settled)[self.settled.group], 0.0)


def _means(z: Floats, free: NDArray[np.bool_], settled: Settled) -> Floats:
    groups = len(settled.sums)
    number = np.bincount(settled.group[free], minlength=groups)
    total = np.bincount(settled.group[free], weights=z[free], minlength=groups)
    means: Floats = total / np.maximum(number, 1)
    return means


def _solve(fit: _Fit, free: NDArray[np.bool_], start: Floats) -> Floats:
    """Conjugate gradients on the free cells."""
    x = start
    if fit.settled is not None:
        missing = fit.settled.sums - np.bincount(
            fit.settled.group, weights=x, minlength=len(fit.settled.sums)
        )
        number = np.maximum(np.bincount(fit.settled.group[free], minlength=len(missing)), 1)
        x = np.where(free, x + (missing / number)[fit.settled.group], 0.0)
    residual = fit.inside(-fit.gradient(x), free)
    direction = residual.copy()
    square = _square(residual)
    enough = (fit.scale * TOLERANCE) ** 2 * max(1, len(x))
    for _ in range(MOST_STEPS):
        if square <= enough:
            break
        ahead = fit.inside(fit.times(direction), free)
        curvature = float(np.sum(direction * ahead))
        if curvature <= 0:
            break
        step = square / curvature
        x = x + step * direction
        residual = residual - step * ahead
        before, square = square, _square(residual)
        direction = residual + (square / before) * direction
    return x


def _square(z: Floats) -> float:
    """The sum of squares, without the threads of a matrix library: they cost more than the sum on a busy machine."""
    return float(np.sum(z * z))


def _scaled(x: Floats, free: NDArray[np.bool_], settled: Settled) -> Floats:
    """Bring the groups to their sums again after cells were cut off at zero."""
    total = np.bincount(settled.group, weights=x, minlength=len(settled.sums))
    factor = np.divide(settled.sums, total, out=np.ones(len(total)), where=total > 0)
    return np.where(free, x * factor[settled.group], 0.0)


def _grouped(settled: Settled | None, x: Floats) -> tuple[Integers, Floats]:
    if settled is None:
        return np.zeros(0, np.int64), np.zeros(0)
    present = np.bincount(settled.group, weights=x, minlength=len(settled.sums))
    return settled.group, settled.sums.astype(np.float64) - present


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sum_up(v: Any, source: Any, target: Any) -> Any:
    for i in range(source.size):
        v[target[i]] += v[source[i]]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _spread(v: Any, source: Any, target: Any) -> Any:
    for i in range(source.size - 1, -1, -1):
        v[source[i]] += v[target[i]]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _ancestors(cell: Any, above: Any, found: Any) -> Any:
    """Every cell that contains a finest cell, itself included; return how many."""
    found[0] = cell
    number = 1
    for k in range(above.shape[0]):
        for i in range(number):
            up = above[k, found[i]]
            while up >= 0:
                found[number] = up
                number += 1
                up = above[k, up]
    return number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _felt(found: Any, number: Any, rest: Any, weights: Any) -> Any:
    """Gradient and curvature of the sum of squares along one finest cell."""
    gradient, curvature = 0.0, 0.0
    for i in range(number):
        gradient += rest[found[i]]
        curvature += weights[found[i]]
    return gradient, curvature


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(found: Any, number: Any, rest: Any, weights: Any, change: Any) -> Any:
    for i in range(number):
        rest[found[i]] += weights[found[i]] * change


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _round(x: Any, rest: Any, weights: Any, above: Any, is_settled: Any, group: Any, missing: Any) -> Any:
    """Round each cell down or up, whichever makes the smaller sum of squares; settled sums weigh most."""
    found = np.empty(MOST_ANCESTORS, np.int32)
    heavy = 1000.0 * weights.max() if weights.size else 1.0
    for cell in range(x.size):
        lower = np.floor(x[cell] + 1e-9)
        down = lower - x[cell]
        if abs(down) < 1e-9:
            x[cell] = lower
            continue
        up = down + 1.0
        number = _ancestors(cell, above, found)
        gradient, curvature = _felt(found, number, rest, weights)
        if is_settled:
            gradient -= heavy * missing[group[cell]]
            curvature += heavy
        # up - down = 1, so that the two sums of squares differ by this
        change = up if gradient + 0.5 * curvature * (up + down) < 0 else down
        x[cell] = np.rint(x[cell] + change)
        _add(found, number, rest, weights, change)
        if is_settled:
            missing[group[cell]] -= change


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _descend(x: Any, rest: Any, weights: Any, above: Any) -> Any:
    """Add or subtract one wherever that makes the sum of squares smaller; return how often."""
    found = np.empty(MOST_ANCESTORS, np.int32)
    changed = 0
    for cell in range(x.size):
        number = _ancestors(cell, above, found)
        gradient, curvature = _felt(found, number, rest, weights)
        change = 0.0
        if gradient + 0.5 * curvature < -1e-9 * curvature:
            change = 1.0
        elif x[cell] >= 1.0 and -gradient + 0.5 * curvature < -1e-9 * curvature:
            change = -1.0
        if change != 0.0:
            x[cell] += change
            _add(found, number, rest, weights, change)
            changed += 1
    return changed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _settle(x: Any, rest: Any, weights: Any, above: Any, group: Any, sums: Any) -> Any:
    """Bring every group to its sum, one unit at a time, each in the cell where it costs least."""
    found = np.empty(MOST_ANCESTORS, np.int32)
    missing = sums.astype(np.float64)
    for cell in range(x.size):
        missing[group[cell]] -= x[cell]
    order = np.argsort(group, kind="mergesort")
    first = 0
    while first < order.size:
        here = group[order[first]]
        last = first
        while last < order.size and group[order[last]] == here:
            last += 1
        while abs(missing[here]) > 0.5:
            sign = 1.0 if missing[here] > 0 else -1.0
            best, least = -1, np.inf
            for i in range(first, last):
                cell = order[i]
                if sign > 0 or x[cell] >= 0.5:
                    number = _ancestors(cell, above, found)
                    gradient, curvature = _felt(found, number, rest, weights)
                    cost = sign * gradient + 0.5 * curvature
                    if cost < least:
                        best, least = cell, cost
            x[best] += sign
            _add(found, _ancestors(best, above, found), rest, weights, sign)
            missing[here] -= sign
        first = last
