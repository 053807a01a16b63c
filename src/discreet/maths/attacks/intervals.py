"""Intervals of true counts: those that published counts leave, tightened by the sums along axes (Bach 2020, section 3).

Every rule that tightens is monotone, so that the intervals in which no sum changes anything are the same in whatever
order families are examined. What participants with the same noise add keeps this: where one of two children that may
be nonempty turns out to be empty, the other rules imply what the two of them showed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.noise.law import Pmf

Integers = NDArray[np.int64]
Bounds = NDArray[np.int32]

TILE = 512  # lines that are examined at once
CACHED = 32_768  # cells that stay in the second-level cache, with their bounds
SERVED = 1000  # from here on a law treats all counts equally
MOST_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class PossibleCounts:
    """For each published count the smallest and the largest true count that can lead to it.

    Beyond the end of the arrays both grow with the published count; low > high where nothing leads to it.
    """

    first: int
    low: Integers
    high: Integers

    def of(self, published: NDArray[Any]) -> tuple[Bounds, Bounds]:
        """The intervals of some published counts."""
        low, high = (np.empty(published.shape, dtype=np.int32) for _ in range(2))
        _look_up(published, self.first, self.low, self.high, low, high)
        return low, high


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _look_up(published: Any, first: Any, lows: Any, highs: Any, low: Any, high: Any) -> None:
    for c in range(published.size):
        place = np.int64(published[c]) - first
        at = min(max(place, 0), lows.size - 1)
        low[c] = lows[at] + (place - at)
        high[c] = highs[at] + (place - at)


def origins(row: Callable[[int], Pmf], bound: int, step: int = 1, threshold: int = 0) -> PossibleCounts:
    """Find the origins of each published count from the laws of all true counts.

    No noise is larger than ``bound``; published counts are multiples of ``step``, so the last one listed is, too, and
    only zero lies below ``threshold``.
    """
    margin = bound + step
    counts = SERVED + threshold + 8 * margin
    first, last = -margin, (counts - 2 * margin) // step * step
    low = np.ones(last - first + 1, dtype=np.int64)
    high = np.zeros(last - first + 1, dtype=np.int64)
    for count in range(counts + 1):
        law = row(count)
        shown = law.values[law.p > 0]
        at = shown[(shown >= first) & (shown <= last)] - first
        low[at] = np.where(low[at] > high[at], count, low[at])
        high[at] = count
    return PossibleCounts(first, low, high)


@dataclass(frozen=True, eq=False)
class AxisFamilies:
    """The parents of an axis, lowest in the tree first, each with its children: children[starts[f]:starts[f + 1]]."""

    parents: Integers
    starts: Integers
    children: Integers

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers]:
        """What kernels take."""
        return self.parents, self.starts, self.children


def families(parents: NDArray[np.int32]) -> AxisFamilies:
    """Group the nodes of an axis by their parents, which come before them; -1 marks a node without parent."""
    order = np.argsort(parents, kind="stable")
    order = order[parents[order] >= 0]
    above, sizes = np.unique(parents[order], return_counts=True)
    groups = np.split(order, np.cumsum(sizes)[:-1]) if len(above) else []
    children = np.concatenate(groups[::-1]) if groups else np.empty(0, dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes[::-1])])
    return AxisFamilies(above[::-1].astype(np.int64), starts.astype(np.int64), children.astype(np.int64))


@dataclass(frozen=True)
class Tightening:
    """How a propagation ended: number of sweeps, whether at a fixpoint, and cells left without a possible count."""

    sweeps: int
    is_fixpoint: bool
    contradictions: int


def tighten(
    low: Bounds,
    high: Bounds,
    shown: Bounds,
    axes: Sequence[AxisFamilies],
    shape: Sequence[int],
    same_noise: bool,
    changed: NDArray[np.bool_] | None = None,
) -> Tightening:
    """Tighten intervals in place until no sum along an axis tightens them further: parent = sum of its children.

    A parent lies between the sums of its children's bounds, and a child between the parent's bounds less those of the
    other children. With the same noise for the same participants, a child that is published differently from its
    parent does not contain everyone: someone is in the others. A contradiction ends the propagation.

    ``changed`` marks the cells that were tightened since the last fixpoint, where there is one: lines without any of
    them are left as they are.
    """
    grid = _grid(low.size, shape)
    lines = np.full(
        int(grid[-1][-1]), changed is None, dtype=np.uint8
    )  # whether a cell of a line has changed
    if changed is not None:
        _mark(changed, *grid, lines)
    largest = max(int(high.max(initial=0)), -int(low.min(initial=0)))
    longest = max((int(np.diff(one.starts).max(initial=0)) for one in axes), default=0)
    fits = largest * (longest + 1) < np.iinfo(np.int32).max  # sums of 32 bits are added up twice as fast
    sums = np.empty((6, TILE), dtype=np.int32 if fits else np.int64)
    for sweep in count_up(1):
        changes, broken = 0, 0
        for axis, members in enumerate(axes):
            found, empty = _sweep(low, high, shown, axis, *grid, lines, *members.arrays, same_noise, sums)
            changes, broken = changes + found, broken + empty
        if broken or not changes or sweep == MOST_SWEEPS:
            return Tightening(sweep, not changes, int(np.count_nonzero(low > high)))
    raise AssertionError  # count_up has no end


def _grid(cells: int, shape: Sequence[int]) -> tuple[Integers, Integers, Integers]:
    """Along each axis: the stride, the number of nodes, and the number of its first line; the last: of all lines."""
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    lines = np.cumsum([0, *(cells // size for size in shape)])
    return np.array(strides, np.int64), np.array(shape, np.int64), lines.astype(np.int64)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _mark(changed: Any, strides: Any, sizes: Any, begins: Any, lines: Any) -> None:
    """Mark the lines of all changed cells along all axes."""
    for cell in range(changed.size):
        if changed[cell]:
            _mark_one(cell, strides, sizes, begins, lines)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _mark_one(cell: Any, strides: Any, sizes: Any, begins: Any, lines: Any) -> None:
    for axis in range(strides.size):
        stride = strides[axis]
        lines[begins[axis] + cell // (stride * sizes[axis]) * stride + cell % stride] = 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sweep(
    low: Any,
    high: Any,
    shown: Any,
    axis: Any,
    strides: Any,
    sizes: Any,
    begins: Any,
    lines: Any,
    parents: Any,
    starts: Any,
    children: Any,
    same: Any,
    sums: Any,
) -> Any:
    """Tighten the marked lines of an axis from the leaves up and from the root down; count changes and empty intervals.

    A line that was not tightened, and no cell of which has changed since, is not looked at again: it would not change.
    Many lines are copied side by side, so that families of all of them are examined at once.
    """
    nodes, stride, begin = sizes[axis], strides[axis], begins[axis]
    last = low.size // nodes - 1
    many = max(1, min(TILE, CACHED // nodes))
    near = (
        np.empty((nodes, many), low.dtype),
        np.empty((nodes, many), low.dtype),
        np.empty((nodes, many), low.dtype),
    )
    first_cells, suspect = np.empty(many, np.int64), np.empty(many, np.int32)
    grid = strides, sizes, begins, lines
    changes, empty, filled = 0, 0, 0
    for line in range(last + 1):
        if lines[begin + line]:
            lines[begin + line] = 0
            first_cells[filled] = line // stride * stride * nodes + line % stride
            filled += 1
        if filled == 0 or (filled < many and line < last):
            continue
        _copy_lines(low, high, shown, first_cells[:filled], stride, near)
        for step in range(2 * parents.size):
            f = step if step < parents.size else 2 * parents.size - 1 - step
            members = children[starts[f] : starts[f + 1]]
            _find_suspects(near, parents[f], members, same, filled, sums, suspect)
            for k in range(filled):
                if suspect[k]:
                    found, broken = _tighten_family(
                        near, parents[f], members, same, k, np.int64(sums[0, k]), np.int64(sums[1, k]),
                        low, high, first_cells[k], stride, grid,
                    )  # fmt: skip
                    changes += found
                    empty += broken
        filled = 0
    return changes, empty


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _copy_lines(low: Any, high: Any, shown: Any, first_cells: Any, stride: Any, near: Any) -> None:
    near_low, near_high, near_shown = near
    for node in range(near_low.shape[0]):
        for k in range(first_cells.size):
            cell = first_cells[k] + node * stride
            near_low[node, k] = low[cell]
            near_high[node, k] = high[cell]
            near_shown[node, k] = shown[cell]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _find_suspects(
    near: Any, parent: Any, members: Any, same: Any, size: Any, sums: Any, suspect: Any
) -> None:
    """Find the lines in which a family may tighten; the first two of ``sums`` are those of the children's bounds.

    A child can be tightened where the widest interval is wider than highs - low[parent] or high[parent] - lows. That
    the same participants have the same noise matters only where at most one child is surely not empty, and it is
    published differently from the parent; where none is, where any child is published so. Loops over few arrays each
    are what the compiler turns into vector instructions.
    """
    low, high, shown = near
    lows, highs, widest, sure, sure_differs, differs = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    above_low, above_high = low[parent], high[parent]
    sums[:, :size] = 0
    for child in members:
        child_low, child_high = low[child], high[child]
        for k in range(size):
            lows[k] += child_low[k]
        for k in range(size):
            highs[k] += child_high[k]
        for k in range(size):
            widest[k] = max(widest[k], sums.dtype.type(child_high[k] - child_low[k]))
        if same:
            _compare(child_low, shown[child], shown[parent], size, sure, sure_differs, differs)
    for k in range(size):
        suspect[k] = (lows[k] > above_low[k]) | (highs[k] < above_high[k])
    for k in range(size):
        suspect[k] |= widest[k] > highs[k] - above_low[k]
    for k in range(size):
        suspect[k] |= widest[k] > above_high[k] - lows[k]
    for k in range(size):
        suspect[k] |= ((sure[k] == 0) & (differs[k] != 0)) | ((sure[k] == 1) & (sure_differs[k] != 0))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _compare(
    low: Any, shown: Any, above_shown: Any, size: Any, sure: Any, sure_differs: Any, differs: Any
) -> None:
    """Count the children that are surely not empty, and note which are published differently from the parent."""
    for k in range(size):
        sure[k] += low[k] > 0
    for k in range(size):
        differs[k] |= shown[k] != above_shown[k]
    for k in range(size):
        sure_differs[k] |= (low[k] > 0) & (shown[k] != above_shown[k])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tighten_family(
    near: Any,
    parent: Any,
    members: Any,
    same: Any,
    k: Any,
    lows: Any,
    highs: Any,
    all_low: Any,
    all_high: Any,
    first: Any,
    stride: Any,
    grid: Any,
) -> Any:
    """Tighten one family in one line, whose children's bounds add up to ``lows`` and ``highs``."""
    low, high, shown = near
    above, holders, one, one_differs, other_differs = shown[parent, k], 0, -1, False, False
    if same:
        for child in members:  # the first and the last that may be nonempty
            if high[child, k] > 0:
                other_differs = shown[child, k] != above
                if holders == 0:
                    one, one_differs = child, other_differs
                holders += 1
    changes, empty = 0, 0
    least, most = max(np.int64(low[parent, k]), lows), min(np.int64(high[parent, k]), highs)
    empty += least > most
    for child in members:
        child_least, child_most = np.int64(low[child, k]), np.int64(high[child, k])
        others_least, others_most = lows - child_least, highs - child_most
        if same and shown[child, k] != above:
            others_least = max(others_least, 1)
            least = max(least, child_least + others_least)
        new_least = max(child_least, least - others_most)
        new_most = min(child_most, most - others_least)
        if same and child_most > 0 and holders == 2 and (other_differs if one == child else one_differs):
            new_least = max(new_least, 1)
        empty += new_least > new_most
        if new_least > child_least or new_most < child_most:
            changes += 1
            low[child, k], high[child, k] = new_least, new_most
            cell = first + child * stride
            all_low[cell], all_high[cell] = new_least, new_most
            _mark_one(cell, *grid)
    if least > low[parent, k] or most < high[parent, k]:
        changes += 1
        low[parent, k], high[parent, k] = least, most
        cell = first + parent * stride
        all_low[cell], all_high[cell] = least, most
        _mark_one(cell, *grid)
    return changes, empty


