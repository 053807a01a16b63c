"""Successive removal of noise from a release: the most vulnerable counts first, reused until nothing changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from discreet.audit.averaging import Averaging
from discreet.audit.bound_propagation import CubeBlock, Tuples, cut
from discreet.audit.cells import LocatedCrosstab, Reader, described, located_crosstabs
from discreet.audit.evidence import Integers, Published, Truth, Universe, values_at
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import Method
from discreet.maths.attacks.removal import Beliefs, Marks, add_evidence, beliefs, posterior
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Levels, crosstabs

AT_ONCE = 2**16  # cells whose posteriors are computed together
SMALL = 3  # persons
FEW = 3  # times the largest change: counts up to this are often the same group in several tables
OPEN, BY_VALUE, AVERAGED = (
    -1,
    0,
    1,
)  # rounds: not recovered, certain by its own value, by averaging; then 2, 3, ..


@dataclass(frozen=True)
class RemovalRule:
    """When a count is nearly certain, and the size of the attack."""

    confidence: float = 0.95  # the least posterior of a count that is taken as known
    cells: int = 1 << 23  # of cross-tabulations that are attacked: some 60 bytes each
    block: int = 1 << 24  # cells that are worked on at once
    rounds: int = 120
    named: int = 20

    def __post_init__(self) -> None:
        """Refuse a confidence that nothing or everything has."""
        if not 0.5 <= self.confidence < 1:
            raise mistake("", "confidence", f"{self.confidence:g}", "give a number from 0.5 to below 1")


USUAL = RemovalRule()


@dataclass(eq=False)
class RemovedCounts:
    """The cells of one cross-tabulation by common number: what is published, believed and recovered."""

    universe: Universe
    levels: Levels
    source: LocatedCrosstab
    shown: NDArray[np.int32]
    present: Marks
    known: Beliefs | None  # None where the noise is too wide for any count to become certain
    offset: NDArray[np.float32] = field(init=False)  # believed count less the published one
    variance: NDArray[np.float32] = field(init=False)
    precision: NDArray[np.float32] = field(init=False)  # evidence of this round
    weighted: NDArray[np.float32] = field(init=False)
    doubt: NDArray[np.float32] = field(init=False)  # the probability that a recovered count is wrong
    round: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.shown)
        self.offset, self.variance = np.zeros((2, size), dtype=np.float32)
        self.precision, self.weighted, self.doubt = np.zeros((3, size), dtype=np.float32)
        self.round = np.full(size, OPEN, dtype=np.int8)
        self.variance[:] = np.inf
        if self.known is not None:
            rows = self.known.rows(self.shown)
            self.offset[:] = np.where(self.present, self.known.means[rows], 0.0)
            self.variance[:] = np.where(self.present, self.known.variances[rows], np.inf)

    @property
    def recovered(self) -> Integers:
        """The numbers of the recovered cells."""
        return np.flatnonzero(self.round >= 0)

    @property
    def counts(self) -> Integers:
        """Their recovered counts."""
        found: Integers = self.shown[self.recovered].astype(np.int64)
        return found + np.rint(self.offset[self.recovered]).astype(np.int64)

    def start(self, numbers: Integers, estimates: NDArray[np.float64], chance: NDArray[np.float32]) -> None:
        """Take counts that averaging finds; those that are negative or certain already are left."""
        rounded = np.rint(estimates)
        good = (self.round[numbers] == OPEN) & (rounded >= 0) & self.present[numbers]
        at = numbers[good]
        self.offset[at] = rounded[good] - self.shown[at]
        self.variance[at] = self.doubt[at] = 1 - chance[good]
        self.round[at] = AVERAGED

    def decide(self, confidence: float, number: int) -> int:
        """Recover the cells whose posterior is high enough; return how many are new."""
        if self.known is None:
            return 0
        new = 0
        waiting = np.flatnonzero((self.round == OPEN) & self.present)
        for first in range(0, len(waiting), AT_ONCE):
            at = waiting[first : first + AT_ONCE]
            if number > BY_VALUE:
                at = at[self.precision[at] > 0]
            rows = self.known.rows(self.shown[at])
            found = posterior(
                self.known, rows, self.precision[at].astype(float), self.weighted[at].astype(float)
            )
            sure = found.p >= confidence
            here = at[sure]
            self.offset[here], self.variance[here] = found.best[sure], found.variance[sure]
            self.doubt[here], self.round[here] = 1 - found.p[sure], number
            new += len(here)
        return new


@dataclass(frozen=True)
class RecoveredCell:
    """A cell whose noise was removed, by its codes; its count only for an outsider's own findings."""

    counted: str
    cell: Mapping[str, str]
    published: int
    recovered: int | None


