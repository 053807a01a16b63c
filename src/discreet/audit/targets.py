"""The representations of one cross-tabulation's cells, measured: their sums, their numbers of cells, their variances.

It owns how a refinement is laid over targets; refinements finds them, averaging decides what to do with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import KnownNoise
from discreet.audit.refinements import Cuts, Integers, Levels, Mask, Piece, Places, Refinement, Sums
from discreet.maths.representations import Floats, Laid, add_cells, add_shared, drop_repeats, forget
from discreet.schema.noise import Negatives

NOWHERE = np.zeros(1, dtype=np.int32)  # so that the grand total has a table too


@dataclass(frozen=True, eq=False)
class Measured:
    """One representation of every target."""

    s: Integers  # the sum of published values
    k: Integers  # the noisy cells: those that show where empty cells show nothing, otherwise all
    q: Floats  # the variance of the sum; zero where this represents nothing
    marks: NDArray[np.uint64]  # equal where the same groups are added up

    @classmethod
    def nothing(cls, targets: int) -> Measured:
        """Sums of no cells."""
        s, k = np.zeros((2, targets), dtype=np.int64)
        return cls(s, k, np.zeros(targets), np.zeros(targets, dtype=np.uint64))


class Laying:
    """Lays the refinements of a universe over the cells of its cross-tabulations."""

    def __init__(self, sums: Sums, noise: KnownNoise) -> None:
        self._sums, self._noise = sums, noise
        self.variance = cache(self._make_variance)
        self.divides = cache(lambda variable, cut: sums.trees[variable].divides(cut))
        self._place, self._divided = cache(self._make_place), cache(self._make_divided)
        self._level = cache(self._make_level)
        self._held: tuple[tuple[Levels, Refinement], Laid] | None = None
        self._runs = cache(self._make_runs)
        clipped = noise.published.negatives is Negatives.ZERO or noise.published.threshold > 0
        self._hides = clipped and not noise.keeps_zeros
        self._groups = sums.groups(self._same_noise)
        self._cells, self._codes_at = sums.together()
        self._used = np.zeros(sums.cells, dtype=np.int32)
        self._weights = np.zeros(sums.cells)
        self.visited = 0

    def _same_noise(self, one: Levels, other: Levels) -> bool:
        """Whether a group has the same noise in two cross-tabulations, and can be seen to be the same."""
        noise = self._noise
        return noise.same_noise and noise.keeps_zeros and self.variance(one) == self.variance(other)

    def shape(self, target: Levels) -> tuple[int, ...]:
        """How many codes each axis of a cross-tabulation has."""
        return tuple(len(self._level(variable, depth)) for variable, depth in target)

    def code(self, variable: str, depth: int, place: int) -> str:
        """The code at a place of an axis."""
        return self._sums.trees[variable].codes[int(self._level(variable, depth)[place])]

    def targets_of(self, cuts: Cuts) -> Iterator[Levels]:
        """The cross-tabulations of which a refinement represents some cells."""
        choices = []
        for variable, cut in cuts:
            depths = np.unique(self._sums.trees[variable].depths[self.divides(variable, cut)])
            choices.append([(variable, int(depth)) for depth in depths])
        for chosen in product(*choices):
            yield tuple((variable, depth) for variable, depth in chosen if depth)

    def measure(self, target: Levels, one: Refinement) -> Measured:
        """The sums of a refinement's cells by target cell."""
        size, laid = prod(self.shape(target)), self._lay(target, one)
        found = Measured.nothing(size)
        add_cells(*self._cells, self._groups, *laid.arrays, found.s, found.k, found.q, found.marks)
        self.visited += int((laid.lasts - laid.firsts).sum())
        cuts = dict(one.cuts)
        valid = _over(self._divided(variable, cuts[variable], depth) for variable, depth in target)
        if self._noise.keeps_zeros:  # where nothing shows: one group at least, whose noise took it to zero
            hidden = valid & (found.k == 0)
            found.k[hidden], found.q[hidden] = 1, self.variance(target)
        else:
            valid &= self._with_all_cells(target, one, found)
        found.q[~valid] = 0.0
        return found

    def _with_all_cells(self, target: Levels, one: Refinement, found: Measured) -> Mask:
        """Count also the cells that do not show; tell which sums are not made too large by what hides below zero."""
        shown = found.k.copy()
        found.k[:], found.q[:] = 0, 0.0
        for piece in self._pieces(one):
            every = self._possible(target, one, piece)
            found.k[:] += every
            found.q[:] += every * self.variance(piece.levels)
        whole: Mask = (shown == found.k) | (found.k == 1) | (not self._hides)
        return whole

    def share(self, target: Levels, one: Refinement, q: Floats) -> tuple[Floats, Floats]:
        """What a representation adds to the covariances with those before: sums of 2 c_ij and 2 c_ij / (q_i q_j)."""
        shared, weighted = np.zeros((2, len(q)))
        arrays = (*self._lay(target, one).arrays, q, self._used, self._weights, shared, weighted)
        add_shared(self._cells[0], self._groups, *arrays)
        return shared, weighted

    def forget(self, every: Iterable[Refinement]) -> None:
        """Begin with another target."""
        for one in every:
            firsts, lasts, _, _ = self._runs(one)
            forget(self._groups, firsts, lasts, self._used, self._weights)

    def _pieces(self, one: Refinement) -> list[Piece]:
        return [self._sums.pieces[key] for key in one.pieces]

    def _make_runs(self, one: Refinement) -> tuple[Integers, Integers, Integers, Floats]:
        """Where the cells of a refinement stand, and their codes, and the variance of each run of them."""
        pieces = self._pieces(one)
        firsts = np.array([piece.first for piece in pieces], dtype=np.int64)
        lasts = firsts + np.array([len(piece.values) for piece in pieces], dtype=np.int64)
        codes_at = np.array([self._codes_at[key] for key in one.pieces], dtype=np.int64)
        return firsts, lasts, codes_at, np.array([self.variance(piece.levels) for piece in pieces])

    def _lay(self, target: Levels, one: Refinement) -> Laid:
        """The cells of a refinement over the targets; the last one is kept, since it is wanted twice."""
        if self._held is None or self._held[0] != (target, one):
            self._held = (target, one), self._make_laid(target, one)
        return self._held[1]

    def _make_laid(self, target: Levels, one: Refinement) -> Laid:
        depths, shape = dict(target), self.shape(target)
        steps = {variable: prod(shape[at + 1 :]) for at, (variable, _) in enumerate(target)}
        tables = [self._place(variable, cut, depths.get(variable, 0)) for variable, cut in one.cuts]
        starts = np.array([*accumulate(map(len, tables), initial=len(NOWHERE))], dtype=np.int64)
        strides = np.array([steps.get(variable, 0) for variable, _ in one.cuts], dtype=np.int64)
        return Laid(*self._runs(one), np.concatenate([NOWHERE, *tables]), starts, strides)

    def _possible(self, target: Levels, one: Refinement, piece: Piece) -> Integers:
        """How many cells of a piece each target has, published or not."""
        depths, cuts, counts = dict(target), dict(one.cuts), {}
        for variable, depth in piece.levels:
            place = self._place(variable, cuts[variable], depths.get(variable, 0))
            here = place[self._sums.trees[variable].depths == depth]
            size = len(self._level(variable, depths.get(variable, 0)))
            counts[variable] = np.bincount(here[here >= 0], minlength=size)
        others = prod(int(counts[variable][0]) for variable, _ in piece.levels if variable not in depths)
        found = np.array([others], dtype=np.int64)
        for variable, _ in target:
            found = (found[:, None] * counts[variable]).ravel()
        return found

    def _make_level(self, variable: str, depth: int) -> Integers:
        """The codes of one depth: their places are the common numbering of cross-tabulations."""
        return np.flatnonzero(self._sums.trees[variable].depths == depth)

    def _make_divided(self, variable: str, cut: int, depth: int) -> Mask:
        found: Mask = self.divides(variable, cut)[self._level(variable, depth)]
        return found

    def _make_place(self, variable: str, cut: int, depth: int) -> Places:
        tree, codes = self._sums.trees[variable], self._level(variable, depth)
        place = np.full(len(tree.codes) + 1, -1, dtype=np.int32)  # the last for codes that end above
        place[codes] = np.where(self._divided(variable, cut, depth), np.arange(len(codes)), -1)
        return np.where(tree.cuts[cut], place[tree.above(depth)], -1).astype(np.int32)

    def _make_variance(self, levels: Levels) -> float:
        rounding = self._noise.published.rounding
        return self._noise.variance_of(self._sums.universe.signature(levels)) + (rounding**2 - 1) / 12


class Seen:
    """Which groups of each target have been added up already: the same sum again tells nothing."""

    def __init__(self, targets: int, representations: int) -> None:
        self._begun = np.zeros(targets, dtype=bool)
        self._table = np.zeros(1 << max(4, (2 * targets * representations).bit_length()), dtype=np.uint64)

    def drop_repeats(self, measured: Measured) -> None:
        """Take away what repeats."""
        drop_repeats(self._table, measured.marks, measured.q)

    def count_hidden(self, measured: Measured) -> None:
        """Take a sum of one cell that is not the first group for two: another group of all records there is none.

        For noise that follows the group; the second cell is there and does not show.
        """
        alone = self._begun & (measured.k == 1)
        measured.k[alone] = 2
        measured.q[alone] *= 2
        self._begun |= measured.q > 0


def _over(masks: Iterable[Mask]) -> Mask:
    """Masks along the axes as one mask of the cells."""
    found = np.ones(1, dtype=bool)
    for mask in masks:
        found = (found[:, None] & mask).ravel()
    return found
