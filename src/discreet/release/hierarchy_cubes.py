"""How the cubes of a published hierarchy sum its histogram: areas, categories and single cells; public files only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BrokenRelease
from discreet.hierarchy.cubes import Sums, indicators
from discreet.hierarchy.joint import Cell
from discreet.programme.codelist import TOTAL
from discreet.release.hierarchy import CATEGORIES, PublishedHierarchy
from discreet.release.manifest import CubeEntry
from discreet.release.reader import PublishedCodes, read_codes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublishedCube:
    """A cube of a hierarchical release."""

    found: PublishedHierarchy
    entry: CubeEntry

    @cached_property
    def listed(self) -> list[PublishedCodes]:
        """The published codes of every axis."""
        return [read_codes(self.found.release.folder / axis.codelist) for axis in self.entry.axes]

    @cached_property
    def codes(self) -> tuple[tuple[str, ...], ...]:
        """The codes of every axis, the total first."""
        return tuple(one.codes for one in self.listed)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The size of the grid."""
        return tuple(len(one) for one in self.codes)

    @cached_property
    def matrices(self) -> Mapping[str, Floats]:
        """Of each variable but the geography: (code, category) -> 1 where the code contains the category."""
        known, found = self.found.categories, dict[str, Floats]()
        for axis, listed in zip(self.entry.axes, self.listed, strict=True):
            if axis.variable == self.found.rule.geography:
                continue
            of = known.get((axis.variable, axis.breakdown))
            place = {code: node for node, code in enumerate(listed.codes)}
            categories = known.get((axis.variable, ""), {})
            if of is None or of.keys() != categories.keys() or not place.keys() >= set(of.values()):
                raise BrokenRelease(f"{CATEGORIES}: it does not describe {axis.breakdown}")
            finest = np.array([place[of[code]] for code in categories], dtype=np.int64)
            above = [place.get(parent, 0) if node else -1 for node, parent in enumerate(listed.parents)]
            found[axis.variable] = indicators(finest, above)
        return found

    @cached_property
    def sums(self) -> Sums:
        """How the cube sums the histogram."""
        names = [axis.variable for axis in self.entry.axes]
        return Sums(self.found.plan.strategy.histogram, names, self.matrices, self.shape)

    @cached_property
    def nodes(self) -> Integers:
        """The node of each area of the cube; a code that occurs at several levels is meant at the first."""
        spine, codes = self.found.plan.spine, self.found.areas[1]
        node_of: dict[str, int] = {TOTAL: int(spine.node_of[0][0])}
        for level, own in enumerate(codes):
            for code, node in zip(own, spine.node_of[level].tolist(), strict=True):
                node_of.setdefault(code, node)
        wanted = (TOTAL,) if self.sums.place is None else self.codes[self.sums.place]
        if missing := [code for code in wanted if code not in node_of]:
            raise BrokenRelease(f"cube {self.entry.id}: {missing[0]} is not among the areas")
        return np.array([node_of[code] for code in wanted], dtype=np.int64)

    def position(self, chosen: Mapping[str, str]) -> int:
        """The place of a cell in the grid, by its code of every axis."""
        place = 0
        for axis, codes in zip(self.entry.axes, self.codes, strict=True):
            place = place * len(codes) + codes.index(chosen[axis.variable])
        return place

    def cell(self, chosen: Mapping[str, str]) -> Cell:
        """A cell as a count of the hierarchy, by its code of every axis."""
        at = {
            axis.variable: codes.index(chosen[axis.variable])
            for axis, codes in zip(self.entry.axes, self.codes, strict=True)
        }
        node = int(self.nodes[at.get(self.found.rule.geography, 0)])
        rows = (
            self.matrices[axis.name][at[axis.name]] if axis.name in at else np.ones(axis.size)
            for axis in self.found.plan.strategy.histogram.axes
        )
        return Cell(node, tuple(rows))
