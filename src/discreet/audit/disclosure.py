"""Small counts, uniques and attribute disclosure: how many a release shows, and how many are true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from heapq import nsmallest
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from discreet.audit.cells import OwnedTable, Way, once, ways
from discreet.audit.evidence import Published, Truth
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.disclosure import (
    ORIGINAL,
    PUBLISHED,
    AttributeRows,
    RowKind,
    Side,
    Tallies,
    TallyColumn,
    histogram,
    mixture,
    rows,
    side,
    small_counts,
)
from discreet.maths.cells.alignment import Integers, aligned, nodes_along
from discreet.maths.noise.additive import Law
from discreet.maths.noise.law import Pmf
from discreet.perturb.noise import LARGE, Noise

LEAST_WINDOW, WIDEST_WINDOW = 64, 512
SPREADS = 6  # standard deviations that a true count may lie beyond the window


@dataclass(frozen=True)
class Chance:
    """The estimated share of the cells published as a value that truly have it."""

    value: int
    published: int  # cells
    chance: float


@dataclass(eq=False)
class Chances:
    """Published values by universe and noise law, and the chance that small ones are true."""

    noise: Noise
    below: int
    seen: dict[tuple[str, Law], Integers] = field(default_factory=dict)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the noise in large counts; 0 where it is not known."""
        return math.sqrt(self.noise.law.row(LARGE).variance) if self.noise.law else 0.0

    @property
    def window(self) -> int:
        """Published values below this are used."""
        return min(WIDEST_WINDOW, LEAST_WINDOW + math.ceil(SPREADS * self.spread))

    def add(self, owned: OwnedTable, table: Side) -> None:
        """Add a table's cells by cross-tabulation and published value."""
        if self.noise.law is None or not self.noise.keeps_zeros:
            return
        seen = histogram(table, owned.grid, self.window)
        for crosstab in np.flatnonzero(owned.owned).tolist():
            law = self.noise.law_of(owned.signature(crosstab))
            key = owned.universe.counted, law
            self.seen[key] = self.seen.get(key, 0) + seen[crosstab]

    def chances(self) -> tuple[Chance, ...]:
        """The chance for each small value, over all universes."""
        cells = np.zeros(self.below, dtype=np.int64)
        true = np.zeros(self.below)
        for (_, law), seen in self.seen.items():
            found = mixture(self._laws(law), 1, seen[1:].tolist())
            for value in range(1, self.below):
                cells[value] += seen[value]
                true[value] += seen[value] * (found.chance_true(value) or 0.0)
        return tuple(
            Chance(value, int(cells[value]), float(true[value] / cells[value]))
            for value in range(1, self.below)
            if cells[value]
        )

    def _laws(self, law: Law) -> Sequence[tuple[int, Pmf]]:
        """The true counts that can be published in the window, where zeros stay zero."""
        most = self.window + math.ceil(SPREADS * self.spread)
        published = self.noise.published(law)
        return [(count, published.row(count)) for count in range(1, most)]


@dataclass(frozen=True)
class Tally:
    """One kind of disclosure: seen in the published tables; None without the true counts."""

    seen: int
    original: int | None = None  # in the true tables before swapping
    counted: int | None = None  # in the true tables after swapping
    true: int | None = None  # of those seen, true before swapping
    true_counted: int | None = None  # of those seen, true after swapping
    kept: int | None = None  # of those before swapping, still seen

    @property
    def share_true(self) -> float | None:
        """The share of those seen that are true: how often an attacker who believes them is right."""
        return _share(self.true, self.seen)

    @property
    def share_true_counted(self) -> float | None:
        """The same against the swapped records: the effect of noise only."""
        return _share(self.true_counted, self.seen)

    @property
    def share_kept(self) -> float | None:
        """The share of the true ones that are still seen."""
        return _share(self.kept, self.original)

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        if self.true is None:
            return {"seen": self.seen}
        shares = {name: getattr(self, name) for name in ("share_true", "share_true_counted", "share_kept")}
        return {**vars(self), **shares}


