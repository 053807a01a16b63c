"""Every cell of the published tables once, and every number once: what measures need not look at again.

It owns which cross-tabulations of a table no table before it has shown; what is looked for in the cells is the
measures'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import Cells, Integers, PublishedTable, Universe
from discreet.audit.truth import Truth
from discreet.errors import mistake
from discreet.schema.crosstab import CrossTab, Signature, crosstabs
from discreet.schema.cube import Cube

FEW = 2**16  # entries of an array that costs next to nothing
Shown = tuple[NDArray[np.bool_], ...]  # along the crossed axes, sorted by variable: which codes were shown


@dataclass(frozen=True, eq=False)
class Part:
    """The cross-tabulations of one table that show new cells."""

    universe: Universe
    table: PublishedTable
    crosstabs: tuple[CrossTab, ...]
    before: tuple[tuple[Shown, ...], ...]  # crosstab -> what earlier tables showed of it

    @property
    def cube(self) -> Cube:
        """The table's cube."""
        return self.table.cube

    def signature(self, at: int) -> Signature:
        """The signature of one of them in the whole release."""
        return self.universe.signature(self.crosstabs[at].signature.levels)

    def true(self, truth: Truth) -> Cells:
        """The true counts of its table; an error where they are those of another programme."""
        if self.table.id not in truth.counted:
            remedy = "audit the release with the programme that it was made from"
            raise mistake("", f"cube {self.table.id}", "is published, but not counted", remedy)
        return truth.counted[self.table.id]

    def which(self, cells: Integers) -> Integers:
        """To which of the cross-tabulations each cell belongs; -1 where an earlier table has shown it."""
        cube = self.cube
        depths = [axis.depths.astype(np.int64) for axis in cube.axes]
        found = self._places[cube.numbered(cells, depths, self._levels, range(len(depths)))]
        for at, shown in enumerate(self.before):
            for one in shown:
                here = np.flatnonzero(found == at)
                found[here[_among(cube, self.crosstabs[at], one, cells[here])]] = -1
        return found

    @cached_property
    def _levels(self) -> list[int]:
        return [int(axis.depths.max()) + 1 for axis in self.cube.axes]

    @cached_property
    def _places(self) -> Integers:
        """Depths along the axes as one number -> cross-tabulation, -1 where it is not new."""
        places = np.full(int(np.prod(self._levels, dtype=np.int64)), -1, dtype=np.int64)
        for at, crosstab in enumerate(self.crosstabs):
            places[np.ravel_multi_index(crosstab.depths, self._levels)] = at
        return places


def parts(universe: Universe) -> Iterator[Part]:
    """The tables of a universe, each with what it is the first to show."""
    seen: dict[Signature, list[Shown]] = {}
    for table in universe.tables:
        new: list[CrossTab] = []
        before: list[tuple[Shown, ...]] = []
        for crosstab in crosstabs(table.cube, universe.codelists):
            shown, earlier = _shown(crosstab), seen.setdefault(crosstab.signature, [])
            if any(_covers(one, shown) for one in earlier):
                continue
            new.append(crosstab)
            before.append(tuple(earlier))
            earlier.append(shown)
        yield Part(universe, table, tuple(new), tuple(before))


def numbers_once(number: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """The different numbers below ``size``, where each stands among them, and how often; unsorted where that pays."""
    if size > 4 * len(number) + FEW:
        return np.unique(number, return_inverse=True, return_counts=True)
    times = np.bincount(number, minlength=size)
    numbers = np.flatnonzero(times)
    places = np.zeros(size, dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    return numbers, places[number], times[numbers]


def _shown(crosstab: CrossTab) -> Shown:
    levels = (crosstab.levels[k] for k in crosstab.order if crosstab.depths[k])
    return tuple(level.node_at >= 0 for level in levels)


def _covers(earlier: Shown, shown: Shown) -> bool:
    return all(bool(one[other].all()) for one, other in zip(earlier, shown, strict=True))


def _among(cube: Cube, crosstab: CrossTab, shown: Shown, cells: Integers) -> NDArray[np.bool_]:
    inside = np.ones(len(cells), dtype=bool)
    for k, codes in zip((k for k in crosstab.order if crosstab.depths[k]), shown, strict=True):
        level = crosstab.levels[k]
        table = np.zeros(cube.shape[k], dtype=bool)
        table[level.nodes] = codes[level.places]
        inside &= table[cube.nodes(cells, k)]
    return inside
