"""A k-d tree of lattice points that only loses points: exact nearest and furthest queries among those left.

It owns the index and its order of ties; it does not know what the points are taken for.

All arithmetic is on integers, so that no rounding decides which of two points is nearer: coordinates lie in
[0, 2^30], squared distances are below 2^62. Among equally distant points the lowest number wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LATTICE_BITS = 30
LEAF = 16  # points; smaller leaves cost more climbing, larger ones more scanning
_NOWHERE = np.int64(1) << np.int64(40)  # outside the lattice: the box of a node without points

Lattice = NDArray[np.int64]


class Tree(NamedTuple):
    """Nodes are numbered as in a heap: 1 is the root, 2i and 2i + 1 are below i; all leaves have one depth."""

    x: Lattice  # place -> coordinate; the points of a leaf stand side by side, those left first
    y: Lattice
    ids: Lattice  # place -> point
    place: Lattice  # point -> place
    leaf_of: Lattice  # point -> node
    first: Lattice  # node -> its first place
    end: Lattice  # leaf -> one past the last place that still holds a point
    box: Lattice  # (node, 4): least x, greatest x, least y, greatest y of the points left
    least: Lattice  # node -> lowest point left; the number of points where none is
    bounds: Lattice  # room for the bounds of the nodes that a query has yet to visit
    nodes: Lattice  # and for the nodes


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def plant(x: Any, y: Any) -> Any:
    """Build the tree of all points: each node is cut at the median of its wider side."""
    n = x.size
    levels = 0
    while n > LEAF << levels:
        levels += 1
    size = 2 << levels
    first, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    order = np.arange(n)
    end[1] = n
    for node in range(1, 1 << levels):
        middle = _cut(order[first[node] : end[node]], x, y) + first[node]
        first[2 * node], end[2 * node] = first[node], middle
        first[2 * node + 1], end[2 * node + 1] = middle, end[node]
    place, leaf_of = np.empty(n, np.int64), np.empty(n, np.int64)
    for leaf in range(1 << levels, size):
        for p in range(first[leaf], end[leaf]):
            place[order[p]], leaf_of[order[p]] = p, leaf
    room = levels + 2
    tree = Tree(
        x[order], y[order], order, place, leaf_of, first, end,
        np.empty((size, 4), np.int64), np.empty(size, np.int64), np.empty(room, np.int64), np.empty(room, np.int64),
    )  # fmt: skip
    for node in range(size - 1, 0, -1):
        _refresh(tree, node)
    return tree


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cut(order: Any, x: Any, y: Any) -> Any:
    """Sort a run of points along its wider side; the sort is stable, so that a pile of points stays in order."""
    xs, ys = x[order], y[order]
    along = xs if xs.max() - xs.min() >= ys.max() - ys.min() else ys
    order[:] = order[np.argsort(along, kind="mergesort")]
    return order.size // 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _refresh(tree: Any, node: Any) -> Any:
    """Draw the box of a node anew; tell whether anything changed."""
    low_x, high_x, low_y, high_y, least = _NOWHERE, -_NOWHERE, _NOWHERE, -_NOWHERE, tree.ids.size
    if 2 * node < tree.least.size:
        for below in (2 * node, 2 * node + 1):
            box = tree.box[below]
            low_x, high_x = min(low_x, box[0]), max(high_x, box[1])
            low_y, high_y = min(low_y, box[2]), max(high_y, box[3])
            least = min(least, tree.least[below])
    else:
        for p in range(tree.first[node], tree.end[node]):
            low_x, high_x = min(low_x, tree.x[p]), max(high_x, tree.x[p])
            low_y, high_y = min(low_y, tree.y[p]), max(high_y, tree.y[p])
            least = min(least, tree.ids[p])
    box = tree.box[node]
    same = box[0] == low_x and box[1] == high_x and box[2] == low_y and box[3] == high_y
    same = same and tree.least[node] == least
    box[0], box[1], box[2], box[3] = low_x, high_x, low_y, high_y
    tree.least[node] = least
    return not same


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take(tree: Any, point: Any) -> None:
    """Take a point out, and shrink the boxes above it as far as they change."""
    node = tree.leaf_of[point]
    hole, last = tree.place[point], tree.end[node] - 1
    moved = tree.ids[last]
    tree.x[hole], tree.x[last] = tree.x[last], tree.x[hole]
    tree.y[hole], tree.y[last] = tree.y[last], tree.y[hole]
    tree.ids[hole], tree.ids[last] = moved, point
    tree.place[moved], tree.place[point] = hole, last
    tree.end[node] = last
    while node >= 1 and _refresh(tree, node):
        node //= 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _reach(box: Any, x: Any, y: Any) -> Any:
    """The squared distance of the furthest corner of a box."""
    dx, dy = max(x - box[0], box[1] - x), max(y - box[2], box[3] - y)
    return dx * dx + dy * dy


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gap(box: Any, x: Any, y: Any) -> Any:
    """The squared distance of the nearest point of a box, 0 inside."""
    dx, dy = max(box[0] - x, x - box[1], 0), max(box[2] - y, y - box[3], 0)
    return dx * dx + dy * dy


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def furthest(tree: Any, x: Any, y: Any) -> Any:
    """The point left that is furthest from (x, y)."""
    best, found, leaves = np.int64(-1), tree.ids.size, tree.least.size // 2
    tree.nodes[0], tree.bounds[0] = 1, _reach(tree.box[1], x, y)
    waiting = 1
    while waiting:
        waiting -= 1
        node, bound = tree.nodes[waiting], tree.bounds[waiting]
        if bound < best or (bound == best and tree.least[node] > found):
            continue
        if node >= leaves:
            for p in range(tree.first[node], tree.end[node]):
                dx, dy = tree.x[p] - x, tree.y[p] - y
                distance = dx * dx + dy * dy
                if distance > best or (distance == best and tree.ids[p] < found):
                    best, found = distance, tree.ids[p]
            continue
        left, right = 2 * node, 2 * node + 1
        a = _reach(tree.box[left], x, y) if tree.least[left] < tree.ids.size else np.int64(-1)
        b = _reach(tree.box[right], x, y) if tree.least[right] < tree.ids.size else np.int64(-1)
        if a > b or (a == b and tree.least[left] < tree.least[right]):
            left, right, a, b = right, left, b, a
        for child, reach in ((left, a), (right, b)):  # the more promising child is visited first
            if reach >= 0:
                tree.nodes[waiting], tree.bounds[waiting] = child, reach
                waiting += 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def nearest(tree: Any, x: Any, y: Any, distances: Any, points: Any) -> None:
    """Fill ``points`` with the points left that are nearest to (x, y), in no order; at least so many must be left.

    ``distances`` and ``points`` are a heap with the worst of the points found so far on top.
    """
    distances[:], points[:] = np.int64(1) << np.int64(62), tree.ids.size
    leaves = tree.least.size // 2
    tree.nodes[0], tree.bounds[0] = 1, 0
    waiting = 1
    while waiting:
        waiting -= 1
        node, bound = tree.nodes[waiting], tree.bounds[waiting]
        if bound > distances[0] or (bound == distances[0] and tree.least[node] > points[0]):
            continue
        if node >= leaves:
            for p in range(tree.first[node], tree.end[node]):
                dx, dy = tree.x[p] - x, tree.y[p] - y
                distance = dx * dx + dy * dy
                if distance < distances[0] or (distance == distances[0] and tree.ids[p] < points[0]):
                    _replace_worst(distances, points, distance, tree.ids[p])
            continue
        left, right = 2 * node, 2 * node + 1
        a, b = _gap(tree.box[left], x, y), _gap(tree.box[right], x, y)
        if a < b or (a == b and tree.least[left] < tree.least[right]):
            left, right, a, b = right, left, b, a
        for child, gap in ((left, a), (right, b)):
            if tree.least[child] < tree.ids.size:
                tree.nodes[waiting], tree.bounds[waiting] = child, gap
                waiting += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _replace_worst(distances: Any, points: Any, distance: Any, point: Any) -> None:
    """Put a better point in the place of the worst one and restore the heap."""
    hole, size = 0, distances.size
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            distances[other] > distances[child]
            or (distances[other] == distances[child] and points[other] > points[child])
        ):
            child = other
        if distances[child] < distance or (distances[child] == distance and points[child] < point):
            break
        distances[hole], points[hole] = distances[child], points[child]
        hole = child
    distances[hole], points[hole] = distance, point