@dataclass(frozen=True, eq=False)
class DisclosureFigures:
    """Cells by count and rows by kind, over some of the tables."""

    cells: Tally  # not empty
    small: tuple[Tally, ...]  # of value 1, 2, ..
    rows: dict[RowKind, Tally]
    has_cells: bool = True  # False where only rows were added up

    @property
    def ones(self) -> Tally:
        """Uniques: cells of value 1."""
        return self.small[0]

    @property
    def share_small(self) -> float | None:
        """The share of ones and twos among the cells that are not empty."""
        return _share(sum(tally.seen for tally in self.small[:2]), self.cells.seen)

    @property
    def weight(self) -> int:
        """Uniques and disclosed groups (true ones where judged)."""
        tallies = (self.ones, self.rows[RowKind.INDIVIDUAL], self.rows[RowKind.GROUP])
        return sum(tally.seen if tally.true is None else tally.true for tally in tallies)

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        cells = {
            "share_ones_and_twos": self.share_small,
            "non_empty": self.cells,
            **{f"count_{value}": tally for value, tally in enumerate(self.small, start=1)},
        }
        return {
            **(cells if self.has_cells else {}),
            **{kind.name.lower(): tally for kind, tally in self.rows.items()},
        }


class AllDisclosureFigures(TypedDict):
    """All figures, by what they are grouped by."""

    total: DisclosureFigures
    whole_areas: DisclosureFigures
    universes: dict[str, DisclosureFigures]
    cubes: dict[str, DisclosureFigures]
    axes: dict[int, DisclosureFigures]
    levels: dict[str, DisclosureFigures]
    attributes: dict[str, DisclosureFigures]


@dataclass(eq=False)
class DisclosureSums:
    """Tallies of cross-tabulations, added up by what they belong to."""

    below: int
    is_judged: bool
    areas: tuple[str, ...]
    cells: dict[Way, Integers] = field(default_factory=dict)
    rows: dict[Way, Integers] = field(default_factory=dict)

    def add_cells(self, owned: OwnedTable, tallies: Tallies) -> None:
        """Add the cells of a table."""
        for crosstab in np.flatnonzero(owned.owned).tolist():
            for key in ways(owned, owned.levels(crosstab), self.areas):
                _add(self.cells, key, tallies[crosstab])

    def add_rows(self, owned: OwnedTable, axis: int, tallies: Tallies) -> None:
        """Add the rows of a table that one of its axes is the attribute of."""
        variable = owned.cube.axes[axis].variable
        for crosstab in np.flatnonzero(owned.owned).tolist():
            if not owned.depths[crosstab][axis]:
                continue
            levels = owned.levels(crosstab)
            keys: list[Way] = [*ways(owned, levels, self.areas), ("attributes", variable)]
            group = [name for name, _ in levels if name != variable]
            if len(group) == 1 and group[0] in self.areas:
                keys.append(("whole_areas", ""))
            for key in keys:
                _add(self.rows, key, tallies[crosstab])

    def figures(self) -> AllDisclosureFigures:
        """Everything added up."""
        return AllDisclosureFigures(
            total=self._figures(("total", "")),
            whole_areas=self._figures(("whole_areas", "")),
            universes=self._all("universes"),
            cubes=self._all("cubes"),
            axes=self._all("axes"),
            levels=self._all("levels"),
            attributes=self._all("attributes"),
        )

    def _all(self, way: str) -> dict[Any, DisclosureFigures]:
        keys = dict.fromkeys(key for key in (*self.cells, *self.rows) if key[0] == way)
        return {key[1]: self._figures(key) for key in keys}

    def _figures(self, key: Way) -> DisclosureFigures:
        cells = self.cells.get(key, np.zeros((self.below, len(TallyColumn)), dtype=np.int64))
        rows = self.rows.get(key, np.zeros((len(RowKind), len(TallyColumn)), dtype=np.int64))
        return DisclosureFigures(
            self._tally(cells[0]),
            tuple(map(self._tally, cells[1:])),
            {kind: self._tally(rows[kind]) for kind in RowKind},
            has_cells=key[0] not in ("attributes", "whole_areas"),
        )

    def _tally(self, numbers: Integers) -> Tally:
        if not self.is_judged:
            return Tally(int(numbers[TallyColumn.SEEN]))
        return Tally(*map(int, numbers))


def _add(sums: dict[Way, Integers], key: Way, tallies: Integers) -> None:
    if key in sums:
        sums[key] += tallies
    else:
        sums[key] = tallies.copy()


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


