"""Micro-aggregation (MDAV) of places into clusters of k neighbours, and the expected error of sums of noisy cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

LATTICE_BITS = 30
LEAF = 16  # points; smaller leaves cost more climbing, larger ones more scanning
_NOWHERE = np.int64(1) << np.int64(40)  # outside the lattice: the box of a node without points

Lattice = NDArray[np.int64]


class SplitTree(NamedTuple):
    """Nodes are numbered as in a heap: 1 is the root, 2i and 2i + 1 are below i; all leaves have one depth."""

    x: Lattice  # place -> coordinate; the points of a leaf are adjacent, those left first
    y: Lattice
    ids: Lattice  # place -> point
    place: Lattice  # point -> place
    leaf_of: Lattice  # point -> node
    first: Lattice  # node -> its first place
    end: Lattice  # leaf -> one past the last place that still has a point
    box: Lattice  # (node, 4): least x, greatest x, least y, greatest y of the points left
    least: Lattice  # node -> lowest point left; the number of points where none is
    bounds: Lattice  # buffer for the bounds of the nodes that a query has yet to visit
    nodes: Lattice  # buffer for those nodes


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
    tree = SplitTree(
        x[order], y[order], order, place, leaf_of, first, end,
        np.empty((size, 4), np.int64), np.empty(size, np.int64), np.empty(room, np.int64), np.empty(room, np.int64),
    )  # fmt: skip
    for node in range(size - 1, 0, -1):
        _refresh(tree, node)
    return tree


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cut(order: Any, x: Any, y: Any) -> Any:
    """Sort a run of points along its wider side; the sort is stable, so that equal points stay in order."""
    low_x, high_x, low_y, high_y = _NOWHERE, -_NOWHERE, _NOWHERE, -_NOWHERE
    for point in order:
        low_x, high_x = min(low_x, x[point]), max(high_x, x[point])
        low_y, high_y = min(low_y, y[point]), max(high_y, y[point])
    along = x if high_x - low_x >= high_y - low_y else y
    ascending = order[np.argsort(along[order], kind="mergesort")]
    for p in range(order.size):
        order[p] = ascending[p]
    return order.size // 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _refresh(tree: Any, node: Any) -> Any:
    """Recompute the box of a node; return whether anything changed."""
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
    """Remove a point, and shrink the boxes above it as long as they change."""
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
    """Fill ``points`` with the points left that are nearest to (x, y), in no order; at least as many must be left.

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


Points = NDArray[np.float64]  # (n, 2)
Labels = NDArray[np.int32]


def mdav(points: Points, k: int) -> Labels:
    """The cluster of each place, numbered from 0 in the order in which the clusters are formed."""
    _check(points, k)
    labels: Labels = np.zeros(len(points), dtype=np.int32)
    if len(points) >= 2 * k:
        steps = lattice(points)
        _mdav(np.ascontiguousarray(steps[:, 0]), np.ascontiguousarray(steps[:, 1]), k, labels)
    return labels


def partition(points: Points, regions: NDArray[np.integer], k: int) -> Labels:
    """MDAV inside each region; cluster numbers are unique over all regions and ascend with the region's number.

    A region with fewer than k places is one cluster of all of them.
    """
    _check(points, k)
    if regions.shape != (len(points),):
        raise ValueError(f"one region for each of the {len(points)} places, not {regions.shape}")
    order = np.argsort(regions, kind="stable")
    sorted_points, sorted_regions = points[order], regions[order]
    starts = np.flatnonzero(np.r_[True, sorted_regions[1:] != sorted_regions[:-1]][: len(points)])
    labels: Labels = np.empty(len(points), dtype=np.int32)
    used = 0
    for start, end in zip(starts, np.r_[starts[1:], len(points)], strict=False):
        inside = mdav(sorted_points[start:end], k)
        labels[order[start:end]] = inside + used
        used += clusters_in(end - start, k)
    return labels


