"""Published tables of single areas: joint categories, cell sums, and the true counts each value allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Integers, PublishedTable, Universe, values_at
from discreet.errors import mistake
from discreet.maths.attacks.reconstruction import CellSums, Reading, both, by_law, within
from discreet.maths.noise.publishing import PublishedLaw
from discreet.perturb.noise import Noise
from discreet.programme.codelist import TOTAL, Breakdown, Codelist
from discreet.programme.cube import Cube, Signature


@dataclass(frozen=True, eq=False)
class Space:
    """The cross of the categories of some variables: what a reconstructed record can be."""

    variables: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]  # the categories of each variable

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable."""
        return tuple(len(codes) for codes in self.codes)

    @property
    def size(self) -> int:
        """The number of different records."""
        return prod(self.shape)

    def categories(self, cells: Integers) -> tuple[Integers, ...]:
        """The category of each variable, for joint cells."""
        return tuple(np.asarray(part, dtype=np.int64) for part in np.unravel_index(cells, self.shape))

    def described(self, cell: int) -> dict[str, str]:
        """The code of each variable in a joint cell."""
        at = np.unravel_index(cell, self.shape)
        return {name: codes[int(k)] for name, codes, k in zip(self.variables, self.codes, at, strict=True)}

    def cells(
        self, columns: Mapping[str, NDArray[np.integer]], codelists: Mapping[str, Codelist]
    ) -> Integers:
        """The joint cell of each record, whose columns are leaves of the codelists."""
        parts = [
            places(codelists[name], codes)[columns[name]]
            for name, codes in zip(self.variables, self.codes, strict=True)
        ]
        for name, part in zip(self.variables, parts, strict=True):
            if (part < 0).any():
                remedy = "give records that have the codes of the release"
                raise mistake("", f"records, {name}", "codes that the tables do not have", remedy)
        return np.asarray(np.ravel_multi_index(parts, self.shape), dtype=np.int64)


def places(tree: Codelist, codes: Sequence[str]) -> Integers:
    """Leaf of the codelist -> place of the finest code among ``codes`` that contains it; -1 where none does."""
    place = {code: k for k, code in enumerate(codes)}
    found = ((place.get(tree.codes[node]) for node in tree.ancestors(leaf)) for leaf in tree.leaves)
    all_of_it = place.get(TOTAL, -1)
    return np.array([next((k for k in chain if k is not None), all_of_it) for chain in found], dtype=np.int64)


def tables_about(universe: Universe, geography: str) -> tuple[PublishedTable, ...]:
    """The tables with the geography as an axis, each variable once."""
    return tuple(
        table
        for table in universe.tables
        for names in [[axis.variable for axis in table.cube.axes]]
        if geography in names and len(set(names)) == len(names)
    )


def finest_codes(axes: Iterable[Breakdown], tree: Codelist) -> tuple[str, ...]:
    """The common refinement of breakdowns of one codelist: the finest code of any of them over each leaf."""
    known = {code for axis in axes for code in axis.codes}
    found = (
        next((tree.codes[node] for node in tree.ancestors(leaf) if tree.codes[node] in known), TOTAL)
        for leaf in tree.leaves
    )
    return tuple(dict.fromkeys(found))


def joint_space(
    universe: Universe,
    geography: str,
    areas: Sequence[str],
    wanted: Sequence[str] | None,
    apart: Sequence[str],
    most_cells: int,
) -> Space:
    """The cross of the requested variables, or of those that most tables have, within the limit of cells.

    Only tables that have one of the areas are used: categories published only for larger areas would make the areas'
    own tables useless. ``apart`` are variables that are used only if requested: other geographies.
    """
    axes: dict[str, list[Breakdown]] = {}
    for table in tables_about(universe, geography):
        place = next(axis for axis in table.cube.axes if axis.variable == geography)
        if any(area in place.position for area in areas):
            for axis in table.cube.axes:
                axes.setdefault(axis.variable, []).append(axis)
    axes.pop(geography, None)
    codes = {name: finest_codes(found, universe.codelists[name]) for name, found in axes.items()}
    if wanted is not None:
        return _wanted(codes, tuple(wanted), geography, most_cells)
    chosen: list[str] = []
    for name in sorted(set(codes) - set(apart), key=lambda name: (-len(axes[name]), len(codes[name]), name)):
        if prod(len(codes[one]) for one in (*chosen, name)) <= most_cells:
            chosen.append(name)
    if not chosen:
        raise mistake("", "variables", f"none fits {most_cells} cells", "raise the limit of cells")
    return Space(tuple(chosen), tuple(codes[name] for name in chosen))


