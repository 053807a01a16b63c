"""Tables from a release folder: each cross is cut out of the smallest cube that contains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import PublishedTable, Universe, published
from discreet.errors import mistake
from discreet.lazy import njit
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube, Shown
from discreet.programme.hierarchical import Output
from discreet.programme.serve import ServeRule
from discreet.release.reader import Release
from discreet.serve.cache import CELL_BYTES, TABLE_BYTES, LruCache, TableKey, key_of, table_cache
from discreet.serve.catalogue import Catalogue, ServedTable, ServedVariable, by_name
from discreet.serve.noise_ranges import AskedCells, Ends, EstimateRanges, NoiseRanges, Ranges
from discreet.serve.records import Stopped, never
from discreet.tabulate.tables import ProtectedTable, read_back
from discreet.text.phrase import joined, phrase

Integers = NDArray[np.int64]
LEFT_OUT = -1
MOST_ESTIMATES = 4  # tables whose estimates are cached
MOST_SHORT = 100_000  # cells that are looked at for a table that is made at once
SEARCH_COST = 16  # looking for a cell, compared with reading one
MOST_HELD = 100  # tables whose published cube is cached: a question needs it several times
MOST_PLACES = 500  # pairs of breakdowns whose common codes are cached


def picked(
    cube: Cube, cells: Integers, maps: Sequence[Integers], order: Sequence[int], shape: Sequence[int]
) -> tuple[Integers, NDArray[np.intp]]:
    """The new positions of the requested cells, and their rows.

    ``maps[k]`` gives for each node of the cube's axis k its new node, or LEFT_OUT. ``order`` lists the axes of the cube
    that stay, as they follow each other in the new grid of this shape; the other axes only pick.
    """
    strides = {axis: prod(shape[new + 1 :]) for new, axis in enumerate(order)}
    # the axis that leaves out most is looked at first
    axes = sorted(range(len(maps)), key=lambda k: np.count_nonzero(maps[k] != LEFT_OUT) / len(maps[k]))
    form = [(cube.strides[k], cube.shape[k], strides.get(k, 0), len(maps[k])) for k in axes]
    table = np.array(form, dtype=np.uint64).reshape(len(axes), 4)
    flat = np.concatenate([*(maps[k] for k in axes), np.zeros(0, dtype=np.int64)])
    place, rows = np.empty(len(cells), dtype=np.int64), np.empty(len(cells), dtype=np.intp)
    found = _pick(cells.view(np.uint64), table, flat, place, rows)
    return place[:found], rows[:found]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pick(cells: Any, axes: Any, maps: Any, place: Any, rows: Any) -> Any:
    """Fill in the new positions and the rows of the requested cells; return their number.

    Of each axis: its stride and size, its new stride, and the length of its map.
    """
    found = 0
    for c in range(cells.size):
        position, start, inside = np.int64(0), np.int64(0), True
        for k in range(axes.shape[0]):
            node = maps[start + np.int64((cells[c] // axes[k, 0]) % axes[k, 1])]
            if node == LEFT_OUT:
                inside = False
                break
            position += node * np.int64(axes[k, 2])
            start += np.int64(axes[k, 3])
        if inside:
            place[found], rows[found] = position, c
            found += 1
    return found


def map_of(size: int, nodes: Integers) -> Integers:
    """Old node -> its place among ``nodes``, or LEFT_OUT."""
    found = np.full(size, LEFT_OUT, dtype=np.int64)
    found[nodes] = np.arange(len(nodes))
    return found


@dataclass(frozen=True, eq=False)
class _InMemory:
    """The values of a published cube: of its whole grid where that takes no more bytes, else of cells that have one."""

    values: Integers
    cells: Integers | None  # ascending; None where the grid is whole, zeros included

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.values.nbytes + (0 if self.cells is None else self.cells.nbytes)

    def is_near(self, cube: Cube) -> bool:
        """Whether a table is cut out by looking at few cells."""
        return self.cells is None or _is_searched(cube, self.cells) or len(self.cells) <= MOST_SHORT


def _in_memory(cube: Cube, cells: Integers, values: Integers) -> _InMemory:
    if cube.size * values.itemsize > CELL_BYTES * len(cells):
        return _InMemory(values, cells)
    grid = np.zeros(cube.size, dtype=np.int64)
    grid[cells] = values
    return _InMemory(grid, None)


@dataclass(frozen=True, eq=False)
class _Tables:
    """The published tables of a universe, the smallest first, and by breakdown those that have all its codes."""

    tables: tuple[PublishedTable, ...]
    having: Mapping[str, int]  # full name of a breakdown -> the bits of their places

    def containing(self, names: Sequence[str]) -> Iterator[PublishedTable]:
        """The tables that have all codes of some breakdowns."""
        left = (1 << len(self.tables)) - 1
        for name in names:
            left &= self.having.get(name, 0)
        while left:
            yield self.tables[(left & -left).bit_length() - 1]
            left &= left - 1


class ReleaseSource:
    """A release as a source of tables: whole cubes or parts of them."""

    def __init__(self, release: Release, rule: ServeRule) -> None:
        source = published(release)
        self._cells = {entry.id: entry.cells for entry in release.manifest.cubes}
        self._catalogue = release_catalogue(release, source.universes, rule)
        self._hierarchy = source.hierarchy
        self._noise: Ranges = (
            NoiseRanges(source.noise) if source.hierarchy is None else EstimateRanges(self._estimates_of)
        )
        self._estimates = lru_cache(maxsize=MOST_ESTIMATES)(self._read_estimates)
        self._cache = table_cache()
        self._whole = LruCache[TableKey, _InMemory](TABLE_BYTES, lambda one: one.size)
        _refuse_two_sources(release, source.universes)
        self._gives = {(one.unit, one.base, one.count): self._smallest_first(one) for one in source.universes}
        self._holding = lru_cache(maxsize=MOST_HELD)(self._find_holding)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the source."""
        return self._catalogue

    @property
    def noise(self) -> Ranges:
        """Intervals of true counts, given published ones."""
        return self._noise

    def lacks(self, cube: Cube) -> str:
        """Why the release does not contain a table."""
        if self._holding(cube) is not None:
            return ""
        labels, where = self._catalogue.labels, cube.base.text if cube.base else ""
        axes = joined(*(labels.axis(axis.full_name) for axis in cube.axes), by=" x ") or phrase("total")
        unit = labels.unit(cube.unit)
        who = phrase("{unit} where {base}", unit=unit, base=where) if where else unit
        return phrase("The release has no table that contains {axes} of {who}.", axes=axes, who=who)

    def table(self, cube: Cube) -> ProtectedTable:
        """Cut a table out of the smallest cube that contains it."""
        cached = self._cache.get(key_of(cube))
        if cached is not None:
            return cached
        holding = self._holding(cube)
        if holding is None:
            raise KeyError("ask lacks() first")
        cells, values = _cut(holding.cube, self._read(holding), cube)
        table = read_back(_shown_in(holding.cube, cube), cells, values)
        self._cache.put(key_of(cube), table)
        return table

    def seconds(self, cube: Cube) -> float:
        """None: published files are read once."""
        return 0.0

    def is_short(self, cube: Cube) -> bool:
        """Whether a table is cut out of a cube in memory by looking at few cells."""
        holding = self._holding(cube)
        if holding is None or holding.cube.shown is not None or cube.size > MOST_SHORT:
            return False
        whole = self._whole.get(key_of(holding.cube))
        return whole is not None and whole.is_near(cube)

    def prepare(self, stopped: Stopped = never) -> None:
        """Read the cubes, the smallest first, as long as they fit into the cache."""
        tables = [one for given in self._gives.values() for one in given.tables]
        for one in sorted(tables, key=lambda one: self._cells[one.id]):
            if stopped() or not self._whole.has_room(CELL_BYTES * self._cells[one.id]):
                return
            self._read(one)

    def _read(self, source: PublishedTable) -> _InMemory:
        found = self._whole.get(key_of(source.cube))
        if found is None:
            found = _in_memory(source.cube, *source.load())
            self._whole.put(key_of(source.cube), found)
        return found

    def _find_holding(self, cube: Cube) -> PublishedTable | None:
        """The smallest published table that contains a cube, or the one that shows most of its cross-tabulations."""
        unit, base, count, names = key_of(cube)
        given = self._gives.get((unit, base, count))
        best, most = None, 0
        for one in given.containing(names) if given is not None else ():
            if one.cube.shown is None and best is None:
                return one
            shown = len(_shown_in(one.cube, cube).published)
            if shown > most:
                best, most = one, shown
        return best

    def _estimates_of(self, cells: AskedCells) -> Ends | None:
        """The published estimates of cells and their standard errors; axes that were not asked are at their total."""
        holding = self._holding(cells.cube)
        if holding is None or self._hierarchy is None:
            return None
        if Output.ESTIMATES not in self._hierarchy.rule.outputs:
            return None
        asked = {axis.variable: k for k, axis in enumerate(cells.cube.axes)}
        place = np.zeros((1,) * len(asked), dtype=np.int64)
        for axis, stride in zip(holding.cube.axes, holding.cube.strides, strict=True):
            k = asked.get(axis.variable)
            if k is not None:
                codes = cells.cube.axes[k].codes
                along = np.array([axis.position[codes[node]] for node in cells.nodes[k].tolist()])
                place = place + stride * along.reshape([-1 if one == k else 1 for one in range(len(asked))])
        estimate, error = self._estimates(holding.id)[:, place]
        return estimate, error

    def _read_estimates(self, cube: str) -> NDArray[np.float64]:
        if self._hierarchy is None:
            raise KeyError(cube)
        return self._hierarchy.estimated(cube)

    def _smallest_first(self, universe: Universe) -> _Tables:
        tables = sorted(universe.tables, key=lambda one: (self._cells[one.id], one.id))
        having: dict[str, int] = {}
        for place, one in enumerate(tables):
            for name in _names(one.cube, self._catalogue):
                having[name] = having.get(name, 0) | 1 << place
        return _Tables(tuple(tables), having)


