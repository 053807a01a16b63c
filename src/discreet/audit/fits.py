"""The accuracy of a hierarchical release by level, query and size of area: estimates, counts, and other fits.

From the published measurements the least squares estimate of every query is computed, and whole counts are fitted
twice: to all levels (``tree``) and level by level as the TopDown algorithm does (``own-level``). All three are compared
with the true counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes
from discreet.hierarchy.estimate import estimate
from discreet.hierarchy.integers import Fit, Limits, Tables, integers
from discreet.hierarchy.measure import Measurements, Plan, node_counts
from discreet.hierarchy.topdown import totals_first
from discreet.lazy import lazily
from discreet.maths.tree.marginals import size_of
from discreet.programme.strategy import Strategy

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

SIZES = (0, 1, 10, 100, 1000, 10_000, 100_000)  # persons of an area from which a class of areas begins
MOST_MEASURED = 100_000_000  # noisy counts that are fitted again in memory

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FitError:
    """The mean absolute errors of one query at one level; of the own-level fit None where a level cannot be fitted."""

    level: str
    query: str
    cells: int
    stated: float  # root of the mean variance of the estimates
    estimates: float
    tree: float
    own_level: float | None


@dataclass(frozen=True)
class AreaError:
    """The mean absolute errors of one query in the areas of a level with this many persons."""

    level: str
    query: str
    least: int  # smallest number of persons of the class
    areas: int
    estimates: float
    tree: float
    own_level: float | None


@dataclass(frozen=True)
class FitErrors:
    """Errors by level and query, and by size of area."""

    queries: tuple[FitError, ...]
    sizes: tuple[AreaError, ...]
    without: str = ""  # why there is no own-level fit

    def table(self) -> list[str]:
        """Level, query and the three errors, in lines of text."""
        head = f"{'level':12} {'query':28} {'cells':>9} {'estimates':>10} {'tree':>10} {'own-level':>10}"
        lines = [
            f"{one.level:12} {one.query:28} {one.cells:>9,} {one.estimates:>10.3f} {one.tree:>10.3f} "
            + (f"{'-':>10}" if one.own_level is None else f"{one.own_level:>10.3f}")
            for one in self.queries
        ]
        return [head, *lines]


def too_many(plan: Plan) -> bool:
    """Whether the noisy counts are too many to be fitted again in memory."""
    basis = plan.strategy.histogram.basis
    widths = [sum(size_of(basis, one) for one in kind.marginals) for kind in plan.kinds]
    return bool(np.array(widths)[plan.kind_of].sum() > MOST_MEASURED)


def fit_errors(
    measurements: Measurements, limits: Limits, leaf_counts: sparse.csr_array, threads: int = 1
) -> FitErrors:
    """Fit noisy counts in three ways and compare them with the true counts of the smallest areas."""
    plan = measurements.plan
    spine, strategy = plan.spine, plan.strategy
    estimates = estimate(measurements, limits.totals)
    tree = integers(measurements, limits, Fit.TREE, threads)
    own, without = None, ""
    try:
        own = integers(totals_first(measurements, limits), limits, Fit.OWN_LEVEL, threads)
    except Mistakes as undetermined:
        without = str(undetermined).splitlines()[0]
    true = Tables(spine, strategy.histogram, node_counts(spine, leaf_counts, strategy), 0)
    queries: list[FitError] = []
    sizes: list[AreaError] = []
    for level, query in _asked(strategy):
        here = true.query(level, query)
        found = estimates.at(level, query)
        errors = [np.abs(found.values - here), np.abs(tree.query(level, query) - here)]
        if own is not None:
            errors.append(np.abs(own.query(level, query) - here))
        stated = float(np.sqrt(np.maximum(found.variances, 0.0).mean()))
        queries.append(FitError(level, query, here.size, stated, *_means(errors)))
        if query in ("total", "detailed"):
            sizes += _by_size(level, query, here.sum(axis=1), [one.mean(axis=1) for one in errors])
    return FitErrors(tuple(queries), tuple(sizes), without)


def _asked(strategy: Strategy) -> list[tuple[str, str]]:
    """Every level with every query that any level asks."""
    queries = dict.fromkeys(query for level in strategy.levels for query, _ in level.queries)
    named = ["total", *(query for query in queries if query != "total")]
    return [(level.level, query) for level in strategy.levels for query in named]


def _by_size(level: str, query: str, persons: NDArray[np.int64], errors: list[Floats]) -> Iterator[AreaError]:
    for least, beyond in zip(SIZES, (*SIZES[1:], np.inf), strict=True):
        some = (persons >= least) & (persons < beyond)
        if some.any():
            yield AreaError(level, query, least, int(some.sum()), *_means([one[some] for one in errors]))


def _means(errors: list[Floats]) -> tuple[float, float, float | None]:
    found = [float(one.mean()) for one in errors]
    return found[0], found[1], found[2] if len(found) > 2 else None
