"""Which published cells add up to which: the cuts of every axis, and the cells of a universe by the codes they have.

A cut of a variable is a set of published codes in which every record occurs once: those of one depth, and in a tree
whose branches end at different depths also the finest codes above it. A refinement crosses one cut of each of some
variables; its cells below a target add up to it wherever its cuts divide the target's codes completely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from math import prod
from operator import getitem

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import NoisyCells, Universe
from discreet.maths.attacks.same_records import find_rows, join_only_children, join_same
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import Cube

Integers = NDArray[np.int64]
Places = NDArray[np.int32]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

WHOLE = 0  # the cut that does not divide
Levels = tuple[tuple[str, int], ...]  # (variable, depth), sorted, without totals: a cross-tabulation
Cuts = tuple[tuple[str, int], ...]  # (variable, cut), sorted, without those that do not divide
Key = tuple[tuple[str, int], ...]  # (variable, number of a set of codes of one depth), sorted, without totals


@dataclass(frozen=True, eq=False)
class Piece:
    """The published cells that have codes of one depth on each of some axes, as the first cube shows them."""

    levels: Levels
    first: int  # cells are numbered through all pieces
    codes: Places  # (cell, axis) -> place in the tree, the total being 0
    values: Integers  # published
    counts: Integers  # true where they are known, otherwise as published
    records: NDArray[np.uint64] | None  # equal where the same records are counted; None where that is unknown
    above: tuple[Key, ...]  # for each axis, the piece that is one level coarser along it
    order: tuple[int, ...]  # the axes in the order of its cube: along them the cells ascend


@dataclass(frozen=True, eq=False)
class Refinement:
    """One choice of cuts that some cube publishes, and the pieces that contain its cells."""

    cuts: Cuts
    pieces: tuple[Key, ...]
    levels: tuple[Levels, ...]  # the cross-tabulations that these are part of


@dataclass(frozen=True, eq=False)
class CodeTree:
    """The codes of a variable with the total in front, and the cuts that the tables make of them."""

    codes: tuple[str, ...]
    depths: Places
    parents: Places
    leaves_of: tuple[slice, ...]  # code -> its leaves, which are contiguous
    cuts: list[Mask] = field(default_factory=list)  # cut -> which codes are in it

    def cut(self, members: Mask) -> int:
        """The number of a cut, a new one for a new cut."""
        for number, known in enumerate(self.cuts):
            if np.array_equal(known, members):
                return number
        self.cuts.append(members)
        return len(self.cuts) - 1

    @cached_property
    def by_depth(self) -> list[Integers]:
        """The codes of each depth."""
        return [np.flatnonzero(self.depths == depth) for depth in range(int(self.depths.max()) + 1)]

    @cached_property
    def spans(self) -> tuple[Integers, Integers]:
        """Code -> where its leaves begin and end."""
        first, last = (np.array([getattr(one, end) for one in self.leaves_of]) for end in ("start", "stop"))
        return first, last

    def divides(self, cut: int) -> Mask:
        """The codes all of whose leaves are below codes of the cut that are themselves not above it."""
        members, inside = self.cuts[cut], np.zeros(len(self.codes), dtype=bool)  # below a code of the cut
        for codes in self.by_depth[1:]:
            above = self.parents[codes]
            inside[codes] = inside[above] | members[above]
        found: Mask = self.divided(members) & ~inside
        return found

    def shares(self) -> Floats:
        """(cut, code): one by the number of codes of a cut below a code; zero where the cut does not divide it."""
        found = np.zeros((len(self.cuts), len(self.codes)))
        firsts, ends = self.spans
        for number, members in enumerate(self.cuts):
            inside = np.sort(firsts[members])
            parts = np.searchsorted(inside, ends) - np.searchsorted(inside, firsts)
            found[number] = np.where(self.divides(number), 1 / np.maximum(parts, 1), 0.0)
        return found

    def divided(self, members: Mask) -> Mask:
        """The codes all of whose leaves are below some members, which have no leaf in common."""
        firsts, ends = self.spans
        leaves = int(ends[0])
        covered = np.bincount(firsts[members], minlength=leaves + 1) - np.bincount(
            ends[members], minlength=leaves + 1
        )
        before = np.r_[
            0, np.cumsum(np.cumsum(covered[:leaves]))
        ]  # leaves below members, in front of each leaf
        found: Mask = before[ends] - before[firsts] == ends - firsts
        return found

    def above(self, depth: int) -> Places:
        """Code -> the code of this depth that it belongs to, -1 where it ends above."""
        found = np.where(self.depths == depth, np.arange(len(self.codes)), -1).astype(np.int32)
        for code in range(len(self.codes)):
            if self.depths[code] > depth:
                found[code] = found[self.parents[code]]
        return found


def tree_of(codelist: Codelist) -> CodeTree:
    """The tree of a variable, with only the whole as a cut."""
    parents = np.array([-1, *(parent + 1 for parent in codelist.parents)], dtype=np.int32)
    is_leaf = np.zeros(len(parents) + 1, dtype=np.int64)
    is_leaf[np.array(codelist.leaves, dtype=np.int64) + 2] = 1
    before = np.cumsum(is_leaf)  # leaves in front of a code, in preorder
    ends = np.arange(1, len(parents) + 1)
    for code in range(len(parents) - 1, 0, -1):
        ends[parents[code]] = max(ends[parents[code]], ends[code])
    spans = tuple(slice(int(before[code]), int(before[ends[code]])) for code in range(len(parents)))
    depths = np.array([0, *codelist.depths], dtype=np.int32)
    tree = CodeTree(("", *codelist.codes), depths, parents, spans)
    tree.cut(depths == 0)
    return tree


class PublishedPieces:
    """All published cells of a universe, each once, and the refinements they make."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        used = {axis.variable for table in universe.tables for axis in table.cube.axes}
        self.trees = {name: tree_of(universe.codelists[name]) for name in sorted(used)}
        self.pieces: dict[Key, Piece] = {}
        self.measured: dict[Key, Levels] = {}  # what some cube publishes with noise of its own
        self.refinements: dict[Cuts, Refinement] = {}
        self.crosstabs: dict[Levels, None] = {}
        self.cells = 0
        self._levels: dict[tuple[str, bytes], int] = {}
        self.members: dict[int, Mask] = {}  # number of a set of codes -> which codes are in it
        self._places = cache(self._make_places)

    def add(self, cube: Cube, load: Callable[[], NoisyCells]) -> None:
        """Add the cells of a cube that no earlier cube shows."""
        axes = tuple(sorted(cube.axes, key=lambda axis: axis.variable))
        levels = [self._levels_of(axis) for axis in axes]
        shown = _measured(cube, axes)
        if any(_key(axes, levels, depths) not in self.pieces for depths in shown):
            self._take(cube, axes, levels, load())
        for depths in shown:
            self.crosstabs.setdefault(_levels(axes, depths))
        self._refine(cube, axes, levels)

    def declare(self, cube: Cube) -> None:
        """Add only the refinements that a cube publishes, without its cells."""
        axes = tuple(sorted(cube.axes, key=lambda axis: axis.variable))
        self._refine(cube, axes, [self._levels_of(axis) for axis in axes])

    def groups(self, joins: Callable[[Levels, Levels], bool]) -> Places:
        """Cell -> its group: a cell and the only listed one below it are one group where their values are equal.

        Only cells of cross-tabulations that ``joins`` accepts are joined, and those that are in two pieces.
        """
        if self.pieces and all(piece.records is not None for piece in self.pieces.values()):
            return self._by_records(joins)
        parents = np.arange(self.cells, dtype=np.int32)
        shown: dict[Levels, list[Piece]] = {}
        for piece in self.pieces.values():
            self._join_same(parents, piece, shown.setdefault(piece.levels, []))
            for axis, key in enumerate(piece.above):
                above = self.pieces.get(key)
                if above is not None and joins(piece.levels, above.levels):
                    at = self.find(self._up(piece, axis), piece, above)
                    join_only_children(parents, piece.first, at, piece.counts, above.counts, above.first)
        return _flat(parents)

    def _by_records(self, joins: Callable[[Levels, Levels], bool]) -> Places:
        """Cell -> its group where the records are known: equal records of cross-tabulations with the same noise."""
        kinds: list[list[Piece]] = []  # the pieces of each noise
        for piece in self.pieces.values():
            kind = next((kind for kind in kinds if joins(kind[0].levels, piece.levels)), None)
            if kind is None:
                kinds.append([piece])
            else:
                kind.append(piece)
        groups, first = np.empty(self.cells, dtype=np.int32), 0
        for kind in kinds:
            records = [piece.records for piece in kind if piece.records is not None]
            distinct, numbers = np.unique(np.concatenate(records), return_inverse=True)
            ends = np.cumsum([len(piece.values) for piece in kind])
            for piece, end in zip(kind, ends.tolist(), strict=True):
                here = slice(piece.first, piece.first + len(piece.values))
                groups[here] = first + numbers[end - len(piece.values) : end]
            first += len(distinct)
        return groups

    def families(self) -> Iterator[tuple[Piece, Piece, Integers]]:
        """Which cells of a piece add up to which of a coarser one: pairs of pieces, and for each cell of the finer one
        the row of the coarser that it is a part of, -1 for none.

        One level up along one axis where that is published, else to the nearest published pieces above; then only what
        the finer codes divide completely.
        """
        for key, piece in self.pieces.items():
            near = [self.pieces[above] for above in piece.above if above in self.pieces]
            for axis, above in enumerate(piece.above):
                if above in self.pieces:
                    yield (
                        piece,
                        self.pieces[above],
                        self.find(self._up(piece, axis), piece, self.pieces[above]),
                    )
            if len(near) < len(piece.above):
                for other in self._nearest(piece, near):
                    yield piece, other, self._parts(key, piece, other)

    def _nearest(self, piece: Piece, near: Sequence[Piece]) -> list[Piece]:
        """The published pieces that are coarser than one, without those that are coarser than another of them."""
        depths = dict(piece.levels)
        coarser = [
            one
            for one in self.pieces.values()
            if one is not piece
            and one.levels != piece.levels
            and all(depth <= depths.get(variable, 0) for variable, depth in one.levels)
        ]
        found: list[Piece] = []
        for one in sorted(coarser, key=lambda one: -sum(depth for _, depth in one.levels)):
            if not any(_is_coarser(one, between) for between in (*near, *found)):
                found.append(one)
        return found

    def _parts(self, key: Key, piece: Piece, other: Piece) -> Integers:
        """Cell of a piece -> the row of a coarser one that it is a part of, -1 where that is not wholly divided."""
        depths = dict(other.levels)
        codes, whole = piece.codes.copy(), np.ones(len(piece.values), dtype=bool)
        for axis, (variable, depth) in enumerate(piece.levels):
            tree, above = self.trees[variable], depths.get(variable, 0)
            if above < depth:
                codes[:, axis] = tree.above(above)[codes[:, axis]]
                whole &= tree.divided(self.members[key[axis][1]])[codes[:, axis]]
        return np.where(whole, self.find(codes, piece, other), -1)

    def _join_same(self, parents: Places, piece: Piece, others: list[Piece]) -> None:
        """Join the cells that are in other pieces of the same cross-tabulation: its cubes differ in codes."""
        for other in others:
            at = self.find(piece.codes, piece, other)
            present = np.flatnonzero(at >= 0)
            join_same(parents, piece.first + present, other.first + at[present])
        others.append(piece)

    def _up(self, piece: Piece, axis: int) -> Places:
        codes = piece.codes.copy()
        codes[:, axis] = self.trees[piece.levels[axis][0]].parents[codes[:, axis]]
        return codes

    def find(self, codes: Places, piece: Piece, other: Piece) -> Integers:
        """The row in another piece of cells with these codes along the axes of a piece, -1 where it has none."""
        column = {variable: axis for axis, (variable, _) in enumerate(piece.levels)}
        there = [other.levels[axis][0] for axis in other.order]
        order = [*there, *(name for name in column if name not in there)]
        return find_rows(
            codes,
            other.codes,
            np.array([column[name] for name in order], dtype=np.int64),
            np.array([*other.order, *(-1 for _ in order[len(there) :])], dtype=np.int64),
            np.array([len(self.trees[name].codes) for name in order], dtype=np.int64),
        )

    def together(self) -> tuple[Integers, Integers]:
        """All values and counts, one piece after the other; the pieces become views of these arrays."""
        pieces = self.pieces.values()
        is_known = any(piece.counts is not piece.values for piece in pieces)
        values = np.concatenate([np.zeros(0, np.int64), *(piece.values for piece in pieces)])
        counts = np.concatenate([piece.counts for piece in pieces]) if is_known else values
        for key, piece in self.pieces.items():
            here = slice(piece.first, piece.first + len(piece.values))
            own = values[here]
            self.pieces[key] = replace(piece, values=own, counts=counts[here] if is_known else own)
        return values, counts

    def _levels_of(self, axis: Breakdown) -> list[int]:
        """Depth -> a number for the codes that the axis has there."""
        found = [0]
        for depth in range(1, int(axis.depths.max()) + 1):
            here = axis.depths == depth
            codes = "\0".join(axis.codes[node] for node in np.flatnonzero(here)).encode()
            found.append(self._levels.setdefault((axis.variable, codes), len(self._levels) + 1))
            if found[-1] not in self.members:
                self.members[found[-1]] = np.zeros(len(self.trees[axis.variable].codes), dtype=bool)
                self.members[found[-1]][self._places(axis)[here]] = True
        return found

    def _take(
        self, cube: Cube, axes: Sequence[Breakdown], levels: Sequence[list[int]], found: NoisyCells
    ) -> None:
        cells = found.cells
        nodes = [cube.nodes(cells, cube.axes.index(axis)) for axis in axes]
        which = np.zeros(len(cells), dtype=np.int64)
        for axis, node, level in zip(axes, nodes, levels, strict=True):
            which = which * len(level) + axis.depths[node]
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(prod(map(len, levels)) + 1))
        shown = set(_measured(cube, axes))
        for number, depths in enumerate(_choices(levels)):
            key = _key(axes, levels, depths)
            if key not in self.pieces and depths in shown:
                here = order[bounds[number] : bounds[number + 1]]
                codes = [
                    self._places(axis)[node[here]]
                    for axis, node, d in zip(axes, nodes, depths, strict=True)
                    if d
                ]
                stacked = np.stack(codes, axis=1) if codes else np.zeros((len(here), 0), dtype=np.int32)
                above = tuple(_key(axes, levels, one) for one in _coarser(depths))
                values = found.values[here]
                self.pieces[key] = Piece(
                    _levels(axes, depths),
                    self.cells,
                    np.ascontiguousarray(stacked),
                    values,
                    values if found.counts is found.values else found.counts[here],
                    None if found.records is None else found.records[here],
                    above,
                    tuple(np.argsort([cube.axes.index(axes[k]) for k, d in enumerate(depths) if d]).tolist()),
                )
                self.cells += len(here)

    def _make_places(self, axis: Breakdown) -> Places:
        position = self.universe.codelists[axis.variable].position
        return np.array([0, *(position[code] + 1 for code in axis.codes[1:])], dtype=np.int32)

    def _refine(self, cube: Cube, axes: Sequence[Breakdown], levels: Sequence[list[int]]) -> None:
        keys, depths = _names(axes, levels), _names(axes, [range(len(level)) for level in levels])
        for one in _measured(cube, axes):
            self.measured[_named(keys, one)] = _named(depths, one)
        choices = [self._cuts(axis, len(level)) for axis, level in zip(axes, levels, strict=True)]
        named = [
            [None if cut == WHOLE else (axis.variable, cut) for cut in choice]
            for axis, choice in zip(axes, choices, strict=True)
        ]
        every = product(*(choice.values() for choice in choices))
        for chosen, at in zip(product(*named), every, strict=True):
            cuts = tuple(filter(None, chosen))
            if cuts not in self.refinements:
                crossed = list(product(*at))
                pieces = tuple([_named(keys, one) for one in crossed])
                if self.measured.keys() >= set(pieces):
                    levels_of = tuple([_named(depths, one) for one in crossed])
                    self.refinements[cuts] = Refinement(cuts, pieces, levels_of)

    def _cuts(self, axis: Breakdown, depths: int) -> dict[int, list[int]]:
        """Cut -> the depths of its codes, for each depth of an axis."""
        tree = self.trees[axis.variable]
        found: dict[int, list[int]] = {}
        for depth in range(depths):
            inside = (axis.depths == depth) | (axis.finest & (axis.depths < depth))
            members = np.zeros(len(tree.codes), dtype=bool)
            members[self._places(axis)[inside]] = True
            found.setdefault(tree.cut(members), np.unique(axis.depths[inside]).tolist())
        return found