@dataclass(frozen=True, kw_only=True)
class RemovalFindings:
    """How many counts the successive removal of noise takes as known, and how sure it is."""

    confidence: float
    cells: int  # that were attacked
    by_value: int  # nearly certain by their own published value
    averaged: int  # nearly certain by averaging
    by_round: tuple[int, ...]  # nearly certain by sums with earlier ones, round by round
    recovered: int  # of all these, without cells published as zero that are taken as empty
    changed: int  # recovered counts that differ from the published ones
    small: int  # recovered counts of 1 to 3
    empty: int  # cells published as zero that are taken as empty
    expected_wrong: float  # of recovered and empty ones, by the posteriors
    is_finished: bool  # nothing more changes
    named: tuple[RecoveredCell, ...]
    crosstabs_left_out: int  # too large
    crosstabs_too_noisy: int

    def without_counts(self) -> RemovalFindings:
        """The same without recovered counts, most of which are the true ones."""
        return replace(self, named=tuple(replace(one, recovered=None) for one in self.named))


@dataclass(frozen=True, eq=False)
class NoiseRemoval:
    """The attack on a release."""

    rule: RemovalRule
    tables: tuple[RemovedCounts, ...]
    by_round: tuple[int, ...]
    is_finished: bool
    left_out: int

    def findings(self) -> RemovalFindings:
        """What can be printed or written."""
        counts = [(one, one.shown[one.recovered], one.counts) for one in self.tables]
        real = [(shown != 0) | (found != 0) for _, shown, found in counts]
        rounds = [one.round for one in self.tables]
        return RemovalFindings(
            confidence=self.rule.confidence,
            cells=sum(int(one.present.sum()) for one in self.tables if one.known is not None),
            by_value=sum(int((each == BY_VALUE).sum()) for each in rounds),
            averaged=sum(int((each == AVERAGED).sum()) for each in rounds),
            by_round=self.by_round,
            recovered=sum(int(each.sum()) for each in real),
            changed=sum(int((shown != found).sum()) for _, shown, found in counts),
            small=sum(int(_is_small(found).sum()) for _, _, found in counts),
            empty=sum(int((~each).sum()) for each in real),
            expected_wrong=float(sum(one.doubt[one.recovered].sum(dtype=float) for one in self.tables)),
            is_finished=self.is_finished,
            named=tuple(islice(self._named(), self.rule.named)),
            crosstabs_left_out=self.left_out,
            crosstabs_too_noisy=sum(one.known is None for one in self.tables),
        )

    def _named(self) -> Iterator[RecoveredCell]:
        """Counts that differ from the published ones, small ones first, then those that cross the fewest variables."""
        tables = sorted(self.tables, key=lambda one: len(one.levels))
        for wanted in (True, False):
            for one in tables:
                numbers, found = one.recovered, one.counts
                shown = one.shown[numbers]
                for at in np.flatnonzero((shown != found) & (_is_small(found) == wanted)).tolist():
                    codes = described(one.levels, one.universe.codelists, int(numbers[at]))
                    yield RecoveredCell(one.universe.counted, codes, int(shown[at]), int(found[at]))


def _is_small(counts: Integers) -> Marks:
    small: Marks = (counts >= 1) & (counts <= SMALL)
    return small


