"""Micro-aggregation: places grouped into clusters of k neighbours from their coordinates alone.

It owns the MDAV partition (maximum distance to average vector; fixed k); what is counted in a cluster is not its
concern, and no attribute but the coordinates may ever reach it.

The variant, with the n places that are left:

    while n >= 3k    r is the place furthest from the centroid; r and the k - 1 nearest to r are a cluster;
                     s is the place furthest from r among the others; s and the k - 1 nearest to s are the next one
    if n >= 2k       r and the k - 1 nearest to r are a cluster, with r as above
    at last          all that is left is one cluster (k to 2k - 1 places; fewer only if there never were k)

Ties go to the lowest row. Everything after the first step is integer arithmetic: the coordinates are put on a lattice
of at least 2^29 steps along the larger side of the region, the centroid is rounded to it (half up), and squared
distances are whole numbers. So the result depends neither on the order of additions nor on the processor.
(Domingo-Ferrer and Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation, 2005.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths.shrinking_tree import LATTICE_BITS, Lattice, furthest, nearest, plant, take

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