def _names(axes: Sequence[Breakdown], levels: Sequence[Sequence[int]]) -> list[list[tuple[str, int] | None]]:
    """Axis -> depth -> its variable and a number; None for the total."""
    return [
        [None, *((axis.variable, one) for one in level[1:])] for axis, level in zip(axes, levels, strict=True)
    ]


def _named(
    names: Sequence[Sequence[tuple[str, int] | None]], depths: Iterable[int]
) -> tuple[tuple[str, int], ...]:
    """The names of a depth of each axis, without totals."""
    return tuple(filter(None, map(getitem, names, depths)))


def _is_coarser(one: Piece, other: Piece) -> bool:
    depths = dict(other.levels)
    return all(depth <= depths.get(variable, 0) for variable, depth in one.levels)


def _measured(cube: Cube, axes: Sequence[Breakdown]) -> list[tuple[int, ...]]:
    """The depths of the cross-tabulations with noise of their own, along the sorted axes."""
    order = [cube.axes.index(axis) for axis in axes]
    return [tuple(depths[k] for k in order) for depths in cube.measured]


def _choices(levels: Sequence[list[int]]) -> Iterator[tuple[int, ...]]:
    return product(*(range(len(level)) for level in levels))


def _coarser(depths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """One level up along each axis that is not at its total."""
    for k, depth in enumerate(depths):
        if depth:
            yield (*depths[:k], depth - 1, *depths[k + 1 :])


def _levels(axes: Sequence[Breakdown], depths: Iterable[int]) -> Levels:
    return tuple((axis.variable, depth) for axis, depth in zip(axes, depths, strict=True) if depth)


def _key(axes: Sequence[Breakdown], levels: Sequence[list[int]], depths: Iterable[int]) -> Key:
    chosen = zip(axes, levels, depths, strict=True)
    return tuple((axis.variable, level[depth]) for axis, level, depth in chosen if depth)


def _flat(parents: Places) -> Places:
    """The first cell of every cell's group: each cell points to an earlier one, or to itself."""
    while True:
        further = parents[parents]
        if np.array_equal(further, parents):
            return parents
        parents = further
