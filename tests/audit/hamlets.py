"""Hamlets of grid cells and districts that do not nest, each with one sliver, their persons and a public map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.audit.differencing_areas import Crossing


@dataclass(frozen=True)
class Hamlets:
    """Persons by grid cell and district, and how many of each there are."""

    cell: NDArray[np.uint32]
    district: NDArray[np.uint32]
    cells: int
    districts: int

    def crossing(self) -> Crossing:
        """Who lives where, as the office knows it."""
        cell, district = self.cell.astype(np.int64), self.district.astype(np.int64)
        pieces, counts = np.unique(cell * self.districts + district, return_counts=True)
        cells = tuple(f"GRID{k}" for k in range(self.cells))
        districts = tuple(f"LAU{k}" for k in range(self.districts))
        names = ("GRID", "LAU")
        return Crossing(names, (cells, districts), pieces // self.districts, pieces % self.districts, counts)

    def lookup(self) -> Crossing:
        """Which areas overlap, as anybody can know it."""
        known = self.crossing()
        return Crossing(known.names, known.codes, known.a, known.b, np.ones_like(known.a))


def hamlets(many: int, seed: int) -> Hamlets:
    """Two cells in each; one to three districts lie in the second but for a sliver, which belongs to the first's."""
    generator = np.random.default_rng(seed)
    pieces: list[tuple[int, int, int]] = []
    districts = 0
    for k in range(many):
        inside = 1 + k % 3
        border = districts + 1
        pieces += [
            (2 * k, districts, 60),
            (2 * k, border, 40),
            (2 * k + 1, border, int(generator.integers(1, 9))),
        ]
        pieces += [(2 * k + 1, border + 1 + n, int(generator.integers(20, 90))) for n in range(inside)]
        districts += 2 + inside
    cell, district, persons = np.array(pieces).T
    return Hamlets(
        np.repeat(cell, persons).astype(np.uint32),
        np.repeat(district, persons).astype(np.uint32),
        2 * many,
        districts,
    )
