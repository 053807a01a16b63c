"""The utility of a release against the truth: errors of cells, associations, small areas and additivity.

It owns the run over all tables and what is told of it; the measures themselves are in maths. All of it is the office's
own: sums and shares over many cells, never the true count of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from discreet.audit.once import OwnedTable, once
from discreet.audit.published import Published
from discreet.audit.truth import Truth
from discreet.audit.utility_areas import AreaCounts, AreaDistortion
from discreet.audit.utility_figures import ErrorWays, GapFigures, GapSums, WaySums
from discreet.audit.utility_tables import TwoWay, two_way
from discreet.engine.progress import Progress, Quiet
from discreet.errors import mistake
from discreet.maths.additivity import CellNoise, gaps
from discreet.maths.aligned import Integers, Places, aligned
from discreet.maths.disclosure import Side, parts_along, side
from discreet.maths.laws import Law
from discreet.maths.pmf import Floats
from discreet.maths.utility import ExpectedLosses, errors, expected_errors
from discreet.perturb.private import post_processed

ORIGINAL, COUNTED = "original", "counted"  # before and after swapping


@dataclass(frozen=True)
class UtilityRule:
    """What is measured."""

    edges: tuple[int, ...] = (1, 3, 10, 50, 500)  # true counts at which size classes begin
    areas: tuple[str, ...] = ()  # variables whose codes are areas
    by: str = ""  # the variable whose categories are looked at beside an area's total, as SEX
    distortions: tuple[float, ...] = (0.2, 0.5, 1.0)  # relative errors of areas that are counted
    area_edges: tuple[int, ...] = (1, 21, 41, 61, 81, 101, 201, 501)  # true counts of areas, in classes
    quantiles: tuple[float, ...] = (0.5, 0.9, 0.95, 0.99, 1.0)
    level: float = 0.05  # of the chi-square tests
    listed: int = 20  # tables that are named

    def __post_init__(self) -> None:
        for name in ("edges", "area_edges"):
            edges = getattr(self, name)
            if not edges or edges[0] != 1 or list(edges) != sorted(set(edges)):
                raise mistake("", name, str(edges), "give rising whole numbers from 1 on")
        if not all(0 < share <= 1 for share in self.quantiles):
            raise mistake("", "quantiles", str(self.quantiles), "give shares above 0 and up to 1")
        if not all(limit > 0 for limit in self.distortions):
            raise mistake("", "distortions", str(self.distortions), "give relative errors above 0")


@dataclass(frozen=True, eq=False)
class Utility:
    """How useful a release is."""

    errors: dict[
        str, ErrorWays
    ]  # against the original, and against the counted where swapping made them differ
    two_way: tuple[TwoWay, ...]  # every two-way table, against the original
    areas: tuple[AreaDistortion, ...]
    gaps: dict[str, GapFigures]  # axis -> totals against their parts
    level: float
    listed: int

    @property
    def total(self) -> ErrorWays:
        """Against the original."""
        return self.errors[ORIGINAL]

    @property
    def changed_tests(self) -> int:
        """Two-way tables whose test of independence is decided otherwise than with the true counts."""
        return sum(table.is_changed(self.level) for table in self.two_way)

    def summary(self) -> dict[str, Any]:
        """What a report shows, ready for JSON."""
        shifts = [table.shift for table in self.two_way if table.shift is not None]
        ranks = [table.rank for table in self.two_way if table.rank is not None]
        worst = sorted(self.two_way, key=lambda table: -(table.shift or 0))[: self.listed]
        return {
            "errors": {name: ways.summary(self.listed) for name, ways in self.errors.items()},
            "two_way": {
                "tables": len(self.two_way),
                "mean_shift_of_cramers_v": float(np.mean(shifts)) if shifts else None,
                "largest_shift_of_cramers_v": max(shifts, default=None),
                "changed_tests": self.changed_tests,
                "mean_rank_correlation": float(np.mean(ranks)) if ranks else None,
                "least_rank_correlation": min(ranks, default=None),
                "worst": [table.summary() for table in worst],
            },
            "areas": [one.summary() for one in self.areas],
            "additivity": {name: one.summary() for name, one in self.gaps.items()},
        }


def utility(
    published: Published, truth: Truth, rule: UtilityRule | None = None, progress: Progress | None = None
) -> Utility:
    """Compare all tables of a release with the truth, each cross-tabulation once, table by table."""
    return _Run(published, truth, rule or UtilityRule()).run(progress or Quiet())


def side_by_side(releases: dict[str, Utility]) -> dict[str, dict[str, float | None]]:
    """Several releases of the same programme: measure -> release -> value, for the cells with somebody in them."""
    shown = {name: one.total.total.headline() for name, one in releases.items()}
    measures = dict.fromkeys(measure for values in shown.values() for measure in values)
    return {measure: {name: values.get(measure) for name, values in shown.items()} for measure in measures}


@dataclass(eq=False)
class _Run:
    """The sums of one run."""

    published: Published
    truth: Truth
    rule: UtilityRule
    sums: dict[str, WaySums] = field(init=False)
    gap_sums: GapSums = field(default_factory=GapSums)
    tables: list[TwoWay] = field(default_factory=list)
    areas: AreaCounts = field(init=False)
    laws: dict[Law, ExpectedLosses] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (ORIGINAL, COUNTED) if self.truth.is_swapped else (ORIGINAL,)
        self.sums = {name: WaySums(self.rule.edges, self.rule.quantiles, self.rule.areas) for name in names}
        self.areas = AreaCounts(self.rule.areas, self.rule.by, self.rule.distortions, self.rule.area_edges)

    def run(self, progress: Progress) -> Utility:
        tables = [owned for universe in self.published.universes for owned in once(universe)]
        progress.stage("utility", len(tables))
        for owned in tables:
            if owned.owned.any():
                self._table(owned)
            progress.step()
        return Utility(
            {name: sums.ways() for name, sums in self.sums.items()},
            tuple(self.tables),
            self.areas.distortions(),
            self.gap_sums.figures(),
            self.rule.level,
            self.rule.listed,
        )

    def _table(self, owned: OwnedTable) -> None:
        found = side(*aligned(owned.values(self.truth)), owned.grid)
        possible = np.array(owned.sizes, dtype=np.int64)
        values, crosstab = found.values[found.own], found.crosstab[found.own]
        last = values.shape[1] - 1  # the noise was added to the last column
        for column, sums in enumerate(self.sums.values(), start=1):
            expected = self._expected(owned, values[:, -1], crosstab, possible) if column == last else None
            found_errors = errors(values[:, column], values[:, 0], crosstab, possible, self.rule.edges)
            sums.add(owned, found_errors, expected)
        self.tables += two_way(owned, found)
        self.areas.add(owned, found, self._law_of)
        self._gaps(owned, found)

    def _law_of(self, owned: OwnedTable, crosstab: int) -> ExpectedLosses | None:
        """The expectations of a cross-tabulation's law; None where it is not known."""
        noise = self.published.noise
        if noise.law is None and not noise.laws:
            return None
        law = noise.law_of(owned.signature(crosstab))
        shown = partial(post_processed, rule=noise.published)
        return self.laws.setdefault(law, ExpectedLosses(law, shown, noise.keeps_zeros))

    def _by_law(self, owned: OwnedTable) -> dict[ExpectedLosses, list[int]]:
        """All cross-tabulations of a table by their law."""
        grouped: dict[ExpectedLosses, list[int]] = {}
        for crosstab in range(len(owned.owned)):
            law = self._law_of(owned, crosstab)
            if law is not None:
                grouped.setdefault(law, []).append(crosstab)
        return grouped

    def _expected(
        self, owned: OwnedTable, counted: Integers, crosstab: Places, possible: Integers
    ) -> Floats | None:
        total: Floats | None = None
        for law, crosstabs in self._by_law(owned).items():
            here = np.zeros_like(possible)
            here[crosstabs] = possible[crosstabs]
            part = expected_errors(counted, crosstab, here, self.rule.edges, law)
            total = part if total is None else total + part
        return total

    def _noise(self, owned: OwnedTable, found: Side) -> CellNoise | None:
        """Mean and variance of the noise of each cell; None where neither law nor variance is known."""
        noise, counted = self.published.noise, found.values[:, -1]
        listed, empty = np.zeros((len(counted), 2)), np.zeros((len(owned.owned), 2))
        grouped = self._by_law(owned)
        if not grouped:
            if noise.variance is None:
                return None
            listed[:, 1] = np.where((counted > 0) | (not noise.keeps_zeros), noise.variance, 0)
            empty[:, 1] = 0 if noise.keeps_zeros else noise.variance
        for law, crosstabs in grouped.items():
            here = np.isin(found.crosstab, crosstabs) if len(grouped) > 1 else np.ones(len(counted), bool)
            counts, place = np.unique(counted[here], return_inverse=True)
            listed[here] = law.moments(counts)[place]
            empty[crosstabs] = law.moments(np.zeros(1, dtype=np.int64))
        return CellNoise(listed, empty, noise.same_noise)

    def _gaps(self, owned: OwnedTable, found: Side) -> None:
        noise = self._noise(owned, found)
        silent = CellNoise(np.zeros((len(found.cells), 2)), np.zeros((len(owned.owned), 2)), same_noise=False)
        for k, axis in enumerate(owned.cube.axes):
            judged = gaps(
                found.values[:, 0], found.values[:, -1], noise or silent, found.wider[k],
                *parts_along(found, owned.grid, k),
            )  # fmt: skip
            self.gap_sums.add(axis.variable, judged, has_expected=noise is not None)
