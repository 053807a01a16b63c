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
    present = np.zeros_like(lower)
    for g in range(lower.shape[1]):
        present[:, g] = found[:, group == g].sum(axis=1)
    wanted = _within(present, lower, upper) if sums is None else sums
    _transfer(found, group, present, np.ascontiguousarray(wanted, dtype=np.float64))
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
def _unit_cost(present: Any, low: Any, high: Any, part: Any) -> Any:
    """The cost of one more unit in a sum: a reward below its floor, 1 - 2 part at it, none at its ceiling."""
    if present < low:
        return -URGENT
    if present < high:
        return 1.0 - 2.0 * part
    return np.inf


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _rounded(x: Any, parent: Any, group: Any, groups: Any) -> Any:
    """Round the largest fractions up, then send units on along shortest paths; false where one finds no way."""
    n, k = x.shape
    whole = np.floor(x + WHOLE).astype(np.int64)
    entries = _entries(x, whole, group, groups)
    sums = _nested_sums(x, whole, group, groups)
    row, column, _, used = entries[:4]
    sink = k + n * groups + n  # nodes: cells 0..k-1, then groups of children, then children, then the sink
    potential = np.zeros(sink + 1)
    potential[k : k + n * groups] = -1.0
    potential[k + n * groups : sink] = -1.0 - URGENT
    potential[sink] = -1.0 - 2 * URGENT
    supply, complete = _cells_rounded(parent - whole.sum(axis=0), entries, n * groups, potential)
    if not complete:
        return whole, False
    _fill_floors(supply, groups, sums)
    heap = np.empty(4 * row.size + 4 * sink + 8), np.empty(4 * row.size + 4 * sink + 8, np.int64)
    distance = np.full(sink + 1, np.inf)
    path = (
        np.empty(sink + 1, np.int64),
        np.empty(sink + 1, np.int64),
    )  # node before, entry that leads here or -1
    done, touched = np.zeros(sink + 1, np.bool_), np.empty(sink + 1, np.int64)
    search = distance, path[0], path[1], done, touched
    for i in range(n * groups):
        source = k + i
        for _ in range(supply[i]):
            number = _shortest_path(source, (n, k, groups), entries, sums, potential, heap, search)
            if not done[sink]:
                return whole, False
            _send_unit(source, (n, k, groups), used, sums[0], path)
            length = distance[sink]
            for i in range(number):
                node = touched[i]
                if done[node]:
                    potential[node] += distance[node] - length
                distance[node] = np.inf
                done[node] = False
    for e in range(row.size):
        if used[e]:
            whole[row[e] // groups, column[e]] += 1
    return whole, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cells_rounded(wanted: Any, entries: Any, rows: Any, potential: Any) -> Any:
    """Round so many entries of each cell up, the largest fractions; the units in each group of a child.

    The potential of a cell makes the entries that are rounded up cost nothing or less, and the others nothing or more.
    """
    row, _, fraction, used, by_cell, cell_entries = entries[:6]
    supply = np.zeros(rows, np.int64)
    for j in range(wanted.size):
        mine = cell_entries[by_cell[j] : by_cell[j + 1]]
        if wanted[j] < 0 or wanted[j] > mine.size:
            return supply, False
        if wanted[j] == 0:
            continue
        order = np.argsort(-fraction[mine], kind="mergesort")
        for e in mine[order[: wanted[j]]]:
            used[e] = True
            supply[row[e]] += 1
        potential[j] = 2.0 * fraction[mine[order[wanted[j] - 1]]] - 2.0
    return supply, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill_floors(supply: Any, groups: Any, sums: Any) -> None:
    """Send the units of sums below their floors straight on: nothing is shorter."""
    present, _, low = sums[:3]
    for i in range(supply.size):
        child = supply.size + i // groups
        straight = max(min(supply[i], low[i] - present[i], low[child] - present[child]), 0)
        present[i] += straight
        present[child] += straight
        supply[i] -= straight


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _entries(x: Any, whole: Any, group: Any, groups: Any) -> Any:
    """The cells of children that can be rounded up: group of a child, cell, fraction, whether it was; then by both.

    The entries of cell j are cell_entries[by_cell[j] : by_cell[j + 1]], those of a group alike.
    """
    n, k = x.shape
    c, column = np.nonzero(x - whole > WHOLE)
    row = c * groups + group[column]
    fraction = np.empty(row.size)
    for e in range(row.size):
        fraction[e] = x[c[e], column[e]] - whole[c[e], column[e]]
    by_cell, cell_entries = _listed(column, k)
    by_group, group_entries = _listed(row, n * groups)
    used = np.zeros(row.size, np.bool_)
    return row, column, fraction, used, by_cell, cell_entries, by_group, group_entries


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
    """Of groups of children, then children: the present sum, that at the beginning, floor, ceiling and fraction."""
    n, k = x.shape
    total, present = np.zeros(n * groups + n), np.zeros(n * groups + n, np.int64)
    for c in range(n):
        for j in range(k):
            total[c * groups + group[j]] += x[c, j]
            present[c * groups + group[j]] += whole[c, j]
        for i in range(c * groups, (c + 1) * groups):
            total[n * groups + c] += total[i]
            present[n * groups + c] += present[i]
    low, high = np.empty(total.size, np.int64), np.empty(total.size, np.int64)
    part = np.empty(total.size)
    for i in range(total.size):
        low[i] = np.int64(np.floor(total[i] + WHOLE_SUM))
        high[i] = max(np.int64(np.ceil(total[i] - WHOLE_SUM)), low[i])
        part[i] = min(max(total[i] - low[i], 0.0), 1.0)
    return present, present.copy(), low, high, part


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _shortest_path(
    source: Any, shape: Any, entries: Any, sums: Any, potential: Any, heap: Any, search: Any
) -> Any:
    """Dijkstra's search with reduced costs from a cell to the sink; returns how many nodes it touched."""
    n, k, groups = shape
    distance, before, by, done, touched = search
    by_cell, by_group = entries[4], entries[6]
    heap_key, heap_node = heap
    first_child = k + n * groups
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
        if node == first_child + n:
            break
        if node < k:
            begin, end = by_cell[node], by_cell[node + 1]
        elif node < first_child:
            begin, end = by_group[node - k], by_group[node - k + 1] + 1
        else:
            begin, end = 0, groups + 1
        for step in range(begin, end):
            to, cost, entry = _arc(node, step, step == end - 1, shape, entries, sums)
            if cost == np.inf or done[to]:
                continue
            reduced = max(cost + potential[node] - potential[to], 0.0)
            if here + reduced < distance[to]:
                if distance[to] == np.inf:
                    touched[number] = to
                    number += 1
                distance[to] = here + reduced
                before[to], by[to] = node, entry
                size = _push(heap_key, heap_node, size, distance[to], to)
    return number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _arc(node: Any, step: Any, last: Any, shape: Any, entries: Any, sums: Any) -> Any:
    """One arc out of a node: where it leads, its cost (inf: closed), and the entry that it rounds up or back."""
    n, k, groups = shape
    row, column, fraction, used, _, cell_entries, _, group_entries = entries
    present, begun, low, high, part = sums
    first_child = k + n * groups
    if node < k:  # cell -> groups of children, by rounding an entry up
        entry = cell_entries[step]
        return k + row[entry], np.inf if used[entry] else 1.0 - 2.0 * fraction[entry], entry
    if node < first_child and not last:  # group of a child -> cells, by taking an entry back
        entry = group_entries[step]
        return column[entry], 2.0 * fraction[entry] - 1.0 if used[entry] else np.inf, entry
    if node < first_child:  # group of a child -> the child
        i = node - k
        return first_child + i // groups, _unit_cost(present[i], low[i], high[i], part[i]), np.int64(-1)
    if not last:  # child -> its groups, by taking a unit back
        i = (node - first_child) * groups + step
        back = -_unit_cost(present[i] - 1, low[i], high[i], part[i])
        return k + i, np.inf if present[i] <= begun[i] else back, np.int64(-1)
    i = node - k  # child -> the sink
    return first_child + n, _unit_cost(present[i], low[i], high[i], part[i]), np.int64(-1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _send_unit(source: Any, shape: Any, used: Any, present: Any, path: Any) -> None:
    """Send one unit along the path that was found: round entries up or back, and move the sums on it."""
    n, k, groups = shape
    before, by = path
    node = k + n * groups + n
    while node != source:
        last = before[node]
        if by[node] >= 0:
            used[by[node]] = last < k
        elif node > last:  # into a larger sum
            present[last - k] += 1
        else:
            present[node - k] -= 1
        node = last


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