def remove_noise(
    published: Published,
    averaging: Averaging | None = None,
    rule: RemovalRule = USUAL,
    progress: Progress | None = None,
) -> NoiseRemoval:
    """Remove noise from the most vulnerable counts, and with them from the sums they belong to, until nothing changes.

    A count is recovered where the posterior of one value reaches the confidence: by its own published value, by the
    averages of ``averaging``, then round after round by the sums along each axis (total = sum of parts) with the
    others. What is recovered replaces its published value, with the little doubt left as its variance.
    """
    progress = progress or Quiet()
    tables: list[RemovedCounts] = []
    attacks = []
    left_out = 0
    for universe in published.universes:
        state, too_large = _state(universe, published.noise, rule.cells)
        left_out += too_large
        tables += state.values()
        attacks.append(_Removal(universe, published.noise, state, rule))
    progress.stage("removal of noise", rule.rounds)
    for one in tables:
        one.decide(rule.confidence, BY_VALUE)
    if averaging is not None:
        _start(tables, averaging, rule.confidence)
    by_round: list[int] = []
    is_finished = False
    for number in range(AVERAGED + 1, AVERAGED + 1 + rule.rounds):
        for attack in attacks:
            attack.gather()
        new = sum(one.decide(rule.confidence, number) for one in tables)
        progress.step()
        if not new:
            is_finished = True
            break
        by_round.append(new)
    return NoiseRemoval(rule, tuple(tables), tuple(by_round), is_finished, left_out)


def _state(universe: Universe, noise: Noise, most: int) -> tuple[dict[Levels, RemovedCounts], int]:
    """The cross-tabulations of a universe that fit, the smallest first, and how many do not."""
    located = located_crosstabs(universe)
    sizes = {levels: one.parts[0].crosstab.size for levels, one in located.items()}
    ranked = sorted(located, key=lambda levels: (sizes[levels], levels))
    within = int(np.searchsorted(np.cumsum([sizes[levels] for levels in ranked]), most, side="right"))
    chosen = set(ranked[:within])
    reader, found = Reader(), {}
    for levels, one in located.items():  # in the order of the tables, each of which is read once
        if levels in chosen:
            found[levels] = _counts(universe, levels, one, reader, noise)
    return found, len(ranked) - within


def _counts(
    universe: Universe, levels: Levels, one: LocatedCrosstab, reader: Reader, noise: Noise
) -> RemovedCounts:
    size = one.parts[0].crosstab.size
    numbers, values = reader.cells(one)
    shown = np.zeros(size, dtype=np.int32)
    shown[numbers] = values
    present = one.has(np.arange(size))
    law = noise.published_of(universe.signature(levels))
    return RemovedCounts(universe, levels, one, shown, present, beliefs(law, values, int(present.sum())))


def _start(tables: list[RemovedCounts], averaging: Averaging, confidence: float) -> None:
    state = {one.universe.signature(one.levels): one for one in tables}
    for estimates in averaging.tables:
        one = state.get(estimates.signature)
        chance = estimates.success[Method.WEIGHTED]
        sure = chance >= confidence
        if one is not None and one.known is not None:
            averages = estimates.averages.estimates[Method.WEIGHTED][sure]
            one.start(estimates.numbers[sure], averages, chance[sure])


@dataclass(frozen=True, eq=False)
class _Part:
    """A block of a table with its families, and where its cells are in their cross-tabulations."""

    block: CubeBlock
    tuples: tuple[Tuples, ...]
    places: tuple[
        tuple[RemovedCounts, Integers, Integers], ...
    ]  # (cells, common numbers, places in the block)


