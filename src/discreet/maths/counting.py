"""The counting kernels: one addition per record and cube into a cell's accumulator; they know nothing of variables.

An accumulator is one uint64: the count in its low half, the sum of the record keys modulo 2^32 in its high half.
Adding ``(key << 32) | 1`` per record is exact, associative and commutative, so that the order of records, the size
of chunks and the number of threads cannot change a bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

TILE = 4096  # records whose cell positions stay in the first-level cache
SMALL_GRID = 1 << 15  # cells; four such grids stay in the second-level cache
_32 = np.uint64(32)
_ONE = np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)

Accumulators = NDArray[np.uint64]


def increments(keys: NDArray[np.uint32]) -> Accumulators:
    """What each record adds to the cell it falls in: its key above, one below."""
    return (keys.astype(np.uint64) << _32) | _ONE


def counts_of(cells: Accumulators) -> NDArray[np.int64]:
    """The counts in the low halves."""
    return (cells & _LOW).astype(np.int64)


def keys_of(cells: Accumulators) -> NDArray[np.uint32]:
    """The cell keys in the high halves."""
    return (cells >> _32).astype(np.uint32)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def recode(codes: Any, nodes: Any, out: Any) -> None:
    """Translate the codes of records to nodes of an axis: out = nodes[codes]."""
    for r in range(codes.size):
        out[r] = nodes[codes[r]]


@njit(inline="always")  # type: ignore[untyped-decorator]
def _place(
    position: Any,
    narrow: Any,
    narrow_rows: Any,
    narrow_strides: Any,
    wide: Any,
    wide_rows: Any,
    wide_strides: Any,
    start: Any,
    size: Any,
) -> None:
    """Find the cell of each of ``size`` records from ``start`` on, in loops that vectorise."""
    position[:size] = np.uint32(0)
    for k in range(narrow_rows.size):
        row = narrow[narrow_rows[k], start : start + size]
        stride = narrow_strides[k]
        for r in range(size):
            position[r] += np.uint32(row[r]) * stride
    for k in range(wide_rows.size):
        broad = wide[wide_rows[k], start : start + size]
        stride = wide_strides[k]
        for r in range(size):
            position[r] += broad[r] * stride


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_cube(
    cells: Any,
    added: Any,
    narrow: Any,
    narrow_rows: Any,
    narrow_strides: Any,
    wide: Any,
    wide_rows: Any,
    wide_strides: Any,
    first: Any,
    last: Any,
) -> None:
    """Add ``added[r]`` to the cell of each record first <= r < last.

    The nodes of axes with at most 256 of them are rows of ``narrow`` (uint8), the others of ``wide`` (uint32).
    """
    position = np.empty(TILE, dtype=np.uint32)
    for start in range(first, last, TILE):
        size = min(TILE, last - start)
        _place(position, narrow, narrow_rows, narrow_strides, wide, wide_rows, wide_strides, start, size)
        for r in range(size):
            cells[position[r]] += added[start + r]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_keys(
    cells: Any,
    keys: Any,
    inside: Any,
    narrow: Any,
    narrow_rows: Any,
    narrow_strides: Any,
    wide: Any,
    wide_rows: Any,
    wide_strides: Any,
) -> None:
    """As count_cube for all records, from their keys: half the memory to read.

    Only records marked in ``inside`` are added; all are where it is empty. Neighbours often fall in the same cell, and
    an addition waits for the one before it there: so a small grid is counted in four that are added up at the end.
    """
    position = np.empty(TILE, dtype=np.uint32)
    lanes = np.zeros((3, cells.size if cells.size <= SMALL_GRID else 0), dtype=np.uint64)
    one, two, three = (lanes[0], lanes[1], lanes[2]) if lanes.size else (cells, cells, cells)
    for start in range(0, keys.size, TILE):
        size = min(TILE, keys.size - start)
        _place(position, narrow, narrow_rows, narrow_strides, wide, wide_rows, wide_strides, start, size)
        part = keys[start : start + size]
        if inside.size:
            chosen = inside[start : start + size]
            for r in range(size):
                cells[position[r]] += ((np.uint64(part[r]) << _32) | _ONE) * np.uint64(chosen[r])
        else:
            whole = size - size % 4
            for r in range(0, whole, 4):
                cells[position[r]] += (np.uint64(part[r]) << _32) | _ONE
                one[position[r + 1]] += (np.uint64(part[r + 1]) << _32) | _ONE
                two[position[r + 2]] += (np.uint64(part[r + 2]) << _32) | _ONE
                three[position[r + 3]] += (np.uint64(part[r + 3]) << _32) | _ONE
            for r in range(whole, size):
                cells[position[r]] += (np.uint64(part[r]) << _32) | _ONE
    for lane in range(3 if lanes.size else 0):
        for c in range(cells.size):
            cells[c] += lanes[lane, c]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_digit(number: Any, cells: Any, stride: Any, nodes: Any, table: Any, size: Any) -> None:
    """Append a digit below ``size`` to each number: the table's entry for the cell's node along one axis."""
    for c in range(cells.size):
        number[c] = number[c] * size + table[(cells[c] // stride) % nodes]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def positions_of(position: Any, nodes: Any, stride: Any) -> None:
    """Add one axis to 64-bit cell positions, for cubes too large to be dense."""
    for r in range(position.size):
        position[r] += np.uint64(nodes[r]) * np.uint64(stride)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _roll_up(cells: Any, parents: Any) -> None:
    outer, nodes, inner = cells.shape
    for o in range(outer):
        for node in range(nodes - 1, 0, -1):
            below = cells[o, node]
            above = cells[o, parents[node]]
            for i in range(inner):
                above[i] += below[i]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _roll_up_last(cells: Any, parents: Any) -> None:
    outer, nodes = cells.shape
    for o in range(outer):
        for node in range(nodes - 1, 0, -1):
            cells[o, parents[node]] += cells[o, node]


def roll_up(cells: Accumulators, shape: tuple[int, ...], axis: int, parents: NDArray[np.int32]) -> None:
    """Add every node of one axis to its parent, in place; parents stand before their children."""
    outer = int(np.prod(shape[:axis], dtype=np.int64))
    inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    if inner == 1:
        _roll_up_last(cells.reshape(outer, shape[axis]), parents)
    else:
        _roll_up(cells.reshape(outer, shape[axis], inner), parents)
