"""Differencing of non-nested geographies: small areas that are unions of areas minus unions of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit
from discreet.maths.noise.law import Pmf

if TYPE_CHECKING:
    from scipy import sparse
    from scipy.sparse import csgraph
else:
    sparse, csgraph = lazily("scipy.sparse"), lazily("scipy.sparse.csgraph")


MOST_FREQUENCIES = 2**14


def cancel(added: Mapping[Pmf, int], subtracted: Mapping[Pmf, int]) -> float:
    """Pr[the noises add up to zero]; each law comes with how many noises have it."""
    terms = [*added.items(), *subtracted.items()]
    farthest = sum(many * max(abs(law.first), abs(law.last)) for law, many in terms)
    n = min(MOST_FREQUENCIES, 2 << farthest.bit_length())
    factors = [_transform(law, n) ** many for law, many in added.items()]
    factors += [np.conj(_transform(law, n)) ** many for law, many in subtracted.items()]
    product = reduce(np.multiply, factors, np.ones(n // 2 + 1, dtype=np.complex128))
    return float(np.clip(np.fft.irfft(product, n)[0], 0.0, 1.0))


def _transform(law: Pmf, n: int) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    wrapped = np.bincount(law.values % n, weights=law.p, minlength=n)
    return np.fft.rfft(wrapped).astype(np.complex128)


_OPEN, _IN, _OUT = 0, 1, 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _inside(state: Any, trail: Any, used: int) -> int:
    """How many blocks the side has."""
    inside = 0
    for k in range(used):
        inside += state[trail[k]] == _IN
    return inside


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _include(
    block: int, seed: int, reach: int, state: Any, trail: Any, used: int, needs: Any, need: Any
) -> int:
    """Take a block and all that it needs into the side; the new length of the trail, negative if that is impossible."""
    first, fits = used, True
    state[block], trail[used] = _IN, block
    used += 1
    while first < used and fits:
        for k in range(needs[trail[first]], needs[trail[first] + 1]):
            other = need[k]
            if state[other] == _IN:
                continue
            if other < seed or state[other] == _OUT or used == trail.size:
                fits = False
                break
            state[other], trail[used] = _IN, other
            used += 1
        first += 1
    return used if fits and _inside(state, trail, used) <= reach else -used


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _look(
    seed: int, room: int, state: Any, trail: Any, used: int, starts: Any, ends: Any, weights: Any
) -> Any:
    """The records that are certainly cut off, and a neighbour still to be decided (-1 for none)."""
    cost, undecided, crowd = 0, -1, 0
    for k in range(used):
        if state[trail[k]] != _IN:
            continue
        still = 0
        for j in range(starts[trail[k]], starts[trail[k] + 1]):
            other = ends[j]
            if other < seed or state[other] == _OUT:
                cost += weights[j]
            elif state[other] == _OPEN:
                undecided, still = other, still + 1
        crowd = max(crowd, still)
    # all but `room` of the neighbours of one block must stay outside, at one record or more each
    return cost + max(0, crowd - room), undecided


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _root(parent: Any, k: int) -> int:
    """The representative of a class."""
    while parent[k] != k:
        k = parent[k]
    return k


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _surround(side: Any, graph: Any, near: Any, mark: Any, queue: Any) -> int:
    """Mark the side, and start a wave at each block next to it; the number of waves."""
    for block in side:
        mark[block] = -2
    filled = 0
    for block in side:
        for j in range(graph[block], graph[block + 1]):
            if mark[near[j]] == -1:
                mark[near[j]] = filled
                queue[filled] = near[j]
                filled += 1
    return filled


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def rest_is_connected(side: Any, graph: Any, near: Any, mark: Any, queue: Any) -> bool:
    """Whether the component without the side is connected: waves from all around the side until they meet."""
    filled = _surround(side, graph, near, mark, queue)
    waves = filled
    parent, pending = np.arange(waves), np.ones(waves, dtype=np.int64)
    head, apart, whole = 0, waves, True
    while apart > 1:
        block = queue[head]
        head += 1
        mine = _root(parent, mark[block])
        for j in range(graph[block], graph[block + 1]):
            other = near[j]
            if mark[other] == -1:
                mark[other] = mine
                queue[filled] = other
                filled += 1
                pending[mine] += 1
            elif mark[other] >= 0:
                theirs = _root(parent, mark[other])
                if theirs != mine:
                    parent[theirs] = mine
                    pending[mine] += pending[theirs]
                    apart -= 1
        pending[mine] -= 1
        if pending[mine] == 0 and apart > 1:
            whole = False
            break
    for k in range(filled):
        mark[queue[k]] = -1
    for block in side:
        mark[block] = -1
    return whole


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _side(state: Any, trail: Any, used: int, inside: int) -> Any:
    """The blocks of the side."""
    side, filled = np.empty(inside, dtype=np.int64), 0
    for k in range(used):
        if state[trail[k]] == _IN:
            side[filled] = trail[k]
            filled += 1
    return side


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _reopen(state: Any, trail: Any, first: int, last: int) -> None:
    """Discard the decisions from first to last."""
    for k in range(first, last):
        state[trail[k]] = _OPEN


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _roomy(sides: Any, cut: Any, found: int) -> Any:
    """The same findings with space for one more."""
    if found < cut.size:
        return sides, cut
    more, cuts = np.full((2 * found, sides.shape[1]), -1, dtype=np.int64), np.zeros(2 * found, dtype=np.int64)
    for k in range(found):
        cuts[k] = cut[k]
        for j in range(sides.shape[1]):
            more[k, j] = sides[k, j]
    return more, cuts


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def light_sides(
    starts: Any, ends: Any, weights: Any, needs: Any, need: Any, graph: Any, near: Any,
    threshold: int, reach: int, steps: int,
) -> Any:  # fmt: skip
    """All connected sides of at most `reach` blocks, closed under need, that cut off 1 .. threshold - 1 records.

    Only sides whose rest is connected too. Each is found once, from its lowest block, by deciding one neighbour after
    another: in, with all it needs, or out, at its weight. Returns the sides (rows filled with -1), their records, and
    whether the search ended within `steps` decisions.
    """
    n = starts.size - 1
    state, mark, queue = (
        np.zeros(n, dtype=np.int8),
        np.full(n, -1, dtype=np.int64),
        np.empty(n, dtype=np.int64),
    )
    # every block decided out costs a record or more: fewer than threshold are out at a time
    trail = np.empty(2 * reach + min(threshold, n) + 2, dtype=np.int64)
    choice = np.empty(
        trail.size, dtype=np.int64
    )  # lengths of the trail at which a block was taken in by choice
    sides, cut, found = np.full((64, reach), -1, dtype=np.int64), np.zeros(64, dtype=np.int64), 0
    for seed in range(n):
        depth, choice[0] = 1, 0
        used = _include(seed, seed, reach, state, trail, 0, needs, need)
        while True:
            steps -= 1
            cost, undecided, inside = threshold, -1, 0
            if used > 0:
                inside = _inside(state, trail, used)
                cost, undecided = _look(seed, reach - inside, state, trail, used, starts, ends, weights)
            if cost < threshold and undecided >= 0 and used < trail.size:
                choice[depth] = used
                depth += 1
                used = _include(undecided, seed, reach, state, trail, used, needs, need)
                continue
            if 0 < cost < threshold and undecided < 0:
                side = _side(state, trail, used, inside)
                if rest_is_connected(side, graph, near, mark, queue):
                    sides, cut = _roomy(sides, cut, found)
                    for k in range(inside):
                        sides[found, k] = side[k]
                    cut[found] = cost
                    found += 1
            depth -= 1
            _reopen(state, trail, choice[depth], abs(used))
            used = choice[depth]
            if depth == 0 or steps < 0:
                break
            state[trail[used]] = _OUT
            used += 1
        if steps < 0:
            break
    return sides[:found], cut[:found], steps >= 0


Integers = NDArray[np.int64]

REACH = 8  # blocks on the smaller side of a difference
STEPS = 10_000_000  # decisions of each of the two searches; a limit of effort, not of time or memory


class CrossedGeography(Enum):
    """The two geographies that are crossed."""

    A = "a"
    B = "b"


@dataclass(frozen=True)
class Difference:
    """The union of the plus areas without the union of the minus areas, which lies in it; records is confidential."""

    plus_of: CrossedGeography  # the minus areas are of the other geography
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


@dataclass(frozen=True, eq=False)
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

    Rows with count 0 are ignored: an overlap without records does not prevent a difference. A single area that is
    small by itself is not a difference.
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
    nonempty = counts > 0
    a_codes, a_at = np.unique(a[nonempty], return_inverse=True)
    b_codes, b_at = np.unique(b[nonempty], return_inverse=True)
    pieces, at = np.unique(a_at.astype(np.int64) * max(1, b_codes.size) + b_at, return_inverse=True)
    sums = np.zeros(pieces.size, dtype=np.int64)
    np.add.at(sums, at, counts[nonempty].astype(np.int64))
    width, split = max(1, b_codes.size), a_codes.size
    codes = np.concatenate((a_codes, b_codes)).astype(np.int64)
    return _Crossing(codes, split, pieces // width, pieces % width + split, sums)


def _search(crossing: _Crossing, threshold: int, reach: int, steps: int) -> Differences:
    block, tails, heads, weights = _blocks(crossing, threshold)
    n = int(block.max()) + 1
    tangle = sparse.csr_array((np.ones(tails.size), (tails, heads)), shape=(n, n))
    components, component = csgraph.connected_components(tangle, directed=False)
    sizes = np.bincount(component, minlength=components)
    out, into = _adjacency(tails, heads, weights, n), _adjacency(heads, tails, weights, n)
    both = _adjacency(np.append(tails, heads), np.append(heads, tails), np.append(weights, weights), n)
    found: list[Difference] = []
    read = _Reader(crossing, block, component.astype(np.int64))
    complete = True
    for geography, forth, back in ((CrossedGeography.A, out, into), (CrossedGeography.B, into, out)):
        sides, cut, ended = light_sides(*forth, *back[:2], *both[:2], threshold, min(reach, n), steps)
        complete = complete and bool(ended)
        for side, records in zip(sides, cut, strict=True):
            blocks = side[side >= 0]
            seen = geography is CrossedGeography.B and sizes[component[blocks[0]]] - blocks.size <= reach
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
        needs = sparse.csr_array((np.ones(ends[0].size), ends), shape=(n, n))
        fewer, label = csgraph.connected_components(needs, directed=True, connection="strong")
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
    """Merge an area with only one neighbour into it: connected sides part the two only to give that single area."""
    n = int(block.max()) + 1
    ends = np.append(tails, heads)
    leaf = (np.bincount(ends, minlength=n) == 1) & (np.bincount(block, minlength=n) == 1)
    neighbour = np.arange(n)
    neighbour[ends] = np.append(heads, tails)
    # of two leaves that have only each other, one stays
    gone = leaf & ~(leaf[neighbour] & (neighbour > np.arange(n)))
    remaining, label = np.unique(np.where(gone, neighbour, np.arange(n)), return_inverse=True)
    label = label.astype(np.int64)
    return label[block], *_summed(label[tails], label[heads], weights, remaining.size)


def _by_degree(
    block: Integers, tails: Integers, heads: Integers, weights: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Renumber the blocks, those with most neighbours first: a search from any other block then stops at them."""
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
    """Reads the areas of a side; stores the areas of blocks and of components, sorted."""

    def __init__(self, crossing: _Crossing, block: Integers, component: Integers) -> None:
        self._crossing = crossing
        self._component = component
        self._of_block = _grouped(block)
        self._of_component = _grouped(component[block])

    def difference(self, plus_of: CrossedGeography, blocks: Integers, records: int) -> Difference | None:
        """The side with fewer areas as a difference; None if either side is one area, which is published anyway."""
        areas = np.sort(np.concatenate([_group(self._of_block, int(k)) for k in blocks]))
        whole = _group(self._of_component, int(self._component[blocks[0]]))
        if 1 in {areas.size, whole.size - areas.size}:
            return None
        if whole.size < 2 * areas.size:
            areas = np.setdiff1d(whole, areas, assume_unique=True)
            plus_of = CrossedGeography.B if plus_of is CrossedGeography.A else CrossedGeography.A
        of_a, of_b = np.split(areas, [int(np.searchsorted(areas, self._crossing.split))])
        plus, minus = (of_a, of_b) if plus_of is CrossedGeography.A else (of_b, of_a)
        codes = self._crossing.codes
        return Difference(plus_of, tuple(codes[plus].tolist()), tuple(codes[minus].tolist()), records)


def _grouped(label: Integers) -> tuple[Integers, Integers]:
    starts = np.zeros(int(label.max()) + 2, dtype=np.int64)
    np.cumsum(np.bincount(label), out=starts[1:])
    return starts, np.argsort(label, kind="stable").astype(np.int64)


def _group(groups: tuple[Integers, Integers], k: int) -> Integers:
    starts, members = groups
    return members[starts[k] : starts[k + 1]]
