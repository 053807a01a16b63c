"""Utility of a release against the true counts: errors, associations, small areas and additivity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bound_propagation import whole_table
from discreet.audit.cells import OwnedTable, measured, once
from discreet.audit.evidence import Published, Truth
from discreet.audit.utility_figures import ErrorWays, GapFigures, GapSums, WaySums, crosstabs_by_way
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.additivity import CellNoise, DenseCells, Gaps, PartsAlong, dense_gaps, gaps
from discreet.maths.attacks.disclosure import ORIGINAL, PUBLISHED, CubeGrid, Side, parts_elsewhere, side
from discreet.maths.cells.alignment import Integers, aligned, is_sparse, nodes_along
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw
from discreet.maths.utility import (
    Association,
    DistinctCounts,
    ExpectedLosses,
    class_names,
    errors,
    expected_errors,
    independence,
    moments,
    rank_correlation,
)
from discreet.programme.cube import Levels


@dataclass(frozen=True)
class TwoWay:
    """One two-way table, true and published."""

    counted: str
    levels: str
    cube: str
    true: Association
    published: Association
    rank: float | None  # Spearman's correlation of the cells that are not empty on either side

    @property
    def shift(self) -> float | None:
        """By how much Cramer's V is off."""
        if self.true.cramers_v is None or self.published.cramers_v is None:
            return None
        return abs(self.published.cramers_v - self.true.cramers_v)

    def is_changed(self, level: float) -> bool:
        """Whether the test of independence has another result."""
        before, after = self.true.p_value, self.published.p_value
        return before is not None and after is not None and (before < level) != (after < level)

    def as_json(self) -> Mapping[str, object]:
        """The document: statistics of whole tables, no count."""
        return {
            "counted": self.counted,
            "levels": self.levels,
            "cube": self.cube,
            "cramers_v": self.true.cramers_v,
            "published_cramers_v": self.published.cramers_v,
            "p_value": self.true.p_value,
            "published_p_value": self.published.p_value,
            "rank_correlation": self.rank,
        }


def two_way(owned: OwnedTable, found: Side) -> Iterator[TwoWay]:
    """Every two-way table that this one is the first to show."""
    for crosstab in owned.new:
        crossed = [k for k, depth in enumerate(owned.depths[crosstab]) if depth]
        if len(crossed) == 2:
            yield _read(owned, found, crosstab, *crossed)


def _read(owned: OwnedTable, found: Side, crosstab: int, down: int, across: int) -> TwoWay:
    here = found.rows(crosstab)
    cells, values = found.cells[here], found.values[here]
    cube = owned.cube
    rows, columns = (
        nodes_along(cells, cube.strides[k], cube.shape[k]).astype(np.int64) for k in (down, across)
    )
    occupied = (values[:, PUBLISHED] > 0) | (values[:, ORIGINAL] > 0)
    return TwoWay(
        owned.universe.counted,
        owned.crosstab_name(crosstab),
        owned.table.id,
        independence(rows, columns, values[:, ORIGINAL]),
        independence(rows, columns, values[:, PUBLISHED]),
        rank_correlation(values[occupied, ORIGINAL], values[occupied, PUBLISHED]),
    )


# [count, measure] expected by a law, and the cross-tabulations that have it
Laws = list[tuple[Floats, list[int]]]
LawOf = Callable[[OwnedTable, int], ExpectedLosses | None]


@dataclass(frozen=True, eq=False)
class SizeClass:
    """Areas of one size class of the true count: limit -> how many are distorted by that share or more."""

    size: str
    observations: int
    distorted: dict[float, int]
    expected: dict[float, float] | None
    areas: int  # with people in every category, by their total
    broadband: dict[float, int]
    expected_broadband: dict[float, float] | None


@dataclass(frozen=True, eq=False)
class AreaDistortion:
    """The areas of one level in one universe."""

    counted: str
    level: str
    by: str
    classes: tuple[SizeClass, ...]


