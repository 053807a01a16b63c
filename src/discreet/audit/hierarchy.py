"""The audit of a hierarchical release: the errors of its counts and intervals, and the Bayesian adversary on its noise.

The adversary (Kazan and Reiter 2022, section 3.2) knows all records of a cell of a small area but one, and sees the
noisy counts of this cell in the area, in the larger area that contains it, and in the others within that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from discreet.audit.case import Case
from discreet.errors import BrokenRelease, Mistakes
from discreet.formats.dataset import VALUE
from discreet.hierarchy.measure import Plan, node_counts
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_hierarchy import Hierarchy
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.tree.marginals import positions, size_of
from discreet.programme.cube import Cube, crossed
from discreet.programme.hierarchical import Output
from discreet.release.hierarchy import ERROR, ESTIMATE, LOWER, UPPER, PublishedHierarchy
from discreet.run.tabulating import tabulate

MOST_TARGETS = 400  # of one level and query
MOST_RECORDS = 10  # of a cell that is attacked, the target included
PRIOR = 0.5
GATE = 0.95
SIZES = (0, 1, 10, 100, 1000, 10_000)  # true counts from which a class of cells begins
SEED = 20_220_716  # of the targets that are chosen
NOT_PUBLISHED = "the release does not publish its measurements"

Integers = NDArray[np.int64]


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


@dataclass(frozen=True)
class SizeError:
    """The errors of a level's cells by their true count."""

    level: str
    least: int  # smallest true count of the class
    cells: int
    counts: float
    estimates: float


@dataclass(frozen=True)
class AdversaryFinding:
    """The adversary's posterior of a target who is there, over cells of one query at one level; the prior is 1/2."""

    level: str
    above: str  # the larger areas
    query: str
    targets: int
    mean_posterior: float
    right: float  # share of targets whose presence is decided
    expected: float  # the same by the area's own noise alone, computed
    over_gate: float  # share of posteriors above 0.95


@dataclass(frozen=True)
class HierarchyAudit:
    """What an audit finds of a hierarchical release."""

    accuracy: tuple[Accuracy, ...]
    sizes: tuple[SizeError, ...]
    adversary: tuple[AdversaryFinding, ...]
    not_possible: Mapping[str, str]  # measure -> why it does not apply


def audit_hierarchy(
    case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy, not_possible: Mapping[str, str]
) -> HierarchyAudit:
    """Compare estimates and counts with the true ones, and attack the measurements."""
    reasons = dict(not_possible)
    accuracy: list[Accuracy] = []
    sizes: list[SizeError] = []
    adversary: tuple[AdversaryFinding, ...] = ()
    if Output.ESTIMATES in found.rule.outputs:
        errors = [_Errors(case, chosen, found, cube) for cube in case.programme.cubes]
        accuracy = [row for one in errors for row in one.rows()]
        sizes = [row for one in errors[:1] for row in one.by_size()]
    else:
        reasons["accuracy of estimates"] = "the release does not publish its estimates"
    if Output.MEASUREMENTS in found.rule.outputs:
        adversary = tuple(_Attack(case, chosen, found).findings())
    else:
        reasons["bayes"] = NOT_PUBLISHED
    return HierarchyAudit(tuple(accuracy), tuple(sizes), adversary, reasons)


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
                crossed(self._cube.signature(depths).levels),
                self._level(depths),
                int(here.sum()),
                float(np.abs(self._value[here] - true).mean()),
                float(np.abs(error).mean()),
                float(inside.mean()),
                float(np.sqrt((self._error[here] ** 2).mean())),
                float(np.sqrt((error**2).mean())),
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


