"""Cubes: crosses of breakdowns with all their margins, as one grid of cells; it does not count anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.maths.counting import add_digit
from discreet.schema.codelist import Breakdown
from discreet.schema.expression import Filter


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
        """How far one step along each axis moves in the flat grid (last axis fastest)."""
        return tuple(prod(self.shape[k + 1 :]) for k in range(len(self.shape)))

    def numbered(
        self,
        cells: NDArray[np.int64],
        tables: Sequence[NDArray[np.int64]],
        sizes: Sequence[int],
        order: Sequence[int],
    ) -> NDArray[np.int64]:
        """One number for each cell: tables[k][node along axis k] as its digits, those of order[0] most significant."""
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