def clusters_in(places: int, k: int) -> int:
    """How many clusters MDAV makes of a region: its places over k, rounded down, and at least one."""
    return int(max(places // k, min(places, 1)))


def lattice(points: Points) -> Lattice:
    """Whole-number coordinates in [0, 2^30], all scaled by the same power of two."""
    low = points.min(axis=0)
    with np.errstate(over="ignore"):
        extent = float((points - low).max())
    if not np.isfinite(extent):
        raise ValueError("the coordinates must be finite, and so must their differences")
    scale = LATTICE_BITS - int(np.frexp(extent)[1])  # extent < 2^exponent
    steps: Lattice = np.rint(np.ldexp(points - low, scale)).astype(np.int64)
    return steps


def _check(points: Points, k: int) -> None:
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"coordinates are (n, 2), not {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("the coordinates must be finite, and so must their differences")
    if k < 1:
        raise ValueError(f"a cluster has at least 1 place, not {k}")


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _mdav(x: Any, y: Any, k: int, labels: Any) -> None:
    tree = plant(x, y)
    sums = np.array([x.sum(), y.sum()])  # of the places left
    distances, points = np.empty(k - 1, np.int64), np.empty(k - 1, np.int64)
    left, label = x.size, 0
    labels[:] = -1
    while left >= 2 * k:
        r = furthest(tree, _mean(sums[0], left), _mean(sums[1], left))
        _gather(tree, x, y, r, distances, points, sums, labels, label)
        if left >= 3 * k:
            s = furthest(tree, x[r], y[r])
            _gather(tree, x, y, s, distances, points, sums, labels, label + 1)
            left, label = left - k, label + 1
        left, label = left - k, label + 1
    for point in range(x.size):
        if labels[point] < 0:
            labels[point] = label


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _mean(total: Any, count: Any) -> Any:
    """The average rounded to a whole number, half up."""
    return (2 * total + count) // (2 * count)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather(
    tree: Any, x: Any, y: Any, core: Any, distances: Any, points: Any, sums: Any, labels: Any, label: Any
) -> None:
    """Take a place and the nearest of the others out of the tree, as one cluster."""
    take(tree, core)
    if points.size:
        nearest(tree, x[core], y[core], distances, points)
    labels[core] = label
    sums[0] -= x[core]
    sums[1] -= y[core]
    for point in points:
        take(tree, point)
        labels[point] = label
        sums[0] -= x[point]
        sums[1] -= y[point]


LEAST_RATIO = 1e-100  # of epsilon to the sensitivity
MOST_CELLS = 10**12
_STEP = 0.1
_TAIL = 42.0  # exp(-42) is below the last digit of a double


def expected_absolute_sum(cells: int, epsilon: float, sensitivity: float = 1.0) -> float:
    """E|X1 + .. + Xm| of m = ``cells`` independent noises, to about 14 digits.

    With t = 2 arctan(e^s) the integral becomes (1/pi) int (1 - phi^m) e^-s ds over the whole line, and
    1/phi = 1 + 4a / (1 - a)^2 / (1 + e^-2s). The integrand is analytic and bounded for |Im s| < pi/4, so that the
    trapezoidal rule with step h errs by about exp(-pi^2 / (2h)), whatever m and epsilon.
    """
    ratio = _ratio(cells, epsilon, sensitivity)
    spread = 4.0 * math.exp(-ratio) / math.expm1(-ratio) ** 2
    rise = -0.5 * math.log(max(1.0, cells * spread))  # where phi^m falls from 1
    s = np.arange(rise - _TAIL, _TAIL, _STEP)
    risen = -np.expm1(-cells * np.log1p(spread * special.expit(2.0 * s)))
    return float(_STEP * np.sum(risen * np.exp(-s)) / math.pi)


def expected_relative_error(cells: int, epsilon: float, sensitivity: float, records: int) -> float:
    """E|X1 + .. + Xm| / n: the expected error of the total of m noisy cells with n records in all."""
    if records < 1:
        raise ValueError(f"at least 1 record, not {records}")
    return expected_absolute_sum(cells, epsilon, sensitivity) / records


def _ratio(cells: int, epsilon: float, sensitivity: float) -> float:
    if not 0 <= cells <= MOST_CELLS:
        raise ValueError(f"a number of cells from 0 to {MOST_CELLS}, not {cells}")
    if not (0 < epsilon < math.inf and 0 < sensitivity < math.inf):
        raise ValueError(f"epsilon and sensitivity are positive numbers, not {epsilon} and {sensitivity}")
    if epsilon / sensitivity < LEAST_RATIO:
        raise ValueError(f"epsilon / sensitivity is at least {LEAST_RATIO}, not {epsilon / sensitivity}")
    return epsilon / sensitivity
