"""Facts about a programme and its population that an attacker can use: redundancy, tuples, areas, records.

The facts come from the data if available, otherwise from the declaration, and for the EU programme of a country from
the regulation and the country's numbers of regions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet.advise.forecast import NO_KEY, USUAL
from discreet.audit.averaging import ExposedCell, average
from discreet.audit.case import true_counts
from discreet.audit.cells import OwnedTable, once
from discreet.audit.declared_averaging import ExposedCount, declared_pieces, most_exposed
from discreet.audit.evidence import Published, Truth, Universe, tables_of
from discreet.audit.least_squares import VARIANCES, least_squares, most_recovered, rank
from discreet.audit.redundancy import Mode, Regions, UniverseRedundancy, eu_redundancy, programme_redundancy
from discreet.audit.subpopulation import MOST_CELLS, Subpopulations, exposed_by_parts
from discreet.io.progress import Progress
from discreet.maths.attacks.redundancy import Exposure, Redundancy, cells
from discreet.maths.attacks.tuples import COUNTED, LISTED, Groups, occupied_tuples, tuples_of_grid
from discreet.maths.cells.alignment import is_sparse
from discreet.maths.feasible import three_tuples
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.choose import cell_key_mechanism
from discreet.perturb.noise import Noise, cell_key_noise
from discreet.programme import eu2021
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube, signatures
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme
from discreet.run.run import Run

PERSONS = "persons"
LAU = 3


@dataclass(frozen=True)
class RiskiestStatistic:
    """The statistic that averaging with equal weights threatens most, as the paper computes it."""

    counted: str
    name: str
    t: int
    k: float
    ratio: float

    def __str__(self) -> str:
        return f"{self.name} of {self.counted}"


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """The counts that averaging or least squares recovers best, the most exposed first."""

    exposed: tuple[ExposedCell, ...]
    left_out: tuple[str, ...] = ()  # populations that are too large for least squares: only averaged


Attack = Callable[[PTableParameters], Attacked]


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """The facts that the constraints need."""

    programme: str
    known_from: str  # data, declaration or regulation
    riskiest: Callable[[bool], RiskiestStatistic]  # by the paper's k/t^2, by the same argument as the next
    declared_exposure: Callable[
        [bool], ExposedCount
    ]  # whether the same participants have the same noise -> what averaging recovers best, all cells occupied
    tuples: Groups  # (parts, non-empty parts) -> tuples of parts and their total
    cells: int
    crosstabs: int
    areas: int | None  # of the finest places
    place: str
    population: int | None
    area_totals: NDArray[np.int64] | None = field(default=None)  # true ones: confidential
    attack: Attack | None = None  # on all true tables; needs data
    attack_on_parts: Attack | None = None  # the same on some of them, where all are many

    @property
    def same_noise(self) -> RiskiestStatistic:
        """The riskiest statistic where a cross-tabulation has one noise in all tables."""
        return self.riskiest(True)

    @property
    def fresh_noise(self) -> RiskiestStatistic:
        """The same, every table with independent noise."""
        return self.riskiest(False)

    @property
    def by_participants(self) -> ExposedCount:
        """What averaging recovers best where the same participants have the same noise."""
        return self.declared_exposure(True)

    @property
    def by_cell(self) -> ExposedCount:
        """The same, where every cell has its own noise."""
        return self.declared_exposure(False)

    def exposed(self, kind: LawKind) -> ExposedCount:
        """The count that averaging recovers best under a kind of noise, as if all cells were occupied."""
        return self.by_participants if kind is LawKind.CELL_KEY else self.by_cell

    def as_json(self) -> Mapping[str, object]:
        """The JSON document, without true counts of areas."""
        return {
            "known_from": self.known_from,
            "riskiest": {"same_noise": self.same_noise, "fresh_noise": self.fresh_noise},
            "tuples": sum(self.tuples.values()),
            "three_tuples": three_tuples(self.tuples),
            "cells": self.cells,
            "crosstabs": self.crosstabs,
            "areas": self.areas,
            "place": self.place,
            "population": self.population,
        }


def eu_facts(country: str, regions: Regions, mode: Mode, population: int | None) -> Facts:
    """The facts of the EU 2021 census of a country, from its numbers of regions."""
    universes = eu_redundancy(regions, mode)
    return _by_declaration(
        f"{eu2021.NAME}, {country}", "regulation", universes, regions[LAU], eu2021.GEOGRAPHY, population
    )


def declared_facts(programme: Programme, mode: Mode, population: int | None) -> Facts:
    """The facts of a declared programme without its data."""
    return _declared(programme, [once(universe) for universe in tables_of(programme)], mode, population)


def _declared(
    programme: Programme, tables: Sequence[Sequence[OwnedTable]], mode: Mode, population: int | None
) -> Facts:
    """What only some kinds of noise are judged by, or only the document states, is worked out when it is used."""
    place, areas = _finest_place(programme)
    universes = cache(lambda: programme_redundancy(programme, mode))
    pieces = cache(lambda: [declared_pieces(each[0].universe) for each in tables])
    possible = [(owned, crosstab) for each in tables for owned in each for crosstab in owned.new]
    return Facts(
        programme.name,
        "declaration",
        riskiest=cache(lambda same: _riskiest(universes(), same)),
        declared_exposure=cache(lambda same: most_exposed(pieces(), same_noise=same)),
        tuples=_possible_parts(possible, population),
        cells=sum(owned.size(crosstab) for owned, crosstab in possible),
        crosstabs=len(signatures([cube for cube in programme.cubes if not cube.weight])),
        areas=areas,
        place=place,
        population=population,
    )


def counted_facts(programme: Programme, mode: Mode, threads: int, progress: Progress) -> Facts:
    """The facts of a programme with its data, without empty cells. Records are counted before swapping."""
    counting = cell_key_mechanism(CellKeyNoise(USUAL), NO_KEY)
    cubes = [cube for cube in programme.cubes if not cube.weight]
    unswapped = replace(programme, swap=None)
    run = Run(programme=unswapped, secret=NO_KEY, mechanism=counting, threads=threads, progress=progress)
    truth = true_counts(run, cubes)
    universes = tuple(tables_of(programme, truth))
    tables = [once(universe) for universe in universes]
    declared = _declared(programme, tables, mode, None)
    found = _Counted(declared.place)
    for owned in (one for each in tables for one in each):
        if owned.owned.any():
            found.add(owned)
    totals = found.area_totals
    parts = _attack_on_parts(tables, truth) if found.cells > MOST_CELLS else None
    return replace(
        declared,
        known_from="data",
        tuples=found.tuples,
        cells=found.cells,
        areas=declared.areas if totals is None else len(totals),
        population=found.persons or None,
        area_totals=totals,
        attack=_attack(programme.name, universes, truth, parts, progress),
        attack_on_parts=parts,
    )


def _attack(
    name: str, universes: tuple[Universe, ...], truth: Truth, parts: Attack | None, progress: Progress
) -> Attack:
    """The attack that judges a release, on tables whose noise is not yet drawn."""

    def attack(parameters: PTableParameters) -> Attacked:
        seen = Published(name, universes, _noise(parameters))
        averages = average(seen, progress, truth=truth)
        fits = least_squares(seen, progress, VARIANCES, truth)
        found = (*most_recovered(averages, fits), *(parts(parameters).exposed if parts else ()))
        return Attacked(tuple(sorted(found, key=rank, reverse=True)), fits.left_out)

    return cache(attack)


def _attack_on_parts(tables: Iterable[Sequence[OwnedTable]], truth: Truth) -> Attack:
    """Least squares on the tables of some of the records: counts are at least so exposed."""
    every = [Subpopulations(owned, truth) for owned in tables]

    def attack(parameters: PTableParameters) -> Attacked:
        return Attacked(exposed_by_parts(every, _noise(parameters)))

    return cache(attack)


def _noise(parameters: PTableParameters) -> Noise:
    table = solve(parameters)
    return cell_key_noise(PTableLaw(table), variance=table.variance(table.last_row), bound=table.reach)


def _possible_parts(shown: Iterable[tuple[OwnedTable, int]], population: int | None) -> Groups:
    """The tuples of cross-tabulations along each of their axes, as many as possible; see ``_possible_tuples``.

    A cross-tabulation that several tables show together is divided by the cells that each is the first to show.
    """
    found: Counter[tuple[int, int]] = Counter()
    families = cache(_families)
    for owned, crosstab in shown:
        for axis, depth in zip(owned.cube.axes, owned.depths[crosstab], strict=True):
            if depth == 0:
                continue
            codes, sizes = families(axis, depth)
            other_cells = owned.size(crosstab) // codes
            for parts, parents in sizes.items():
                tuples = parents * other_cells
                found[parts, parts] += tuples if population is None else min(tuples, population // 2)
    return found


def _families(axis: Breakdown, depth: int) -> tuple[int, Mapping[int, int]]:
    """The number of codes at a depth, and how many parents they have by their number of codes there."""
    parents = axis.parents[axis.depths == depth]
    children = np.bincount(parents)
    sizes, times = np.unique(children[children > 1], return_counts=True)
    return len(parents), dict(zip(sizes.tolist(), times.tolist(), strict=True))


def _by_declaration(
    name: str,
    known_from: str,
    universes: Sequence[UniverseRedundancy],
    areas: int | None,
    place: str,
    population: int | None,
) -> Facts:
    statistics = [one for universe in universes for one in universe.statistics]
    exposed = _exposed(universes)
    return Facts(
        name,
        known_from,
        cache(lambda same: _riskiest(universes, same)),
        lambda _: exposed,
        _possible_tuples(statistics, population),
        sum(cells(one.statistic) for one in statistics),
        len(statistics),
        areas,
        place,
        population,
    )


def _riskiest(universes: Iterable[UniverseRedundancy], same: bool) -> RiskiestStatistic:
    def exposure(one: Redundancy) -> Exposure:
        return one.same_noise if same else one.fresh_noise

    every = ((exposure(one).riskiest, universe, one) for universe in universes for one in universe.statistics)
    average, universe, one = min(every, key=lambda found: found[0].ratio)
    name = " x ".join(level.name for level in sorted(one.statistic)) or "total"
    return RiskiestStatistic(universe.counted, name, average.t, float(average.k), average.ratio)


def _exposed(universes: Iterable[UniverseRedundancy]) -> ExposedCount:
    every = ((one.same_noise.best, universe, one) for universe in universes for one in universe.statistics)
    best, universe, one = min(every, key=lambda found: found[0].variance)
    name = " x ".join(level.name for level in sorted(one.statistic)) or "total"
    return ExposedCount(universe.counted, name, best.t, best.variance)


def _possible_tuples(statistics: Iterable[Redundancy], population: int | None) -> Groups:
    """The possible tuples: one along each axis of a cross-tabulation for each cell of the other axes.

    A tuple is useful only with two non-empty parts, so there are at most half as many as persons.
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
    """The geographical variable with the finest areas in any cube, and their number."""
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
    """Facts from true tables, each cross-tabulation counted once."""

    place: str
    tuples: Counter[tuple[int, int]] = field(default_factory=Counter)
    cells: int = 0
    persons: int = 0
    area_totals: NDArray[np.int64] | None = None

    def add(self, owned: OwnedTable) -> None:
        """Add the cross-tabulations of a table that no earlier table has."""
        listed, values = owned.table.load()
        crosstab = owned.grid.crosstabs(listed)
        new = owned.owned[crosstab]
        self.cells += int(np.count_nonzero(new))
        self._tuples(owned.cube, listed, new)
        if owned.universe.unit == PERSONS and not owned.universe.base and not owned.universe.count:
            self.persons = max(self.persons, int(values[0]) if len(values) and listed[0] == 0 else 0)
        for number in owned.new:
            levels = owned.levels(number)
            if len(levels) == 1 and levels[0][0] == self.place and owned.universe.unit == PERSONS:
                self._areas(values[crosstab == number])

    def _tuples(self, cube: Cube, listed: NDArray[np.int64], new: NDArray[np.bool_]) -> None:
        if is_sparse(cube.size, len(listed)):
            for stride, axis in zip(cube.strides, cube.axes, strict=True):
                self.tuples.update(occupied_tuples(listed, stride, axis.parents, new))
            return
        cells = np.zeros(cube.size, dtype=np.uint8)
        cells[listed] = np.where(new, COUNTED, LISTED)
        for stride, axis in zip(cube.strides, cube.axes, strict=True):
            self.tuples.update(tuples_of_grid(cells.reshape(-1, len(axis), stride), axis.parents))

    def _areas(self, totals: NDArray[np.int64]) -> None:
        if self.area_totals is None or len(totals) > len(self.area_totals):
            self.area_totals = totals


def seeded_secret(seed: int, purpose: str) -> bytes:
    """A key for trials, never for a release: anyone can compute it."""
    return hashlib.blake2b(f"trial/{purpose}/{seed}".encode(), digest_size=32).digest()