class _Attack:
    """The adversary on the measurements of all areas with siblings."""

    def __init__(self, case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy) -> None:
        self._chosen, self._found = chosen, found
        counted = tabulate(case.run, [chosen.leaf], chosen.counts, case.run.places())
        (counts,) = counted.made.values()
        self._counts = node_counts(chosen.plan.spine, counts, chosen.plan.strategy)
        self._random = np.random.default_rng(SEED)

    def findings(self) -> Iterator[AdversaryFinding]:
        """One for each level, larger level and query that both ask."""
        plan = self._chosen.plan
        spine, levels = plan.spine, plan.spine.levels
        groups: dict[tuple[int, int, str], list[int]] = {}
        for parent in spine.inner.tolist():
            below = np.arange(spine.first[parent], spine.last[parent])
            kinds = np.unique(plan.kind_of[below])
            if len(kinds) != 1:
                continue  # siblings of different noise
            above, own = plan.kinds[plan.kind_of[parent]], plan.kinds[kinds[0]]
            for query in own.queries:
                if query in above.queries:
                    groups.setdefault((int(plan.kind_of[parent]), int(kinds[0]), query), []).append(parent)
        for (above, own, query), parents in groups.items():
            posterior, expected = self._posteriors(plan, above, own, query, parents)
            if len(posterior):
                yield AdversaryFinding(
                    levels[plan.kinds[own].bottom],
                    levels[plan.kinds[above].bottom],
                    query,
                    len(posterior),
                    float(posterior.mean()),
                    float((posterior > PRIOR).mean()),
                    float(expected.mean()),
                    float((posterior > GATE).mean()),
                )

    def _posteriors(
        self, plan: Plan, above: int, own: int, query: str, parents: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        spine, basis = plan.spine, plan.strategy.histogram.basis
        marginal = plan.strategy.histogram.marginal(query)
        place = positions(basis, marginal)
        ones = np.ones(len(place), dtype=np.int64)
        onto = csr_array((ones, (np.arange(len(place)), place)), shape=(len(place), size_of(basis, marginal)))
        noisy = {
            **self._measured(plan.kinds[above].bottom, query),
            **self._measured(plan.kinds[own].bottom, query),
        }
        lower, upper = (_law(plan, kind, query) for kind in (own, above))
        posteriors, expected = [], []
        for parent in self._random.permutation(parents).tolist():
            below = np.arange(spine.first[parent], spine.last[parent])
            true = (self._counts[below] @ onto).toarray()
            rows, cells = np.nonzero((true > 0) & (true <= MOST_RECORDS))
            take = self._random.permutation(len(rows))[: max(1, MOST_TARGETS // len(parents))]
            others = np.sum([noisy[node] for node in below.tolist()], axis=0)
            for row, cell in zip(rows[take].tolist(), cells[take].tolist(), strict=True):
                known = int(true[row, cell]) - 1
                x1 = int(noisy[int(below[row])][cell])
                attack = _hierarchy(lower, upper, len(below) - 1, known)
                try:
                    odds = attack.log_odds(x1, int(noisy[parent][cell]), int(others[cell]) - x1)
                except Mistakes:  # noise too far out for the sums of a double
                    continue
                posteriors.append(float(expit(odds)))
                expected.append(_alone(lower))
            if len(posteriors) >= MOST_TARGETS:
                break
        return np.array(posteriors), np.array(expected)

    def _measured(self, level: int, query: str) -> dict[int, Integers]:
        """Node -> its noisy counts, as published."""
        plan, rule = self._chosen.plan, self._chosen.hierarchy
        table = self._found.measurements(plan.spine.levels[level], query)
        histogram = plan.strategy.histogram
        width = size_of(histogram.basis, histogram.marginal(query))
        values = table[VALUE].to_numpy().reshape(-1, width)
        place = {code: at for at, code in enumerate(self._chosen.codes[level])}
        codes = table[rule.geography].to_pylist()[::width]
        return {
            int(plan.spine.node_of[level][place[code]]): row for code, row in zip(codes, values, strict=True)
        }


def _law(plan: Plan, kind: int, query: str) -> AdditiveLaw:
    found = plan.kinds[kind]
    return found.laws[found.queries.index(query)]


@lru_cache(maxsize=4096)
def _hierarchy(lower: AdditiveLaw, upper: AdditiveLaw, groups: int, known: int) -> Hierarchy:
    return Hierarchy(lower, upper, groups, known, PRIOR)


@lru_cache(maxsize=256)
def _alone(lower: AdditiveLaw) -> float:
    """How often a target who is there is decided for by the noise of the own count only."""
    return Adversary(lower, 0, PRIOR).correct
