"""From a fit within bounds to whole numbers that meet every sum exactly.

Given x (child, cell) >= 0 near a feasible fit, whole numbers in the parent and whole bounds, find whole numbers with
the same sums that minimise

    sum |n_cj - x_cj| + sum |group sums - those of x| + sum |child totals - those of x|

with every one of these rounded down or up. Cells' sums over children are one partition, groups and totals of a child
nested ones: two laminar families, so that the problem is a flow and its optimum is whole. It is found by successive
shortest paths (Ahuja, Magnanti and Orlin 1993): the largest fractions of every cell are rounded up, which is the
optimum without the sums of children, and units that a child has too many of are sent on; x itself shows that a flow
exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

WHOLE = 1e-7  # a cell this near to a whole number is one
WHOLE_SUM = 1e-5
URGENT = 1e4  # the reward of a unit that a rounded-down sum still lacks


def meeting_sums(
    x: Floats, parent: Integers, group: Integers, lower: Floats, upper: Floats, sums: Floats | None = None
) -> Floats:
    """Move x as little as needed so that children sum to the parent and their group sums are within bounds, exactly.

    ``sums`` (child, group), where given, are met; otherwise sums outside of their bounds move to them, and the others
    of the group all by one number. A child that lacks takes, cell by cell, the same share of what the children with too
    much release, so that the sum over children stays.
    """
    found = x.copy()
    _scale_columns(found, parent.astype(np.float64), group, upper)
    present = group_sums(found, group, lower.shape[1])
    wanted = _within(present, lower, upper) if sums is None else sums
    _transfer(found, group, present, np.ascontiguousarray(wanted, dtype=np.float64))
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def group_sums(x: Any, group: Any, groups: Any) -> Any:
    """(child, group) -> the sum of its cells."""
    found = np.zeros((x.shape[0], groups))
    for c in range(x.shape[0]):
        for j in range(x.shape[1]):
            found[c, group[j]] += x[c, j]
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _scale_columns(x: Any, parent: Any, group: Any, upper: Any) -> None:
    n, k = x.shape
    for j in range(k):
        total, allowed = 0.0, 0
        for c in range(n):
            total += x[c, j]
            allowed += upper[c, group[j]] > 0
        if total > 0:
            for c in range(n):
                x[c, j] *= parent[j] / total
        elif parent[j] > 0:
            for c in range(n):
                if upper[c, group[j]] > 0:
                    x[c, j] = parent[j] / allowed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _within(present: Any, lower: Any, upper: Any) -> Any:
    """For each group sums within bounds with the same total: clip(present + t, lower, upper), t by bisection."""
    wanted = present.copy()
    n = present.shape[0]
    for g in range(present.shape[1]):
        inside = True
        for c in range(n):
            if present[c, g] < lower[c, g] or present[c, g] > upper[c, g]:
                inside = False
        if inside:
            continue
        total = present[:, g].sum()
        reach = 1.0
        for c in range(n):
            reach = max(reach, abs(present[c, g] - lower[c, g]), abs(present[c, g]) + total)
        low, high = -reach, reach
        for _ in range(200):
            middle = 0.5 * (low + high)
            found = 0.0
            for c in range(n):
                found += min(max(present[c, g] + middle, lower[c, g]), upper[c, g])
            if found < total:
                low = middle
            else:
                high = middle
        for c in range(n):
            wanted[c, g] = min(max(present[c, g] + high, lower[c, g]), upper[c, g])
    return wanted


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _transfer(x: Any, group: Any, present: Any, wanted: Any) -> None:
    n, k = x.shape
    groups = present.shape[1]
    lacking = np.zeros(groups)
    for g in range(groups):
        for c in range(n):
            lacking[g] += max(wanted[c, g] - present[c, g], 0.0)
    for j in range(k):
        g = group[j]
        if lacking[g] <= 0:
            continue
        released = 0.0
        for c in range(n):
            over = present[c, g] - wanted[c, g]
            if over > 0:
                share = x[c, j] * min(over / present[c, g], 1.0)
                x[c, j] -= share
                released += share
        for c in range(n):
            under = wanted[c, g] - present[c, g]
            if under > 0:
                x[c, j] += released * under / lacking[g]


def whole_numbers(x: Floats, parent: Integers, group: Integers, groups: int) -> Integers:
    """Round x (child, cell), whose sums are met, to whole numbers; see the module."""
    found, complete = _rounded(np.ascontiguousarray(x), parent, group, groups)
    if not complete:
        raise ArithmeticError("no whole numbers near a fit whose sums are not met")
    return np.asarray(found, dtype=np.int64)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _push(heap_key: Any, heap_node: Any, size: Any, key: Any, node: Any) -> Any:
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if heap_key[up] <= key:
            break
        heap_key[at] = heap_key[up]
        heap_node[at] = heap_node[up]
        at = up
    heap_key[at] = key
    heap_node[at] = node
    return size + 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pop(heap_key: Any, heap_node: Any, size: Any) -> Any:
    size -= 1
    key, node = heap_key[size], heap_node[size]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and heap_key[down + 1] < heap_key[down]:
            down += 1
        if heap_key[down] >= key:
            break
        heap_key[at] = heap_key[down]
        heap_node[at] = heap_node[down]
        at = down
    heap_key[at] = key
    heap_node[at] = node
    return size


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _rounded(x: Any, parent: Any, group: Any, groups: Any) -> Any:
    """Round the largest fractions up, then send units on along shortest paths; false where one finds no way.

    Nodes are cells 0..k-1, then groups of children, then children, then the sink. Arcs are in pairs, one and its
    reverse: first those of entries, cells of children that can be rounded up, from the cell to the group of the child;
    then two for each sum, from a group of a child to the child and from the child to the sink: the units that its floor
    lacks, rewarded, and one more up to its ceiling.
    """
    n, k = x.shape
    whole = np.floor(x + WHOLE).astype(np.int64)
    child, column = np.nonzero(x - whole > WHOLE)
    row = child * groups + group[column]
    fraction = np.empty(row.size)
    for at in range(row.size):
        fraction[at] = x[child[at], column[at]] - whole[child[at], column[at]]
    sink = k + n * groups + n
    potential = np.zeros(sink + 1)
    potential[k : k + n * groups] = -1.0
    potential[k + n * groups : sink] = -1.0 - URGENT
    potential[sink] = -1.0 - 2 * URGENT
    used, complete = _cells_rounded(parent - whole.sum(axis=0), column, fraction, potential)
    if not complete:
        return whole, False
    tail, head, cost, capacity = _arcs(
        _nested_sums(x, whole, group, groups), (row, column, fraction, used), k
    )
    supply = np.zeros(n * groups, np.int64)
    for e in np.flatnonzero(used):
        supply[row[e]] += 1
    _fill_floors(supply, groups, capacity[2 * row.size :])
    begin, arcs = _listed(tail, sink + 1)
    heap = np.empty(arcs.size + 1), np.empty(arcs.size + 1, np.int64)
    distance, done = np.full(sink + 1, np.inf), np.zeros(sink + 1, np.bool_)
    by, touched = np.empty(sink + 1, np.int64), np.empty(sink + 1, np.int64)
    for i in range(n * groups):
        for _ in range(supply[i]):
            number = _shortest_path(k + i, sink, begin, arcs, head, cost, capacity, potential,
                                    heap[0], heap[1], distance, by, done, touched)  # fmt: skip
            if not done[sink]:
                return whole, False
            _send_unit(k + i, sink, tail, capacity, by)
            length = distance[sink]
            for node in touched[:number]:
                if done[node]:
                    potential[node] += distance[node] - length
                distance[node] = np.inf
                done[node] = False
    for at in range(row.size):
        whole[child[at], column[at]] += capacity[2 * at + 1]
    return whole, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cells_rounded(wanted: Any, column: Any, fraction: Any, potential: Any) -> Any:
    """Which entries are rounded up: so many of each cell, the largest fractions.

    The potential of a cell makes the entries that are rounded up cost nothing or less, and the others nothing or more.
    """
    begin, entries = _listed(column, wanted.size)
    used = np.zeros(column.size, np.bool_)
    for j in range(wanted.size):
        mine = entries[begin[j] : begin[j + 1]]
        if wanted[j] < 0 or wanted[j] > mine.size:
            return used, False
        if wanted[j] == 0:
            continue
        order = np.argsort(-fraction[mine], kind="mergesort")
        used[mine[order[: wanted[j]]]] = True
        potential[j] = 2.0 * fraction[mine[order[wanted[j] - 1]]] - 2.0
    return used, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _arcs(sums: Any, entries: Any, k: Any) -> Any:
    """Where all arcs begin and lead, what a unit on them costs, and how many units they can take; see ``_rounded``."""
    above, floor, ceiling, part = sums
    row, column, fraction, used = entries
    size = row.size + 2 * above.size
    tail, head = np.empty(2 * size, np.int64), np.empty(2 * size, np.int64)
    cost, capacity = np.empty(2 * size), np.zeros(2 * size, np.int64)
    for e in range(row.size):
        tail[2 * e], head[2 * e], cost[2 * e] = column[e], k + row[e], 1.0 - 2.0 * fraction[e]
        capacity[2 * e + used[e]] = 1
    for i in range(above.size):
        for a, price, units in (
            (row.size + 2 * i, -URGENT, floor[i]),
            (row.size + 2 * i + 1, 1.0 - 2.0 * part[i], ceiling[i] - floor[i]),
        ):
            tail[2 * a], head[2 * a], cost[2 * a], capacity[2 * a] = k + i, k + above[i], price, units
    for a in range(0, 2 * size, 2):
        tail[a + 1], head[a + 1], cost[a + 1] = head[a], tail[a], -cost[a]
    return tail, head, cost, capacity


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill_floors(supply: Any, groups: Any, capacity: Any) -> None:
    """Send the units of sums below their floors straight on: nothing is shorter."""
    for i in range(supply.size):
        first, second = 4 * i, 4 * (supply.size + i // groups)
        straight = max(min(supply[i], capacity[first], capacity[second]), 0)
        for a in (first, second):
            capacity[a] -= straight
            capacity[a + 1] += straight
        supply[i] -= straight


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _listed(place: Any, size: Any) -> Any:
    """Where the entries of each place begin, and the entries in the order of their places."""
    starts = np.zeros(size + 1, np.int64)
    for e in range(place.size):
        starts[place[e] + 1] += 1
    starts = np.cumsum(starts)
    fill, order = starts.copy(), np.empty(place.size, np.int64)
    for e in range(place.size):
        order[fill[place[e]]] = e
        fill[place[e]] += 1
    return starts, order


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nested_sums(x: Any, whole: Any, group: Any, groups: Any) -> Any:
    """Of groups of children, then children: the sum that it is part of, what floor and ceiling lack, the fraction."""
    n, k = x.shape
    total, present = np.zeros(n * groups + n), np.zeros(n * groups + n, np.int64)
    above = np.full(total.size, total.size)
    for c in range(n):
        for j in range(k):
            total[c * groups + group[j]] += x[c, j]
            present[c * groups + group[j]] += whole[c, j]
        for i in range(c * groups, (c + 1) * groups):
            total[n * groups + c] += total[i]
            present[n * groups + c] += present[i]
            above[i] = n * groups + c
    floor = np.floor(total + WHOLE_SUM).astype(np.int64)
    ceiling = np.maximum(np.ceil(total - WHOLE_SUM).astype(np.int64), floor)
    part = np.minimum(np.maximum(total - floor, 0.0), 1.0)
    return above, floor - present, ceiling - present, part


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _shortest_path(
    source: Any, sink: Any, begin: Any, arcs: Any, head: Any, cost: Any, capacity: Any, potential: Any,
    heap_key: Any, heap_node: Any, distance: Any, by: Any, done: Any, touched: Any,
) -> Any:  # fmt: skip
    """Dijkstra's search with reduced costs; returns how many nodes it touched.

    Arrays are parameters one by one: taking them out of a tuple costs more than an arc.
    """
    number, size = 1, 0
    distance[source] = 0.0
    touched[0] = source
    size = _push(heap_key, heap_node, size, 0.0, source)
    while size > 0:
        node, here = heap_node[0], heap_key[0]
        size = _pop(heap_key, heap_node, size)
        if done[node]:
            continue
        done[node] = True
        if node == sink:
            break
        for at in range(begin[node], begin[node + 1]):
            arc = arcs[at]
            to = head[arc]
            if capacity[arc] <= 0 or done[to]:
                continue
            reached = here + max(cost[arc] + potential[node] - potential[to], 0.0)
            if reached < distance[to]:
                if distance[to] == np.inf:
                    touched[number] = to
                    number += 1
                distance[to], by[to] = reached, arc
                size = _push(heap_key, heap_node, size, reached, to)
    return number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _send_unit(source: Any, sink: Any, tail: Any, capacity: Any, by: Any) -> None:
    """Send one unit along the path that was found."""
    node = sink
    while node != source:
        arc = by[node]
        capacity[arc] -= 1
        capacity[arc ^ 1] += 1
        node = tail[arc]


def rounded_to_sums(x: Floats, group: Integers, sums: Integers) -> Integers:
    """Round one histogram so that its groups have these sums: the largest fractions are rounded up.

    x is scaled to the sums first; a group of zeros with a sum is spread evenly.
    """
    found = np.zeros(len(x), dtype=np.int64)
    for g, total in enumerate(sums.tolist()):
        cells = np.flatnonzero(group == g)
        values = x[cells]
        if values.sum() <= 0:
            values = np.ones(len(cells))
        values = values * (total / values.sum())
        whole = np.floor(values + WHOLE).astype(np.int64)
        up = np.argsort(whole - values, kind="stable")[: total - int(whole.sum())]
        whole[up] += 1
        found[cells] = whole
    return found
