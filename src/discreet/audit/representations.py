"""Which published cells represent the cells of each cross-tabulation, and what they add up to.

A refinement represents the cells of all cross-tabulations that its cuts divide: its cells below a target add up to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.refinements import (
    Cuts,
    Integers,
    Levels,
    Mask,
    Piece,
    Places,
    PublishedPieces,
    Refinement,
)
from discreet.maths.attacks.averaging import Floats, Running
from discreet.maths.attacks.representations import (
    Axes,
    Cells,
    Measured,
    Runs,
    SoFar,
    Used,
    add_cells,
    add_representations,
    find_targets,
    forget_groups,
    mark_divided,
    mixed_groups,
    repeated_groups,
    take_groups,
    take_representation,
)
from discreet.maths.noise.law import UNSETTLED
from discreet.perturb.noise import Noise
from discreet.programme.cube import Signature

FEW = 6  # groups of a target whose combinations are enumerated


class NoiseOfCells:
    """The variances of the cells of a universe, and which of them have the same noise."""

    def __init__(self, sums: PublishedPieces, noise: Noise, informed: bool) -> None:
        self._sums, self._noise, self._informed = sums, noise, informed
        self.rows = cache(self._make_rows)

    @cached_property
    def groups(self) -> Places:
        """Cell -> its group: cells that have the same noise, as far as the attacker can see."""
        return self._sums.groups(self._same_noise)

    def variance(self, levels: Levels) -> float:
        """The variance of a large count of a cross-tabulation."""
        return float(self.rows(levels)[-1])

    def _same_noise(self, one: Levels, other: Levels) -> bool:
        """Whether a group has the same noise in two cross-tabulations, and can be seen to be the same."""
        noise = self._noise
        return noise.same_noise and noise.keeps_zeros and self.variance(one) == self.variance(other)

    def _make_rows(self, levels: Levels) -> Floats:
        """The variance of a cross-tabulation's cells by count, as far as it is known; the last for all larger."""
        signature = self._sums.universe.signature(levels)
        if self._informed:
            return variances_by_count(self._noise, signature)
        return np.array([self._noise.variance_of(signature) + _rounding_variance(self._noise)])


def variances_by_count(noise: Noise, signature: Signature) -> Floats:
    """The variance of a cross-tabulation's cells by their true count, the last for all larger ones."""
    found = [noise.variance_of(signature)]
    if noise.law is not None and (law := noise.law_of(signature)).settled != UNSETTLED:
        found = [law.row(count).variance for count in range(law.settled + 1)]
    return np.array(found) + _rounding_variance(noise)


def _rounding_variance(noise: Noise) -> float:
    return (noise.publishing.rounding**2 - 1) / 12


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of records whose noise is in the estimate of each target."""

    number: Integers
    weights: Floats  # (target, group) of the first few
    counts: Integers  # (target, group): their counts


@dataclass(frozen=True, eq=False)
class TargetSums:
    """What all representations of a cross-tabulation's cells add up to."""

    running: Running
    known: Mask  # which cells have records
    counts: Integers  # the true counts, where they are known
    groups: Groups | None  # where the counts are known


class Codes:
    """The codes of a universe's variables by depth, and which of them each cut divides."""

    def __init__(self, sums: PublishedPieces) -> None:
        self._trees = sums.trees
        self.number = {name: v for v, name in enumerate(sums.trees)}
        self.place = cache(self._make_place)
        self._level = cache(lambda variable, depth: np.flatnonzero(self._trees[variable].depths == depth))
        self._divides = cache(lambda variable, cut: self._trees[variable].divides(cut))
        self._depths = cache(self._make_depths)
        self._make_tables()

    def shape(self, target: Levels) -> tuple[int, ...]:
        """The number of codes of each axis of a cross-tabulation."""
        return tuple(len(self._level(variable, depth)) for variable, depth in target)

    def code(self, variable: str, depth: int, place: int) -> str:
        """The code at a place of an axis."""
        return self._trees[variable].codes[int(self._level(variable, depth)[place])]

    def targets_of(self, cuts: Cuts) -> Iterator[Levels]:
        """The cross-tabulations of which a refinement represents some cells."""
        for chosen in product(*(self._depths(variable, cut) for variable, cut in cuts)):
            yield tuple([level for level in chosen if level[1]])

    def _make_place(self, variable: str, cut: int, depth: int) -> Places:
        """Code -> the place of the code of this depth above it, -1 where the cut has it not or does not divide that."""
        tree, codes = self._trees[variable], self._level(variable, depth)
        place = np.full(len(tree.codes) + 1, -1, dtype=np.int32)  # the last for codes that end above
        place[codes] = np.where(self._divided(variable, cut, depth), np.arange(len(codes)), -1)
        return np.where(tree.cuts[cut], place[tree.above(depth)], -1).astype(np.int32)

    def _make_depths(self, variable: str, cut: int) -> list[tuple[str, int]]:
        depths = np.unique(self._trees[variable].depths[self._divides(variable, cut)])
        return [(variable, depth) for depth in depths.tolist()]

    def _divided(self, variable: str, cut: int, depth: int) -> Mask:
        found: Mask = self._divides(variable, cut)[self._level(variable, depth)]
        return found

    def _make_tables(self) -> None:
        """All places and divisions, one table after the other, and where those of a variable, cut and depth begin."""
        trees = self._trees.values()
        cuts = max((len(tree.cuts) for tree in trees), default=0)
        depths = max((int(tree.depths.max()) + 1 for tree in trees), default=0)
        places, divided = [np.zeros(0, np.int32)], [np.zeros(0, bool)]
        self.places_at, self.divided_at = np.zeros((2, len(trees), cuts, depths), dtype=np.int64)
        placed = marked = 0
        for v, (name, tree) in enumerate(self._trees.items()):
            for cut, depth in product(range(len(tree.cuts)), range(int(tree.depths.max()) + 1)):
                self.places_at[v, cut, depth], self.divided_at[v, cut, depth] = placed, marked
                places.append(self.place(name, cut, depth))
                divided.append(self._divided(name, cut, depth))
                placed, marked = placed + len(places[-1]), marked + len(divided[-1])
        self.places, self.divided = np.concatenate(places), np.concatenate(divided)


