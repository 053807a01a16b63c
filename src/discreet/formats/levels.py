"""The levels of a long table: which rows together count every record once, so that totals are never added to parts.

A cell's level names the level of its code along each axis that is not at its total by the breakdown that ends there, as
``GEO.COUNTY x SEX``; ``GEO:1`` is the first level below the total where no breakdown does. A code without codes below
belongs to the deepest level of its axis, wherever it ends, so that the finest level is always whole. The cells of one
level never overlap; they are a partition unless its name ends with ``(part)``: codes that end above it, or
cross-tabulations that are not published, are missing there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import append_digit
from discreet.programme.codelist import TOTAL, numbered_levels
from discreet.programme.cube import Depths, cross_named

LEVEL = "level"  # the column
PART = " (part)"


@dataclass(frozen=True, eq=False)
class AxisLevels:
    """The level and the depth of each code of an axis."""

    variable: str
    levels: NDArray[np.int64]
    depths: NDArray[np.int64]
    finest: NDArray[np.bool_]
    names: tuple[str, ...]  # level below the total -> its name, the first first

    @cached_property
    def deepest(self) -> int:
        """The last level."""
        return int(self.depths.max(initial=0))

    def depths_of(self, level: int) -> tuple[int, ...]:
        """The depths of the codes of a level."""
        return tuple(np.unique(self.depths[self.levels == level]).tolist())

    @cached_property
    def whole(self) -> tuple[bool, ...]:
        """Whether every record has a code of each level."""
        first = int(self.depths[self.finest].min(initial=self.deepest))  # where codes end
        return tuple(level in (0, self.deepest) or level < first for level in range(self.deepest + 1))


def axis_levels(
    variable: str,
    codes: Sequence[str],
    parents: Sequence[str],
    known: Sequence[int] = (),
    names: Sequence[str] = (),
) -> AxisLevels:
    """The levels of codes whose parents are listed before them; codes without one are below the total.

    ``known`` are the depths of codes of which not all above are listed; without ``names`` levels have numbers.
    """
    depth: dict[str, int] = dict(zip(codes, known, strict=True)) if known else {}
    for code, parent in zip(codes, parents, strict=True) if not known else ():
        depth[code] = 0 if code == TOTAL else depth.get(parent, 0) + 1
    inner = set(parents)
    depths = np.array([depth[code] for code in codes], dtype=np.int64)
    finest = np.array([code not in inner and code != TOTAL for code in codes], dtype=np.bool_)
    deepest = int(depths.max(initial=0))
    named = tuple(names) or numbered_levels(variable, deepest)
    return AxisLevels(variable, np.where(finest, deepest, depths), depths, finest, named)


@dataclass(frozen=True, eq=False)
class Levels:
    """The names of all levels of a table, by the levels of its axes (last axis fastest)."""

    axes: tuple[AxisLevels, ...]
    names: tuple[str, ...]

    def places(self, nodes: Sequence[NDArray[np.integer]]) -> NDArray[np.int32]:
        """Which of the names each cell has, from its codes along the axes."""
        place = np.zeros(len(nodes[0]), dtype=np.int32)
        for axis, along in zip(self.axes, nodes, strict=True):
            append_digit(place, along, axis.levels, np.int32(axis.deepest + 1))
        return place


def levels_of(axes: Sequence[AxisLevels], published: Callable[[Depths], bool] | None = None) -> Levels:
    """The levels of a table; ``published`` answers for the depths of a cross-tabulation, if not all are."""
    named = [[None, *((axis.variable, name) for name in axis.names[: axis.deepest])] for axis in axes]
    names = [cross_named(filter(None, chosen)) for chosen in product(*named)]
    whole = list(map(all, product(*(axis.whole for axis in axes))))
    if published is not None:
        depths = [[axis.depths_of(level) for level in range(axis.deepest + 1)] for axis in axes]
        every = (all(map(published, product(*chosen))) for chosen in product(*depths))
        whole = [one and all_shown for one, all_shown in zip(whole, every, strict=True)]
    return Levels(
        tuple(axes), tuple(name if one else name + PART for name, one in zip(names, whole, strict=True))
    )
