"""The averaging attack on a release: every published count estimated from all sums that represent it.

An outsider sees which cells are listed. With the true counts, as audit, gates and adviser judge a release, the
attacker also knows which cells have records, which of them contain the same records, and the variance that their
counts have in the p-table: no outsider weights the sums better, and the prediction does not depend on the noise that
was drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from heapq import nlargest
from itertools import product
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
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import (
    Averages,
    Floats,
    Method,
    Running,
    add_cells,
    add_representation,
    few_recovered,
    forget_groups,
    mixed_groups,
    success,
    successes,
    take_groups,
    take_representation,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import UNSETTLED
from discreet.perturb.noise import LARGE, Noise
from discreet.programme.cube import CrossTab, Cube, Signature, crosstabs

FEW = 6  # groups of a target whose combinations are enumerated ..
MOST_COMBINATIONS = 20_000  # .. up to so many; the error of more is taken as normal
NOWHERE = np.zeros(1, dtype=np.int32)  # so that the grand total has a table too


class TargetSums:
    """What is added up for the cells of one cross-tabulation, one representation after the other.

    The same sum again adds no information: the groups that have been added up are marked.
    """

    def __init__(self, target: Levels, shape: tuple[int, ...], representations: int) -> None:
        self.target, self.size = target, prod(shape)
        self.depths = dict(target)
        self.strides = {variable: prod(shape[at + 1 :]) for at, (variable, _) in enumerate(target)}
        s, n, k = np.zeros((3, self.size), dtype=np.int64)
        q, shared, weighted = np.zeros((3, self.size))
        # of one representation: the sums of published values and of the counts behind them; the noisy cells, those
        # listed where empty cells are not listed, otherwise all; the variance of the sum, zero where this is no
        # representation; numbers that are equal where the same groups are added up; covariances with earlier ones
        self.measured = s, n, k, q, np.zeros(self.size, dtype=np.uint64), shared, weighted
        self.running = Running(self.size)
        self.known = np.zeros(self.size, dtype=bool)
        self.counts = np.zeros(self.size, dtype=np.int64)
        marked = np.zeros(1 << max(4, (2 * self.size * representations).bit_length()), dtype=np.uint64)
        begun = np.zeros(self.size, dtype=bool)
        self.so_far = self.running.sums, self.known, self.counts, marked, begun


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a refinement's cells, as ``Laid`` has them, and how many cells there are."""

    arrays: tuple[Integers, Integers, Integers, Floats]
    cells: int


LaidArrays = tuple[Integers, Integers, Integers, Floats, Places, Integers, Integers]  # as ``Laid`` has them


