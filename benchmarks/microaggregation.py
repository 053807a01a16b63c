"""Clusters of neighbouring places by MDAV: many zip codes, few large regions, and one that is larger still."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target, against
from discreet.maths.microaggregation import partition

PERSONS = 1_000_000  # places
SECONDS = 60
K = 50
PLAIN = 20_000  # places that the plain algorithm is given


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    shapes = [
        ("zip codes of 2,000", persons // 2_000, persons, 50),
        ("zip codes of 2,000", persons // 2_000, persons, 10),
        ("regions of 100,000", persons // 100_000, persons, 10),
        ("one region", 1, persons // 5, 10),
        ("one region", 1, persons // 5, 3),
    ]
    lines = [_line(*shape, repeats) for shape in shapes]
    plain = measured("microaggregation", "plain", places=PLAIN, k=K)
    ours = measured("microaggregation", "regions", repeats, places=PLAIN, parts=1, k=K)
    work = f"{PLAIN:,} places, one region, k = {K}"
    lines += [Line(work, "Discreet", ours), against(work, "all distances at every step (scipy)", ours, plain)]
    notes = (
        "Places are uniform in squares; the partition equals the plain algorithm's, which a test compares.",
        "The plain algorithm computes the distances from the centroid, r and s to all places that are left.",
    )
    return [Section("Micro-aggregation", tuple(lines), notes)]


def _line(shape: str, parts: int, places: int, k: int, repeats: int) -> Line:
    cost = measured("microaggregation", "regions", repeats, places=places, parts=max(1, parts), k=k)
    return Line(f"{places:,} places, {shape}, k = {k}", "Discreet", cost, targets=_target(cost))


def _target(cost: Cost) -> tuple[Target, ...]:
    return (Target("wall s", cost.wall, SECONDS),)


def regions(watch: Stopwatch, places: int, parts: int, k: int) -> dict[str, int]:
    rng = np.random.default_rng(3)
    points, zips = rng.random((places, 2)), rng.integers(0, parts, places)
    partition(points[:100], zips[:100], 3)  # loads the compiled kernels
    with watch.running():
        labels = partition(points, zips, k)
    return {"clusters": int(labels.max()) + 1}


def plain(watch: Stopwatch, places: int, k: int) -> dict[str, int]:
    points = np.random.default_rng(3).random((places, 2))
    with watch.running():
        clusters = _plain(points, k)
    return {"clusters": clusters}


def _plain(points: NDArray[np.float64], k: int) -> int:
    left, clusters = points, 0
    while len(left) >= 2 * k:
        core = left[_distances(left, left.mean(axis=0)).argmax()]
        pair = len(left) >= 3 * k
        left, clusters = _without(left, core, k), clusters + 1
        if pair:
            left = _without(left, left[_distances(left, core).argmax()], k)
            clusters += 1
    return clusters + 1


def _distances(left: NDArray[np.float64], core: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(cdist(left, core[None], "sqeuclidean")[:, 0])


def _without(left: NDArray[np.float64], core: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Drop the k places nearest to one of them, itself included."""
    kept: NDArray[np.float64] = left[np.argpartition(_distances(left, core), k - 1)[k:]]
    return kept
