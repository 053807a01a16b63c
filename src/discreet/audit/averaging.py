"""The averaging attack on a release: every published count estimated from all sums that represent it.

An outsider sees which cells are listed. With the true counts, as audit, gates and adviser judge a release, the
attacker also knows which cells have records, which of them contain the same records, and the variance that their
counts have in the p-table: no outsider weights the sums better, and the prediction does not depend on the noise that
was drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import (
    Cells,
    NoisyCells,
    Published,
    PublishedTable,
    Truth,
    Universe,
    values_at,
)
from discreet.audit.refinements import Integers, Levels, PublishedPieces
from discreet.audit.representations import Groups, Representations
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import (
    Averages,
    Floats,
    Method,
    few_recovered,
    success,
    successes,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.perturb.noise import LARGE, Noise
from discreet.programme.cube import CrossTab, Cube, Signature, crosstabs

MOST_COMBINATIONS = 20_000  # of the changes of few groups: the error of more is taken as normal
LEAST_AVERAGED = 2  # a count from which averaging is judged: one record is one group, whatever its tables
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)  # of the predicted success


@dataclass(frozen=True)
class AveragingLimits:
    """Limits of the attack; what it leaves out is reported."""

    most_axes: int | None = None  # of a target
    largest: int = 2**18  # possible cells of a cross-tabulation whose cells are targets
    targets: int = 8_000_000  # in all: some 80 bytes each
    effort: int = 20_000_000_000  # published cells added up, each as often as it is used
    listed: int = 20  # most exposed targets


USUAL_LIMITS = AveragingLimits()


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates for the cells of one cross-tabulation."""

    signature: Signature
    numbers: Integers  # common numbers of the cells
    averages: Averages
    baseline: float  # how likely the published count is the true one
    success: NDArray[np.float32]  # (method, cell): how likely the rounded estimate is the true count
    counts: Integers | None = None  # the true counts, where they are known


@dataclass(frozen=True)
class ExposedCell:
    """A cell whose average is the true count with the probability ``success``."""

    counted: str
    cell: Mapping[str, str]  # variable -> code
    t: int
    k: int
    ratio: float  # its variance in units of one cell's: k/t^2 where nothing is shared
    success: float


@dataclass(frozen=True, kw_only=True)
class MethodExpectation:
    """How many counts one way of averaging is expected to recover exactly."""

    expected: float
    beyond_baseline: float  # more than are published unchanged
    at_least: Mapping[float, int]  # probability -> counts that are right with at least this


@dataclass(frozen=True, kw_only=True)
class AveragingFindings:
    """What averaging finds in a release, without the estimates themselves."""

    targets: int
    baseline: float
    methods: Mapping[Method, MethodExpectation]
    exposed: tuple[ExposedCell, ...]
    left_out: Mapping[str, int]  # why -> cross-tabulations that were no targets


@dataclass(frozen=True, eq=False)
class Averaging:
    """The attack on a release: how many cells it is expected to find, and which."""

    published: Published
    tables: tuple[Estimates, ...]
    exposed: tuple[ExposedCell, ...]
    left_out: Mapping[str, int]  # why -> cross-tabulations that were no targets
    visited: int

    @property
    def targets(self) -> int:
        """How many cells were attacked."""
        return sum(len(table.numbers) for table in self.tables)

    @property
    def baseline(self) -> float:
        """How many counts are expected to be published unchanged."""
        return sum(table.baseline * len(table.numbers) for table in self.tables)

    def expected(self, method: Method) -> float:
        """How many of them are expected to be recovered exactly by the rounded estimate."""
        return float(sum(table.success[method].sum(dtype=np.float64) for table in self.tables))

    def above(self, method: Method, level: float) -> int:
        """How many of them are right with at least this probability."""
        return sum(int((table.success[method] >= level).sum()) for table in self.tables)

    def findings(self) -> AveragingFindings:
        """What can be printed or written: numbers and names of cells, no true count."""
        baseline = self.baseline
        return AveragingFindings(
            targets=self.targets,
            baseline=baseline,
            methods={
                method: MethodExpectation(
                    expected=self.expected(method),
                    beyond_baseline=self.expected(method) - baseline,
                    at_least={level: self.above(method, level) for level in BINS[3:-1]},
                )
                for method in Method
            },
            exposed=self.exposed,
            left_out=dict(self.left_out),
        )


