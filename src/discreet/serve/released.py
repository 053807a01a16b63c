"""Tables from a release folder: each cross is cut out of the smallest cube that contains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Cells, PublishedTable, Universe, published
from discreet.errors import mistake
from discreet.lazy import njit
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube, Shown
from discreet.programme.hierarchical import Output
from discreet.programme.serve import ServeRule
from discreet.release.reader import Release
from discreet.serve.cache import CELL_BYTES, key_of, table_cache
from discreet.serve.catalogue import Catalogue, ServedTable, ServedVariable, by_name
from discreet.serve.noise_ranges import AskedCells, Ends, EstimateRanges, NoiseRanges, Ranges
from discreet.tabulate.tables import ProtectedTable, read_back
from discreet.text.phrase import joined, phrase

Integers = NDArray[np.int64]
LEFT_OUT = -1
MOST_ESTIMATES = 4  # tables whose estimates are cached
SEARCH_COST = 16  # looking for a cell, compared with reading one


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
        self._cache, self._whole = table_cache(), table_cache()
        _refuse_two_sources(release, source.universes)
        self._gives = {(one.unit, one.base, one.count): self._smallest_first(one) for one in source.universes}

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
        cells, values = self._read(holding)
        places, rows = _cut(holding.cube, cells, cube)
        table = read_back(_shown_in(holding.cube, cube), places, values[rows])
        self._cache.put(key_of(cube), table)
        return table

    def seconds(self, cube: Cube) -> float:
        """None: published files are read once."""
        return 0.0

    def prepare(self) -> None:
        """Read the cubes, the smallest first, as long as they fit into the cache."""
        tables = [one for source in self._gives.values() for one, _ in source]
        for one in sorted(tables, key=lambda one: self._cells[one.id]):
            if not self._whole.has_room(CELL_BYTES * self._cells[one.id]):
                return
            self._read(one)

    def _read(self, source: PublishedTable) -> Cells:
        table = self._whole.get(key_of(source.cube))
        if table is None:
            table = read_back(source.cube, *source.load())
            self._whole.put(key_of(source.cube), table)
        return table.cells, table.values

    def _holding(self, cube: Cube) -> PublishedTable | None:
        unit, base, count, names = key_of(cube)
        tables = self._gives.get((unit, base, count), ())
        holding = [one for one, given in tables if given.issuperset(names)]
        shown = [len(_shown_in(one.cube, cube).published) for one in holding]
        return holding[shown.index(max(shown))] if any(shown) else None

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

    def _smallest_first(self, universe: Universe) -> list[tuple[PublishedTable, frozenset[str]]]:
        """The tables of a universe, and the breakdowns that each can give."""
        tables = sorted(universe.tables, key=lambda one: (self._cells[one.id], one.id))
        return [(one, _names(one.cube, self._catalogue)) for one in tables]


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


def _cut(source: Cube, cells: Integers, cube: Cube) -> tuple[Integers, NDArray[np.intp]]:
    """The cells of a published cube that belong to a table: their positions there, ascending, and their rows."""
    if cube.size * SEARCH_COST < len(cells):
        wanted = _positions(source, cube)
        rows = np.searchsorted(cells, wanted)
        found = np.flatnonzero(cells[np.minimum(rows, len(cells) - 1)] == wanted)
        return found, rows[found]
    maps = [_map(axis, cube) for axis in source.axes]
    order = [_axis_of(source, axis.variable) for axis in cube.axes]
    places, rows = picked(source, cells, maps, order, cube.shape)
    by_place = np.argsort(places, kind="stable")
    return places[by_place], rows[by_place]


def _positions(source: Cube, cube: Cube) -> Integers:
    """Cell of a table -> its position in a cube that contains it; axes that it lacks are at their total."""
    found = np.zeros(1, dtype=np.int64)
    for axis in cube.axes:
        k = _axis_of(source, axis.variable)
        along = np.array([source.axes[k].position[code] for code in axis.codes], dtype=np.int64)
        found = np.add.outer(found, source.strides[k] * along).reshape(-1)
    return found


def _axis_of(cube: Cube, variable: str) -> int:
    return next(k for k, axis in enumerate(cube.axes) if axis.variable == variable)


def _map(source: Breakdown, cube: Cube) -> Integers:
    """Node of the source cube -> node of the requested one; only the total where that has no such axis."""
    wanted = next(
        (axis.position for axis in cube.axes if axis.variable == source.variable), {source.codes[0]: 0}
    )
    return np.array([wanted.get(code, LEFT_OUT) for code in source.codes], dtype=np.int64)
