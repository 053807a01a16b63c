"""The kernels of the differencing search: every small connected side of a light cut of a block graph.

They know nothing of areas or geographies; `differencing` builds the blocks and reads the sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

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
    """Take a block and all that it needs into the side; the new length of the trail, negative if that cannot be."""
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
    """The records that are surely cut off, and a neighbour still to be decided (-1: none is)."""
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
    """Whether the component without the side hangs together: waves from all around the side until they have met."""
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
    """Forget the decisions from first to last."""
    for k in range(first, last):
        state[trail[k]] = _OPEN


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _roomy(sides: Any, cut: Any, found: int) -> Any:
    """The same findings with room for one more."""
    if found < cut.size:
        return sides, cut
    more = np.full((found, sides.shape[1]), -1, dtype=np.int64)
    return np.concatenate((sides, more)), np.concatenate((cut, np.zeros(found, dtype=np.int64)))


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
                    sides[found, :inside], cut[found] = side, cost
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