def average(
    published: Published,
    progress: Progress | None = None,
    limits: AveragingLimits = USUAL_LIMITS,
    truth: Truth | None = None,
) -> Averaging:
    """Estimate every count from all its representations in the release; with true counts, as the best informed one.

    Where empty cells have noise, all cells are noisy alike and the true counts add nothing: they are not used.
    """
    known = truth if published.noise.keeps_zeros else None
    progress = progress or Quiet()
    found: list[Estimates] = []
    left_out: defaultdict[str, int] = defaultdict(int)
    exposed: list[ExposedCell] = []
    visited = attacked = 0
    for universe in published.universes:
        sums = read_pieces(universe, published.noise, known, progress)
        attack = _Attack(sums, published.noise, informed=known is not None)
        attack.represented.visited = visited
        progress.stage(f"averaging {universe.counted}", len(attack.represented.targets))
        for target in attack.represented.targets:
            why = _refused(attack, target, limits, attacked)
            if why:
                left_out[why] += 1
            else:
                estimates = attack.estimates(target)
                if estimates is not None:
                    found.append(estimates)
                    attacked += len(estimates.numbers)
                    least = exposed[-1].success if len(exposed) == limits.listed else 0.0
                    more = _exposed(attack, target, estimates, limits.listed, least)
                    exposed = nlargest(limits.listed, [*exposed, *more], _rank)
            progress.step()
        visited = attack.represented.visited
    return Averaging(published, tuple(found), tuple(exposed), dict(left_out), visited)


def read_pieces(universe: Universe, noise: Noise, truth: Truth | None, progress: Progress) -> PublishedPieces:
    """The cells of a universe that have noise, as far as the attacker knows them."""
    progress.stage(f"reading {universe.counted}", len(universe.tables))
    sums = PublishedPieces(universe)
    for table in universe.tables:
        sums.add(table.cube, partial(_noisy, table, noise, truth))
        progress.step()
    return sums


def _noisy(table: PublishedTable, noise: Noise, truth: Truth | None) -> NoisyCells:
    """The cells of a table that have noise, as far as the attacker knows them."""
    if truth is None:
        cells, values = table.load()
        return NoisyCells(cells, values, values)
    found = truth.under(table)
    return found if noise.same_noise else replace(found, records=None)


def _refused(attack: _Attack, target: Levels, limits: AveragingLimits, targets: int) -> str:
    size = prod(attack.represented.codes.shape(target))
    if limits.most_axes is not None and len(target) > limits.most_axes:
        return f"more than {limits.most_axes} axes"
    if size > limits.largest:
        return f"more than {limits.largest} possible cells"
    if targets + size > limits.targets:
        return f"beyond {limits.targets} targets"
    return f"beyond {limits.effort} cells added up" if attack.represented.visited > limits.effort else ""


def _baseline(noise: Noise, signature: Signature) -> float:
    """How likely a count is published unchanged; by a normal law where only the variance is known."""
    if noise.law is not None:
        return noise.law_of(signature).row(LARGE).at(LARGE)
    return success(noise.variance_of(signature), 1.0)