def _wanted(
    codes: Mapping[str, tuple[str, ...]], wanted: tuple[str, ...], geography: str, most_cells: int
) -> Space:
    unknown = [name for name in wanted if name not in codes]
    if unknown or not wanted:
        known = f"name some of {', '.join(sorted(codes))}"
        raise mistake(
            "", "variables", ", ".join(unknown) or "none", f"no table has it with {geography}; {known}"
        )
    space = Space(wanted, tuple(codes[name] for name in wanted))
    if space.size > most_cells:
        remedy = f"name fewer variables, or raise the limit of {most_cells}"
        raise mistake("", "variables", f"their cross has {space.size} cells", remedy)
    return space


@dataclass(frozen=True, eq=False)
class AreaSums:
    """The published cells about areas of one kind: their sums, and their places in the tables."""

    sums: CellSums
    signatures: tuple[Signature, ...]  # of each sum
    tables: Integers  # of each place, among the tables
    offsets: Integers  # flat position of each place, with the geography at its total
    sum_of: Integers  # the sum at each place; the same sum is in many tables


@dataclass(frozen=True, eq=False)
class AreaTables:
    """The tables of one universe about areas, ready to be read area by area."""

    universe: Universe
    geography: str
    space: Space

    @cached_property
    def tables(self) -> tuple[PublishedTable, ...]:
        """The tables with the geography as an axis."""
        return tables_about(self.universe, self.geography)

    def kind(self, area: str) -> tuple[int, ...]:
        """The tables that have the area; areas with the same ones have the same sums."""
        return tuple(k for k, table in enumerate(self.tables) if area in self._axis(table.cube).position)

    def depth(self, area: str) -> int:
        """The level of the area."""
        tree = self.universe.codelists[self.geography]
        return tree.depths[tree.position[area]]

    def sums(self, kind: Sequence[int], depth: int) -> AreaSums:
        """All cells that the tables have for an area, each once, with all its places."""
        found: dict[tuple[tuple[str, str], ...], int] = {}
        members: list[Integers] = []
        signatures: list[Signature] = []
        rows: list[tuple[int, int, int]] = []
        for k in kind:
            for cell in self._cells(self.tables[k].cube, depth):
                if cell.name not in found:
                    found[cell.name] = len(members)
                    members.append(cell.members)
                    signatures.append(self.universe.signature(cell.levels))
                rows.append((k, cell.offset, found[cell.name]))
        starts = np.cumsum([0, *(len(part) for part in members)])
        columns = np.array(rows, dtype=np.int64).T
        return AreaSums(
            CellSums(self.space.size, starts, np.concatenate(members)), tuple(signatures), *columns
        )

    def values(self, sums: AreaSums, areas: Sequence[str]) -> Integers:
        """(area, place) -> published value; every table is read once."""
        found = np.zeros((len(areas), len(sums.tables)), dtype=np.int64)
        for k in np.unique(sums.tables).tolist():
            here, cube = np.flatnonzero(sums.tables == k), self.tables[k].cube
            axis = self._axis(cube)
            stride = cube.strides[cube.axes.index(axis)]
            cells = self.tables[k].load()
            for row, area in enumerate(areas):
                found[row, here] = values_at(cells, sums.offsets[here] + axis.position[area] * stride)
        return found

    def _axis(self, cube: Cube) -> Breakdown:
        return next(axis for axis in cube.axes if axis.variable == self.geography)

    def _cells(self, cube: Cube, depth: int) -> Iterator[_AreaCell]:
        """The cells of one table: variables outside the space are at their total."""
        grid = np.arange(self.space.size).reshape(self.space.shape)
        choices = [self._nodes(axis) for axis in cube.axes]
        present = set(cube.measured)
        for chosen in product(*choices):
            depths = tuple(
                depth if axis.variable == self.geography else int(axis.depths[node])
                for axis, (node, _) in zip(cube.axes, chosen, strict=True)
            )
            if depths not in present:
                continue
            selected: list[Integers] = [np.arange(size) for size in self.space.shape]
            name, levels, offset = [], [(self.geography, depth)], 0
            for axis, stride, (node, categories) in zip(cube.axes, cube.strides, chosen, strict=True):
                offset += node * stride
                if node:
                    selected[self.space.variables.index(axis.variable)] = categories
                    name.append((axis.variable, axis.codes[node]))
                    levels.append((axis.variable, int(axis.depths[node])))
            members = grid[np.ix_(*selected)].ravel()
            yield _AreaCell(tuple(sorted(name)), tuple(sorted(levels)), offset, members)

    def _nodes(self, axis: Breakdown) -> list[tuple[int, Integers]]:
        """The nodes of an axis that can be used, with the categories of each."""
        if axis.variable not in self.space.variables:
            return [(0, np.empty(0, dtype=np.int64))]
        tree = self.universe.codelists[axis.variable]
        found = places(tree, self.space.codes[self.space.variables.index(axis.variable)])
        return [(node, np.unique(found[tree.leaves_under(code)])) for node, code in enumerate(axis.codes)]