@dataclass(frozen=True, eq=False)
class _Observed:
    """The observations of one level: area, category (0 for the total), counts and chances of a distortion."""

    area: Integers  # node of the area's axis, which is the same in every table of the universe
    category: Integers
    true: Integers
    published: Integers
    chance_up: Floats  # [observation, limit]; nan where the law is not known
    chance_down: Floats


@dataclass(eq=False)
class AreaCounts:
    """The observations, while tables are added."""

    areas: tuple[str, ...]
    by: str
    limits: tuple[float, ...]
    edges: tuple[int, ...]
    seen: dict[tuple[str, str, int], list[_Observed]] = field(default_factory=dict)
    codes: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    names: dict[tuple[str, int], str] = field(
        default_factory=dict
    )  # (variable, depth) of areas -> its level's name

    def add(self, owned: OwnedTable, found: Side, law_of: LawOf) -> None:
        """Add the areas' totals and categories that this table is the first to show."""
        for crosstab in owned.new:
            levels = owned.levels(crosstab)
            area = self._area(levels)
            if area is not None:
                variable, depth = area
                self.names.setdefault(area, owned.level_name(variable, depth))
                observed = self._observed(owned, found, crosstab, variable, law_of(owned, crosstab))
                self.seen.setdefault((owned.universe.counted, variable, depth), []).append(observed)

    def distortions(self) -> tuple[AreaDistortion, ...]:
        """Count the distorted areas of every level."""
        return tuple(
            AreaDistortion(
                counted, self.names[variable, depth], self.by, tuple(self._classes(_joined(observed)))
            )
            for (counted, variable, depth), observed in sorted(self.seen.items())
        )

    def _area(self, levels: Levels) -> tuple[str, int] | None:
        """The level of the areas, where a cross-tabulation has only areas, or areas by the categories."""
        areas = [level for level in levels if level[0] in self.areas]
        others = [level for level in levels if level[0] not in self.areas]
        if len(areas) == 1 and (not others or others == [(self.by, 1)]):
            return areas[0]
        return None

    def _observed(
        self, owned: OwnedTable, found: Side, crosstab: int, variable: str, law: ExpectedLosses | None
    ) -> _Observed:
        here = found.rows(crosstab)
        here = here[found.own[here] & (found.values[here, ORIGINAL] > 0)]
        values = found.values[here]
        area = self._codes(owned, found.cells[here], variable)
        category = (
            self._codes(owned, found.cells[here], self.by) + 1
            if len(owned.levels(crosstab)) == 2
            else np.zeros(len(here), dtype=np.int64)
        )
        up, down = self._chances(values[:, ORIGINAL], values[:, -1], law)
        return _Observed(area, category, values[:, ORIGINAL], values[:, PUBLISHED], up, down)

    def _codes(self, owned: OwnedTable, cells: Integers, variable: str) -> Integers:
        """One number for each code of a variable, the same in all its breakdowns."""
        known = self.codes.setdefault((owned.universe.counted, variable), {})
        k = next(k for k, axis in enumerate(owned.cube.axes) if axis.variable == variable)
        axis = owned.cube.axes[k]
        numbers = np.array([known.setdefault(code, len(known)) for code in axis.codes], dtype=np.int64)
        return numbers[nodes_along(cells, owned.cube.strides[k], len(axis))]

    def _chances(
        self, true: Integers, counted: Integers, law: ExpectedLosses | None
    ) -> tuple[Floats, Floats]:
        """The probabilities that noise on the counted value distorts the true one by each limit, up and down."""
        if law is not None:
            return law.tails(true, counted, self.limits)
        unknown = np.full((len(true), len(self.limits)), np.nan)
        return unknown, unknown

    def _classes(self, seen: _Observed) -> Iterator[SizeClass]:
        relative = (seen.published - seen.true) / seen.true
        klass = np.searchsorted(np.array(self.edges), seen.true, side="right")
        whole = _whole_areas(seen)
        total = {int(area): int(k) for area, k in zip(seen.area[seen.category == 0],
                                                      klass[seen.category == 0], strict=True)}  # fmt: skip
        of_area = np.array([total[int(area)] for area, _ in whole], dtype=np.int64)
        for k, name in enumerate(class_names(self.edges)[1:], start=1):
            here = klass == k
            groups = [members for (_, members), size in zip(whole, of_area, strict=True) if size == k]
            yield SizeClass(
                name,
                int(here.sum()),
                {limit: int((np.abs(relative[here]) >= limit).sum()) for limit in self.limits},
                self._expected((seen.chance_up + seen.chance_down)[here]),
                len(groups),
                {limit: sum(_is_broadband(relative[m], limit) for m in groups) for limit in self.limits},
                self._expected(_products(seen, groups)),
            )

    def _expected(self, chances: Floats) -> dict[float, float] | None:
        """Sums of probabilities; None where the law is not known."""
        sums = chances.sum(axis=0) if len(chances) else np.zeros(len(self.limits))
        return None if np.isnan(sums).any() else dict(zip(self.limits, sums.tolist(), strict=True))