class _Attack:
    """The attack on one universe."""

    def __init__(self, sums: PublishedPieces, noise: Noise, informed: bool) -> None:
        self.sums, self.represented = sums, Representations(sums, noise, informed)
        self._noise = noise
        self._changes = changes(noise.law) if isinstance(noise.law, PTableLaw) and not noise.laws else None

    def estimates(self, target: Levels) -> Estimates | None:
        """The averages of one cross-tabulation's cells; None where all may be empty."""
        sums = self.represented.add_up(target)
        cells = np.flatnonzero(sums.known)
        if not len(cells):
            return None
        signature, averages = self.sums.universe.signature(target), sums.running.averages(cells)
        if sums.groups is not None:
            return self._judged(signature, cells, averages, sums.counts[cells], sums.groups)
        chance, baseline = successes(averages.variances), _baseline(self._noise, signature)
        chance[(averages.t == 1) & (averages.k == 1)] = baseline
        return Estimates(signature, cells, averages, baseline, chance.astype(np.float32))

    def _judged(
        self, signature: Signature, cells: Integers, averages: Averages, counts: Integers, groups: Groups
    ) -> Estimates:
        """The estimates of an attacker who knows the counts; those of few groups are enumerated."""
        chance = successes(averages.variances)
        if self._changes is None:
            baseline = _baseline(self._noise, signature)
            chance[(averages.t == 1) & (averages.k == 1)] = baseline
            return Estimates(signature, cells, averages, baseline, chance.astype(np.float32), counts)
        stays = self._changes[:, self._changes.shape[1] // 2][np.minimum(counts, len(self._changes) - 1)]
        number, weights = groups.number[cells], averages.weights
        few = groups.weights[cells] / np.where(weights > 0, weights, 1.0)[:, None]
        enumerated = np.where(weights > 0, number, 0)
        laws = (self._changes, MOST_COMBINATIONS)
        few_recovered(enumerated, few, groups.counts[cells], *laws, chance[Method.WEIGHTED])
        chance[:, number == 1] = stays[number == 1]
        baseline = float(stays.mean())
        return Estimates(signature, cells, averages, baseline, chance.astype(np.float32), counts)


def changes(law: PTableLaw) -> Floats:
    """(count, change): the probabilities of the changes -R .. R of each count, the last for all larger counts."""
    rows = [law.row(count).shifted(-count) for count in range(law.settled + 1)]
    reach = max(max(-row.first, row.last) for row in rows)
    found = np.zeros((len(rows), 2 * reach + 1))
    for count, row in enumerate(rows):
        found[count, row.first + reach : row.last + reach + 1] = row.p
    return found


def _exposed(
    attack: _Attack, target: Levels, found: Estimates, most: int, least: float
) -> Iterator[ExposedCell]:
    """The most exposed cells of a cross-tabulation, of those that are right with at least some probability."""
    chance = found.success[Method.WEIGHTED]
    if found.counts is not None:  # one record is the same group in every table: there is nothing to average
        chance = np.where(found.counts < LEAST_AVERAGED, 0, chance)
    codes, variance = attack.represented.codes, attack.represented.noise_of.variance(target)
    shape = codes.shape(target)
    some = np.flatnonzero((chance > 0) & (chance >= least))
    for at in some[np.argsort(-chance[some], kind="stable")[:most]].tolist():
        places = np.unravel_index(int(found.numbers[at]), shape) if shape else ()
        yield ExposedCell(
            attack.sums.universe.counted,
            {v: codes.code(v, depth, int(place)) for (v, depth), place in zip(target, places, strict=True)},
            int(found.averages.t[Method.WEIGHTED, at]),
            int(found.averages.k[Method.WEIGHTED, at]),
            float(found.averages.variances[Method.WEIGHTED, at] / variance),
            float(chance[at]),
        )


def _rank(one: ExposedCell) -> tuple[float, float]:
    return one.success, -one.ratio


@dataclass(frozen=True)
class Bin:
    """The targets with about the same predicted success."""

    low: float
    high: float
    targets: int
    expected: float
    hit: int


@dataclass(frozen=True)
class Realised:
    """How often the attack is right: only numbers, never which counts."""

    targets: int
    baseline: int  # counts that are published unchanged
    hit: Mapping[Method, int]
    bins: Mapping[Method, tuple[Bin, ...]]

    def as_json(self) -> Mapping[str, object]:
        """Numbers of targets, predicted and realised, by method."""
        methods = {method: {"hit": self.hit[method], "bins": self.bins[method]} for method in Method}
        return {"targets": self.targets, "baseline": self.baseline, "methods": methods}


def judge(averaging: Averaging, truth: Truth) -> Realised:
    """Compare the estimates with the true counts."""
    tally = np.zeros((len(Method), len(BINS) - 1, 3))  # targets, expected, hit
    baseline = 0
    for table, true, shown in _with_counts(averaging, truth):
        baseline += int((true == shown).sum())
        for method in Method:
            hit = np.rint(table.averages.estimates[method]) == true
            where = np.clip(np.digitize(table.success[method], BINS) - 1, 0, len(BINS) - 2)
            for column, what in enumerate((np.ones(len(hit)), table.success[method], hit)):
                tally[method, :, column] += np.bincount(where, what, minlength=len(BINS) - 1)
    bins = {
        method: tuple(
            Bin(BINS[at], BINS[at + 1], int(row[0]), float(row[1]), int(row[2]))
            for at, row in enumerate(tally[method])
        )
        for method in Method
    }
    hits = {method: int(tally[method, :, 2].sum()) for method in Method}
    return Realised(averaging.targets, baseline, hits, bins)


def _with_counts(averaging: Averaging, truth: Truth) -> Iterator[tuple[Estimates, Integers, Integers]]:
    """Each table of estimates with true and published counts, every cube loaded once.

    A cube that lacks some codes leaves their cells to the next that has them.
    """
    waiting = {table.signature: _Waiting(table) for table in averaging.tables}
    for universe in averaging.published.universes:
        for source in universe.tables:
            counted, shown = truth.counted[source.id], source.load()
            for one in crosstabs(source.cube, universe.codelists):
                signature = universe.signature(one.signature.levels)
                if signature in waiting and waiting[signature].fill(source.cube, one, counted, shown):
                    done = waiting.pop(signature)
                    yield done.table, done.true, done.shown
    for left in waiting.values():
        yield left.table, left.true, left.shown


class _Waiting:
    """Estimates whose true and published counts are still incomplete."""

    def __init__(self, table: Estimates) -> None:
        self.table = table
        self.true, self.shown = np.zeros((2, len(table.numbers)), dtype=np.int64)
        self._left = np.ones(len(table.numbers), dtype=bool)

    def fill(self, cube: Cube, one: CrossTab, counted: Cells, shown: Cells) -> bool:
        """Take the counts that a cube has; return whether all are present."""
        at = np.flatnonzero(self._left)
        cells, present = one.cells(cube, self.table.numbers[at])
        self.true[at[present]] = values_at(counted, cells)
        self.shown[at[present]] = values_at(shown, cells)
        self._left[at[present]] = False
        return not self._left.any()
