"""The audit of a hierarchical release: errors of counts and intervals, other fits, and the adversary on its noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bayes_measurements import AdversaryFinding, attack_measurements, smallest_areas
from discreet.audit.case import Case
from discreet.audit.estimates import recovered
from discreet.audit.fits import MOST_MEASURED, FitErrors, fit_errors, too_many
from discreet.errors import BrokenRelease
from discreet.formats.dataset import VALUE
from discreet.hierarchy.cubes import read_bounds
from discreet.hierarchy.integers import limits_of
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import Output
from discreet.release.hierarchy import ERROR, ESTIMATE, LOWER, UPPER, PublishedHierarchy

NOT_PUBLISHED = "the release does not publish its measurements"
SIZES = (0, 1, 10, 100, 1000, 10_000)  # true counts from which a class of cells begins

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """The errors of one cross-tabulation of a cube, all cells counted, against the true counts."""

    cube: str
    crosstab: str
    level: str  # of the geography
    cells: int
    counts: float  # mean absolute error of the whole counts
    estimates: float  # of the estimates
    coverage: float  # share of the 95 % intervals that contain the true count
    stated: float  # root of the mean squared standard error
    observed: float  # root of the mean squared error of the estimates
    recovered: float  # share of estimates with noise that, rounded, are the true count
    recovery: float  # the same as the standard errors predict


@dataclass(frozen=True)
class SizeError:
    """The errors of a level's cells by their true count."""

    level: str
    least: int  # smallest true count of the class
    cells: int
    counts: float
    estimates: float


@dataclass(frozen=True)
class HierarchyAudit:
    """What an audit finds of a hierarchical release."""

    accuracy: tuple[Accuracy, ...]
    sizes: tuple[SizeError, ...]
    fits: FitErrors | None
    adversary: tuple[AdversaryFinding, ...]
    not_possible: Mapping[str, str]  # measure -> why it does not apply


def audit_hierarchy(
    case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy, not_possible: Mapping[str, str]
) -> HierarchyAudit:
    """Compare estimates and counts with the true ones, fit the measurements again, and attack them."""
    reasons = dict(not_possible)
    accuracy: list[Accuracy] = []
    sizes: list[SizeError] = []
    adversary: tuple[AdversaryFinding, ...] = ()
    fits = None
    if Output.ESTIMATES in found.rule.outputs:
        errors = [_Errors(case, chosen, found, cube) for cube in case.programme.cubes]
        accuracy = [row for one in errors for row in one.rows()]
        sizes = [row for one in errors[:1] for row in one.by_size()]
    else:
        reasons["accuracy of estimates"] = "the release does not publish its estimates"
    if Output.MEASUREMENTS in found.rule.outputs:
        adversary = attack_measurements(case, chosen, found)
        if too_many(found.plan):
            reasons["fits"] = f"more than {MOST_MEASURED:,} noisy counts are not fitted again"
        else:
            fits = _fits(case, chosen, found)
    else:
        reasons["bayes"] = reasons["fits"] = NOT_PUBLISHED
    return HierarchyAudit(tuple(accuracy), tuple(sizes), fits, adversary, reasons)


def _fits(case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy) -> FitErrors:
    """The three fits of the published measurements, with the invariants of the release."""
    case.run.progress.stage("fitting areas again")
    counts = smallest_areas(case, chosen)
    plan = chosen.plan
    limits = limits_of(plan.spine, plan.strategy, counts, chosen.hierarchy.totals, read_bounds(chosen))
    return fit_errors(found.stored, limits, counts, case.run.threads)


class _Errors:
    """The published and true counts of one cube's grid."""

    def __init__(
        self, case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy, cube: Cube
    ) -> None:
        self._cube, self._rule = cube, chosen.hierarchy
        self._true = np.zeros(cube.size, dtype=np.int64)
        cells, counts = case.truth.counted[cube.id]
        self._true[cells] = counts
        table = found.estimates(cube.id)
        if len(table) != cube.size:
            raise BrokenRelease(f"estimates of {cube.id}: {len(table)} cells instead of {cube.size}")
        columns = (table[name].to_numpy() for name in (VALUE, ESTIMATE, ERROR, LOWER, UPPER))
        self._value, self._estimate, self._error, self._lower, self._upper = columns
        self._crosstab = cube.crosstab_numbers(np.arange(cube.size))

    def rows(self) -> Iterator[Accuracy]:
        """One row for each cross-tabulation."""
        for number, depths in enumerate(self._cube.depths):
            here = self._crosstab == number
            if not here.any():
                continue
            true, error = self._true[here], self._estimate[here] - self._true[here]
            inside = (self._lower[here] <= true) & (true <= self._upper[here])
            yield Accuracy(
                self._cube.id,
                self._cube.level_name(depths),
                self._level(depths),
                int(here.sum()),
                float(np.abs(self._value[here] - true).mean()),
                float(np.abs(error).mean()),
                float(inside.mean()),
                float(np.sqrt((self._error[here] ** 2).mean())),
                float(np.sqrt((error**2).mean())),
                *_recovery(self._error[here], error),
            )

    def _level(self, depths: tuple[int, ...]) -> str:
        for axis, depth in zip(self._cube.axes, depths, strict=True):
            if axis.variable == self._rule.geography:
                return self._rule.levels[depth]
        return self._rule.levels[0]

    def by_size(self) -> Iterator[SizeError]:
        """The finest cells of every level of the geography, by their true count."""
        finest = [int(axis.depths.max()) for axis in self._cube.axes]
        for number, depths in enumerate(self._cube.depths):
            others = [
                depth == deepest or axis.variable == self._rule.geography
                for axis, depth, deepest in zip(self._cube.axes, depths, finest, strict=True)
            ]
            if not all(others):
                continue
            here = self._crosstab == number
            for least, beyond in zip(SIZES, (*SIZES[1:], np.inf), strict=True):
                some = here & (self._true >= least) & (self._true < beyond)
                if some.any():
                    counts = float(np.abs(self._value[some] - self._true[some]).mean())
                    estimates = float(np.abs(self._estimate[some] - self._true[some]).mean())
                    yield SizeError(self._level(depths), least, int(some.sum()), counts, estimates)


def _recovery(stated: Floats, error: Floats) -> tuple[float, float]:
    """The shares of estimates with noise that are recovered, found and predicted; 0 where no count has noise."""
    noisy = stated > 0
    if not noisy.any():
        return 0.0, 0.0
    return float((np.abs(error[noisy]) < 0.5).mean()), float(recovered(stated[noisy]).mean())
