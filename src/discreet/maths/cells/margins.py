"""Margins of listed cells: all cells of a cube that is too large for a dense grid, from its finest ones.

The finest cells are divided by the nodes of the first axis, those of each node by the second, and so on, until what is
left of the cube is small: there each cell is added to all that contain it, in a grid that stays in the first-level
cache. The cells of a node that has others below it are theirs, merged. Nodes are visited from the last to the first:
children come after their parents, so that each node is complete when its turn comes, and cells are found in descending
order. The work grows with the cells that are found, not with those that are possible, and nothing is sorted that does
not fit the caches, except once along the first axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

SMALL = 1 << 12  # cells that are not divided further: their grid stays in the first-level cache
LARGE = 1 << 20  # cells of the largest grid in which lists of cells are merged
SPREAD = 256  # times as many cells has such a grid than the lists, at most
FEW = 32  # cells that are sorted by insertion
AT_ONCE = 1 << 23  # found cells for which memory is taken together

# of an axis while its nodes are visited: where its cells that are still to be divided begin and end, the position of
# the first cell of the nodes along the axes before, where the merged cells end, how many nodes are open
_LOWER, _UPPER, _FIRST, _TOP, _OPEN = range(5)
# of an open node, which has cells and is not complete: where its cells begin, how many ascending lists they are
_NODE, _BEGIN, _LISTS = range(3)

_0 = np.uint64(0)
_1 = np.uint64(1)
_2 = np.uint64(2)
_4 = np.uint64(4)
_56 = np.uint64(56)
_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_EIGHTS = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)

Positions = NDArray[np.int64]
Sums = NDArray[np.uint64]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _lowest(word: Any) -> Any:
    """The lowest bit that is set: as many are set in what is below it, which LLVM lets the processor count."""
    below = (word & (~word + _1)) - _1
    pairs = below - ((below >> _1) & _PAIRS)
    fours = (pairs & _FOURS) + ((pairs >> _2) & _FOURS)
    return np.int64((((fours + (fours >> _4)) & _EIGHTS) * _BYTES) >> _56)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _insert(place: Any, sums: Any) -> None:
    """Sort a few cells."""
    for r in range(1, place.size):
        here, value = place[r], sums[r]
        before = r - 1
        while before >= 0 and place[before] > here:
            place[before + 1] = place[before]
            sums[before + 1] = sums[before]
            before -= 1
        place[before + 1] = here
        sums[before + 1] = value


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _sort(place: Any, sums: Any, other_place: Any, other_sums: Any, buckets: Any, size: Any) -> None:
    """Sort cells below ``size`` by one byte after the other, least significant first."""
    is_back = True
    shift = 0
    while shift < 64 and (size - 1) >> shift:
        buckets[:] = 0
        for r in range(place.size):
            buckets[((place[r] >> shift) & 255) + 1] += 1
        if buckets[((place[0] >> shift) & 255) + 1] < place.size:
            for b in range(256):
                buckets[b + 1] += buckets[b]
            for r in range(place.size):
                bucket = (place[r] >> shift) & 255
                there = buckets[bucket]
                buckets[bucket] = there + 1
                other_place[there] = place[r]
                other_sums[there] = sums[r]
            place, other_place = other_place, place
            sums, other_sums = other_sums, sums
            is_back = not is_back
        shift += 8
    if not is_back:
        for r in range(place.size):
            other_place[r] = place[r]
            other_sums[r] = sums[r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _joined(place: Any, sums: Any, largest: Any) -> Any:
    """Add up equal cells of a sorted list, or keep the largest; return how many are left."""
    last = 0
    for r in range(1, place.size):
        if place[r] != place[last]:
            last += 1
            place[last] = place[r]
            sums[last] = sums[r]
        elif largest:
            sums[last] = max(sums[last], sums[r])
        else:
            sums[last] += sums[r]
    return last + 1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _listed(place: Any, sums: Any, grid: Any, bits: Any, largest: Any) -> Any:
    """As ``_joined`` for cells in any order, by way of a grid, which is empty again afterwards."""
    words = 0
    for r in range(place.size):
        here = place[r]
        grid[here] = max(grid[here], sums[r]) if largest else grid[here] + sums[r]
        bits[here >> 6] |= _1 << np.uint64(here & 63)
        words = max(words, here >> 6)
    found = 0
    for w in range(words + 1):
        word = bits[w]
        bits[w] = _0
        while word:
            here = (w << 6) + _lowest(word)
            word &= word - _1
            place[found] = here
            sums[found] = grid[here]
            grid[here] = _0
            found += 1
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _merged(
    place: Any,
    sums: Any,
    size: Any,
    grid: Any,
    bits: Any,
    other_place: Any,
    other_sums: Any,
    buckets: Any,
    largest: Any,
) -> Any:
    """Merge ascending lists of cells below ``size``; return how many are left."""
    cells = place.size
    if size <= grid.size and size <= SPREAD * cells:
        return _listed(place, sums, grid, bits, largest)
    if cells <= FEW:
        _insert(place, sums)
    else:
        _sort(place, sums, other_place[:cells], other_sums[:cells], buckets, size)
    return _joined(place, sums, largest)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _write_one(
    place: Any,
    value: Any,
    first: Any,
    level: Any,
    strides: Any,
    parents: Any,
    begin: Any,
    out: Any,
    sums: Any,
    at: Any,
) -> Any:
    """Write a single cell and all that contain it, before ``at``; return where they begin."""
    cells, rest = 1, place
    for axis in range(level, strides.size):
        above = rest // strides[axis]
        rest -= above * strides[axis]
        long = 0
        while above >= 0:
            above = parents[begin[axis] + above]
            long += 1
        cells *= long
    start = at - cells
    out[start] = first
    made, rest = 1, place
    for axis in range(level, strides.size):
        stride = strides[axis]
        node = rest // stride
        rest -= node * stride
        long, above = 0, node
        while above >= 0:
            above = parents[begin[axis] + above]
            long += 1
        for one in range(made - 1, -1, -1):
            there, end, above = out[start + one], start + (one + 1) * long, node
            while above >= 0:
                end -= 1
                out[end] = there + above * stride
                above = parents[begin[axis] + above]
        made *= long
    for here in range(start, at):
        sums[here] = value
    return start


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _expand(
    place: Any,
    values: Any,
    level: Any,
    strides: Any,
    parents: Any,
    begin: Any,
    offsets: Any,
    grid: Any,
    bits: Any,
    largest: Any,
) -> None:
    """Add each of some cells to all that contain it, one by one, and mark these."""
    last = strides.size - 1
    width = strides[last - 1] if last > level else np.int64(-1)
    first, made = np.int64(-1), 1
    offsets[0] = 0
    for r in range(place.size):
        rest, value = place[r], values[r]
        if last > level and (
            first < 0 or rest < first or rest >= first + width
        ):  # another node of an axis before the last
            made, first = 1, rest
            offsets[0] = 0
            for axis in range(level, last):
                stride = strides[axis]
                node = rest // stride
                rest -= node * stride
                more, above = made, parents[begin[axis] + node]
                while above >= 0:
                    for one in range(made):
                        offsets[more + one] = offsets[one] + above * stride
                    more += made
                    above = parents[begin[axis] + above]
                for one in range(made):
                    offsets[one] += node * stride
                made = more
            first -= rest
        above = place[r] - max(first, 0)
        while above >= 0:
            for one in range(made):
                here = offsets[one] + above
                grid[here] = max(grid[here], value) if largest else grid[here] + value
                bits[here >> 6] |= _1 << np.uint64(63 - (here & 63))
            above = parents[begin[last] + above]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _write_marked(size: Any, first: Any, grid: Any, bits: Any, out: Any, sums: Any, at: Any) -> Any:
    """Write the marked cells of a grid, before ``at``, and empty it; return where they begin."""
    for w in range((size - 1) >> 6, -1, -1):
        word = bits[w]
        bits[w] = _0
        while word:
            here = (w << 6) + 63 - _lowest(word)
            word &= word - _1
            value = grid[here]
            grid[here] = _0
            out[at - 1] = first + here
            sums[at - 1] = value
            at -= value != 0
    return at


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _fill(
    place: Any,
    values: Any,
    level: Any,
    shape: Any,
    strides: Any,
    parents: Any,
    begin: Any,
    grid: Any,
    largest: Any,
) -> None:
    """Add some cells to all that contain them along the last axis, then whole rows to those of the nodes above."""
    last = strides.size - 1
    for r in range(place.size):
        value = values[r]
        row = place[r] // shape[last] * shape[last]
        above = place[r] - row
        while above >= 0:
            here = row + above
            grid[here] = max(grid[here], value) if largest else grid[here] + value
            above = parents[begin[last] + above]
    size = strides[level] * shape[level]
    for axis in range(last - 1, level - 1, -1):
        stride = strides[axis]
        for first in range(0, size, stride * shape[axis]):
            for node in range(shape[axis] - 1, 0, -1):
                there = first + parents[begin[axis] + node] * stride
                below, above_it = grid[first + node * stride :][:stride], grid[there : there + stride]
                if largest:
                    for one in range(stride):
                        above_it[one] = max(above_it[one], below[one])
                else:
                    for one in range(stride):
                        above_it[one] += below[one]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _write_all(size: Any, first: Any, grid: Any, out: Any, sums: Any, at: Any) -> Any:
    """Write the cells of a grid that are not zero, before ``at``, and empty it; return where they begin."""
    for here in range(size - 1, -1, -1):
        value = grid[here]
        out[at - 1] = first + here
        sums[at - 1] = value
        at -= value != 0
    grid[:size] = _0
    return at


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _take(source: Any, values: Any, stride: Any, now: Any, nodes: Any, place: Any, merged: Any) -> None:
    """Open the last node that has cells of its own still to be divided, where it is not, and copy these."""
    end, top, last = now[_UPPER], now[_TOP], now[_OPEN] - 1
    node = source[end - 1] // stride
    if last < 0 or nodes[last, _NODE] != node:
        last += 1
        nodes[last, _NODE], nodes[last, _BEGIN], nodes[last, _LISTS] = node, top, 0
        now[_OPEN] = last + 1
    nodes[last, _LISTS] += 1
    start, lower = node * stride, end - 1
    while lower > now[_LOWER] and source[lower - 1] >= start:
        lower -= 1
    for r in range(lower, end):
        place[top] = source[r] - start
        merged[top] = values[r]
        top += 1
    now[_UPPER], now[_TOP] = lower, top


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _complete(above: Any, now: Any, nodes: Any) -> None:
    """Hand the cells of the last open node over to the node above it, if there is one."""
    last = now[_OPEN] - 1
    if above < 0:
        now[_OPEN] = last
    elif last > 0 and nodes[last - 1, _NODE] == above:
        nodes[last - 1, _LISTS] += 1
        now[_OPEN] = last
    else:
        nodes[last, _NODE], nodes[last, _LISTS] = above, 1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _write(
    place: Any,
    values: Any,
    first: Any,
    level: Any,
    size: Any,
    shape: Any,
    strides: Any,
    parents: Any,
    begin: Any,
    most: Any,
    offsets: Any,
    grid: Any,
    bits: Any,
    out: Any,
    sums: Any,
    at: Any,
    largest: Any,
) -> Any:
    """Write some cells and all that contain them, before ``at``; return where they begin."""
    if place.size == 1:
        if values[0] == _0:
            return at
        return _write_one(place[0], values[0], first, level, strides, parents, begin, out, sums, at)
    # adding to a marked cell costs about as much as rolling up a cell of the grid and looking at it
    if level == shape.size - 1 or place.size * (most[level] + 16) < size:
        _expand(place, values, level, strides, parents, begin, offsets, grid, bits, largest)
        return _write_marked(size, first, grid, bits, out, sums, at)
    _fill(place, values, level, shape, strides, parents, begin, grid, largest)
    return _write_all(size, first, grid, out, sums, at)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _walk(
    given: Any,
    added: Any,
    shape: Any,
    strides: Any,
    parents: Any,
    begin: Any,
    most: Any,
    place: Any,
    merged: Any,
    bottom: Any,
    levels: Any,
    opened: Any,
    offsets: Any,
    grid: Any,
    bits: Any,
    other_place: Any,
    other_sums: Any,
    buckets: Any,
    level: Any,
    out: Any,
    sums: Any,
    small: Any,
    largest: Any,
) -> int:
    """Write cells from the end on, as many as there is room for; return where they begin. The next call goes on."""
    at, last = out.size, shape.size - 1
    while level[0] >= 0 and at > most[0]:
        k = level[0]
        now, nodes, stride = levels[k], opened[k], strides[k]
        source, values = (given, added) if k == 0 else (place, merged)
        node = source[now[_UPPER] - 1] // stride if now[_UPPER] > now[_LOWER] else np.int64(-1)
        if now[_OPEN] == 0 or nodes[now[_OPEN] - 1, _NODE] <= node:
            if node < 0:
                level[0] = k - 1
            else:
                _take(source, values, stride, now, nodes, place, merged)
            continue
        node, start, lists = nodes[now[_OPEN] - 1]
        if lists > 1:
            part, sums_of_part = place[start : now[_TOP]], merged[start : now[_TOP]]
            now[_TOP] = start + _merged(
                part, sums_of_part, stride, grid, bits, other_place, other_sums, buckets, largest
            )
        _complete(parents[begin[k] + node], now, nodes)
        top, first = now[_TOP], now[_FIRST] + node * stride
        cells = top - start
        if (
            cells == 1
            or stride <= small
            or (k + 1 == last and stride <= grid.size and stride <= SPREAD * cells)
        ):
            at = _write(
                place[start:top],
                merged[start:top],
                first,
                k + 1,
                stride,
                shape,
                strides,
                parents,
                begin,
                most,
                offsets,
                grid,
                bits,
                out,
                sums,
                at,
                largest,
            )
        else:
            below = levels[k + 1]
            below[_LOWER], below[_UPPER], below[_FIRST], below[_TOP], below[_OPEN] = (
                start,
                top,
                first,
                bottom[k + 1],
                0,
            )
            level[0] = k + 1
    return int(at)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def is_in_preorder(parents: Any) -> bool:
    """Whether all nodes below a node follow it at once: the parent of each is the node before, or contains that."""
    for node in range(1, parents.size):
        above = np.int64(node - 1)
        while above >= 0 and above != parents[node]:
            above = np.int64(parents[above])
        if above < 0:
            return False
    return bool(parents[0] < 0)


def with_margins(
    position: NDArray[np.uint64],
    added: Sums,
    shape: Sequence[int],
    parents: Sequence[NDArray[np.int32]],
    largest: bool = False,
) -> tuple[Positions, Sums]:
    """Finest cells, ascending, and all that contain them: positions, ascending, and the sums that are not zero.

    With ``largest`` a cell has the largest of the values instead of their sum. A cell may also be given at a node that
    has others below it. The nodes of each axis are in preorder: all that are below a node follow it.
    """
    used = [k for k, nodes in enumerate(shape) if nodes > 1]
    if not used or not len(position):
        return position[added != 0].astype(np.int64), added[added != 0]
    if not all(is_in_preorder(parents[k]) for k in used):
        raise ValueError("the nodes of an axis are not in preorder")
    axes = _axes(shape, parents, used)
    room = _room(len(position), axes)
    level, found = np.zeros(1, dtype=np.int64), []
    while level[0] >= 0:
        cells = AT_ONCE + int(axes.most[0])
        out, sums = np.empty(cells, dtype=np.int64), np.empty(cells, dtype=np.uint64)
        at = _walk(position.view(np.int64), added, *axes, *room, level, out, sums, SMALL, largest)
        found.append((out[at:], sums[at:]))
    del room, out, sums
    return _in_order(found)


class _Axes(NamedTuple):
    """The axes of a cube that divide it."""

    shape: NDArray[np.int64]
    strides: NDArray[np.int64]
    parents: NDArray[np.int32]  # of the nodes of one axis after the other
    begin: NDArray[np.int64]  # where those of each axis begin
    most: NDArray[
        np.int64
    ]  # how many cells along this axis and the following contain one; of the first: are found at once


class _Room(NamedTuple):
    """Working memory, which is taken as it is used."""

    place: NDArray[np.int64]  # the merged cells of the open nodes of one axis after the other
    merged: Sums
    bottom: NDArray[np.int64]  # where those of each axis begin
    levels: NDArray[np.int64]
    opened: NDArray[np.int64]
    offsets: NDArray[np.int64]  # of the cells that contain one
    grid: Sums
    bits: NDArray[np.uint64]
    other_place: NDArray[np.int64]  # a list while it is sorted
    other_sums: Sums
    buckets: NDArray[np.int64]


def _axes(shape: Sequence[int], parents: Sequence[NDArray[np.int32]], used: Sequence[int]) -> _Axes:
    trees = [parents[k] for k in used]
    strides = [prod(shape[k + 1 :]) for k in used]
    longest = [_longest(tree) for tree in trees]
    most = [prod(longest[k:]) for k in range(len(used))]
    most[0] = max(most[0], *(stride for stride in strides if stride <= LARGE))
    return _Axes(
        np.array([shape[k] for k in used], dtype=np.int64),
        np.array(strides, dtype=np.int64),
        np.concatenate(trees).astype(np.int32),
        np.cumsum([0, *(len(tree) for tree in trees[:-1])], dtype=np.int64),
        np.array(most, dtype=np.int64),
    )


def _room(cells: int, axes: _Axes) -> _Room:
    strides = axes.strides.tolist()
    lists = [cells, *(min(cells, stride) for stride in strides[:-1] if stride > SMALL)]
    largest = max(stride for stride in strides if stride <= LARGE)
    deepest = max(_longest(tree) for tree in np.split(axes.parents, axes.begin[1:]))
    return _Room(
        np.empty(sum(lists), dtype=np.int64),
        np.empty(sum(lists), dtype=np.uint64),
        np.cumsum([0, *lists[:-1]], dtype=np.int64),
        np.array([[0, cells, 0, 0, 0], *([[0] * 5] * (len(lists) - 1))], dtype=np.int64),
        np.zeros((len(lists), deepest, 3), dtype=np.int64),
        np.empty(int(axes.most[0]), dtype=np.int64),
        np.zeros(largest, dtype=np.uint64),
        np.zeros(-(-largest // 64), dtype=np.uint64),
        np.empty(cells, dtype=np.int64),
        np.empty(cells, dtype=np.uint64),
        np.empty(257, dtype=np.int64),
    )


def _longest(parents: NDArray[np.int32]) -> int:
    """The most nodes on a way from a node to the total, both included."""
    above, longest = parents, 1  # of every node the one that is so many steps above
    while (above >= 0).any():
        above = np.where(above >= 0, parents[above], -1)
        longest += 1
    return longest


def _in_order(found: list[tuple[Positions, Sums]]) -> tuple[Positions, Sums]:
    """Join what was found last first, and release it on the way."""
    cells = sum(len(place) for place, _ in found)
    position, sums = np.empty(cells, dtype=np.int64), np.empty(cells, dtype=np.uint64)
    at = 0
    while found:
        place, values = found.pop()
        position[at : at + len(place)] = place
        sums[at : at + len(place)] = values
        at += len(place)
    return position, sums