class Laying:
    """Maps the cells of a universe's refinements to the cells of its cross-tabulations."""

    def __init__(self, sums: PublishedPieces, noise: Noise, informed: bool) -> None:
        self._sums, self._noise, self._informed = sums, noise, informed
        self.rows = cache(self._make_rows)
        self.divides = cache(lambda variable, cut: sums.trees[variable].divides(cut))
        self._place, self._divided = cache(self._make_place), cache(self._make_divided)
        self._level = cache(self._make_level)
        self._runs, self._offset = cache(self._make_runs), cache(self._make_offset)
        self._valid = lru_cache(maxsize=64)(self._make_valid)
        self.shape = cache(self._make_shape)
        self._hides = noise.publishing.hides_negatives and not noise.keeps_zeros
        self.groups = sums.groups(self._same_noise)
        self._cells, self._codes_at = sums.together()
        self._targets = np.empty(sums.cells, dtype=np.int32)  # of the cells of the refinement mapped last
        # code -> place, one table of ``_place`` after the other
        self._places = np.full(1, -1, dtype=np.int32)
        # group -> how often it is in sums, and with which weights; the groups in the order of their first use
        self._used, self._begun = (np.zeros((sums.cells, 2)), np.empty(sums.cells, dtype=np.int32)), 0
        # a further sum of one cell hides another: only one group has all records, for noise that follows the group
        hidden = noise.same_noise and noise.keeps_zeros and not informed
        self._modes = informed, noise.keeps_zeros, hidden
        self.visited = 0

    @cached_property
    def _marks(self) -> NDArray[np.uint64]:
        """Cell -> the mixed number of its group."""
        found = np.empty(self._sums.cells, dtype=np.uint64)
        mixed_groups(self.groups, found)
        return found

    def variance(self, levels: Levels) -> float:
        """The variance of a large count of a cross-tabulation."""
        return float(self.rows(levels)[-1])

    def _same_noise(self, one: Levels, other: Levels) -> bool:
        """Whether a group has the same noise in two cross-tabulations, and can be seen to be the same."""
        noise = self._noise
        return noise.same_noise and noise.keeps_zeros and self.variance(one) == self.variance(other)

    def _make_shape(self, target: Levels) -> tuple[int, ...]:
        """The number of codes of each axis of a cross-tabulation."""
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

    def add(self, sums: TargetSums, one: Refinement) -> None:
        """Add the sums of a refinement's cells by target cell."""
        laid, cells = self._lay(sums, one), (*self._cells, self._marks, self.groups)
        self.visited += self._runs(one).cells
        state = (self._used, self._begun, sums.so_far, self._modes)
        if self._informed or self._noise.keeps_zeros:
            cuts = dict(one.cuts)
            valid = self._valid(tuple((variable, cuts[variable], depth) for variable, depth in sums.target))
            variance = self.variance(sums.target)
            arrays = (cells, laid, self._targets, valid, variance, sums.measured)
            self._begun = add_representation(*arrays, *state)
            return
        for part in sums.measured:
            part[:] = 0
        add_cells(*cells[:4], *laid, self._targets, False, *sums.measured[:5])
        self._count_all_cells(sums, one)
        runs = (laid[0], laid[1], laid[3])
        self._begun = take_representation(*cells[2::2], runs, self._targets, sums.measured, *state)

    def _make_valid(self, divisions: tuple[tuple[str, int, int], ...]) -> Mask:
        """Which targets cuts divide, given by variable, cut and the target's depth."""
        return _over(self._divided(*one) for one in divisions)

    def _count_all_cells(self, sums: TargetSums, one: Refinement) -> None:
        """Count unlisted cells too; sums that negative values published as zero bias upwards are none."""
        _, _, k, q, *_ = sums.measured
        shown, cuts = k.copy(), dict(one.cuts)
        k[:], q[:] = 0, 0.0
        for piece in self._pieces(one):
            every = self._possible(sums.target, one, piece)
            k += every
            q += every * self.variance(piece.levels)
        whole: Mask = (shown == k) | (k == 1) | (not self._hides)
        valid = self._valid(tuple((variable, cuts[variable], depth) for variable, depth in sums.target))
        q[~(valid & whole)] = 0.0

    def forget_groups(self) -> None:
        """Reset the covariances, before the next target."""
        forget_groups(self._used[1][: self._begun], self._used[0])
        self._begun = 0

    def take_groups(self, sums: TargetSums, every: Iterable[Refinement]) -> Groups:
        """The groups whose noise is in the sums of each target; resets the covariances, before the next target."""
        size = sums.size
        found = Groups(np.zeros(size, np.int64), np.zeros((size, FEW)), np.zeros((size, FEW), np.int64))
        for one in every:
            arrays = (*self._lay(sums, one), self._used[0])
            take_groups(self._cells[0], self._cells[2], self.groups, *arrays, *vars(found).values())
        self._begun = 0
        return found

    def _pieces(self, one: Refinement) -> list[Piece]:
        return [self._sums.pieces[key] for key in one.pieces]

    def _make_runs(self, one: Refinement) -> Runs:
        """The places of a refinement's cells, their codes, and the variance of each run of them."""
        pieces = self._pieces(one)
        firsts = np.array([piece.first for piece in pieces], dtype=np.int64)
        lasts = firsts + np.array([len(piece.values) for piece in pieces], dtype=np.int64)
        codes_at = np.array([self._codes_at[key] for key in one.pieces], dtype=np.int64)
        rows = [self.rows(piece.levels) for piece in pieces]
        longest = max(map(len, rows))
        filled = np.array([np.pad(row, (0, longest - len(row)), mode="edge") for row in rows])
        return Runs((firsts, lasts, codes_at, filled), int((lasts - firsts).sum()))

    def _lay(self, sums: TargetSums, one: Refinement) -> LaidArrays:
        """The mapping of a refinement's cells to the targets."""
        depth_of, stride_of = sums.depths.get, sums.strides.get
        starts = np.array(
            [self._offset(variable, cut, depth_of(variable, 0)) for variable, cut in one.cuts], np.int64
        )
        strides = np.array([stride_of(variable, 0) for variable, _ in one.cuts], np.int64)
        return *self._runs(one).arrays, self._places, starts, strides

    def _make_offset(self, variable: str, cut: int, depth: int) -> int:
        """Where the places of a variable's codes begin."""
        first = len(self._places)
        self._places = np.concatenate([self._places, self._place(variable, cut, depth)])
        return first

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