@dataclass(frozen=True, eq=False)
class Shared:
    """Which cells of a grid are cells of cross-tabulations that several tables have.

    A cross-tabulation crosses one level of each axis; the cells of a level are ``cells[begins[axis, depth] :
    ends[axis, depth]]`` along that axis, and ``places`` are their places among all codes of the level.
    """

    cells: Integers
    places: Integers
    begins: Integers  # (axis, depth)
    ends: Integers
    depths: Integers  # (cross-tabulation, axis)
    strides: Integers  # (cross-tabulation, axis) -> weight of a place in the common number of a cell
    firsts: Integers  # cross-tabulation -> where its cells begin among those that are exchanged


def give(shared: Shared, low: Bounds, high: Bounds, common_low: Bounds, common_high: Bounds) -> None:
    """Tighten the intervals of common cells by those of a grid."""
    _give(*vars(shared).values(), low, high, common_low, common_high)


def take(
    shared: Shared, low: Bounds, high: Bounds, common_low: Bounds, common_high: Bounds
) -> NDArray[np.bool_]:
    """Tighten the intervals of a grid by those of common cells; returns which cells have changed."""
    changed = np.zeros(low.size, dtype=np.bool_)
    _take(*vars(shared).values(), low, high, common_low, common_high, changed)
    return changed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lines(begins: Any, ends: Any, depths: Any) -> Any:
    """How many lines along the last axis a cross-tabulation has."""
    found = 1
    for axis in range(depths.size - 1):
        found *= ends[axis, depths[axis]] - begins[axis, depths[axis]]
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _line(line: Any, cells: Any, places: Any, begins: Any, ends: Any, depths: Any, strides: Any) -> Any:
    """What all axes before the last add to the cells of a line, and to their common numbers."""
    cell, number = 0, 0
    for axis in range(depths.size - 2, -1, -1):
        begin = begins[axis, depths[axis]]
        size = ends[axis, depths[axis]] - begin
        at = begin + line % size
        line //= size
        cell += cells[at]
        number += places[at] * strides[axis]
    return cell, number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _give(
    cells: Any,
    places: Any,
    begins: Any,
    ends: Any,
    depths: Any,
    strides: Any,
    firsts: Any,
    low: Any,
    high: Any,
    common_low: Any,
    common_high: Any,
) -> None:
    last = depths.shape[1] - 1
    for t in range(firsts.size):
        stride, depth = strides[t, last], depths[t, last]
        for line in range(_lines(begins, ends, depths[t])):
            cell, number = _line(line, cells, places, begins, ends, depths[t], strides[t])
            number += firsts[t]
            for at in range(begins[last, depth], ends[last, depth]):
                c, n = cell + cells[at], number + places[at] * stride
                common_low[n] = max(common_low[n], low[c])
                common_high[n] = min(common_high[n], high[c])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _take(
    cells: Any,
    places: Any,
    begins: Any,
    ends: Any,
    depths: Any,
    strides: Any,
    firsts: Any,
    low: Any,
    high: Any,
    common_low: Any,
    common_high: Any,
    changed: Any,
) -> None:
    last = depths.shape[1] - 1
    for t in range(firsts.size):
        stride, depth = strides[t, last], depths[t, last]
        for line in range(_lines(begins, ends, depths[t])):
            cell, number = _line(line, cells, places, begins, ends, depths[t], strides[t])
            number += firsts[t]
            for at in range(begins[last, depth], ends[last, depth]):
                c, n = cell + cells[at], number + places[at] * stride
                if common_low[n] > low[c]:
                    low[c] = common_low[n]
                    changed[c] = True
                if common_high[n] < high[c]:
                    high[c] = common_high[n]
                    changed[c] = True