def _joined(observed: list[_Observed]) -> _Observed:
    return _Observed(
        *(np.concatenate([getattr(one, name) for one in observed]) for name in vars(observed[0]))
    )


def _whole_areas(seen: _Observed) -> list[tuple[int, Integers]]:
    """The areas with records in every category, and the places of their observations."""
    if 0 not in seen.category:  # the totals are not published
        return []
    categories = len(np.unique(seen.category))
    order = np.argsort(seen.area, kind="stable")
    starts = np.flatnonzero(np.diff(seen.area[order], prepend=-1))
    parts = np.split(order, starts[1:])
    return [(int(seen.area[part[0]]), part) for part in parts if len(part) == categories > 1]


def _is_broadband(relative: Floats, limit: float) -> bool:
    return bool((relative >= limit).all() or (relative <= -limit).all())


def _products(seen: _Observed, groups: list[Integers]) -> Floats:
    """The chance that all observations of an area go up, or all down, assuming independent noise."""
    return np.array([seen.chance_up[m].prod(axis=0) + seen.chance_down[m].prod(axis=0) for m in groups])


UNSWAPPED, COUNTED = "original", "counted"  # before and after swapping


@dataclass(frozen=True)
class UtilityRule:
    """The parameters of the measures."""

    edges: tuple[int, ...] = (1, 3, 10, 50, 500)  # true counts at which size classes begin
    areas: tuple[str, ...] = ()  # variables whose codes are areas
    by: str = ""  # the variable whose categories are used besides an area's total, as SEX
    distortions: tuple[float, ...] = (0.2, 0.5, 1.0)  # relative errors of areas that are counted
    area_edges: tuple[int, ...] = (1, 21, 41, 61, 81, 101, 201, 501)  # true counts of areas, in classes
    quantiles: tuple[float, ...] = (0.5, 0.9, 0.95, 0.99, 1.0)
    level: float = 0.05  # of the chi-square tests
    listed: int = 20  # tables that are named

    def __post_init__(self) -> None:
        for name in ("edges", "area_edges"):
            edges = getattr(self, name)
            if not edges or edges[0] != 1 or list(edges) != sorted(set(edges)):
                raise mistake("", name, str(edges), "give increasing whole numbers of at least 1")
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
        return self.errors[UNSWAPPED]

    @property
    def noisy(self) -> ErrorWays:
        """Against the counts that the noise was added to, which swapping may have changed before."""
        return self.errors.get(COUNTED, self.total)

    @property
    def changed_tests(self) -> int:
        """Two-way tables whose test of independence has another result than with the true counts."""
        return sum(table.is_changed(self.level) for table in self.two_way)

    @property
    def shifts(self) -> list[float]:
        """By how much Cramer's V is off, for every table that has one on both sides."""
        return [table.shift for table in self.two_way if table.shift is not None]

    @property
    def mean_shift(self) -> float | None:
        """The mean of these."""
        return float(np.mean(self.shifts)) if self.shifts else None

    def as_json(self) -> Mapping[str, object]:
        """The document: what a report shows, and the worst tables."""
        ranks = [table.rank for table in self.two_way if table.rank is not None]
        worst = sorted(self.two_way, key=lambda table: -(table.shift or 0))[: self.listed]
        return {
            "errors": {name: ways.document(self.listed) for name, ways in self.errors.items()},
            "two_way": {
                "tables": len(self.two_way),
                "mean_shift_of_cramers_v": self.mean_shift,
                "largest_shift_of_cramers_v": max(self.shifts, default=None),
                "changed_tests": self.changed_tests,
                "mean_rank_correlation": float(np.mean(ranks)) if ranks else None,
                "least_rank_correlation": min(ranks, default=None),
                "worst": worst,
            },
            "areas": self.areas,
            "additivity": self.gaps,
        }


