"""Cross-tabulations: the parts of a cube in which every record stands exactly once; what noise is budgeted for.

A cube with its margins and sub-totals is many cross-tabulations, one for each choice of a level along every axis. The
same cross-tabulation stands in many cubes; its signature tells that it is the same. It does not count or perturb.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.schema.codelist import Breakdown, Codelist
from discreet.schema.cube import Cube

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

    def __str__(self) -> str:
        return "/".join((self.unit, self.base, self.count, crossed(self.levels)))


def crossed(levels: Levels) -> str:
    """The levels in words."""
    return " x ".join(f"{variable}:{depth}" for variable, depth in levels) or "total"


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one axis at one depth, and where they stand among all codes of that depth."""

    nodes: NDArray[np.int64]  # nodes of the cube's axis
    places: NDArray[np.int64]  # their places among the codelist's codes of this depth
    size: int  # how many codes the codelist has at this depth

    @cached_property
    def node_at(self) -> NDArray[np.int64]:
        """Place -> node of the axis, -1 where the axis lacks the code."""
        nodes = np.full(self.size, -1, dtype=np.int64)
        nodes[self.places] = self.nodes
        return nodes


@dataclass(frozen=True, eq=False)
class CrossTab:
    """One cross-tabulation inside a cube, with its cells numbered as in every other cube that holds it."""

    signature: Signature
    depths: tuple[int, ...]  # along the cube's axes
    levels: tuple[Level, ...]  # along the cube's axes
    order: tuple[int, ...]  # the axes sorted by variable: the order of the common numbering

    @property
    def size(self) -> int:
        """How many cells the cross-tabulation has, whatever the cube holds of it."""
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
    """All cross-tabulations of a cube, from the grand total to the finest."""
    order = tuple(sorted(range(len(cube.axes)), key=lambda k: cube.axes[k].variable))
    choices = [_levels(axis, codelists[axis.variable]) for axis in cube.axes]
    return tuple(
        CrossTab(
            _signature(cube, tuple(depth for depth, _ in chosen)),
            tuple(depth for depth, _ in chosen),
            tuple(level for _, level in chosen),
            order,
        )
        for chosen in product(*(choice.items() for choice in choices))
    )


def codes_at(tree: Codelist, depth: int) -> list[str]:
    """The codes of one depth, in the order of their places."""
    return [code for code, at in zip(tree.codes, tree.depths, strict=True) if at == depth]


def signatures(cubes: Iterable[Cube]) -> tuple[Signature, ...]:
    """Every cross-tabulation of some cubes, each once, in the order of its first cube."""
    found = {
        _signature(cube, depths): None
        for cube in cubes
        for depths in product(*(range(int(axis.depths.max()) + 1) for axis in cube.axes))
    }
    return tuple(found)


def _signature(cube: Cube, depths: tuple[int, ...]) -> Signature:
    levels = ((axis.variable, depth) for axis, depth in zip(cube.axes, depths, strict=True) if depth)
    return Signature(
        cube.unit, cube.base.canonical if cube.base else "", cube.count or "", tuple(sorted(levels))
    )


def _levels(axis: Breakdown, tree: Codelist) -> dict[int, Level]:
    """Depth -> level of an axis; the codes of one depth are numbered as they stand in the codelist."""
    levels = {0: Level(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1)}
    for depth in range(1, int(axis.depths.max()) + 1):
        codes = codes_at(tree, depth)
        place = {code: index for index, code in enumerate(codes)}
        nodes = np.flatnonzero(axis.depths == depth)
        places = np.array([place[axis.codes[node]] for node in nodes], dtype=np.int64)
        levels[depth] = Level(nodes, places, len(codes))
    return levels
