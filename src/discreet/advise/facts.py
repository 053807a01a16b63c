"""What a programme and its population offer an attacker: redundancy, tuples, areas, records; it proposes nothing.

The facts come from the data where they are at hand, from the declaration otherwise, and for the EU programme of a
country from the regulation and the country's numbers of regions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.advise.forecast import NO_KEY, USUAL
from discreet.audit.case import true_counts
from discreet.audit.cells import OwnedTable, once
from discreet.audit.evidence import Cells, PublishedTable, Truth
from discreet.audit.evidence import Universe as Tables
from discreet.audit.redundancy import Mode, Regions, Universe, eu_redundancy, programme_redundancy
from discreet.io.progress import Progress
from discreet.maths.attacks.disclosure import side
from discreet.maths.attacks.redundancy import Exposure, Redundancy, cells
from discreet.maths.attacks.tuples import Groups
from discreet.maths.cells.lookup import Order
from discreet.maths.feasible import three_tuples
from discreet.perturb.choose import cell_key_mechanism
from discreet.programme import eu2021
from discreet.programme.cube import Cube, signatures
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme
from discreet.run.run import Run

PERSONS = "persons"
LAU = 3


@dataclass(frozen=True)
class Statistic:
    """The statistic that averaging threatens most."""

    counted: str
    name: str
    t: int
    k: float
    ratio: float

    def __str__(self) -> str:
        return f"{self.name} of {self.counted}"


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """Everything that the constraints need to know."""

    programme: str
    known_from: str  # data, declaration or regulation
    same_noise: Statistic  # a cross-tabulation has one noise however many tables show it
    fresh_noise: Statistic  # every table has noise of its own
    tuples: Groups  # (parts, those with somebody) -> tuples of parts and their total
    cells: int
    crosstabs: int
    areas: int | None  # of the finest places
    place: str
    population: int | None
    area_totals: NDArray[np.int64] | None = field(default=None)  # true ones: confidential

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON; no true count of an area."""
        return {
            "known_from": self.known_from,
            "riskiest": {
                "same_noise": dict(vars(self.same_noise)),
                "fresh_noise": dict(vars(self.fresh_noise)),
            },
            "tuples": sum(self.tuples.values()),
            "three_tuples": three_tuples(self.tuples),
            "cells": self.cells,
            "crosstabs": self.crosstabs,
            "areas": self.areas,
            "place": self.place,
            "population": self.population,
        }


def eu_facts(country: str, regions: Regions, mode: Mode, population: int | None) -> Facts:
    """The EU 2021 census of a country, from its numbers of regions."""
    universes = eu_redundancy(regions, mode)
    return _by_declaration(
        f"{eu2021.NAME}, {country}", "regulation", universes, regions[LAU], eu2021.GEOGRAPHY, population
    )


def declared_facts(programme: Programme, mode: Mode, population: int | None) -> Facts:
    """A declared programme without its data."""
    place, areas = _finest_place(programme)
    universes = programme_redundancy(programme, mode)
    told = _by_declaration(programme.name, "declaration", universes, areas, place, population)
    possible = [
        (owned, crosstab)
        for tables in tables_of(programme)
        for owned in once(tables)
        for crosstab in np.flatnonzero(owned.owned).tolist()
    ]
    return replace(
        told,
        tuples=sum((_parts(owned, crosstab, population) for owned, crosstab in possible), Counter()),
        cells=sum(owned.size(crosstab) for owned, crosstab in possible),
        crosstabs=len(signatures([cube for cube in programme.cubes if not cube.weight])),
    )


def counted_facts(programme: Programme, mode: Mode, threads: int, progress: Progress) -> Facts:
    """A programme with its data: what is empty offers nothing. Records are counted as they are, before swapping."""
    declared = declared_facts(programme, mode, None)
    counting = cell_key_mechanism(CellKeyNoise(USUAL, Order.PLAIN), NO_KEY)
    cubes = [cube for cube in programme.cubes if not cube.weight]
    unswapped = replace(programme, swap=None)
    run = Run(programme=unswapped, secret=NO_KEY, mechanism=counting, threads=threads, progress=progress)
    truth = true_counts(run, cubes)
    found = _Counted(declared.place)
    for tables in tables_of(programme, truth):
        for owned in once(tables):
            if owned.owned.any():
                found.add(owned)
    totals = found.area_totals
    return replace(
        declared,
        known_from="data",
        tuples=found.tuples,
        cells=found.cells,
        areas=declared.areas if totals is None else len(totals),
        population=found.persons or None,
        area_totals=totals,
    )


def tables_of(programme: Programme, truth: Truth | None = None) -> Iterator[Tables]:
    """The tables that count the same records, as measures on tables take them: true ones, or without anybody."""
    codelists = {name: variable.codelist for name, variable in programme.variables.items()}
    groups: dict[tuple[str, str, str], list[Cube]] = {}
    for cube in programme.cubes:
        if not cube.weight:
            base = cube.base.canonical if cube.base else ""
            groups.setdefault((cube.unit, base, cube.count or ""), []).append(cube)
    counts: Mapping[str, Cells] = {} if truth is None else truth.original
    for who, cubes in groups.items():
        tables = tuple(PublishedTable(cube, partial(_cells, counts, cube.id)) for cube in cubes)
        yield Tables(*who, tables, codelists)


def _cells(counts: Mapping[str, Cells], cube: str) -> Cells:
    nobody = np.empty(0, dtype=np.int64)
    return counts.get(cube, (nobody, nobody))