def utility(
    published: Published, truth: Truth, rule: UtilityRule | None = None, progress: Progress | None = None
) -> Utility:
    """Compare all tables of a release with the true counts, each cross-tabulation once, table by table."""
    return _Run(published, truth, rule or UtilityRule()).run(progress or Quiet())


def side_by_side(releases: dict[str, Utility]) -> dict[str, dict[str, float | None]]:
    """Several releases of the same programme: measure -> release -> value, for the cells that are not empty."""
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
    laws: dict[PublishedLaw, ExpectedLosses] = field(default_factory=dict)
    room: Floats = field(default_factory=lambda: np.empty(0))  # for the largest table that was laid out whole

    def __post_init__(self) -> None:
        names = (UNSWAPPED, COUNTED) if self.truth.is_swapped else (UNSWAPPED,)
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
        counted = DistinctCounts.of(found.values[:, -1])  # the noise was added to the last column
        last = found.values.shape[1] - 1
        laws = [(law.at(counted.counts), crosstabs) for law, crosstabs in self._by_law(owned).items()]
        grouped = crosstabs_by_way(owned, self.rule.areas)
        for column, sums in enumerate(self.sums.values(), start=1):
            expected = self._expected(laws, counted, found, possible) if column == last else None
            shown, true, edges = found.values[:, PUBLISHED], found.values[:, column], self.rule.edges
            made = errors(true, shown, found.crosstab, possible, edges, found.own, grouped.group)
            sums.add(owned, made, expected, grouped)
        self.tables += two_way(owned, found)
        self.areas.add(owned, found, self._law_of)
        self._gaps(owned, found, counted, laws)

    def _law_of(self, owned: OwnedTable, crosstab: int) -> ExpectedLosses | None:
        """The expectations of a cross-tabulation's law; None where it is not known."""
        noise = self.published.noise
        if noise.law is None and not noise.laws:
            return None
        law = noise.published_of(owned.signature(crosstab))
        if (known := self.laws.get(law)) is None:
            known = self.laws[law] = ExpectedLosses(law)
        return known

    def _by_law(self, owned: OwnedTable) -> dict[ExpectedLosses, list[int]]:
        """All cross-tabulations of a table by their law."""
        grouped: dict[ExpectedLosses, list[int]] = {}
        every = np.flatnonzero(measured(owned.cube)).tolist()
        if not self.published.noise.laws:  # all have the same one
            law = self._law_of(owned, every[0]) if every else None
            return {} if law is None else {law: every}
        for crosstab in every:
            law = self._law_of(owned, crosstab)
            if law is not None:
                grouped.setdefault(law, []).append(crosstab)
        return grouped

    def _expected(
        self, laws: Laws, counted: DistinctCounts, found: Side, possible: Integers
    ) -> Floats | None:
        total: Floats | None = None
        for losses, crosstabs in laws:
            here = np.zeros_like(possible)
            here[crosstabs] = possible[crosstabs]
            part = expected_errors(counted, found.crosstab, here, self.rule.edges, losses, found.own)
            total = part if total is None else total + part
        return total

    def _noise(
        self, owned: OwnedTable, found: Side, counted: DistinctCounts, grouped: Laws
    ) -> CellNoise | None:
        """Mean and variance of the noise of each cell; None where neither law nor variance is known."""
        noise, counts = self.published.noise, counted.counts
        empty = np.zeros((len(owned.owned), 2))
        if not grouped:
            if noise.variance is None:
                return None
            alike = np.zeros((len(counts), 2))
            alike[:, 1] = np.where((counts > 0) | (not noise.keeps_zeros), noise.variance, 0)
            empty[:, 1] = 0 if noise.keeps_zeros else noise.variance
            return CellNoise(alike, counted.place, empty, noise.same_noise)
        kind, number = counted.place, np.zeros(len(owned.owned), dtype=np.int32)  # of the law
        every = [moments(losses) for losses, _ in grouped]
        for place, (_, crosstabs) in enumerate(grouped):
            number[crosstabs] = place
            empty[crosstabs] = every[place][counted.zero]
        if len(grouped) > 1:
            kind = kind + np.int32(len(counts)) * number[found.crosstab]
        return CellNoise(np.concatenate(every), kind, empty, noise.same_noise)

    def _gaps(self, owned: OwnedTable, found: Side, counted: DistinctCounts, laws: Laws) -> None:
        noise = self._noise(owned, found, counted, laws)
        silent = CellNoise(
            np.zeros((len(counted.counts), 2)), counted.place, np.zeros((len(owned.owned), 2)), False
        )
        for variable, judged in self._gaps_along_axes(owned, found, noise or silent):
            self.gap_sums.add(variable, judged, has_expected=noise is not None)

    def _gaps_along_axes(
        self, owned: OwnedTable, found: Side, noise: CellNoise
    ) -> Iterator[tuple[str, Gaps]]:
        """The gaps along each axis: over the whole grid, unless most of that is empty or noisy where empty."""
        cube, shown, true = owned.cube, found.values[:, PUBLISHED], found.values[:, -1]
        if is_sparse(cube.size, len(found.cells)) or owned.earlier or noise.empty.any():
            for k, axis in enumerate(cube.axes):
                along = _parts_along(found, owned.grid, k, measured(cube))
                yield axis.variable, gaps(found.cells, shown, true, noise, found.crosstab, along)
            return
        if self.room.size < 4 * cube.size:
            self.room = np.empty(4 * cube.size)
        room = self.room[: 4 * cube.size].reshape(4, -1)
        table = DenseCells.of(room, found.cells, shown, true, noise)
        for k, tuples in whole_table(owned).items():
            parts = tuples.families, tuples.choice
            yield cube.axes[k].variable, dense_gaps(table, tuples.shape, *parts, noise.same_noise)


def _parts_along(found: Side, grid: CubeGrid, axis: int, totals: NDArray[np.bool_]) -> PartsAlong:
    """The parts of a table's cells along one axis; ``totals``: which cross-tabulations are compared with them."""
    parents = grid.parents[axis]
    return PartsAlong(
        grid.strides[axis],
        np.bincount(parents[1:], minlength=len(parents)),
        found.wider[axis],
        grid.radices[axis],
        totals,
        grid.owned,
        parts_elsewhere(found, grid, axis) if grid.earlier else None,
    )


def utility_by(seen: Published, truth: Truth, by: str = "", progress: Progress | None = None) -> Utility:
    """The utility of a release for small areas, the categories of one of its variables compared where it is named."""
    if by and by not in seen.variables:
        raise mistake("", "--by", by, f"choose from {', '.join(seen.variables)}")
    return utility(seen, truth, UtilityRule(areas=seen.places, by=by), progress)