class _Removal:
    """The sums of one universe."""

    def __init__(
        self, universe: Universe, noise: Noise, state: Mapping[Levels, RemovedCounts], rule: RemovalRule
    ) -> None:
        self._state, self._same = state, noise.same_noise
        self._few = FEW * max((one.known.reach for one in state.values() if one.known is not None), default=0)
        self._parts = [
            self._part(block, tuple(table.tuples(block)), universe.codelists)
            for table in cut(universe, rule.block)
            for block in table.blocks
        ]

    def _part(self, block: CubeBlock, tuples: tuple[Tuples, ...], codelists: Mapping[str, Codelist]) -> _Part:
        places = []
        for crosstab in crosstabs(block.cube, codelists):
            one = self._state.get(crosstab.signature.levels)
            if one is not None:
                cells = block.cells_of(crosstab)
                places.append((one, crosstab.numbers(block.cube, cells), cells - block.offset))
        return _Part(block, tuples, tuple(places))

    def gather(self) -> None:
        """Compute this round's evidence of all cells."""
        for one in self._state.values():
            one.precision[:], one.weighted[:] = 0.0, 0.0
        for part in self._parts:
            self._gather(part)

    def _gather(self, part: _Part) -> None:
        shown = np.zeros(part.block.size, dtype=np.int32)
        offset, precision, weighted = np.zeros((3, part.block.size), dtype=np.float32)
        variance = np.full(part.block.size, np.inf, dtype=np.float32)
        for one, numbers, at in part.places:
            shown[at], offset[at] = one.shown[numbers], one.offset[numbers]
            variance[at] = one.variance[numbers]
            precision[at], weighted[at] = one.precision[numbers], one.weighted[numbers]
        for tuples in part.tuples:
            grids = [grid.reshape(tuples.shape) for grid in (shown, offset, variance)]
            sums = [grid.reshape(tuples.shape) for grid in (precision, weighted)]
            add_evidence(*grids, *tuples.arrays, self._same, self._few, *sums)
        for one, numbers, at in part.places:
            one.precision[numbers], one.weighted[numbers] = precision[at], weighted[at]


@dataclass(frozen=True, kw_only=True)
class RemovalJudgement:
    """How many recovered counts are the true ones: only numbers, never which."""

    recovered: int
    right: int
    published_right: int  # of the same cells, those published unchanged
    changed: int  # recovered counts that differ from the published ones
    changed_right: int
    small: int
    small_right: int
    right_before_swapping: int
    empty: int
    empty_right: int
    expected_wrong: float

    @property
    def wrong(self) -> int:
        """Recovered counts that are not the true ones."""
        return self.recovered - self.right

    @property
    def share_right(self) -> float | None:
        """The share of recovered counts that are right; None where none is recovered."""
        return self.right / self.recovered if self.recovered else None

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {**vars(self), "wrong": self.wrong, "share_right": self.share_right}


def judge(found: NoiseRemoval, truth: Truth) -> RemovalJudgement:
    """Compare the recovered counts with the true ones."""
    counted, original = Reader(truth.counted), Reader(truth.original)
    sums = np.zeros(9, dtype=np.int64)
    for one in found.tables:
        numbers, counts = one.recovered, one.counts
        if not len(numbers):
            continue
        shown = one.shown[numbers].astype(np.int64)
        true = values_at(counted.cells(one.source), numbers)
        before = values_at(original.cells(one.source), numbers) if truth.is_swapped else true
        real, right, small = (shown != 0) | (counts != 0), counts == true, _is_small(counts)
        changed = counts != shown
        marks = (real, real & right, real & (shown == true), changed, changed & right, small, small & right)
        sums[:7] += [int(np.count_nonzero(mark)) for mark in marks]
        sums[7] += int(np.count_nonzero(real & (counts == before)))
        sums[8] += int(np.count_nonzero(~real & right))
    summary = found.findings()
    names = ("recovered", "right", "published_right", "changed", "changed_right", "small", "small_right")
    return RemovalJudgement(
        **dict(zip(names, sums[:7].tolist(), strict=True)),
        right_before_swapping=int(sums[7]),
        empty=summary.empty,
        empty_right=int(sums[8]),
        expected_wrong=summary.expected_wrong,
    )
