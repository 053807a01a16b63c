"""Differencing of two non-nested geographies: which small areas are a union of areas minus a union of the other's.

It finds them and counts their records; what may be shown of that, and what protects it, is the caller's.
The numbers of records are confidential.

A difference is a set S of areas of one geography and a set T of the other whose records all lie in S; it discloses
the records of S outside T. In the crossing graph (areas as nodes, pieces with records as edges) the sides S + T and
the rest of its connected component are parted by exactly those pieces, and read from the other side the same pieces
are a union of the other geography minus a union of this one. If a side or its rest falls apart, the difference is a
sum of smaller ones over disjoint pieces. The *primitive* differences, with both sides connected, are thus enough.

Pieces of `threshold` or more records never part anything: their areas are one *block*, and so are areas that need
each other in both directions, and an area that crosses a single other one, with that one. Blocks are exact: no
primitive difference below the threshold parts one, save to give a single area, which is published anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from discreet.maths.difference_search import light_sides

Integers = NDArray[np.int64]

REACH = 8  # blocks on the smaller side of a difference
STEPS = 10_000_000  # decisions of each of the two searches; a limit of effort, not of time or memory


class Geography(Enum):
    """The two geographies that are crossed."""

    A = "a"
    B = "b"


@dataclass(frozen=True)
class Difference:
    """The union of the plus areas without the union of the minus areas, which lies in it; records is confidential."""

    plus_of: Geography  # the minus areas are of the other geography
    plus: tuple[int, ...]
    minus: tuple[int, ...]
    records: int


@dataclass(frozen=True)
class Differences:
    """All primitive differences below the threshold of which one side has at most `reach` blocks."""

    threshold: int
    reach: int
    found: tuple[Difference, ...]
    components: int  # of the crossing graph
    largest: int  # the most blocks that a component has
    complete: bool  # False: the search was cut short by its bound on steps

    @property
    def exhaustive(self) -> bool:
        """Whether these are all primitive differences, of any size: each has a side within reach."""
        return self.complete and self.largest <= 2 * self.reach + 1


@dataclass(frozen=True)
class _Crossing:
    """The crossing graph: areas 0 .. split - 1 are of geography a, the others of b; each piece once."""

    codes: Integers
    split: int
    a: Integers
    b: Integers
    counts: Integers


def differences(
    a: NDArray[Any],
    b: NDArray[Any],
    counts: NDArray[Any],
    threshold: int,
    reach: int = REACH,
    steps: int = STEPS,
) -> Differences:
    """Find the primitive differences with 1 .. threshold - 1 records; rows are records or pieces, in any order.

    Rows with count 0 are ignored: an overlap without records hinders nobody. A single area that is small by itself
    is no difference.
    """
    crossing = _crossing(np.asarray(a), np.asarray(b), np.asarray(counts))
    if reach < 1 or steps < 1:
        raise ValueError("reach and steps must be at least 1")
    if threshold < 2 or crossing.counts.size == 0:
        return Differences(threshold, reach, (), 0, 0, complete=True)
    return _search(crossing, threshold, reach, steps)


def _crossing(a: NDArray[Any], b: NDArray[Any], counts: NDArray[Any]) -> _Crossing:
    if not (a.ndim == 1 and a.shape == b.shape == counts.shape):
        raise ValueError("a, b and counts must be arrays of one dimension and the same length")
    if counts.size and counts.min() < 0:
        raise ValueError("counts must not be negative")
    kept = counts > 0
    a_codes, a_at = np.unique(a[kept], return_inverse=True)
    b_codes, b_at = np.unique(b[kept], return_inverse=True)
    pieces, at = np.unique(a_at.astype(np.int64) * max(1, b_codes.size) + b_at, return_inverse=True)
    sums = np.zeros(pieces.size, dtype=np.int64)
    np.add.at(sums, at, counts[kept].astype(np.int64))
    width, split = max(1, b_codes.size), a_codes.size
    codes = np.concatenate((a_codes, b_codes)).astype(np.int64)
    return _Crossing(codes, split, pieces // width, pieces % width + split, sums)


def _search(crossing: _Crossing, threshold: int, reach: int, steps: int) -> Differences:
    block, tails, heads, weights = _blocks(crossing, threshold)
    n = int(block.max()) + 1
    tangle = csr_array((np.ones(tails.size), (tails, heads)), shape=(n, n))
    components, component = connected_components(tangle, directed=False)
    sizes = np.bincount(component, minlength=components)
    out, into = _adjacency(tails, heads, weights, n), _adjacency(heads, tails, weights, n)
    both = _adjacency(np.append(tails, heads), np.append(heads, tails), np.append(weights, weights), n)
    found: list[Difference] = []
    read = _Reader(crossing, block, component.astype(np.int64))
    complete = True
    for geography, forth, back in ((Geography.A, out, into), (Geography.B, into, out)):
        sides, cut, ended = light_sides(*forth, *back[:2], *both[:2], threshold, min(reach, n), steps)
        complete = complete and bool(ended)
        for side, records in zip(sides, cut, strict=True):
            blocks = side[side >= 0]
            seen = geography is Geography.B and sizes[component[blocks[0]]] - blocks.size <= reach
            difference = None if seen else read.difference(geography, blocks, int(records))
            if difference is not None:
                found.append(difference)
    return Differences(threshold, reach, tuple(found), int(components), int(sizes.max()), complete)


def _blocks(crossing: _Crossing, threshold: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Merge what no difference below the threshold can part: (block of each area), and the light edges a -> b."""
    block = np.arange(crossing.codes.size, dtype=np.int64)
    tails, heads, weights = crossing.a, crossing.b, crossing.counts
    n = block.size
    while True:
        heavy = weights >= threshold
        # a side with the b-area of a piece must have the a-area too; with a heavy piece the reverse holds as well
        ends = (np.append(heads, tails[heavy]), np.append(tails, heads[heavy]))
        needs = csr_array((np.ones(ends[0].size), ends), shape=(n, n))
        fewer, label = connected_components(needs, directed=True, connection="strong")
        if fewer == n:
            return _by_degree(*_without_leaves(block, tails, heads, weights))
        label, n = label.astype(np.int64), int(fewer)
        block = label[block]
        tails, heads, weights = _summed(label[tails], label[heads], weights, n)


