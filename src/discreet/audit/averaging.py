"""The averaging attack, run on what anybody can read: every published count from all sums that represent it.

It owns the attack, its prediction and how often it is right by the truth; how sums are found is in refinements and
targets, the closed forms are in maths.averaging. Bach 2020, section 3.3 and annex B, with weights besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import LARGE, Cells, KnownNoise, Published, Universe
from discreet.audit.refinements import Levels, Refinement, Sums
from discreet.audit.targets import Laying, Seen
from discreet.audit.truth import Truth, values_at
from discreet.engine.progress import Progress, Quiet
from discreet.maths.averaging import success
from discreet.maths.representations import Averages, Integers, Method, Running, successes
from discreet.schema.crosstab import CrossTab, Signature, crosstabs
from discreet.schema.cube import Cube

BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)  # of the predicted success


@dataclass(frozen=True)
class Limits:
    """How far the attack goes; what it leaves out is told."""

    most_axes: int | None = None  # of a target
    largest: int = 2**18  # possible cells of a cross-tabulation whose cells are targets
    targets: int = 8_000_000  # in all: some 80 bytes each
    effort: int = 20_000_000_000  # published cells added up, each as often as it is used
    listed: int = 20  # most exposed targets


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the attack says of the cells of one cross-tabulation."""

    signature: Signature
    numbers: Integers  # common numbers of the cells
    averages: Averages
    baseline: float  # how likely the published count is what was counted
    success: NDArray[np.float32]  # (method, cell): how likely the estimate, rounded, is what was counted


@dataclass(frozen=True)
class Exposed:
    """A cell that averages to what was counted with the probability ``success``."""

    counted: str
    cell: Mapping[str, str]  # variable -> code
    t: int
    k: int
    ratio: float  # its variance in units of one cell's: k/t^2 where nothing is shared
    success: float


@dataclass(frozen=True, eq=False)
class Averaging:
    """The attack on a release: how many cells it is expected to find, and which."""

    published: Published
    tables: tuple[Estimates, ...]
    exposed: tuple[Exposed, ...]
    left_out: Mapping[str, int]  # why -> cross-tabulations that were no targets
    visited: int

    @property
    def targets(self) -> int:
        """How many cells were attacked."""
        return sum(len(table.numbers) for table in self.tables)

    @property
    def baseline(self) -> float:
        """How many published counts are expected to be what was counted by themselves."""
        return sum(table.baseline * len(table.numbers) for table in self.tables)

    def expected(self, method: Method) -> float:
        """How many of them the rounded estimate is expected to get right."""
        return float(sum(table.success[method].sum(dtype=np.float64) for table in self.tables))

    def above(self, method: Method, level: float) -> int:
        """How many of them are right with at least this probability."""
        return sum(int((table.success[method] >= level).sum()) for table in self.tables)

    def summary(self) -> dict[str, Any]:
        """What can be printed or written: numbers and names of cells, nothing of the truth."""
        return {
            "targets": self.targets,
            "baseline": self.baseline,
            "methods": {
                method.name.lower(): {
                    "expected": self.expected(method),
                    "beyond_baseline": self.expected(method) - self.baseline,
                    "at_least": {str(level): self.above(method, level) for level in BINS[3:-1]},
                }
                for method in Method
            },
            "exposed": [
                {
                    "counted": one.counted,
                    "cell": dict(one.cell),
                    "t": one.t,
                    "k": one.k,
                    "ratio": one.ratio,
                    "success": one.success,
                }
                for one in self.exposed
            ],
            "left_out": dict(self.left_out),
        }


def average(published: Published, progress: Progress | None = None, limits: Limits = Limits()) -> Averaging:
    """Estimate every count from all its representations in the release."""
    told = progress or Quiet()
    found: list[Estimates] = []
    left_out: defaultdict[str, int] = defaultdict(int)
    exposed: list[Exposed] = []
    visited = attacked = 0
    for universe in published.universes:
        sums = _sums(universe, published.noise, told)
        attack = _Attack(sums, published.noise)
        attack.lay.visited = visited
        told.stage(f"averaging {universe.counted}", len(attack.targets))
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
            told.step()
        visited = attack.lay.visited
    return Averaging(published, tuple(found), tuple(exposed), dict(left_out), visited)


def _sums(universe: Universe, noise: KnownNoise, told: Progress) -> Sums:
    told.stage(f"reading {universe.counted}", len(universe.tables))
    sums = Sums(universe)
    for table in universe.tables:
        sums.add(table.cube, table.load)
        told.step()
    return sums


