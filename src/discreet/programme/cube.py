"""Cubes (crosses of breakdowns with all their margins) and their cross-tabulations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import add_digit
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.filter import Filter

Depths = tuple[int, ...]  # along the axes of a cube: which of its cross-tabulations


@dataclass(frozen=True)
class Shown:
    """Which cross-tabulations of a cube are published: measured, sums of its finest cells, or a public total."""

    measured: frozenset[Depths]
    summed: frozenset[Depths] = frozenset()
    fixed: frozenset[Depths] = frozenset()

    @property
    def every(self) -> frozenset[Depths]:
        """All that are published."""
        return self.measured | self.summed | self.fixed


@dataclass(frozen=True, eq=False)
class Cube:
    """One table of a programme: its cells are the grid of all nodes of its axes, totals and sub-totals included."""

    id: str
    unit: str  # which records it counts: persons, households, families, dwellings
    axes: tuple[Breakdown, ...]
    base: Filter | None = None  # the population base: only records that pass are counted
    count: str | None = None  # a 0/1 column that is counted instead of the records
    weight: str | None = None  # a column of survey weights
    title: str = ""
    source: str = ""  # of ready-made counts: the first cube of the same file, where files are told apart
    shown: Shown | None = None  # None: every cross-tabulation is measured and published
    margins: bool = True  # False: only its finest cells are counted

    @cached_property
    def depths(self) -> tuple[Depths, ...]:
        """All its cross-tabulations, from the grand total to the finest, published or not."""
        return tuple(product(*(range(axis.deepest + 1) for axis in self.axes)))

    @property
    def measured(self) -> tuple[Depths, ...]:
        """The cross-tabulations that have noise of their own."""
        return (
            self.depths if self.shown is None else tuple(d for d in self.depths if d in self.shown.measured)
        )

    @property
    def published(self) -> tuple[Depths, ...]:
        """The cross-tabulations whose cells are published."""
        return self.depths if self.shown is None else tuple(d for d in self.depths if d in self.shown.every)

    @cached_property
    def known_crosstabs(self) -> list[tuple[tuple[Codelist, ...], tuple[CrossTab, ...]]]:
        """Its cross-tabulations by the codelists that they were last made with."""
        return []

    @cached_property
    def interior(self) -> tuple[Depths, ...]:
        """The cross-tabulations of its finest codes: one, unless the codes of an axis end at different depths."""
        return tuple(product(*(np.unique(axis.depths[axis.finest]).tolist() for axis in self.axes)))

    def signature(self, depths: Depths) -> Signature:
        """The signature of one of its cross-tabulations."""
        known = self._signatures.get(depths)
        if known is None:
            named = self._named_depths
            levels = tuple([named[k][depths[k]] for k, _ in self.by_name if depths[k]])
            known = Signature(self.unit, self._base, self.count or "", levels, self.source, self.weight or "")
            self._signatures[depths] = known
        return known

    @cached_property
    def by_name(self) -> tuple[tuple[int, str], ...]:
        """The axes sorted by the names of their variables."""
        order = sorted(range(len(self.axes)), key=lambda k: self.axes[k].variable)
        return tuple((k, self.axes[k].variable) for k in order)

    @cached_property
    def _named_depths(self) -> tuple[list[tuple[str, int]], ...]:
        """Axis -> depth -> the variable and the depth, once for all cross-tabulations."""
        return tuple(
            [(axis.variable, depth) for depth in range(int(axis.depths.max()) + 1)] for axis in self.axes
        )

    @cached_property
    def _signatures(self) -> dict[Depths, Signature]:
        """Those that were needed."""
        return {}

    def level_name(self, depths: Depths) -> str:
        """One of its cross-tabulations as readers know it: GEO.COUNTY x SEX."""
        return joined([self.axes[k].levels[depths[k] - 1] for k, _ in self.by_name if depths[k]])

    @cached_property
    def _base(self) -> str:
        return self.base.canonical if self.base else ""

    def is_finest(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which cells have no cell of the cube below them."""
        found = np.ones(len(cells), dtype=bool)
        for k, axis in enumerate(self.axes):
            found &= axis.finest[self.nodes(cells, k)]
        return found

    def crosstab_numbers(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """To which cross-tabulation each cell belongs, by the order of ``depths``."""
        tables = [axis.depths.astype(np.int64) for axis in self.axes]
        return self.numbered(cells, tables, [int(one.max()) + 1 for one in tables], range(len(tables)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of possible cells, margins included."""
        return prod(self.shape)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The stride of each axis in the flat grid (last axis fastest)."""
        return tuple(prod(self.shape[k + 1 :]) for k in range(len(self.shape)))

    def numbered(
        self,
        cells: NDArray[np.int64],
        tables: Sequence[NDArray[np.int64]],
        sizes: Sequence[int],
        order: Sequence[int],
    ) -> NDArray[np.int64]:
        """One number per cell, with digits tables[k][node along axis k], those of order[0] most significant."""
        number = np.zeros(len(cells), dtype=np.int64)
        for k in order:
            add_digit(number, cells, self.strides[k], self.shape[k], tables[k], sizes[k])
        return number

    def nodes(self, cells: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """The node along one axis of each flat cell position."""
        return (cells // self.strides[axis]) % self.shape[axis]

    def codes_of(self, cell: int) -> dict[str, str]:
        """Variable -> code of one flat cell position, totals left out."""
        nodes = ((cell // stride) % size for stride, size in zip(self.strides, self.shape, strict=True))
        return {axis.variable: axis.codes[node] for axis, node in zip(self.axes, nodes, strict=True) if node}


Levels = tuple[
    tuple[str, int], ...
]  # (variable, depth below the total) of each axis that is not total, sorted


@dataclass(frozen=True)
class Signature:
    """What makes two cross-tabulations the same: who is counted, and which levels are crossed."""

    unit: str
    base: str  # normal form of the population base, empty for all
    count: str  # the counted 0/1 column, empty for records
    levels: Levels
    source: str = ""  # of ready-made counts; empty for records
    weight: str = ""  # the column of weights that are summed, empty for counts

    def __str__(self) -> str:
        source = (self.source,) if self.source else ()
        weight = (self.weight,) if self.weight else ()
        return "/".join((self.unit, self.base, self.count, *source, crossed(self.levels), *weight))


def crossed(levels: Levels) -> str:
    """The levels as text, by their numbers: the identity of a cross-tabulation in manifests and budgets."""
    return cross_named((variable, f"{variable}:{depth}") for variable, depth in levels)


def cross_named(levels: Iterable[tuple[str, str]]) -> str:
    """The names of some levels as one text, by the names of their variables."""
    return joined([name for _, name in sorted(levels)])


def joined(names: Iterable[str]) -> str:
    """The names of levels as one text."""
    return " x ".join(names) or "total"


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one axis at one depth, and their places among all codes of that depth."""

    nodes: NDArray[np.int64]  # nodes of the cube's axis
    places: NDArray[np.int64]  # their places among the codelist's codes of this depth
    size: int  # how many codes the codelist has at this depth

    @cached_property
    def node_at(self) -> NDArray[np.int64]:
        """Place -> node of the axis, -1 where the axis lacks the code."""
        nodes = np.full(self.size, -1, dtype=np.int64)
        nodes[self.places] = self.nodes
        return nodes

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """Place -> whether the axis has the code."""
        return self.node_at >= 0


@dataclass(frozen=True, eq=False)
class CrossTab:
    """One cross-tabulation inside a cube, with its cells numbered as in every other cube that contains it."""

    signature: Signature
    depths: tuple[int, ...]  # along the cube's axes
    levels: tuple[Level, ...]  # along the cube's axes
    order: tuple[int, ...]  # the axes sorted by variable: the order of the common numbering

    @property
    def size(self) -> int:
        """How many cells the cross-tabulation has, also those that the cube lacks."""
        return prod(level.size for level in self.levels)

    def numbers(self, cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The common number of cells of the cube that belong to this cross-tabulation."""
        tables = []
        for k, level in enumerate(self.levels):
            places = np.zeros(cube.shape[k], dtype=np.int64)
            places[level.nodes] = level.places
            tables.append(places)
        return cube.numbered(cells, tables, [level.size for level in self.levels], self.order)

    def cells(self, cube: Cube, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The cells of the cube with these common numbers, and which of the numbers it has cells for."""
        cell = np.zeros(len(numbers), dtype=np.int64)
        held = np.ones(len(numbers), dtype=bool)
        rest = numbers
        for k in reversed(self.order):
            rest, place = np.divmod(rest, self.levels[k].size)
            node = self.levels[k].node_at[place]
            held &= node >= 0
            cell += node * cube.strides[k]
        return cell[held], held


def crosstabs(cube: Cube, codelists: Mapping[str, Codelist]) -> tuple[CrossTab, ...]:
    """The measured cross-tabulations of a cube, from the grand total to the finest."""
    if cube.shown is None:
        return all_crosstabs(cube, codelists)
    return tuple(one for one in all_crosstabs(cube, codelists) if one.depths in cube.shown.measured)


def all_crosstabs(cube: Cube, codelists: Mapping[str, Codelist]) -> tuple[CrossTab, ...]:
    """All cross-tabulations of a cube in the order of its ``depths``, published or not; made once."""
    trees = tuple(codelists[axis.variable] for axis in cube.axes)
    for known, made in cube.known_crosstabs:
        if all(one is other for one, other in zip(known, trees, strict=True)):
            return made
    found = _make_crosstabs(cube, trees)
    cube.known_crosstabs[:] = [(trees, found)]
    return found


def _make_crosstabs(cube: Cube, trees: Sequence[Codelist]) -> tuple[CrossTab, ...]:
    order = tuple(k for k, _ in cube.by_name)
    levels = [one.values() for one in _levels_along(cube, trees)]
    return tuple(
        [
            CrossTab(cube.signature(depths), depths, chosen, order)
            for depths, chosen in zip(cube.depths, product(*levels), strict=True)
        ]
    )


def levels_along(cube: Cube, codelists: Mapping[str, Codelist]) -> list[dict[int, Level]]:
    """Axis -> depth -> its level, as all cross-tabulations of a cube have them."""
    return _levels_along(cube, [codelists[axis.variable] for axis in cube.axes])


def _levels_along(cube: Cube, trees: Sequence[Codelist]) -> list[dict[int, Level]]:
    return [_levels(axis, tree) for axis, tree in zip(cube.axes, trees, strict=True)]


def codes_at(tree: Codelist, depth: int) -> list[str]:
    """The codes of one depth, in the order of their places."""
    return [code for code, at in zip(tree.codes, tree.depths, strict=True) if at == depth]


def signatures(cubes: Iterable[Cube]) -> tuple[Signature, ...]:
    """Every measured cross-tabulation of some cubes, each once, in the order of its first cube."""
    return tuple({cube.signature(depths): None for cube in cubes for depths in cube.measured})


@lru_cache(maxsize=256)  # the cubes of a programme share their axes
def _levels(axis: Breakdown, tree: Codelist) -> dict[int, Level]:
    """Depth -> level of an axis; the codes of one depth are numbered in the order of the codelist."""
    levels = {0: Level(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1)}
    for depth in range(1, axis.deepest + 1):
        codes = codes_at(tree, depth)
        place = {code: index for index, code in enumerate(codes)}
        nodes = np.flatnonzero(axis.depths == depth)
        places = np.array([place[axis.codes[node]] for node in nodes], dtype=np.int64)
        levels[depth] = Level(nodes, places, len(codes))
    return levels