def _summed(
    tails: Integers, heads: Integers, weights: Integers, n: int
) -> tuple[Integers, Integers, Integers]:
    """Edges between different blocks, each once, with the records of all its pieces."""
    apart = tails != heads
    edges, at = np.unique(tails[apart] * n + heads[apart], return_inverse=True)
    sums = np.zeros(edges.size, dtype=np.int64)
    np.add.at(sums, at, weights[apart])
    return edges // n, edges % n, sums


def _without_leaves(
    block: Integers, tails: Integers, heads: Integers, weights: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Merge an area with one neighbour alone into it: connected sides part the two only to give that single area."""
    n = int(block.max()) + 1
    ends = np.append(tails, heads)
    leaf = (np.bincount(ends, minlength=n) == 1) & (np.bincount(block, minlength=n) == 1)
    neighbour = np.arange(n)
    neighbour[ends] = np.append(heads, tails)
    # of two leaves that have but each other, one stays
    gone = leaf & ~(leaf[neighbour] & (neighbour > np.arange(n)))
    kept, label = np.unique(np.where(gone, neighbour, np.arange(n)), return_inverse=True)
    label = label.astype(np.int64)
    return label[block], *_summed(label[tails], label[heads], weights, kept.size)


def _by_degree(
    block: Integers, tails: Integers, heads: Integers, weights: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Number the blocks anew, those with most neighbours first: a search from any other block then stops at them."""
    degree = np.bincount(np.append(tails, heads), minlength=int(block.max()) + 1)
    rank = np.empty(degree.size, dtype=np.int64)
    rank[np.argsort(-degree, kind="stable")] = np.arange(degree.size)
    return rank[block], rank[tails], rank[heads], weights


def _adjacency(
    tails: Integers, heads: Integers, weights: Integers, n: int
) -> tuple[Integers, Integers, Integers]:
    """Compressed rows: where the neighbours of each block start, the neighbours, the weights."""
    order = np.argsort(tails, kind="stable")
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=starts[1:])
    return starts, heads[order], weights[order]


class _Reader:
    """Reads the areas of a side; keeps the areas of blocks and of components in order."""

    def __init__(self, crossing: _Crossing, block: Integers, component: Integers) -> None:
        self._crossing = crossing
        self._component = component
        self._of_block = _grouped(block)
        self._of_component = _grouped(component[block])

    def difference(self, plus_of: Geography, blocks: Integers, records: int) -> Difference | None:
        """The side with fewer areas as a difference; None if either side is one area, which is published anyway."""
        areas = np.sort(np.concatenate([_group(self._of_block, int(k)) for k in blocks]))
        whole = _group(self._of_component, int(self._component[blocks[0]]))
        if 1 in {areas.size, whole.size - areas.size}:
            return None
        if whole.size < 2 * areas.size:
            areas = np.setdiff1d(whole, areas, assume_unique=True)
            plus_of = Geography.B if plus_of is Geography.A else Geography.A
        of_a, of_b = np.split(areas, [int(np.searchsorted(areas, self._crossing.split))])
        plus, minus = (of_a, of_b) if plus_of is Geography.A else (of_b, of_a)
        codes = self._crossing.codes
        return Difference(plus_of, tuple(codes[plus].tolist()), tuple(codes[minus].tolist()), records)


def _grouped(label: Integers) -> tuple[Integers, Integers]:
    starts = np.zeros(int(label.max()) + 2, dtype=np.int64)
    np.cumsum(np.bincount(label), out=starts[1:])
    return starts, np.argsort(label, kind="stable").astype(np.int64)


def _group(groups: tuple[Integers, Integers], k: int) -> Integers:
    starts, members = groups
    return members[starts[k] : starts[k + 1]]