def _refused(attack: _Attack, target: Levels, limits: Limits, targets: int) -> str:
    size = prod(attack.lay.shape(target))
    if limits.most_axes is not None and len(target) > limits.most_axes:
        return f"more than {limits.most_axes} axes"
    if size > limits.largest:
        return f"more than {limits.largest} possible cells"
    if targets + size > limits.targets:
        return f"beyond {limits.targets} targets"
    return f"beyond {limits.effort} cells added up" if attack.lay.visited > limits.effort else ""


def _baseline(noise: KnownNoise, signature: Signature) -> float:
    """How likely a published count is the truth by itself; by a normal law where only the variance is known."""
    if noise.law is not None:
        return noise.law_of(signature).row(LARGE).at(LARGE)
    return success(noise.variance_of(signature), 1.0)


class _Attack:
    """The attack on one universe."""

    def __init__(self, sums: Sums, noise: KnownNoise) -> None:
        self.sums, self.lay, self._noise = sums, Laying(sums, noise), noise
        self._by_target: defaultdict[Levels, list[Refinement]] = defaultdict(list)
        for one in sorted(sums.refinements.values(), key=self._cells):
            for target in self.lay.targets_of(one.cuts):
                self._by_target[target].append(one)
        self.targets = sorted(
            (target for target in sums.crosstabs if target in self._by_target),
            key=lambda target: (prod(self.lay.shape(target)), target),
        )

    def _cells(self, one: Refinement) -> int:
        """About how many cells a refinement has; those that show, where empty cells show nothing."""
        if self._noise.keeps_zeros:
            return sum(len(self.sums.pieces[key].values) for key in one.pieces)
        return prod(int(self.sums.trees[variable].cuts[cut].sum()) for variable, cut in one.cuts)

    def estimates(self, target: Levels) -> Estimates | None:
        """The averages of one cross-tabulation's cells; None where nobody is known to be in any."""
        size, every = prod(self.lay.shape(target)), self._by_target[target]
        running, known, seen = Running(size), np.zeros(size, dtype=bool), Seen(size, len(every))
        for one in every:
            measured = self.lay.measure(target, one)
            known |= (measured.q > 0) & ((measured.s != 0) | (not self._noise.keeps_zeros))
            seen.drop_repeats(measured)
            if self._noise.same_noise and self._noise.keeps_zeros:
                seen.count_hidden(measured)
            running.add(measured.s, measured.k, measured.q, *self.lay.share(target, one, measured.q))
        self.lay.forget(every)
        return self._made(target, running, np.flatnonzero(known))

    def _made(self, target: Levels, running: Running, cells: Integers) -> Estimates | None:
        if not len(cells):
            return None
        signature = self.sums.universe.signature(target)
        averages = running.averages(cells)
        chance = successes(averages.variances)
        baseline = _baseline(self._noise, signature)
        chance[(averages.t == 1) & (averages.k == 1)] = baseline
        return Estimates(signature, cells, averages, baseline, chance.astype(np.float32))


def _exposed(attack: _Attack, target: Levels, found: Estimates, most: int) -> Iterator[Exposed]:
    chance = found.success[Method.WEIGHTED]
    shape = attack.lay.shape(target)
    variance = attack.lay.variance(target)
    for at in np.argsort(-chance, kind="stable")[:most].tolist():
        places = np.unravel_index(int(found.numbers[at]), shape) if shape else ()
        yield Exposed(
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


def _rank(one: Exposed) -> tuple[float, float]:
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
    """How often the attack is right: in number only, never of which count."""

    targets: int
    baseline: int  # published counts that are what was counted
    hit: Mapping[Method, int]
    bins: Mapping[Method, tuple[Bin, ...]]

    def summary(self) -> dict[str, Any]:
        """Numbers of targets, predicted and realised."""
        return {
            "targets": self.targets,
            "baseline": self.baseline,
            "methods": {
                method.name.lower(): {
                    "hit": self.hit[method],
                    "bins": [vars(one) for one in self.bins[method]],
                }
                for method in Method
            },
        }


def judge(averaging: Averaging, truth: Truth) -> Realised:
    """Compare the estimates with what was counted."""
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
    """Estimates that wait for the counts they are compared with."""

    def __init__(self, table: Estimates) -> None:
        self.table = table
        self.true, self.shown = np.zeros((2, len(table.numbers)), dtype=np.int64)
        self._left = np.ones(len(table.numbers), dtype=bool)

    def fill(self, cube: Cube, one: CrossTab, counted: Cells, shown: Cells) -> bool:
        """Take the counts that a cube has; tell whether none is wanting."""
        at = np.flatnonzero(self._left)
        cells, held = one.cells(cube, self.table.numbers[at])
        self.true[at[held]] = values_at(counted, cells)
        self.shown[at[held]] = values_at(shown, cells)
        self._left[at[held]] = False
        return not self._left.any()