def _parts(owned: OwnedTable, crosstab: int, population: int | None) -> Counter[tuple[int, int]]:
    """The tuples of a cross-tabulation along each of its axes, as many as are possible; see ``_possible_tuples``.

    Where tables complete each other they are shared out by the cells that each is the first to show.
    """
    found: Counter[tuple[int, int]] = Counter()
    for axis, depth in zip(owned.cube.axes, owned.depths[crosstab], strict=True):
        if depth == 0:
            continue
        here = np.flatnonzero(axis.depths == depth)
        beside = owned.size(crosstab) // len(here)
        children = np.bincount(axis.parents[here])
        for parts, parents in zip(*np.unique(children[children > 1], return_counts=True), strict=True):
            tuples = int(parents) * beside
            found[int(parts), int(parts)] += tuples if population is None else min(tuples, population // 2)
    return found


def _by_declaration(
    name: str,
    known_from: str,
    universes: Sequence[Universe],
    areas: int | None,
    place: str,
    population: int | None,
) -> Facts:
    statistics = [one for universe in universes for one in universe.statistics]
    return Facts(
        name,
        known_from,
        _riskiest(universes, same=True),
        _riskiest(universes, same=False),
        _possible_tuples(statistics, population),
        sum(cells(one.statistic) for one in statistics),
        len(statistics),
        areas,
        place,
        population,
    )


def _riskiest(universes: Iterable[Universe], same: bool) -> Statistic:
    def exposure(one: Redundancy) -> Exposure:
        return one.same_noise if same else one.fresh_noise

    every = ((exposure(one).riskiest, universe, one) for universe in universes for one in universe.statistics)
    average, universe, one = min(every, key=lambda found: found[0].ratio)
    name = " x ".join(level.name for level in sorted(one.statistic)) or "total"
    return Statistic(universe.counted, name, average.t, float(average.k), average.ratio)


def _possible_tuples(statistics: Iterable[Redundancy], population: int | None) -> Groups:
    """A cross-tabulation holds one tuple along each of its axes for each cell of the others.

    A tuple shows something where two parts have somebody: there are at most half as many as persons.
    """
    found: Counter[tuple[int, int]] = Counter()
    for one in statistics:
        size = cells(one.statistic)
        for level in one.statistic:
            if level.size > 1:
                most = size // level.size if population is None else min(size // level.size, population // 2)
                found[level.size, level.size] += most
    return found


def _finest_place(programme: Programme) -> tuple[str, int | None]:
    """The place that cubes divide most finely, and into how many areas."""
    columns = programme.population.geography if programme.population else ()
    sizes = {
        axis.variable: int(axis.finest.sum())
        for cube in programme.cubes
        for axis in sorted(cube.axes, key=len)
        if programme.variables[axis.variable].column in columns or axis.variable == eu2021.GEOGRAPHY
    }
    for cube in programme.cubes:
        for axis in cube.axes:
            if axis.variable in sizes:
                sizes[axis.variable] = max(sizes[axis.variable], int(axis.finest.sum()))
    if not sizes:
        return "", None
    place = max(sizes, key=lambda name: sizes[name])
    return place, sizes[place]


@dataclass(eq=False)
class _Counted:
    """What true tables hold, each cross-tabulation once."""

    place: str
    tuples: Counter[tuple[int, int]] = field(default_factory=Counter)
    cells: int = 0
    persons: int = 0
    area_totals: NDArray[np.int64] | None = None

    def add(self, owned: OwnedTable) -> None:
        """Take the cross-tabulations that a table stands for."""
        listed, values = owned.table.load()
        found = side(listed, values[:, None], owned.grid)
        kept = owned.owned[found.crosstab]
        self.cells += int(kept.sum())
        for k, axis in enumerate(owned.cube.axes):
            self._tuples(
                owned,
                k,
                found.cells,
                found.wider[k],
                kept,
                np.bincount(axis.parents[1:], minlength=len(axis)),
            )
        if owned.universe.unit == PERSONS and not owned.universe.base and not owned.universe.count:
            self.persons = max(self.persons, int(values[0]) if len(values) and listed[0] == 0 else 0)
        for crosstab in np.flatnonzero(owned.owned).tolist():
            levels = owned.levels(crosstab)
            if len(levels) == 1 and levels[0][0] == self.place and owned.universe.unit == PERSONS:
                self._areas(values[found.crosstab == crosstab])

    def _areas(self, totals: NDArray[np.int64]) -> None:
        if self.area_totals is None or len(totals) > len(self.area_totals):
            self.area_totals = totals

    def _tuples(
        self,
        owned: OwnedTable,
        k: int,
        listed: NDArray[np.int64],
        wider: NDArray[np.int32],
        kept: NDArray[np.bool_],
        children: NDArray[np.int64],
    ) -> None:
        """Count the parents by how many parts they have along an axis, and in how many of them there is somebody."""
        inside = wider[kept & (wider >= 0)]
        held = np.bincount(inside, minlength=len(listed))
        parents = np.flatnonzero(held > 1)
        along = owned.cube.nodes(listed[parents], k)
        kinds, numbers = np.unique(np.stack([children[along], held[parents]]), axis=1, return_counts=True)
        for (parts, positive), number in zip(kinds.T.tolist(), numbers.tolist(), strict=True):
            self.tuples[parts, positive] += number


def seeded_secret(seed: int, purpose: str) -> bytes:
    """A key for trials, never for a release: everybody can make it."""
    return hashlib.blake2b(f"trial/{purpose}/{seed}".encode(), digest_size=32).digest()