def _refuse_two_sources(release: Release, universes: Sequence[Universe]) -> None:
    """A question names who is counted and not in which file: tables of two files could not be distinguished."""
    named = [(one.unit, one.base, one.count) for one in universes]
    if len(set(named)) < len(named):
        value = "tables that count the same from different files"
        raise mistake(release.folder, "cubes", value, "publish them as releases of their own")


def release_catalogue(release: Release, universes: tuple[Universe, ...], rule: ServeRule) -> Catalogue:
    """The catalogue of a release; filters other than the bases of its cubes cannot be answered."""
    manifest = release.manifest
    counts: dict[str, dict[str, None]] = {}
    for universe in universes:
        counts.setdefault(universe.unit, {}).update({universe.count: None} if universe.count else {})
    entries = [entry for entry in manifest.cubes if not entry.weight]
    return Catalogue(
        manifest.name,
        manifest.agency,
        manifest.version,
        tuple(counts),
        {variable.name: variable for variable in _variables(universes, manifest.places, rule)},
        tuple(
            ServedTable(
                one.id,
                manifest.title_of(one),
                one.unit,
                tuple(a.breakdown for a in one.axes),
                one.base,
                one.count,
            )
            for one in entries
        ),
        release.noise,
        manifest.swapped,
        rule,
        {unit: tuple(names) for unit, names in counts.items()},
        {text: one.base_normal for one in entries if one.base for text in (one.base, one.base_normal)},
        may_filter=False,
        title=manifest.heading,
        labels=manifest.labels,
        language=manifest.language,
    )