@dataclass(frozen=True, eq=False)
class _AreaCell:
    name: tuple[tuple[str, str], ...]  # (variable, code), without totals
    levels: tuple[tuple[str, int], ...]
    offset: int
    members: Integers


@dataclass(eq=False)
class NoiseReader:
    """Converts published values into possible counts by what is known of the noise; equal values are converted once."""

    noise: Noise
    bound: int | None
    confidence: float
    known: dict[tuple[PublishedLaw | None, int, int], Reading] = field(
        default_factory=dict
    )  # (law, value, sums)

    @property
    def by_law(self) -> bool:
        """Whether the law is used, not only a bound."""
        return self.bound is None and self.noise.law is not None

    @property
    def effective_confidence(self) -> float:
        """1 where the noise has a known bound."""
        if self.by_law:
            laws = [self.noise.law, *self.noise.laws.values()]
            return self.confidence if any(law and law.row(0).omitted for law in laws) else 1.0
        return 1.0 if self.bound is not None or self.noise.bound is not None else self.confidence

    def readings(self, sums: AreaSums, values: Integers) -> list[Reading]:
        """One reading for each sum; where tables disagree on a sum, all values are combined."""
        found: dict[int, Reading] = {}
        for m, value in np.unique(np.stack([sums.sum_of, values]), axis=1).T.tolist():
            reading = self._reading(sums.signatures[m], value, len(sums.signatures))
            found[m] = both(found[m], reading) if m in found else reading
        return [found[m] for m in range(len(sums.signatures))]

    def _reading(self, signature: Signature, value: int, sums: int) -> Reading:
        law = self.noise.published_of(signature) if self.by_law else None
        key = (law, value, sums)
        if key not in self.known:
            self.known[key] = self._by_law(law, value, sums) if law else self._by_bound(value, sums)
        return self.known[key]

    def _by_law(self, law: PublishedLaw, value: int, sums: int) -> Reading:
        """Every count that can lead to this value; for unbounded noise, without tails beyond the given confidence."""
        tail = (1 - self.confidence) / sums if law.law.row(max(value, 0)).omitted else 0.0
        return by_law(value, law, tail)

    def _by_bound(self, value: int, sums: int) -> Reading:
        """The counts within the bound; a value that post-processing never publishes is used unchanged."""
        least = int(self.noise.keeps_zeros and value != 0)
        sources = self.noise.publishing.sources(value) or (value, value)
        return within(sources, self._known_bound(sums), least, self.noise.variance)

    def _known_bound(self, sums: int) -> int:
        """The bound given or published; else Chebyshev's for all sums at once."""
        if self.bound is not None:
            return self.bound
        if self.noise.bound is not None:
            return self.noise.bound
        if self.noise.variance is None:
            remedy = "give a bound to try with, or the law of the noise"
            if self.noise.hierarchy is not None:
                raise mistake("", "noise", "counts were fitted to noisy marginals", "attack the measurements")
            raise mistake("", "noise", "neither its law nor a bound nor its variance is public", remedy)
        return math.ceil(math.sqrt(self.noise.variance * sums / (1 - self.confidence)))