class Representations:
    """The representations of the cells of a universe's cross-tabulations, those of the fewest cells first."""

    def __init__(self, sums: PublishedPieces, noise: Noise, informed: bool) -> None:
        self.sums, self.codes = sums, Codes(sums)
        self.noise_of = NoiseOfCells(sums, noise, informed)
        self._noise, self._informed = noise, informed
        self._refinements = sorted(sums.refinements.values(), key=self._size)
        self._by_target: defaultdict[Levels, list[int]] = defaultdict(list)
        for number, one in enumerate(self._refinements):
            for target in self.codes.targets_of(one.cuts):
                self._by_target[target].append(number)
        self.targets = sorted(
            (target for target in sums.crosstabs if target in self._by_target),
            key=lambda target: (prod(self.codes.shape(target)), target),
        )
        self._listed = np.array([self._cells_of(one) for one in self._refinements], dtype=np.int64)
        self._lay()
        # a further sum of one cell hides another: only one group has all records, for noise that follows the group
        hidden = noise.same_noise and noise.keeps_zeros and not informed
        self._modes = informed, noise.keeps_zeros, hidden
        self.visited = 0  # published cells added up, each as often as it is used

    def add_up(self, target: Levels) -> TargetSums:
        """Add up all representations of the cells of a cross-tabulation."""
        shape, axes = self.codes.shape(target), self._axes(target)
        size, many = prod(shape), len(axes.refinements)
        s, n, k, counts = np.zeros((4, size), dtype=np.int64)
        q, shared, weighted, weights = np.zeros((4, size))
        valid, known, begun = np.zeros((3, size), dtype=bool)
        measured = Measured(s, n, k, q, np.zeros(size, dtype=np.uint64), shared, weighted, weights, valid)
        running = Running(size)
        seen = np.zeros((size, 1 << (many + many // 2).bit_length()), dtype=np.uint64)
        so_far = SoFar(running.sums, known, counts, seen, begun)
        self.visited += int(self._listed[axes.refinements].sum())
        laid = self._cells, self._runs, axes
        if self._informed or self._noise.keeps_zeros:
            variance = self.noise_of.variance(target)
            state = measured, self._used, so_far, self._modes
            used = add_representations(*laid, variance, self._target_of, *state)
        else:
            used = self._add_all_cells(target, axes, measured, so_far)
        groups = None
        if self._informed:
            groups = Groups(np.zeros(size, np.int64), np.zeros((size, FEW)), np.zeros((size, FEW), np.int64))
            take_groups(*laid, self._target_of, self._used.times, *vars(groups).values())
        forget_groups(self._used.order[:used], self._used.times)
        return TargetSums(running, known, counts, groups)

    def _size(self, one: Refinement) -> int:
        """About how many cells a refinement has; those listed, where empty cells are not."""
        if self._noise.keeps_zeros:
            return self._cells_of(one)
        return prod(int(self.sums.trees[variable].cuts[cut].sum()) for variable, cut in one.cuts)

    def _cells_of(self, one: Refinement) -> int:
        return sum(len(self.sums.pieces[key].values) for key in one.pieces)

    def _lay(self) -> None:
        """List the cells of all refinements, run by run."""
        every, number = self._refinements, self.codes.number
        self._cuts, self._columns = np.zeros((2, len(every), len(number)), dtype=np.int64)
        widest = max((len(tree.codes) for tree in self.sums.trees.values()), default=0)
        kind = np.uint16 if widest < 2**16 else np.int32
        rows: dict[bytes, int] = {}
        codes: list[NDArray[np.integer]] = [np.zeros(0, kind)]
        found, firsts, codes_at, row_of = [np.zeros(0, np.int32)], [0], [0], list[int]()
        for at, one in enumerate(every):
            for column, (variable, cut) in enumerate(one.cuts):
                self._cuts[at, number[variable]], self._columns[at, number[variable]] = cut, column
            pieces = [self.sums.pieces[key] for key in one.pieces]
            inside = [self._inside(piece, one) for piece in pieces]
            for piece, rows_inside in zip(pieces, inside, strict=True):
                found.append((piece.first + rows_inside).astype(np.int32))
                firsts.append(firsts[-1] + len(rows_inside))
                row_of.append(rows.setdefault(self.noise_of.rows(piece.levels).tobytes(), len(rows)))
            for axis in range(len(one.cuts)):
                codes += [
                    piece.codes[here, axis].astype(kind) for piece, here in zip(pieces, inside, strict=True)
                ]
            codes_at.append(codes_at[-1] + len(one.cuts) * sum(map(len, inside)))
        by_row = [np.frombuffer(row) for row in rows]
        longest = max(map(len, by_row), default=1)
        filled = [np.pad(row, (0, longest - len(row)), mode="edge") for row in by_row]
        listed = np.concatenate(found)
        self._runs = Runs(
            listed,
            np.array(firsts, dtype=np.int64),
            np.cumsum([0, *(len(one.pieces) for one in every)], dtype=np.int64),
            np.concatenate(codes),
            np.array(codes_at, dtype=np.int64),
            np.array(row_of, dtype=np.int64),
            np.array(filled, dtype=np.float64).reshape(-1, longest),
        )
        most = np.diff(self._runs.firsts[self._runs.runs_at]).max(initial=0)
        self._target_of = np.empty(int(most), dtype=np.int32)  # of the cells of one refinement
        groups = self.noise_of.groups
        marks = np.empty(len(groups), dtype=np.uint64)
        mixed_groups(groups, marks)
        noted = groups if self._informed else repeated_groups(groups, listed)
        self._cells = Cells(*self.sums.together(), marks, noted)
        used = int(noted.max(initial=-1)) + 1
        self._used = Used(np.zeros((used, 2)), np.empty(used, dtype=np.int32))

    def _inside(self, piece: Piece, one: Refinement) -> Integers:
        """The rows of a piece whose codes are in the cuts of a refinement."""
        inside = np.ones(len(piece.values), dtype=bool)
        for axis, (variable, cut) in enumerate(one.cuts):
            inside &= self.sums.trees[variable].cuts[cut][piece.codes[:, axis]]
        return np.flatnonzero(inside)

    def _axes(self, target: Levels) -> Axes:
        refinements = np.array(self._by_target[target], dtype=np.int64)
        variables = np.array([self.codes.number[variable] for variable, _ in target], dtype=np.int64)
        depths = np.array([depth for _, depth in target], dtype=np.int64)
        shape = np.array(self.codes.shape(target), dtype=np.int64)
        here = np.ix_(refinements, variables)
        tables = variables, self._cuts[here], depths
        return Axes(
            refinements,
            np.ascontiguousarray(self._columns[here]),
            np.ascontiguousarray(self.codes.places_at[tables]),
            np.ascontiguousarray(self.codes.divided_at[tables]),
            shape,
            np.array([prod(shape[axis + 1 :].tolist()) for axis in range(len(shape))], dtype=np.int64),
            self.codes.places,
            self.codes.divided,
        )

    def _add_all_cells(self, target: Levels, axes: Axes, measured: Measured, so_far: SoFar) -> int:
        """Add up representations whose unlisted cells have noise too; returns how many groups are in use.

        Sums that negative values published as zero bias upwards are none.
        """
        used, k, q = 0, measured.k, measured.q
        hides = self._noise.publishing.hides_negatives
        for r, number in enumerate(axes.refinements.tolist()):
            find_targets(self._runs, axes, r, self._target_of)
            add_cells(self._cells, self._runs, number, self._target_of, False, measured)
            one, shown = self._refinements[number], k.copy()
            k[:], q[:] = 0, 0.0
            for key in one.pieces:
                every = self._possible(target, one, self.sums.pieces[key])
                k += every
                q += every * self.noise_of.variance(self.sums.pieces[key].levels)
            mark_divided(axes, r, measured.valid)
            whole: Mask = (shown == k) | (k == 1) | (not hides)
            q[~(measured.valid & whole)] = 0.0
            used = take_representation(
                self._cells,
                self._runs,
                number,
                self._target_of,
                measured,
                self._used,
                used,
                so_far,
                self._modes,
            )
        return used

    def _possible(self, target: Levels, one: Refinement, piece: Piece) -> Integers:
        """How many cells of a piece each target has, published or not."""
        depths, cuts, counts = dict(target), dict(one.cuts), {}
        for variable, depth in piece.levels:
            above = depths.get(variable, 0)
            place = self.codes.place(variable, cuts[variable], above)
            here = place[self.sums.trees[variable].depths == depth]
            (size,) = self.codes.shape(((variable, above),))
            counts[variable] = np.bincount(here[here >= 0], minlength=size)
        others = prod(int(counts[variable][0]) for variable, _ in piece.levels if variable not in depths)
        found = np.array([others], dtype=np.int64)
        for variable, _ in target:
            found = (found[:, None] * counts[variable]).ravel()
        return found