@dataclass(frozen=True)
class DisclosureRule:
    """The definition of disclosures to find."""

    below: int = 4  # counts below this are small
    share: Fraction = Fraction(9, 10)  # of a group in one category, to be near a disclosure
    areas: tuple[str, ...] = ()  # variables whose codes are areas
    listed: int = 20  # cells, tables and areas that are named

    def __post_init__(self) -> None:
        if not 2 <= self.below <= 100:
            raise mistake("", "below", str(self.below), "give a whole number from 2 to 100")
        if not Fraction(1, 2) < self.share < 1:
            raise mistake("", "share", str(self.share), "give a share above one half and below 1")
        if self.listed < 0:
            raise mistake("", "listed", str(self.listed), "give a whole number of at least 0")


@dataclass(frozen=True)
class NamedDisclosure:
    """One disclosure by its codes; ``attribute`` is the category disclosed of the group, empty for a unique."""

    cube: str
    counted: str
    attribute: str
    cell: dict[str, str]
    published: int

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "cube": self.cube,
            "counted": self.counted,
            "attribute": self.attribute or None,
            "cell": self.cell,
            "published": self.published,
        }


@dataclass(frozen=True)
class AreaDisclosures:
    """One area: uniques and disclosed groups seen in its tables, and how many of them are true (None: not judged)."""

    variable: str
    code: str
    ones: int
    groups: int
    true_ones: int | None
    true_groups: int | None

    @property
    def weight(self) -> int:
        """The number by which areas are ranked."""
        if self.true_ones is None or self.true_groups is None:
            return self.ones + self.groups
        return self.true_ones + self.true_groups


@dataclass(frozen=True, eq=False)
class Disclosures:
    """All disclosures found; ``is_judged``: compared with the true counts."""

    is_judged: bool
    total: DisclosureFigures
    whole_areas: DisclosureFigures  # rows whose group is a whole area
    universes: dict[str, DisclosureFigures]
    cubes: dict[str, DisclosureFigures]
    axes: dict[int, DisclosureFigures]  # by the number of axes that are crossed
    levels: dict[str, DisclosureFigures]  # by the level of the areas, as GEO.COUNTY
    attributes: dict[str, DisclosureFigures]  # rows, by the variable that they disclose
    chances: tuple[Chance, ...]  # Pr[true count = v | published v], where law and zeros are known
    uniques: tuple[NamedDisclosure, ...]  # fewest codes first; the true ones where judged
    telling: tuple[NamedDisclosure, ...]  # full rows likewise, by the category that their group shares
    areas: tuple[AreaDisclosures, ...]  # with most disclosures
    areas_looked_at: int
    listed: int

    @property
    def worst_cubes(self) -> tuple[str, ...]:
        """The cubes with most disclosures (true ones where judged)."""
        ranked = sorted(self.cubes, key=lambda cube: -self.cubes[cube].weight)
        return tuple(cube for cube in ranked[: self.listed] if self.cubes[cube].weight)

    def as_json(self) -> Mapping[str, object]:
        """The document: what a report shows."""
        return {
            "judged": self.is_judged,
            "total": self.total,
            "whole_areas": self.whole_areas,
            "by_universe": self.universes,
            "by_axes": dict(sorted(self.axes.items())),
            "by_level": dict(sorted(self.levels.items())),
            "by_attribute": dict(sorted(self.attributes.items())),
            "worst_cubes": {cube: self.cubes[cube] for cube in self.worst_cubes},
            "chance_true": self.chances,
            "uniques": self.uniques,
            "telling": self.telling,
            "areas": self.areas,
            "areas_looked_at": self.areas_looked_at,
        }


def disclosures(
    published: Published, rule: DisclosureRule | None = None, progress: Progress | None = None
) -> Disclosures:
    """Find apparent disclosures in public tables, and with a public law the chance that a small count is true."""
    return _Search(published, None, rule or DisclosureRule()).run(progress or Quiet())


def judge(
    published: Published, truth: Truth, rule: DisclosureRule | None = None, progress: Progress | None = None
) -> Disclosures:
    """The same, with how many there were before and after swapping and how many of those seen are true."""
    return _Search(published, truth, rule or DisclosureRule()).run(progress or Quiet())