def _variables(
    universes: tuple[Universe, ...], places: tuple[str, ...], rule: ServeRule
) -> Iterator[ServedVariable]:
    axes: dict[str, dict[str, Breakdown]] = {}
    units: dict[str, dict[str, None]] = {}
    for universe in universes:
        for axis in (axis for table in universe.tables for axis in table.cube.axes):
            axes.setdefault(axis.variable, {})[axis.full_name] = axis
            units.setdefault(axis.variable, {})[universe.unit] = None
    trees = universes[0].codelists if universes else {}
    for name, source in axes.items():
        if rule.variables is None or name in rule.variables:
            yield ServedVariable(
                name, trees[name], by_name(source.values()), tuple(units[name]), name in places
            )


def _names(cube: Cube, catalogue: Catalogue) -> frozenset[str]:
    """The breakdowns whose codes are all in a cube."""
    known = (
        catalogue.variables[axis.variable].breakdowns
        for axis in cube.axes
        if axis.variable in catalogue.variables
    )
    source = {axis.variable: axis.position.keys() for axis in cube.axes}
    axes = (axis for breakdowns in known for axis in breakdowns.values())
    return frozenset(axis.full_name for axis in axes if source[axis.variable] >= axis.position.keys())


def _shown_in(source: Cube, cube: Cube) -> Cube:
    """A table with those of its cross-tabulations that a published cube shows."""
    if source.shown is None:
        return cube
    levels = {depths: cube.signature(depths).levels for depths in cube.depths}
    shown = (
        {source.signature(depths).levels for depths in some}
        for some in (source.shown.measured, source.shown.summed, source.shown.fixed)
    )
    return replace(cube, shown=Shown(*(frozenset(d for d in levels if levels[d] in some) for some in shown)))


