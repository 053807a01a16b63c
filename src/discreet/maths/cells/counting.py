"""Counting kernels: one addition per record and cube into dense or sparse accumulators, and their margins."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

TILE = 4096  # records whose cell positions stay in the first-level cache
WALKED = 1 << 13  # records for which a grid is loaded into the caches once, among others
AT_ONCE = 5  # grids: more would need more registers than processors have
LOOKED_AT = 64  # codes that are compared at once
SHORT = np.uint32(1 << 16)  # of a stride: numbers below it take 16 bits
SMALL_GRID = 1 << 15  # cells; four such grids stay in the second-level cache
_32 = np.uint64(32)
_ONE = np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)

Accumulators = NDArray[np.uint64]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _increments(keys: Any, out: Any) -> None:
    for r in range(keys.size):
        out[r] = (np.uint64(keys[r]) << _32) | _ONE


def increments(keys: NDArray[np.uint32]) -> Accumulators:
    """What each record adds to the cell it falls in: its key above, one below."""
    out = np.empty(len(keys), dtype=np.uint64)
    _increments(keys, out)
    return out


def counts_of(cells: Accumulators) -> NDArray[np.int64]:
    """The counts in the low halves."""
    return (cells & _LOW).astype(np.int64)


def occupied(cells: Accumulators) -> tuple[NDArray[np.int64], NDArray[np.int64], Accumulators]:
    """The places of the cells with records, their counts and accumulators, in one pass without branches."""
    number = _number_occupied(cells)
    here, counts, sums = np.empty(number, np.int64), np.empty(number, np.int64), np.empty(number, np.uint64)
    _list_occupied(cells, here, counts, sums)
    return here, counts, sums


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _number_occupied(cells: Any) -> int:
    found = 0
    for i in range(cells.size):
        found += np.uint32(cells[i]) != 0
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _list_occupied(cells: Any, here: Any, counts: Any, sums: Any) -> None:
    """List every cell, and stay at its place where it has no records, until all places are taken."""
    at, i = 0, 0
    while at < here.size:
        count = cells[i] & _LOW
        here[at], counts[at], sums[at] = i, count, cells[i]
        at += count != 0
        i += 1


def keys_of(cells: Accumulators) -> NDArray[np.uint32]:
    """The cell keys in the high halves."""
    return (cells >> _32).astype(np.uint32)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def recode(codes: Any, nodes: Any, out: Any) -> None:
    """Translate the codes of records to nodes of an axis: out = nodes[codes]."""
    for r in range(codes.size):
        out[r] = nodes[codes[r]]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def recode_by_steps(codes: Any, begin: Any, steps: Any, out: Any) -> None:
    """As recode, where the nodes change at few codes: out = the sum of steps[k], modulo 256, with begin[k] <= code."""
    for start in range(0, codes.size, TILE):
        part, into = codes[start : start + TILE], out[start : start + TILE]
        for r in range(part.size):
            into[r] = 0
        for k in range(begin.size):
            least, step = begin[k], steps[k]
            for r in range(part.size):
                into[r] += step if part[r] >= least else np.uint8(0)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def keep_bits(words: Any, codes: Any, table: Any) -> None:
    """Keep the bits of each record's word that its code has in the table."""
    for r in range(codes.size):
        words[r] &= table[codes[r]]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _largest_short(strides: Any) -> int:
    """The largest stride of at most 2^16."""
    largest = 0
    for stride in strides:
        if largest < stride <= SHORT:
            largest = stride
    return largest


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _place_low(low: Any, narrow: Any, rows: Any, strides: Any, most: Any, start: Any, size: Any) -> None:
    """Add up the nodes of narrow axes with strides below ``most`` in 16 bits."""
    low[:size] = np.uint16(0)
    for k in range(rows.size):
        if strides[k] < most:
            row = narrow[rows[k], start : start + size]
            step = np.uint16(strides[k])
            for r in range(size):
                low[r] += np.uint16(row[r]) * step


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _place(
    low: Any,
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
    """Find the cell of each of ``size`` records from ``start`` on, in loops that vectorise.

    In a grid all that is below a stride adds up to less than it: the nodes below one of at most 2^16 are added up in 16
    bits, twice as many at a time.
    """
    most = max(_largest_short(narrow_strides), _largest_short(wide_strides))
    _place_low(low, narrow, narrow_rows, narrow_strides, most, start, size)
    for r in range(size):
        position[r] = low[r]
    for k in range(narrow_rows.size):
        if narrow_strides[k] >= most:
            row = narrow[narrow_rows[k], start : start + size]
            stride = narrow_strides[k]
            for r in range(size):
                position[r] += np.uint32(row[r]) * stride
    for k in range(wide_rows.size):
        broad = wide[wide_rows[k], start : start + size]
        stride = wide_strides[k]
        for r in range(size):
            position[r] += broad[r] * stride


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _place_short(
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
    """As _place, where positions take 16 bits."""
    _place_low(position, narrow, narrow_rows, narrow_strides, SHORT, start, size)
    for k in range(wide_rows.size):
        broad = wide[wide_rows[k], start : start + size]
        step = np.uint16(wide_strides[k])
        for r in range(size):
            position[r] += np.uint16(broad[r]) * step


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _count_cube(
    low: Any,
    position: Any,
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
    for start in range(first, last, TILE):
        size = min(TILE, last - start)
        _place(low, position, narrow, narrow_rows, narrow_strides, wide, wide_rows, wide_strides, start, size)
        for r in range(size):
            cells[position[r]] += added[start + r]


def _room() -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """Memory for the positions of a tile of records."""
    return np.empty(TILE, dtype=np.uint16), np.empty(TILE, dtype=np.uint32)


def count_cube(cells: Accumulators, *records: Any) -> None:
    """Add ``added[r]`` to the cell of each record first <= r < last.

    The nodes of axes with at most 256 of them are rows of ``narrow`` (uint8), the others of ``wide`` (uint32).
    """
    _count_cube(*_room(), cells, *records)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add_to_grids(cells: Any, base: Any, grids: Any, position: Any, part: Any) -> None:
    """Add some records' values to their cells of so many grids at once: the cells from base[p] on of the p-th one."""
    if grids == 5:
        a, at_a = cells[base[0] :], position[0]
        b, at_b = cells[base[1] :], position[1]
        c, at_c = cells[base[2] :], position[2]
        d, at_d = cells[base[3] :], position[3]
        e, at_e = cells[base[4] :], position[4]
        for r in range(part.size):
            value = part[r]
            a[at_a[r]] += value
            b[at_b[r]] += value
            c[at_c[r]] += value
            d[at_d[r]] += value
            e[at_e[r]] += value
    elif grids == 4:
        a, at_a = cells[base[0] :], position[0]
        b, at_b = cells[base[1] :], position[1]
        c, at_c = cells[base[2] :], position[2]
        d, at_d = cells[base[3] :], position[3]
        for r in range(part.size):
            value = part[r]
            a[at_a[r]] += value
            b[at_b[r]] += value
            c[at_c[r]] += value
            d[at_d[r]] += value
    elif grids == 3:
        a, at_a = cells[base[0] :], position[0]
        b, at_b = cells[base[1] :], position[1]
        c, at_c = cells[base[2] :], position[2]
        for r in range(part.size):
            value = part[r]
            a[at_a[r]] += value
            b[at_b[r]] += value
            c[at_c[r]] += value
    elif grids == 2:
        a, at_a = cells[base[0] :], position[0]
        b, at_b = cells[base[1] :], position[1]
        for r in range(part.size):
            value = part[r]
            a[at_a[r]] += value
            b[at_b[r]] += value
    else:
        a, at_a = cells[base[0] :], position[0]
        for r in range(part.size):
            a[at_a[r]] += part[r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def count_parents(
    base: Any,
    short: Any,
    long: Any,
    cells: Any,
    begin: Any,
    added: Any,
    bounds: Any,
    outer: Any,
    outer_rows: Any,
    outer_strides: Any,
    narrow: Any,
    narrow_first: Any,
    narrow_rows: Any,
    narrow_strides: Any,
    wide: Any,
    wide_first: Any,
    wide_rows: Any,
    wide_strides: Any,
) -> None:
    """As count_cube for all records and several grids: the cells of grid p are from begin[p] to begin[p + 1].

    Some records are counted into all grids before the next ones: their nodes are read from memory once. They are
    counted into up to five grids at a time, because an addition may wait for the one before it in its grid. The records
    of run k, from bounds[k] to bounds[k + 1], have one node along an outer axis of each grid; ``outer`` has it in the
    grid's row.
    """
    parents = begin.size - 1
    groups = (parents + AT_ONCE - 1) // AT_ONCE
    run = 0
    for start in range(0, added.size, WALKED):
        size = min(WALKED, added.size - start)
        part = added[start : start + size]
        while bounds[run + 1] <= start:
            run += 1
        p = 0
        for group in range(groups):
            together = (parents - p) // (groups - group)
            for q in range(p, p + together):
                here = slice(narrow_first[q], narrow_first[q + 1])
                there = slice(wide_first[q], wide_first[q + 1])
                if long.size:
                    _place(
                        short[0],
                        long[q - p],
                        narrow,
                        narrow_rows[here],
                        narrow_strides[here],
                        wide,
                        wide_rows[there],
                        wide_strides[there],
                        start,
                        size,
                    )
                else:
                    _place_short(
                        short[q - p],
                        narrow,
                        narrow_rows[here],
                        narrow_strides[here],
                        wide,
                        wide_rows[there],
                        wide_strides[there],
                        start,
                        size,
                    )
            first, at = 0, run
            while first < size:
                last = min(bounds[at + 1] - start, size)
                for q in range(p, p + together):
                    base[q - p] = begin[q] + outer[outer_rows[q], at] * outer_strides[q]
                if long.size:
                    _add_to_grids(cells, base, together, long[:, first:last], part[first:last])
                else:
                    _add_to_grids(cells, base, together, short[:, first:last], part[first:last])
                first, at = last, at + 1
            p += together


def room_for_grids(short: bool) -> tuple[Accumulators, NDArray[np.uint16], NDArray[np.uint32]]:
    """Memory for the positions of records in the grids that are counted at once: all of 16 bits, or of 32."""
    shorts = np.empty((AT_ONCE if short else 1, WALKED), dtype=np.uint16)
    longs = np.empty((0 if short else AT_ONCE, WALKED), dtype=np.uint32)
    return np.zeros(AT_ONCE, dtype=np.uint64), shorts, longs


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _find_runs(codes: Any, bounds: Any) -> int:
    most, found = bounds.size - 1, 0
    for start in range(0, codes.size - 1, LOOKED_AT):
        before = codes[start : start + LOOKED_AT]
        after = codes[start + 1 : start + 1 + LOOKED_AT]
        differ = 0
        for r in range(after.size):
            differ |= before[r] ^ after[r]
        if differ:
            for r in range(after.size):
                if before[r] != after[r]:
                    found += 1
                    if found >= most:
                        return 0
                    bounds[found] = start + r + 1
    bounds[found + 1] = codes.size
    return found + 1


def runs_of(codes: NDArray[np.unsignedinteger[Any]], most: int) -> NDArray[np.int64] | None:
    """Where runs of equal codes begin, and the end of the last one; None where there are more runs than ``most``."""
    if not most or not len(codes):
        return None
    bounds = np.zeros(most + 1, dtype=np.int64)
    found = _find_runs(codes, bounds)
    return bounds[: found + 1] if found else None


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def add_shares(cells: Any, shares: Any, outer: Any, inner: Any) -> None:
    """Add the share in row o and column i to the cell at outer[o] + inner[i]; several may have one."""
    is_one_cell = True
    for place in inner:
        is_one_cell &= place == 0
    for o in range(outer.size):
        row = shares[o * inner.size : (o + 1) * inner.size]
        if is_one_cell:
            total = np.uint64(0)
            for i in range(row.size):
                total += row[i]
            cells[outer[o]] += total
        else:
            below = cells[outer[o] :]
            for i in range(row.size):
                below[inner[i]] += row[i]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _largest_in_cube(
    low: Any,
    position: Any,
    cells: Any,
    given: Any,
    narrow: Any,
    narrow_rows: Any,
    narrow_strides: Any,
    wide: Any,
    wide_rows: Any,
    wide_strides: Any,
) -> None:
    for start in range(0, given.size, TILE):
        size = min(TILE, given.size - start)
        _place(low, position, narrow, narrow_rows, narrow_strides, wide, wide_rows, wide_strides, start, size)
        for r in range(size):
            cells[position[r]] = max(cells[position[r]], given[start + r])


def largest_in_cube(cells: Accumulators, *records: Any) -> None:
    """As count_cube for all records, but a cell holds the largest of its records' values instead of their sum."""
    _largest_in_cube(*_room(), cells, *records)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _count_keys(
    low: Any,
    position: Any,
    lanes: Any,
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
    one, two, three = (lanes[0], lanes[1], lanes[2]) if lanes.size else (cells, cells, cells)
    for start in range(0, keys.size, TILE):
        size = min(TILE, keys.size - start)
        _place(low, position, narrow, narrow_rows, narrow_strides, wide, wide_rows, wide_strides, start, size)
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


def count_keys(cells: Accumulators, *records: Any) -> None:
    """As count_cube for all records, from their keys: half the memory to read.

    Only records marked in ``inside`` are added; all are where it is empty. Neighbours often fall in the same cell, and
    an addition waits for the one before it there: so a small grid is counted in four that are added up at the end.
    """
    lanes = np.zeros((3, cells.size if cells.size <= SMALL_GRID else 0), dtype=np.uint64)
    _count_keys(*_room(), lanes, cells, *records)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def add_digit(number: Any, cells: Any, stride: Any, nodes: Any, table: Any, size: Any) -> None:
    """Append a digit below ``size`` to each number: the table's entry for the cell's node along one axis."""
    for c in range(cells.size):
        number[c] = number[c] * size + table[(cells[c] // stride) % nodes]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def append_digit(number: Any, codes: Any, table: Any, size: Any) -> None:
    """Append a digit below ``size`` to each number: the table's entry for its code."""
    for r in range(codes.size):
        number[r] = number[r] * size + table[codes[r]]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _nodes_along(cells: Any, shape: Any, now: Any, out: Any) -> None:
    axes = shape.size
    width = shape[axes - 1]
    begin = -width  # of the cells with the same nodes along all axes but the last
    for c in range(cells.size):
        if cells[c] < begin or cells[c] >= begin + width:
            rest = cells[c] // width
            begin = rest * width
            for k in range(axes - 2, -1, -1):
                now[k] = rest % shape[k]
                rest //= shape[k]
        for k in range(axes - 1):
            out[k, c] = now[k]
        out[axes - 1, c] = cells[c] - begin


def nodes_along(cells: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """(axis, cell) -> the node of each flat position along each axis, last axis fastest.

    Positions mostly ascend, so that most have the nodes of the one before along all axes but the last.
    """
    out = np.empty((len(shape), len(cells)), dtype=np.int32)
    if shape:
        _nodes_along(cells, np.array(shape, dtype=np.int64), np.empty(len(shape), dtype=np.int32), out)
    return out


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def positions_of(position: Any, nodes: Any, stride: Any) -> None:
    """Add one axis to 64-bit cell positions, for cubes too large to be dense."""
    for r in range(position.size):
        position[r] += np.uint64(nodes[r]) * np.uint64(stride)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _roll_up(cells: Any, parents: Any) -> None:
    outer, nodes, inner = cells.shape
    for o in range(outer):
        for node in range(nodes - 1, 0, -1):
            below = cells[o, node]
            above = cells[o, parents[node]]
            for i in range(inner):
                above[i] += below[i]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _roll_up_last(cells: Any, parents: Any) -> None:
    outer, nodes = cells.shape
    for o in range(outer):
        for node in range(nodes - 1, 0, -1):
            cells[o, parents[node]] += cells[o, node]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _largest_up(cells: Any, parents: Any) -> None:
    outer, nodes, inner = cells.shape
    for o in range(outer):
        for node in range(nodes - 1, 0, -1):
            for i in range(inner):
                cells[o, parents[node], i] = max(cells[o, parents[node], i], cells[o, node, i])


def largest_up(cells: Accumulators, shape: tuple[int, ...], axis: int, parents: NDArray[np.int32]) -> None:
    """As roll_up, but a parent holds the largest value of its nodes."""
    outer = prod(shape[:axis])
    inner = prod(shape[axis + 1 :])
    _largest_up(cells.reshape(outer, shape[axis], inner), parents)


def roll_up(cells: Accumulators, shape: tuple[int, ...], axis: int, parents: NDArray[np.int32]) -> None:
    """Add every node of one axis to its parent, in place; parents come before their children."""
    outer = prod(shape[:axis])
    inner = prod(shape[axis + 1 :])
    if inner == 1:
        _roll_up_last(cells.reshape(outer, shape[axis]), parents)
    else:
        _roll_up(cells.reshape(outer, shape[axis], inner), parents)


_DIGIT = 11
_BUCKETS = 1 << _DIGIT

Positions = NDArray[np.uint64]
Sums = NDArray[np.uint64]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _radix_pass(begin: Any, position: Any, added: Any, position_out: Any, added_out: Any, shift: Any) -> None:
    mask = np.uint64(_BUCKETS - 1)
    for r in range(position.size):
        begin[((position[r] >> shift) & mask) + np.uint64(1)] += 1
    for b in range(_BUCKETS):
        begin[b + 1] += begin[b]
    for r in range(position.size):
        bucket = (position[r] >> shift) & mask
        place = begin[bucket]
        begin[bucket] = place + 1
        position_out[place] = position[r]
        added_out[place] = added[r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add_equal(position: Any, added: Any) -> int:
    last = 0
    for r in range(1, position.size):
        if position[r] == position[last]:
            added[last] += added[r]
        else:
            last += 1
            position[last] = position[r]
            added[last] = added[r]
    return last + 1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _largest_equal(position: Any, added: Any) -> int:
    last = 0
    for r in range(1, position.size):
        if position[r] == position[last]:
            added[last] = max(added[last], added[r])
        else:
            last += 1
            position[last] = position[r]
            added[last] = added[r]
    return last + 1


def ordered(position: Positions, added: Sums, size: int) -> tuple[Positions, Sums]:
    """Sort by position (below ``size``), least significant digits first; equal ones keep their order.

    The given arrays are used as working memory and contain nothing useful afterwards.
    """
    spare = np.empty_like(position), np.empty_like(added)
    for shift in range(0, max(1, (size - 1).bit_length()), _DIGIT):
        begin = np.zeros(_BUCKETS + 1, dtype=np.int64)
        _radix_pass(begin, position, added, *spare, np.uint64(shift))
        (position, added), spare = spare, (position, added)
    return position, added


def aggregate(position: Positions, added: Sums, size: int, largest: bool = False) -> tuple[Positions, Sums]:
    """Sort by position and add up equal ones in one sweep, or keep the largest; the given arrays are overwritten."""
    if len(position) == 0:
        return position, added
    position, added = ordered(position, added, size)
    distinct = _largest_equal(position, added) if largest else _add_equal(position, added)
    return position[:distinct].copy(), added[:distinct].copy()


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _absent(wanted: Any, present: Any, out: Any) -> None:
    at = 0
    for w in range(wanted.size):
        while at < present.size and present[at] < wanted[w]:
            at += 1
        out[w] = at == present.size or present[at] != wanted[w]


def absent(wanted: NDArray[np.int64], present: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the wanted numbers that are absent; both arrays ascending."""
    out = np.empty(len(wanted), dtype=bool)
    _absent(wanted, present, out)
    return out


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def align(aligned: Any, cells: Any, listed: Any, amounts: Any) -> None:
    """Write the amounts of listed cells to their places among some cells; both ascending, and all of them are there."""
    at = 0
    for k in range(listed.size):
        while cells[at] < listed[k]:
            at += 1
        aligned[at] = amounts[k]
