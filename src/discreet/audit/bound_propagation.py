"""Intervals of true counts, tightened within each table and exchanged between tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.cells import OwnedTable, SplitTable, crosstab_numbers, measured, once
from discreet.audit.evidence import Cells, Integers, PublishedTable, Universe
from discreet.io.progress import Progress
from discreet.maths.attacks.intervals import (
    AxisFamilies,
    Bounds,
    PossibleCounts,
    Shared,
    Tightening,
    families,
    give,
    origins,
    take,
    tighten,
)
from discreet.maths.attacks.tuples import Choice, pinned_pairs, survey
from discreet.maths.noise.additive import Law, uniform
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import CrossTab, Cube, Levels, all_crosstabs, crosstabs


@dataclass(frozen=True, eq=False)
class CubeBlock:
    """The cells of a cube whose first axis has the nodes first <= node < last: a whole sub-tree, or one node."""

    cube: Cube
    first: int
    last: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis; a cube without axes is one cell."""
        return (self.last - self.first, *self.cube.shape[1:])

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    @property
    def offset(self) -> int:
        """The position of its first cell in the cube."""
        return self.first * (self.cube.size // max(1, len(self.cube.axes[0]))) if self.cube.axes else 0

    @cached_property
    def families(self) -> tuple[AxisFamilies, ...]:
        """The families along each axis; without those that reach beyond the block."""
        return tuple(self._families(k) for k in range(len(self.cube.axes)))

    def _families(self, axis: int) -> AxisFamilies:
        above = self.cube.axes[axis].parents
        if axis == 0:
            above = np.maximum(above[self.first : self.last] - self.first, -1).astype(np.int32)
        return families(above)

    def depths(self, axis: int) -> NDArray[np.int32]:
        """The depth of each of its nodes along an axis."""
        depths = self.cube.axes[axis].depths
        return depths[self.first : self.last] if axis == 0 else depths

    def dense(self, cells: Cells) -> NDArray[np.int32]:
        """The values of its cells, zero where a table lists none."""
        places, values = cells
        begin, end = np.searchsorted(places, [self.offset, self.offset + self.size])
        grid = np.zeros(self.size, dtype=np.int32)
        grid[places[begin:end] - self.offset] = values[begin:end]
        return grid

    @cached_property
    def unmeasured(self) -> Integers:
        """Its cells that are not published, or are sums of published ones: they have no noise to bound."""
        if self.cube.shown is None:
            return np.empty(0, dtype=np.int64)
        cells = np.arange(self.offset, self.offset + self.size)
        return np.flatnonzero(~measured(self.cube)[crosstab_numbers(self.cube, cells)])

    def cells_of(self, crosstab: CrossTab) -> Integers:
        """The cells of the cube in this block that belong to a cross-tabulation."""
        cells = np.zeros(1, dtype=np.int64)
        for k, level in enumerate(crosstab.levels):
            nodes = level.nodes
            if k == 0:
                nodes = nodes[(nodes >= self.first) & (nodes < self.last)]
            cells = (cells[:, None] + nodes[None, :] * self.cube.strides[k]).ravel()
        return cells


def blocks(cube: Cube, most: int) -> Iterator[CubeBlock]:
    """Cut a cube along its first axis into the largest sub-trees of at most ``most`` cells, or else single nodes."""
    if not cube.axes:
        yield CubeBlock(cube, 0, 1)
        return
    across = cube.size // len(cube.axes[0])
    sizes = _sizes(cube.axes[0])
    node = 0
    while node < len(sizes):
        nodes = sizes[node] if sizes[node] * across <= most else 1
        yield CubeBlock(cube, node, node + nodes)
        node += nodes


def _sizes(axis: Breakdown) -> list[int]:
    """How many nodes each node's sub-tree has; in preorder they are contiguous."""
    sizes = [1] * len(axis)
    for node in range(len(axis) - 1, 0, -1):
        sizes[int(axis.parents[node])] += sizes[node]
    return sizes


def fresh(owned: OwnedTable, axis: int) -> NDArray[np.bool_]:
    """The tuples along an axis whose parts no earlier table shows, and whose total is published, too.

    [depths of the axes before, depth of the parent, depths of the axes after]. Where two breakdowns of one variable
    have different nodes of a level, their common tuples count twice.
    """
    levels = [int(one.depths.max()) + 1 for one in owned.cube.axes]
    parts = owned.owned.reshape(prod(levels[:axis]), levels[axis], prod(levels[axis + 1 :]))
    totals = measured(owned.cube).reshape(parts.shape)
    found = np.zeros_like(parts)
    found[:, :-1] = parts[:, 1:] & totals[:, :-1]
    return found


def _choice(block: CubeBlock, axis: int, new: NDArray[np.bool_]) -> Choice:
    """The chosen tuples of a block along an axis."""
    axes = range(len(block.shape))
    depths = block.depths(axis).astype(np.int64)
    return Choice(
        depths[block.families[axis].parents],
        _classes(block, [k for k in axes if k < axis]),
        _classes(block, [k for k in axes if k > axis]),
        new,
    )


def _classes(block: CubeBlock, axes: Sequence[int]) -> Integers:
    """Position along some axes -> number of its depths."""
    classes = np.zeros(1, dtype=np.int64)
    for k in axes:
        many = int(block.cube.axes[k].depths.max()) + 1
        classes = (classes[:, None] * many + block.depths(k)[None, :]).ravel()
    return classes


@dataclass(frozen=True, eq=False)
class CutTable:
    """A table in blocks that fit in memory, and which of its tuples are new."""

    table: PublishedTable
    blocks: tuple[CubeBlock, ...]
    fresh: tuple[NDArray[np.bool_], ...]  # along each axis

    def tuples(self, block: CubeBlock) -> Iterator[Tuples]:
        """The tuples of a block along each axis that has any."""
        return (tuples for _, tuples in self.tuples_by_axis(block))

    def tuples_by_axis(self, block: CubeBlock) -> Iterator[tuple[int, Tuples]]:
        """The same with the axes."""
        for axis, members in enumerate(block.families):
            if len(members):
                shape = (prod(block.shape[:axis]), block.shape[axis], prod(block.shape[axis + 1 :]))
                yield axis, Tuples(shape, members, _choice(block, axis, self.fresh[axis]))


@dataclass(frozen=True, eq=False)
class Tuples:
    """The families along one axis of a block, seen as a grid (before, node, after), and the new ones among them."""

    shape: tuple[int, int, int]
    families: AxisFamilies
    choice: Choice

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take after the grids."""
        return (*self.families.arrays, *self.choice.arrays)


def whole_table(owned: OwnedTable) -> dict[int, Tuples]:
    """Axis -> the tuples along it, of a table that is laid out whole; none where an axis has only its total."""
    block = CubeBlock(owned.cube, 0, owned.cube.shape[0] if owned.cube.axes else 1)
    new = tuple(fresh(owned, axis) for axis in range(len(owned.cube.axes)))
    return dict(CutTable(owned.table, (block,), new).tuples_by_axis(block))


def cut(universe: Universe, most: int) -> Iterator[CutTable]:
    """The tables of a universe that can be cut into blocks of at most ``most`` cells."""
    cuts = {table: tuple(blocks(table.cube, most)) for table in universe.tables}
    fitting = tuple(table for table, parts in cuts.items() if max(part.size for part in parts) <= most)
    for owned in once(replace(universe, tables=fitting)):
        new = tuple(fresh(owned, axis) for axis in range(len(owned.cube.axes)))
        yield CutTable(owned.table, cuts[owned.table], new)


UNBOUNDED = np.int32(np.iinfo(np.int32).max)
LARGEST_SHOWN = 1 << 16  # a gap that needs a larger bound is counted with this one


@dataclass(frozen=True)
class PropagationLimits:
    """The memory that the attack may use: some 45 bytes for each cell of a block, 8 for each exchanged one."""

    block: int = 1 << 24  # cells that are worked on at once
    exchanged: int = 1 << 24  # cells whose intervals are carried from table to table
    stored: int = 1 << 28  # cells whose intervals the last round begins with, of 2 bytes
    named: int = 20  # deductions that are listed cell by cell


@dataclass(frozen=True, eq=False)
class Assumption:
    """What is assumed of the noise: which true counts can lead to a published one."""

    bound: int
    same_noise: bool
    origins: PossibleCounts
    others: Mapping[str, PossibleCounts] = field(
        default_factory=dict
    )  # of cross-tabulations with another law

    def intervals(self, universe: Universe, block: CubeBlock, shown: Bounds) -> tuple[Bounds, Bounds]:
        """The intervals of a block's cells, each by itself."""
        low, high = self.origins.of(shown)
        for crosstab in crosstabs(block.cube, universe.codelists) if self.others else ():
            other = self.others.get(str(universe.signature(crosstab.signature.levels)))
            if other is not None:
                at = block.cells_of(crosstab) - block.offset
                low[at], high[at] = other.of(shown[at])
        low[block.unmeasured], high[block.unmeasured] = 0, UNBOUNDED
        return low, high


def assumption(noise: Noise, bound: int | None) -> Assumption | None:
    """All that is public of a bounded noise, or only an assumed bound; None where no bound is known or assumed."""
    if bound is None and noise.bound is None:
        return None
    largest = noise.bound if bound is None else bound
    assert largest is not None
    is_public = largest == noise.bound
    default = noise.law if is_public and noise.law is not None else uniform(largest)
    others = {name: _origins(noise, law, largest) for name, law in noise.laws.items()} if is_public else {}
    return Assumption(largest, noise.same_noise and not noise.laws, _origins(noise, default, largest), others)


def _origins(noise: Noise, law: Law, bound: int) -> PossibleCounts:
    rule = noise.publishing
    return origins(noise.published(law).row, bound, rule.rounding, rule.threshold)


@dataclass(frozen=True, eq=False)
class Deductions:
    """Cells of a table whose true count is deduced; a cell of several tables is listed for the first."""

    counted: str
    cube: Cube
    cells: Integers
    published: Integers
    deduced: Integers


@dataclass(eq=False)
class PropagatedBounds:
    """The results so far."""

    groups: Counter[tuple[int, int]] = field(default_factory=Counter)  # (parts, positive ones) -> tuples
    shown: Integers = field(default_factory=lambda: np.zeros(LARGEST_SHOWN + 1, dtype=np.int64))
    exact: Integers = field(default_factory=lambda: np.zeros(LARGEST_SHOWN + 1, dtype=np.int64))
    pairs: int = 0
    cells: int = 0
    deductions: list[Deductions] = field(default_factory=list)
    contradictions: list[Deductions] = field(default_factory=list)  # their deduced counts mean nothing
    cut: list[str] = field(default_factory=list)  # tables that were worked on in parts
    left_out: list[str] = field(default_factory=list)  # tables of which one part is too large
    unfinished: list[str] = field(default_factory=list)  # tables stopped before the fixpoint
    unexchanged: int = 0  # cross-tabulations of several tables that were too large to be exchanged


class Propagation:
    """The attack on the tables of one universe."""

    def __init__(
        self,
        universe: Universe,
        known: Assumption | None,
        limits: PropagationLimits,
        found: PropagatedBounds,
        progress: Progress,
    ) -> None:
        self._universe, self._known, self._limits = universe, known, limits
        self._found, self._progress = found, progress
        self._deduced: dict[Levels, Integers] = {}
        self._tightened: dict[CubeBlock, tuple[NDArray[np.uint8], NDArray[np.uint8]]] = {}
        self._room = limits.stored

    def run(self) -> None:
        """Survey the tuples; with a bound, tighten every table, exchange, and tighten again."""
        tables = list(cut(self._universe, self._limits.block))
        self._note(tables)
        exchange = Exchange(self._universe, self._limits.exchanged)
        for table in tables:
            self._first_round(table, exchange)
        if self._known is not None:
            self._found.unexchanged += exchange.left_out
            for table in tables:
                self._last_round(table, exchange, self._known)

    def _note(self, tables: list[CutTable]) -> None:
        used = {one.table.id for one in tables}
        self._found.left_out += [table.id for table in self._universe.tables if table.id not in used]
        self._found.cut += [one.table.id for one in tables if len(one.blocks) > 1]

    def _first_round(self, table: CutTable, exchange: Exchange) -> None:
        cells = table.table.load()
        for block in table.blocks:
            shown = block.dense(cells)
            self._survey(table, block, shown)
            if self._known is not None:
                low, high = self._known.intervals(self._universe, block, shown)
                self._count_pairs(table, block, (low, high, shown), self._known.same_noise)
                first = low.copy(), high.copy()
                tightening = tighten(low, high, shown, block.families, block.shape, self._known.same_noise)
                if not tightening.contradictions:
                    exchange.give(block, low, high)
                    if tightening.is_fixpoint:
                        self._store(block, low - first[0], first[1] - high)
            self._progress.step(block.size)

    def _survey(self, table: CutTable, block: CubeBlock, shown: Bounds) -> None:
        found = self._found
        found.cells += block.size
        for tuples in table.tuples(block):
            starts = tuples.families.starts
            positives = np.zeros(int(starts[-1]) + len(tuples.families), dtype=np.int64)
            survey(shown.reshape(tuples.shape), *tuples.arrays, positives, found.shown, found.exact)
            for f, (begin, end) in enumerate(pairwise(starts.tolist())):
                for positive, many in enumerate(positives[begin + f : end + f + 1].tolist()):
                    if many:
                        found.groups[end - begin, positive] += many

    def _count_pairs(
        self, table: CutTable, block: CubeBlock, grids: tuple[Bounds, Bounds, Bounds], same_noise: bool
    ) -> None:
        for tuples in table.tuples(block):
            views = [grid.reshape(tuples.shape) for grid in grids]
            self._found.pairs += int(pinned_pairs(*views, *tuples.arrays, same_noise))

    def _last_round(self, table: CutTable, exchange: Exchange, known: Assumption) -> None:
        cells = table.table.load()
        for block in table.blocks:
            shown = block.dense(cells)
            low, high = known.intervals(self._universe, block, shown)
            open_ = low < high  # a count that follows from the law only is no deduction
            open_[block.unmeasured] = False  # nor is the count of a cell that is not published
            tightening = self._continued(block, shown, low, high, exchange, known)
            if tightening is None:
                low, high = known.intervals(self._universe, block, shown)
                exchange.take(block, low, high)
                tightening = tighten(low, high, shown, block.families, block.shape, known.same_noise)
            if not (tightening.is_fixpoint or tightening.contradictions):
                self._found.unfinished.append(table.table.id)
            self._deduce(self._found.deductions, block, shown, low, np.flatnonzero(open_ & (low == high)))
            self._deduce(self._found.contradictions, block, shown, low, np.flatnonzero(low > high))
            self._progress.step(block.size)

    def _store(self, block: CubeBlock, raised: Bounds, lowered: Bounds) -> None:
        """Store by how much the first round tightened a block, as far as there is room and a byte has it."""
        most = max(int(raised.max(initial=0)), int(lowered.max(initial=0)))
        if most <= np.iinfo(np.uint8).max and block.size <= self._room:
            self._room -= block.size
            self._tightened[block] = raised.astype(np.uint8), lowered.astype(np.uint8)

    def _continued(
        self,
        block: CubeBlock,
        shown: Bounds,
        low: Bounds,
        high: Bounds,
        exchange: Exchange,
        known: Assumption,
    ) -> Tightening | None:
        """Tighten a block from where the first round ended; None where that is not stored, or no count fits.

        The fixpoint is the same from any start. Without a fixpoint the intervals depend on it.
        """
        if block not in self._tightened:
            return None
        raised, lowered = self._tightened.pop(block)
        low += raised
        high -= lowered
        changed = exchange.take(block, low, high)
        found = tighten(low, high, shown, block.families, block.shape, known.same_noise, changed)
        return found if found.is_fixpoint and not found.contradictions else None

    def _deduce(
        self, into: list[Deductions], block: CubeBlock, shown: Bounds, low: Bounds, at: Integers
    ) -> None:
        """Store the cells that were not deduced from an earlier table."""
        new = self._not_yet_deduced(block.cube, at + block.offset)
        if len(new):
            at = new - block.offset
            counts = shown[at].astype(np.int64), low[at].astype(np.int64)
            into.append(Deductions(self._universe.counted, block.cube, new, *counts))

    def _not_yet_deduced(self, cube: Cube, cells: Integers) -> Integers:
        which, new_ones = crosstab_numbers(cube, cells), [np.empty(0, dtype=np.int64)]
        split = SplitTable((cells, cells), which)
        every = all_crosstabs(cube, self._universe.codelists)
        for at in np.unique(which).tolist():
            here, _ = split.positions(at)
            levels, numbers = every[at].signature.levels, every[at].numbers(cube, here)
            earlier = self._deduced.get(levels, new_ones[0])
            new_ones.append(here[~np.isin(numbers, earlier)])
            self._deduced[levels] = np.union1d(earlier, numbers)
        return np.sort(np.concatenate(new_ones))


class Exchange:
    """Carries intervals from table to table: the same cell has one true count wherever it is shown."""

    def __init__(self, universe: Universe, most: int) -> None:
        self._codelists = universe.codelists
        sizes: dict[Levels, int] = {}
        uses: Counter[Levels] = Counter()
        for table in universe.tables:
            for crosstab in crosstabs(table.cube, universe.codelists):
                uses[crosstab.signature.levels] += 1
                sizes[crosstab.signature.levels] = crosstab.size
        common = sorted((levels for levels in uses if uses[levels] > 1), key=lambda levels: sizes[levels])
        ends = np.cumsum([sizes[levels] for levels in common], dtype=np.int64)
        within = int(np.searchsorted(ends, most, side="right"))
        self.left_out = len(common) - within
        self._firsts = {levels: int(ends[at]) - sizes[levels] for at, levels in enumerate(common[:within])}
        cells = int(ends[within - 1]) if within else 0
        self._common = np.zeros(cells, dtype=np.int32), np.full(cells, UNBOUNDED)

    def give(self, block: CubeBlock, low: Bounds, high: Bounds) -> None:
        """Tighten what is known of the common cells by a block."""
        give(self._shared(block), low, high, *self._common)

    def take(self, block: CubeBlock, low: Bounds, high: Bounds) -> NDArray[np.bool_]:
        """Tighten a block by what is known of the common cells; returns which cells have changed."""
        return take(self._shared(block), low, high, *self._common)

    def _shared(self, block: CubeBlock) -> Shared:
        """The cells of a block that belong to common cross-tabulations."""
        cube, found = block.cube, all_crosstabs(block.cube, self._codelists)
        axes = max(1, len(cube.axes))  # a cube without axes is one cell
        levels = [{one.depths[k]: one.levels[k] for one in found} for k in range(len(cube.axes))]
        nodes: list[Integers] = []
        places: list[Integers] = []
        begins, ends = np.zeros((2, axes, 1 + max(map(max, levels), default=0)), dtype=np.int64)
        for k, at_depth in enumerate(levels):
            for depth, level in at_depth.items():
                inside = (level.nodes >= block.first) & (level.nodes < block.last) if k == 0 else slice(None)
                begins[k, depth] = sum(map(len, nodes))
                nodes.append((level.nodes[inside] - (block.first if k == 0 else 0)) * cube.strides[k])
                places.append(level.places[inside])
                ends[k, depth] = begins[k, depth] + len(nodes[-1])
        if not levels:
            nodes, places, ends[0, 0] = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], 1
        common = [one for one in crosstabs(cube, self._codelists) if one.signature.levels in self._firsts]
        strides = np.zeros((len(common), axes), dtype=np.int64)
        for number, one in enumerate(common):
            stride = 1
            for k in reversed(one.order):
                strides[number, k] = stride
                stride *= one.levels[k].size
        return Shared(
            np.concatenate(nodes),
            np.concatenate(places),
            begins,
            ends,
            np.array([one.depths or (0,) for one in common], dtype=np.int64).reshape(-1, axes),
            strides,
            np.array([self._firsts[one.signature.levels] for one in common], dtype=np.int64),
        )