def _is_searched(cube: Cube, cells: Integers) -> bool:
    """Whether the cells of a table are searched among those of a cube, since reading them all takes longer."""
    return cube.size * SEARCH_COST < len(cells)


def _cut(source: Cube, stored: _InMemory, cube: Cube) -> tuple[Integers, Integers]:
    """The cells of a published cube that belong to a table: their positions there, ascending, and their values."""
    cells, values = stored.cells, stored.values
    if cells is None:
        whole = values[_positions(source, cube)]
        found = np.flatnonzero(whole != 0)
        return found, whole[found]
    if _is_searched(cube, cells):
        wanted = _positions(source, cube)
        rows = np.searchsorted(cells, wanted)
        found = np.flatnonzero(cells[np.minimum(rows, len(cells) - 1)] == wanted)
        return found, values[rows[found]]
    maps = [_map(axis, cube) for axis in source.axes]
    order = [_axis_of(source, axis.variable) for axis in cube.axes]
    places, rows = picked(source, cells, maps, order, cube.shape)
    by_place = np.argsort(places, kind="stable")
    return places[by_place], values[rows[by_place]]


def _positions(source: Cube, cube: Cube) -> Integers:
    """Cell of a table -> its position in a cube that contains it; axes that it lacks are at their total."""
    found = np.zeros(1, dtype=np.int64)
    for axis in cube.axes:
        k = _axis_of(source, axis.variable)
        found = np.add.outer(found, source.strides[k] * _places(source.axes[k], axis)).reshape(-1)
    return found


@lru_cache(maxsize=MOST_PLACES)
def _places(source: Breakdown, axis: Breakdown) -> Integers:
    """Node of a breakdown -> node of a source that has all its codes."""
    return np.array([source.position[code] for code in axis.codes], dtype=np.int64)


def _axis_of(cube: Cube, variable: str) -> int:
    return next(k for k, axis in enumerate(cube.axes) if axis.variable == variable)


def _map(source: Breakdown, cube: Cube) -> Integers:
    """Node of the source cube -> node of the requested one; only the total where that has no such axis."""
    wanted = next((axis for axis in cube.axes if axis.variable == source.variable), None)
    return map_of(len(source), np.zeros(1, dtype=np.int64) if wanted is None else _places(source, wanted))