def _over(masks: Iterable[Mask]) -> Mask:
    """Masks along the axes as one mask of the cells."""
    found = np.ones(1, dtype=bool)
    for mask in masks:
        found = (found[:, None] & mask).ravel()
    return found


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
        attack.lay.visited = visited
        progress.stage(f"averaging {universe.counted}", len(attack.targets))
        for target in attack.targets:
            why = _refused(attack, target, limits, attacked)
            if why:
                left_out[why] += 1
            else:
                estimates = attack.estimates(target)
                if estimates is not None:
                    found.append(estimates)
                    attacked += len(estimates.numbers)
                    exposed = nlargest(
                        limits.listed, [*exposed, *_exposed(attack, target, estimates, limits.listed)], _rank
                    )
            progress.step()
        visited = attack.lay.visited
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
    size = prod(attack.lay.shape(target))
    if limits.most_axes is not None and len(target) > limits.most_axes:
        return f"more than {limits.most_axes} axes"
    if size > limits.largest:
        return f"more than {limits.largest} possible cells"
    if targets + size > limits.targets:
        return f"beyond {limits.targets} targets"
    return f"beyond {limits.effort} cells added up" if attack.lay.visited > limits.effort else ""


def _baseline(noise: Noise, signature: Signature) -> float:
    """How likely a count is published unchanged; by a normal law where only the variance is known."""
    if noise.law is not None:
        return noise.law_of(signature).row(LARGE).at(LARGE)
    return success(noise.variance_of(signature), 1.0)


class _Attack:
    """The attack on one universe."""

    def __init__(self, sums: PublishedPieces, noise: Noise, informed: bool) -> None:
        self.sums, self.lay = sums, Laying(sums, noise, informed)
        self._noise, self._informed = noise, informed
        self._changes = changes(noise.law) if isinstance(noise.law, PTableLaw) and not noise.laws else None
        self._by_target: defaultdict[Levels, list[Refinement]] = defaultdict(list)
        for one in sorted(sums.refinements.values(), key=self._cells):
            for target in self.lay.targets_of(one.cuts):
                self._by_target[target].append(one)
        self.targets = sorted(
            (target for target in sums.crosstabs if target in self._by_target),
            key=lambda target: (prod(self.lay.shape(target)), target),
        )

    def _cells(self, one: Refinement) -> int:
        """About how many cells a refinement has; those listed, where empty cells are not."""
        if self._noise.keeps_zeros:
            return sum(len(self.sums.pieces[key].values) for key in one.pieces)
        return prod(int(self.sums.trees[variable].cuts[cut].sum()) for variable, cut in one.cuts)

    def estimates(self, target: Levels) -> Estimates | None:
        """The averages of one cross-tabulation's cells; None where all may be empty."""
        every = self._by_target[target]
        sums = TargetSums(target, self.lay.shape(target), len(every))
        for one in every:
            self.lay.add(sums, one)
        groups, cells = None, np.flatnonzero(sums.known)
        if self._informed:
            groups = self.lay.take_groups(sums, every)
        else:
            self.lay.forget_groups()
        if not len(cells):
            return None
        signature, averages = self.sums.universe.signature(target), sums.running.averages(cells)
        if groups is not None:
            return self._judged(signature, cells, averages, sums.counts[cells], groups)
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


def _exposed(attack: _Attack, target: Levels, found: Estimates, most: int) -> Iterator[ExposedCell]:
    chance = found.success[Method.WEIGHTED]
    if found.counts is not None:  # one record is the same group in every table: there is nothing to average
        chance = np.where(found.counts < LEAST_AVERAGED, 0, chance)
    shape = attack.lay.shape(target)
    variance = attack.lay.variance(target)
    for at in np.flatnonzero(chance)[np.argsort(-chance[chance > 0], kind="stable")[:most]].tolist():
        places = np.unravel_index(int(found.numbers[at]), shape) if shape else ()
        yield ExposedCell(
            attack.sums.universe.counted,
            {
                v: attack.lay.code(v, depth, int(place))
                for (v, depth), place in zip(target, places, strict=True)
            },
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