@dataclass(eq=False)
class _Search:
    """The sums of one run, table by table."""

    published: Published
    truth: Truth | None
    rule: DisclosureRule
    sums: DisclosureSums = field(init=False)
    chances: Chances = field(init=False)
    uniques: list[NamedDisclosure] = field(default_factory=list)
    telling: list[NamedDisclosure] = field(default_factory=list)
    areas: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sums = DisclosureSums(self.rule.below, self.truth is not None, self.rule.areas)
        self.chances = Chances(self.published.noise, self.rule.below)

    def run(self, progress: Progress) -> Disclosures:
        tables = [owned for universe in self.published.universes for owned in once(universe)]
        progress.stage("small counts and attribute disclosure", len(tables))
        for owned in tables:
            if owned.owned.any():
                self._table(owned)
            progress.step()
        return self._found()

    def _table(self, owned: OwnedTable) -> None:
        found = side(*aligned(owned.values(self.truth)), owned.grid)
        area = next((k for k, axis in enumerate(owned.cube.axes) if axis.variable in self.rule.areas), None)
        self.chances.add(owned, found)
        self.sums.add_cells(owned, small_counts(found, owned.grid, self.rule.below))
        self.uniques = self._simplest([*self.uniques, *self._uniques(owned, found, area)])
        for k in range(len(owned.cube.axes)):
            same_noise = self.published.noise.same_noise
            judged = rows(
                found, owned.grid, k, self.rule.share, same_noise=same_noise, area=area, keep=self.rule.listed
            )
            self.sums.add_rows(owned, k, judged.tallies)
            self.telling = self._simplest([*self.telling, *self._telling(owned, found, k, judged)])
            if area is not None and area != k:
                self._tally_areas(owned, area, judged.areas, 2)

    def _simplest(self, some: list[NamedDisclosure]) -> list[NamedDisclosure]:
        """Those with fewest codes: the less an attacker must know, the worse."""
        return nsmallest(self.rule.listed, some, key=lambda one: len(one.cell))

    def _uniques(self, owned: OwnedTable, found: Side, area: int | None) -> Iterator[NamedDisclosure]:
        """Name the simplest uniques, and tally them by area."""
        ones = (found.values[:, PUBLISHED] == 1) & found.own
        true = ones & (found.values[:, ORIGINAL] == 1) if self.truth is not None else ones
        if area is not None:
            axis = owned.cube.axes[area]
            tally = np.zeros((len(axis), 2), dtype=np.int64)
            for column, which in enumerate((ones, true if self.truth is not None else ones[:0])):
                along = nodes_along(found.cells[: len(which)][which], owned.cube.strides[area], len(axis))
                tally[:, column] = np.bincount(along, minlength=len(axis))
            self._tally_areas(owned, area, tally, 0)
        for i in self._fewest(owned, found, np.flatnonzero(true)):
            yield self._name(owned, found, i, "")

    def _telling(
        self, owned: OwnedTable, found: Side, k: int, judged: AttributeRows
    ) -> Iterator[NamedDisclosure]:
        for i in self._fewest(owned, found, judged.examples[judged.examples >= 0]):
            yield self._name(owned, found, i, owned.cube.axes[k].variable)

    def _fewest(self, owned: OwnedTable, found: Side, here: NDArray[Any]) -> list[int]:
        """The places among some whose cells cross fewest axes."""
        crossed = np.array([np.count_nonzero(depths) for depths in owned.depths])[found.crosstab[here]]
        places: list[int] = here[np.argsort(crossed, kind="stable")[: self.rule.listed]].tolist()
        return places

    def _name(self, owned: OwnedTable, found: Side, i: int, attribute: str) -> NamedDisclosure:
        cell = owned.cube.codes_of(int(found.cells[i]))
        value = int(found.values[i, PUBLISHED])
        return NamedDisclosure(owned.table.id, owned.universe.counted, attribute, cell, value)

    def _tally_areas(self, owned: OwnedTable, area: int, tally: Any, first: int) -> None:
        axis = owned.cube.axes[area]
        for node in range(1, len(axis)):
            sums = self.areas.setdefault((axis.variable, axis.codes[node]), np.zeros(4, dtype=np.int64))
            sums[first : first + 2] += tally[node]

    def _found(self) -> Disclosures:
        judged = self.truth is not None
        areas = [
            AreaDisclosures(
                variable, code, int(n[0]), int(n[2]), *(map(int, n[1::2]) if judged else (None, None))
            )
            for (variable, code), n in self.areas.items()
        ]
        worst = sorted((area for area in areas if area.weight), key=lambda area: -area.weight)
        return Disclosures(
            judged,
            **self.sums.figures(),
            chances=self.chances.chances(),
            uniques=tuple(self.uniques),
            telling=tuple(self.telling),
            areas=tuple(worst[: self.rule.listed]),
            areas_looked_at=len(areas),
            listed=self.rule.listed,
        )
