"""Small counts, uniques and groups that share an attribute: how many a release shows, and how many of them are true.

It owns the measure over a whole release and what is told of it; what counts as a disclosure is maths.disclosure's.
Numbers of disclosures and published values are told, true counts of cells never; which of those seen are true is
confidential, and so is a judged result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.disclosure_figures import Figures, Sums
from discreet.audit.once import OwnedTable, once
from discreet.audit.published import Published
from discreet.audit.small_count_chances import Chance, Chances
from discreet.audit.truth import Truth
from discreet.engine.progress import Progress, Quiet
from discreet.errors import mistake
from discreet.maths.aligned import aligned, nodes_along
from discreet.maths.disclosure import Rows, Side, rows, side, small_counts
from discreet.maths.disclosure_kernels import ORIGINAL, PUBLISHED


@dataclass(frozen=True)
class DisclosureRule:
    """What is looked for."""

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
class Named:
    """One disclosure by its codes; ``attribute`` is what a member of the group is given away by, empty for a unique."""

    cube: str
    counted: str
    attribute: str
    cell: dict[str, str]
    published: int

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "cube": self.cube,
            "counted": self.counted,
            "attribute": self.attribute or None,
            "cell": self.cell,
            "published": self.published,
        }


@dataclass(frozen=True)
class Area:
    """One area: uniques and telling groups seen in its tables, and how many of them are true (None: not judged)."""

    variable: str
    code: str
    ones: int
    groups: int
    true_ones: int | None
    true_groups: int | None

    @property
    def weight(self) -> int:
        """What areas are ranked by."""
        if self.true_ones is None or self.true_groups is None:
            return self.ones + self.groups
        return self.true_ones + self.true_groups

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Disclosures:
    """Everything found; ``is_judged`` tells whether the truth was at hand."""

    is_judged: bool
    total: Figures
    whole_areas: Figures  # rows whose group is a whole area
    universes: dict[str, Figures]
    cubes: dict[str, Figures]
    axes: dict[int, Figures]  # by the number of axes that are crossed
    levels: dict[str, Figures]  # by the level of the areas, as GEO:3
    attributes: dict[str, Figures]  # rows, by the variable that they give away
    chances: tuple[Chance, ...]  # Pr[true count = v | published v], where law and zeros are known
    uniques: tuple[Named, ...]  # fewest codes first; the true ones where judged
    telling: tuple[Named, ...]  # full rows likewise, by the category that their group shares
    areas: tuple[Area, ...]  # with most disclosures
    areas_looked_at: int
    listed: int

    @property
    def worst_cubes(self) -> tuple[str, ...]:
        """The cubes with most disclosures (true ones where judged)."""
        ranked = sorted(self.cubes, key=lambda cube: -self.cubes[cube].weight)
        return tuple(cube for cube in ranked[: self.listed] if self.cubes[cube].weight)

    def summary(self) -> dict[str, Any]:
        """What a report shows, ready for JSON."""
        return {
            "judged": self.is_judged,
            "total": self.total.summary(),
            "whole_areas": self.whole_areas.summary(),
            "by_universe": {name: one.summary() for name, one in self.universes.items()},
            "by_axes": {str(number): one.summary() for number, one in sorted(self.axes.items())},
            "by_level": {name: one.summary() for name, one in sorted(self.levels.items())},
            "by_attribute": {name: one.summary() for name, one in sorted(self.attributes.items())},
            "worst_cubes": {cube: self.cubes[cube].summary() for cube in self.worst_cubes},
            "chance_true": [chance.summary() for chance in self.chances],
            "uniques": [one.summary() for one in self.uniques],
            "telling": [one.summary() for one in self.telling],
            "areas": [area.summary() for area in self.areas],
            "areas_looked_at": self.areas_looked_at,
        }


def disclosures(
    published: Published, rule: DisclosureRule | None = None, progress: Progress | None = None
) -> Disclosures:
    """What an outsider sees: apparent disclosures, and with a public law the chance that a small count is true."""
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
    sums: Sums = field(init=False)
    chances: Chances = field(init=False)
    uniques: list[Named] = field(default_factory=list)
    telling: list[Named] = field(default_factory=list)
    areas: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sums = Sums(self.rule.below, self.truth is not None, self.rule.areas)
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
        self.uniques = self._plainest([*self.uniques, *self._uniques(owned, found, area)])
        for k in range(len(owned.cube.axes)):
            same_noise = self.published.noise.same_noise
            judged = rows(
                found, owned.grid, k, self.rule.share, same_noise=same_noise, area=area, keep=self.rule.listed
            )
            self.sums.add_rows(owned, k, judged.tallies)
            self.telling = self._plainest([*self.telling, *self._telling(owned, found, k, judged)])
            if area is not None and area != k:
                self._tally_areas(owned, area, judged.areas, 2)

    def _plainest(self, some: list[Named]) -> list[Named]:
        """Those with fewest codes: the less an attacker must know, the worse."""
        return nsmallest(self.rule.listed, some, key=lambda one: len(one.cell))

    def _uniques(self, owned: OwnedTable, found: Side, area: int | None) -> Iterator[Named]:
        """Name the plainest uniques, and tally them by area."""
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

    def _telling(self, owned: OwnedTable, found: Side, k: int, judged: Rows) -> Iterator[Named]:
        for i in self._fewest(owned, found, judged.examples[judged.examples >= 0]):
            yield self._name(owned, found, i, owned.cube.axes[k].variable)

    def _fewest(self, owned: OwnedTable, found: Side, here: NDArray[Any]) -> list[int]:
        """The places among some whose cells cross fewest axes."""
        crossed = np.array([np.count_nonzero(depths) for depths in owned.depths])[found.crosstab[here]]
        places: list[int] = here[np.argsort(crossed, kind="stable")[: self.rule.listed]].tolist()
        return places

    def _name(self, owned: OwnedTable, found: Side, i: int, attribute: str) -> Named:
        cell = owned.cube.codes_of(int(found.cells[i]))
        value = int(found.values[i, PUBLISHED])
        return Named(owned.table.id, owned.universe.counted, attribute, cell, value)

    def _tally_areas(self, owned: OwnedTable, area: int, tally: Any, first: int) -> None:
        axis = owned.cube.axes[area]
        for node in range(1, len(axis)):
            kept = self.areas.setdefault((axis.variable, axis.codes[node]), np.zeros(4, dtype=np.int64))
            kept[first : first + 2] += tally[node]

    def _found(self) -> Disclosures:
        judged = self.truth is not None
        areas = [
            Area(variable, code, int(n[0]), int(n[2]), *(map(int, n[1::2]) if judged else (None, None)))
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
