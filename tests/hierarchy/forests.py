"""Small trees of areas, histograms, strategies and counts, and the dense least squares that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from discreet.hierarchy.measure import Measurements, ancestors
from discreet.hierarchy.spine import Spine, spine_of
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.marginals import matrix
from discreet.programme.strategy import (
    Axis,
    Grouping,
    Histogram,
    Strategy,
    StructuralZero,
    strategy_of,
)

LEVELS = ("country", "region", "town", "block")

HISTOGRAM = Histogram(  # an unequal grouping and a structural zero; two regular variables
    (Axis("a", 4), Axis("c", 3), Axis("b", 2), Axis("e", 2)),
    (Grouping("g", "a", (0, 1, 1, 1)),),
    (StructuralZero((("a", (2,)), ("b", (0,)))),),
)
PLAIN = Histogram((Axis("c", 3), Axis("e", 2)))


def grown(rng: np.random.Generator, depth: int = 4, most: int = 3) -> Spine:
    """A random tree; some areas have one child only."""
    parents, size = [], 1
    for _ in range(depth - 1):
        children = rng.integers(1, most + 1, size)
        parents.append(np.repeat(np.arange(size), children))
        size = int(children.sum())
    return spine_of(LEVELS[:depth], parents)


def strategy(
    spine: Spine,
    histogram: Histogram = HISTOGRAM,
    budget: Fraction = Fraction(2),
    noise: LawKind = LawKind.DISCRETE_GAUSSIAN,
    neighbours: Neighbours = Neighbours.SUBSTITUTE,
) -> Strategy:
    """Different queries at different levels; the first level asks only for the total."""
    count = len(spine.levels)
    shares = {level: Fraction(2 * at + 1, count * count) for at, level in enumerate(spine.levels)}
    grouped = "g*e" if histogram is HISTOGRAM else "e"
    some = {"detailed": Fraction(1, 2), grouped: Fraction(1, 3), "total": Fraction(1, 6)}
    queries = dict.fromkeys(spine.levels, some)
    queries[spine.levels[0]] = {"total": Fraction(1)}
    queries[spine.levels[-1]] = {"detailed": Fraction(3, 4), "c": Fraction(1, 4)}
    return strategy_of(histogram, budget, shares, queries, noise, neighbours)


def counts(rng: np.random.Generator, spine: Spine, histogram: Histogram, mean: float = 1.5) -> csr_array:
    """Poisson counts of the leaf areas, none in structural zeros."""
    dense = rng.poisson(mean, (len(spine.leaves), len(histogram.possible))) * histogram.possible
    return csr_array(dense.astype(np.int64))


def dense_system(
    measurements: Measurements,
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """All measurements as one system over the leaf cells: design, observations, variances."""
    plan = measurements.plan
    spine, basis = plan.spine, plan.strategy.histogram.basis
    below = ancestors(spine).toarray()
    design, observed, variances = [], [], []
    for parent in (-1, *spine.inner.tolist()):
        for siblings in measurements.noisy(parent):
            kind = plan.kinds[siblings.kind]
            for at, node in enumerate(siblings.nodes.tolist()):
                for marginal, values, variance in zip(
                    kind.marginals, siblings.values, kind.variances, strict=True
                ):
                    design.append(np.kron(below[node], matrix(basis, marginal)))
                    observed.append(values[at].astype(np.float64))
                    variances.append(np.full(values.shape[1], variance))
    return np.vstack(design), np.concatenate(observed), np.concatenate(variances)


def dense_fit(
    measurements: Measurements, exact: Sequence[tuple[NDArray[np.floating[Any]], float]] = ()
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Weighted least squares of the leaf cells and its covariance, with equality constraints, by dense algebra."""
    design, observed, variances = dense_system(measurements)
    scaled = design / np.sqrt(variances)[:, None]
    normal = scaled.T @ scaled
    right = scaled.T @ (observed / np.sqrt(variances))
    covariance = np.linalg.inv(normal)
    x = covariance @ right
    if exact:
        rows = np.stack([row for row, _ in exact])
        value = np.array([value for _, value in exact])
        inner = np.linalg.pinv(rows @ covariance @ rows.T, hermitian=True)
        x = x + covariance @ rows.T @ inner @ (value - rows @ x)
        covariance = covariance - covariance @ rows.T @ inner @ rows @ covariance
    return x, covariance
