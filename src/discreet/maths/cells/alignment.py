"""Sparse tables side by side: the same cells, their wider cells, and the boxes of codes that tables show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.counting import align

Integers = NDArray[np.int64]
FEW, FEW_NUMBERS = 2**16, 2**12  # cells, and entries of an array, that cost next to nothing
SPARSE = 4  # possible cells by listed ones beyond which a table is not laid out whole


def is_sparse(size: int, listed: int) -> bool:
    """Whether a table with so many possible cells lists too few of them to be laid out whole."""
    return size > SPARSE * listed + FEW


def distinct_numbers(number: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """The distinct numbers below ``size``, the index of each number among them, and their frequencies."""
    # sorting pays only where an array of all numbers would be large
    if size > SPARSE * len(number) + FEW_NUMBERS:
        return np.unique(number, return_inverse=True, return_counts=True)
    times = np.bincount(number, minlength=size)
    numbers = np.flatnonzero(times)
    places = np.zeros(size, dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    return numbers, places[number], times[numbers]


Box = tuple[NDArray[np.bool_], ...]  # along each axis: which nodes belong to it


def inside(
    box: Box, cells: NDArray[np.int64], strides: Sequence[int], axes: Iterable[int]
) -> NDArray[np.bool_]:
    """Which cells lie in a box, judged along the given axes only."""
    found = np.ones(len(cells), dtype=np.bool_)
    for k in axes:
        found &= box[k][(cells // strides[k]) % len(box[k])]
    return found


def covers(box: Box, other: Box) -> bool:
    """Whether a box contains another."""
    return all(one is two or bool(one[two].all()) for one, two in zip(box, other, strict=True))


def meets(box: Box, other: Box) -> bool:
    """Whether two boxes have a cell in common."""
    return all(bool((one & two).any()) for one, two in zip(box, other, strict=True))


def left_over(box: Box, others: Sequence[Box]) -> int:
    """How many cells of a box lie in none of the others: axis by axis, grouping codes that lie in the same ones."""
    if not box:
        return 0 if others else 1
    if not others:
        return prod(int(one.sum()) for one in box)
    along = np.stack([other[0][box[0]] for other in others])  # [other, code]
    kinds, numbers = np.unique(along, axis=1, return_counts=True)
    return sum(
        int(number)
        * left_over(box[1:], [other[1:] for other, within in zip(others, kind, strict=True) if within])
        for kind, number in zip(kinds.T, numbers, strict=True)
    )


Places = NDArray[np.int32]
NOWHERE = -1


def aligned(tables: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """The cells that any table lists, ascending, and their values: values[cell, table], zero where it lists none."""
    cells = tables[0][0].astype(np.int64)
    for listed, _ in tables[1:]:
        if len(listed) != len(cells) or not np.array_equal(listed, cells):
            joined = np.empty(len(cells) + len(listed), dtype=np.int64)
            cells = joined[: _union(cells, listed.astype(np.int64), joined)].copy()
    values = np.zeros((len(tables), len(cells)), dtype=np.int64).T  # a table's values lie side by side
    for column, (listed, amounts) in enumerate(tables):
        align(values[:, column], cells, listed, amounts)
    return cells, values


def nodes_along(cells: Integers, stride: int, nodes: int) -> Places:
    """The node of each cell along one axis."""
    found = np.empty(len(cells), dtype=np.int32)
    _nodes(cells, stride, nodes, found)
    return found


def wider_cells(cells: Integers, stride: int, parents: NDArray[np.int32]) -> Places:
    """The index of the cell with the parent's node along one axis; -1 at the total and where it is not listed."""
    found = np.empty(len(cells), dtype=np.int32)
    starts = np.full(len(parents), NOWHERE, dtype=np.int64)
    ends = np.zeros(len(parents), dtype=np.int64)
    _wider(cells, stride, parents, starts, ends, found)
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _union(a: Any, b: Any, out: Any) -> int:
    i, j, n = 0, 0, 0
    while i < a.size and j < b.size:
        x, y = a[i], b[j]
        out[n] = min(x, y)
        i += x <= y
        j += y <= x
        n += 1
    while i < a.size:
        out[n] = a[i]
        i, n = i + 1, n + 1
    while j < b.size:
        out[n] = b[j]
        j, n = j + 1, n + 1
    return n


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _nodes(cells: Any, stride: Any, nodes: Any, out: Any) -> None:
    """The node is computed once for each run of cells that share it."""
    node, end = 0, np.int64(-1)
    for i in range(cells.size):
        if cells[i] >= end:
            node = (cells[i] // stride) % nodes
            end = (cells[i] // stride + 1) * stride
        out[i] = node


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def add_digits(cells: Any, strides: Any, sizes: Any, tables: Any, out: Any) -> None:
    """Add to each cell's number the entries of its nodes along all axes, one table after the other; cells ascend.

    What the axes before the last add is computed once for each run of cells that share it.
    """
    last = strides.size - 1
    first = tables.size - sizes[last]
    end, begin, before = np.int64(-1), np.int64(0), np.int32(0)
    for i in range(cells.size):
        if cells[i] >= end:
            begin = cells[i] // sizes[last] * sizes[last]
            end, before, at = begin + sizes[last], np.int32(0), 0
            for k in range(last):
                before += tables[at + (begin // strides[k]) % sizes[k]]
                at += sizes[k]
        out[i] += before + tables[first + cells[i] - begin]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _first_from(cells: Any, at: Any, end: Any, target: Any) -> int:
    """The first place from ``at`` on whose cell is not below the target: doubling steps, then bisection."""
    if at >= end or cells[at] >= target:
        return int(at)
    step = 1
    while at + step < end and cells[at + step] < target:
        at += step
        step *= 2
    low, high = at, min(at + step, end)
    while high - low > 1:
        middle = (low + high) // 2
        if cells[middle] < target:
            low = middle
        else:
            high = middle
    return int(high)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _wider(cells: Any, stride: Any, parents: Any, starts: Any, ends: Any, out: Any) -> None:
    """Cells of one node and its parent's run through the inner axes in the same order: a merge, block by block."""
    block, n, i = stride * parents.size, cells.size, 0
    while i < n:
        first, begin = cells[i] // block * block, i
        while i < n and cells[i] < first + block:
            node = (cells[i] - first) // stride
            beyond, start = first + (node + 1) * stride, i
            parent = parents[node]
            known = parent >= 0 and starts[parent] >= 0
            at, end = (starts[parent], ends[parent]) if known else (0, 0)
            while i < n and cells[i] < beyond:
                out[i] = NOWHERE
                if known:
                    target = cells[i] - (node - parent) * stride
                    at = _first_from(cells, at, end, target)
                    if at < end and cells[at] == target:
                        out[i] = at
                i += 1
            starts[node], ends[node] = start, i
        while begin < i:  # only the nodes of this block were met
            node = (cells[begin] - first) // stride
            starts[node] = NOWHERE
            begin = ends[node]
