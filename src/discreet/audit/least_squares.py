"""The strongest linear adversary against a release: one least squares fit of all published cells to all their sums.

An outsider joins cells that can be seen to be the same group, and takes what is not listed below a total as a number
whose mean and variance the gaps of all such totals show. The best informed attacker, by whom audit, gates and adviser
judge, knows which cells have records, which have the same ones, and the variance of each count's row. What either finds
is predicted by drawing noise from the law and fitting it in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from discreet.audit.averaging import (
    LEAST_AVERAGED,
    Averaging,
    ExposedCell,
    read_pieces,
)
from discreet.audit.bound_propagation import Assumption, assumption
from discreet.audit.evidence import (
    NoisyCells,
    Published,
    PublishedTable,
    Truth,
    Universe,
    cells_of,
    values_at,
)
from discreet.audit.refinements import Integers, Piece, PublishedPieces
from discreet.audit.representations import NoiseOfCells
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import successes
from discreet.maths.attacks.least_squares import (
    Families,
    Floats,
    Singles,
    Sums,
    bounded,
    equations_of,
    errors,
    exact_variances,
    project,
    tighten,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.perturb.noise import LARGE, Noise

SEED = 14  # of the noise that predictions draw: the same release gets the same prediction
LEAST_DOUBT = 0.1  # variance of an outsider's sums: groups that look alike need not be the same
LEAST_HIDDEN = 0.05  # variance of one cell that is not listed
HIDDEN_NEGATIVE = 25.0  # times the variance: a zero that may hide a negative value reveals little
UNBOUNDED = 2**31
EFFORT, STEPS = (
    2 * 10**8,
    60,
)  # parts added up for exact variances beyond the rule's number, and about how often each
PRIOR = 8.0  # prior observations of a cross-tabulation's mean in the estimate of one cell's variance


@dataclass(frozen=True)
class LeastSquaresRule:
    """The effort of the attack; larger populations are left out and reported."""

    probes: int = 8  # simulated noises that are fitted together
    trials: int = 2  # simulated releases that are fitted within bounds
    exact: int = 16  # counts whose variance is computed exactly
    listed: int = 20
    cells: int = 1 << 23  # of one population: some 250 bytes each


USUAL = LeastSquaresRule()
VARIANCES = LeastSquaresRule(trials=0)  # no simulated releases: only which counts are exposed


@dataclass(frozen=True, eq=False)
class Fitted:
    """One population's cells, what the attacker knows of them, and the estimates."""

    universe: Universe
    pieces: PublishedPieces
    unknown: Integers  # cell -> its unknown: cells of the same records are one
    values: Integers  # unknown -> published
    counts: Integers | None  # unknown -> true where the attacker is informed
    variances: Singles
    equations: Sums
    linear: Floats  # unknown -> estimate
    within: Floats  # the same within bounds

    @property
    def weights(self) -> Integers:
        """Unknown -> how many cells it is."""
        found: Integers = np.bincount(self.unknown, minlength=len(self.values))
        return found


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """How many counts are expected to be found exactly, by simulated releases."""

    expected: float
    standard_error: float  # of the expectation
    spread: float  # standard deviation of the number in one release


@dataclass(frozen=True, kw_only=True)
class LeastSquaresFindings:
    """What least squares finds in a release, without the estimates themselves."""

    targets: int
    groups: int  # different groups of records, or cells where each has its own noise
    equations: int
    baseline: float  # counts that are expected to be published unchanged
    linear: Expectation  # the best linear unbiased estimates, rounded
    within_bounds: Expectation  # the same within the bounds that whole numbers and the largest change leave
    exposed: tuple[ExposedCell, ...]
    left_out: tuple[str, ...]  # populations that are too large


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The attack on a release."""

    published: Published
    fits: tuple[Fitted, ...]
    baseline: float
    linear: Expectation
    within_bounds: Expectation
    exposed: tuple[ExposedCell, ...]
    left_out: tuple[str, ...]

    @property
    def targets(self) -> int:
        """How many cells were attacked."""
        return sum(len(one.unknown) for one in self.fits)

    def findings(self) -> LeastSquaresFindings:
        """What can be printed or written: numbers and names of cells, no true count."""
        return LeastSquaresFindings(
            targets=self.targets,
            groups=sum(len(one.values) for one in self.fits),
            equations=sum(len(one.equations) for one in self.fits),
            baseline=self.baseline,
            linear=self.linear,
            within_bounds=self.within_bounds,
            exposed=self.exposed,
            left_out=self.left_out,
        )


def least_squares(
    published: Published,
    progress: Progress | None = None,
    rule: LeastSquaresRule = USUAL,
    truth: Truth | None = None,
) -> LeastSquares:
    """Fit all cells of each population; with true counts, as the best informed attacker.

    Where empty cells have noise, all cells are noisy alike and the true counts add nothing: they are not used.
    """
    known = truth if published.noise.keeps_zeros else None
    progress = progress or Quiet()
    bounds = assumption(published.noise, None)
    generator = np.random.default_rng(SEED)
    fits: list[Fitted] = []
    left_out: list[str] = []
    exposed: list[ExposedCell] = []
    tallies: list[_Tally] = []
    for universe in published.universes:
        pieces = _pieces(universe, published.noise, known, progress, rule.cells)
        if pieces is None:
            left_out.append(universe.counted)
            continue
        if not pieces.cells:
            continue
        progress.stage(f"least squares of {universe.counted}", 3 + rule.trials)
        attack = System(pieces, published.noise, bounds, informed=known is not None)
        fits.append(attack.fitted(within=rule.trials > 0))
        progress.step()
        tally, errors_found = attack.probed(fits[-1], rule, generator, progress)
        tallies.append(tally)
        exposed += attack.exposed(errors_found, rule)
        progress.step()
    return LeastSquares(
        published,
        tuple(fits),
        sum(one.baseline for one in tallies),
        _expectation([one.linear for one in tallies], rule.probes),
        _expectation([one.within for one in tallies], rule.trials),
        tuple(nlargest(rule.listed, exposed, rank)),
        tuple(left_out),
    )


def system(universe: Universe, noise: Noise) -> System:
    """The cells and sums of one population as an outsider sees them."""
    pieces = read_pieces(universe, noise, None, Quiet())
    return System(pieces, noise, assumption(noise, None), informed=False)


def most_recovered(averaging: Averaging, found: LeastSquares) -> tuple[ExposedCell, ...]:
    """The most exposed counts by averaging or least squares, whichever is stronger for each: what verdicts use."""
    best: dict[tuple[str, tuple[tuple[str, str], ...]], ExposedCell] = {}
    for one in (*averaging.exposed, *found.exposed):
        cell = (one.counted, tuple(sorted(one.cell.items())))
        if cell not in best or rank(one) > rank(best[cell]):
            best[cell] = one
    return tuple(sorted(best.values(), key=rank, reverse=True))


def rank(one: ExposedCell) -> tuple[float, float]:
    """How exposed a count is, for comparison with others."""
    return one.success, -one.ratio


@dataclass(frozen=True, eq=False)
class _Tally:
    """The numbers of one population: expected unchanged, and found in each simulated noise."""

    baseline: float
    linear: Floats
    within: Floats


def _expectation(found: Sequence[Floats], trials: int) -> Expectation:
    every = np.sum(found, axis=0) if found and trials else np.zeros(1)
    spread = float(np.std(every, ddof=1)) if len(every) > 1 else 0.0
    return Expectation(
        expected=float(np.mean(every)), standard_error=spread / max(1, trials) ** 0.5, spread=spread
    )


def _pieces(
    universe: Universe, noise: Noise, truth: Truth | None, progress: Progress, most: int
) -> PublishedPieces | None:
    """The cells of a population: those listed or with records where empty cells stay empty, otherwise all."""
    if noise.keeps_zeros:
        found = read_pieces(universe, noise, truth, progress)
        return found if found.cells <= most else None
    if sum(table.cube.size for table in universe.tables) > most:
        return None
    found = PublishedPieces(universe)
    for table in universe.tables:
        found.add(table.cube, partial(_every_cell, table))
    return found


def _every_cell(table: PublishedTable) -> NoisyCells:
    cells = np.arange(table.cube.size, dtype=np.int64)
    values = values_at(table.load(), cells)
    return NoisyCells(cells, values, values)


def _in_order(groups: NDArray[np.int32]) -> tuple[Integers, int]:
    """Cell -> the number of its group by its first cell, whatever the keys, and how many groups there are."""
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[numbers], len(first)


class System:
    """The cells and sums of one population, as an attacker sees them."""

    def __init__(
        self, pieces: PublishedPieces, noise: Noise, bounds: Assumption | None, informed: bool
    ) -> None:
        self._pieces, self._noise, self._bounds, self._informed = pieces, noise, bounds, informed
        self._cells = NoiseOfCells(pieces, noise, informed)
        self.unknown, self._size = _in_order(self._cells.groups)
        self.values, self.counts = (np.zeros(self._size, np.int64) for _ in range(2))
        self.variances = np.zeros(self._size, np.float32)
        self._law = np.zeros(self._size, np.int32)
        self._laws: list[Pmf] = []
        self._fill()
        self.equations = equations_of(self._size, self._families())

    def _fill(self) -> None:
        """What is published of each unknown, its variance and the law that its noise is drawn from."""
        noise, numbers = self._noise, dict[object, int]()
        table = noise.law if self._informed and not noise.laws else None
        if isinstance(table, PTableLaw):
            self._laws = [table.row(count).shifted(-count) for count in range(table.settled + 1)]
        hides = noise.publishing.hides_negatives and not noise.keeps_zeros
        for piece in self._pieces.pieces.values():
            at = self._at(piece)
            rows = self._cells.rows(piece.levels)
            self.values[at], self.counts[at] = piece.values, piece.counts
            own = rows[np.clip(piece.counts, 0, len(rows) - 1)]  # a published count may be negative
            self.variances[at] = np.where(piece.values == 0, HIDDEN_NEGATIVE * own, own) if hides else own
            if isinstance(table, PTableLaw):
                self._law[at] = np.minimum(piece.counts, len(self._laws) - 1)
            elif noise.law is not None and noise.publishing.rounding == 1:
                law = noise.law_of(self._pieces.universe.signature(piece.levels))
                if law not in numbers:
                    numbers[law] = len(self._laws)
                    self._laws.append(law.row(LARGE).shifted(-LARGE))
                self._law[at] = numbers[law]

    def _at(self, piece: Piece) -> Integers:
        found: Integers = self.unknown[piece.first : piece.first + len(piece.values)]
        return found

    def _families(self) -> Iterator[Families]:
        for piece, above, row in self._pieces.families():
            part = np.flatnonzero(row >= 0)
            part = part[np.argsort(row[part], kind="stable")]
            which = row[part]
            hidden, doubt = np.zeros((2, len(part)))
            if not self._informed and self._noise.keeps_zeros:
                hidden, doubt = self._hidden(piece, above, part, which)
            yield Families(which, self._at(above)[which], self._at(piece)[part], hidden, doubt)

    def _hidden(self, piece: Piece, above: Piece, part: Integers, which: Integers) -> tuple[Floats, Floats]:
        """Mean and variance of what is not listed below each total, by the gaps of all totals of two pieces."""
        rows, depths = len(above.values), dict(above.levels)
        listed, possible = np.bincount(which, minlength=rows), np.ones(rows, dtype=np.int64)
        for axis, (variable, depth) in enumerate(piece.levels):
            tree, upper = self._pieces.trees[variable], depths.get(variable, 0)
            if upper < depth:
                parents = tree.above(upper)
                below = np.bincount(parents[tree.depths == depth], minlength=len(tree.codes))
                many = np.ones(rows, dtype=np.int64)
                many[which] = below[parents[piece.codes[part, axis]]]
                possible *= many
        missing = np.maximum(possible - listed, 0)
        gaps = above.values - np.bincount(which, piece.values[part], minlength=rows)
        noise = self.variances[self._at(above)] + np.bincount(
            which, self.variances[self._at(piece)[part]], minlength=rows
        )
        used = (listed > 0) & (missing > 0)
        cells = max(1, int(missing[used].sum()))
        mean = max(0.0, float(gaps[used].sum()) / cells)
        spread = float(((gaps - missing * mean)[used] ** 2 - noise[used]).sum()) / cells
        variance = max(mean, spread, LEAST_HIDDEN)
        return (missing * mean)[which], (LEAST_DOUBT + missing * variance)[which]

    def _within(self, values: Integers, equations: Sums) -> Floats:
        """The estimates within the whole numbers that these published values leave."""
        return bounded(equations, self.variances, values, *self._intervals(values))

    def _intervals(self, values: Integers) -> tuple[Integers, Integers]:
        """Whole numbers that each true count lies between; the informed attacker tightens them by all sums."""
        low, high = np.zeros(self._size, np.int64), np.full(self._size, UNBOUNDED, np.int64)
        if self._bounds is not None:
            for piece in self._pieces.pieces.values():
                named = str(self._pieces.universe.signature(piece.levels))
                at = self._at(piece)
                low[at], high[at] = self._bounds.others.get(named, self._bounds.origins).of(values[at])
        low = np.maximum(low, 1 if self._noise.keeps_zeros else 0)  # what is listed has records
        if self._informed:
            tighten(self.equations, low, high)
        return low, np.maximum(low, high)

    def fitted(self, within: bool) -> Fitted:
        """The estimates of the release; those within bounds where they are required."""
        linear = project(self.equations, self.variances, self.values[:, None].astype(np.float64))[:, 0]
        return Fitted(
            self._pieces.universe,
            self._pieces,
            self.unknown,
            self.values,
            self.counts if self._informed else None,
            self.variances,
            self.equations,
            linear,
            self._within(self.values, self.equations) if within else linear,
        )

    def probed(
        self, fit: Fitted, rule: LeastSquaresRule, generator: np.random.Generator, progress: Progress
    ) -> tuple[_Tally, Floats]:
        """How many counts each simulated noise leaves to be found, and the errors of the estimates."""
        weights = fit.weights
        noise = np.stack([self._drawn(generator) for _ in range(rule.probes)], axis=1)
        unchanged = (np.abs(noise) < 0.5).mean(axis=1)
        surprise = np.stack([self._surprise(generator) for _ in range(rule.probes)], axis=1)
        found = errors(self.equations, self.variances, noise, surprise)
        linear = weights @ (np.abs(found) < 0.5)
        progress.step()
        true = self.counts if self._informed else np.maximum(np.rint(fit.within).astype(np.int64), 0)
        within = []
        for _ in range(rule.trials):
            within.append(float(weights @ self._refound(true, generator)))
            progress.step()
        return _Tally(float(weights @ unchanged), linear.astype(float), np.array(within)), found

    def _refound(self, true: Integers, generator: np.random.Generator) -> NDArray[np.bool_]:
        """Which counts are found within bounds when other noise is drawn."""
        shown = true + np.rint(self._drawn(generator)).astype(np.int64)
        hidden = self.equations.gaps(true[:, None])[:, 0] + self.equations.hidden - self._surprise(generator)
        equations = replace(self.equations, hidden=hidden.astype(np.float32))
        found: NDArray[np.bool_] = np.rint(self._within(shown, equations)) == true
        return found

    def _surprise(self, generator: np.random.Generator) -> Singles:
        """What is hidden below each total, less its mean."""
        if self._informed or not self._noise.keeps_zeros:
            return np.zeros(len(self.equations), np.float32)
        drawn = generator.standard_normal(len(self.equations)) * np.sqrt(self.equations.doubt)
        return drawn.astype(np.float32)

    def _drawn(self, generator: np.random.Generator) -> Singles:
        """Noise of every unknown by its law; normal where only its variance is known."""
        if not self._laws:
            return (generator.standard_normal(self._size) * np.sqrt(self.variances)).astype(np.float32)
        shares, found = generator.random(self._size), np.zeros(self._size, np.float32)
        order = np.argsort(self._law, kind="stable")
        ends = np.searchsorted(self._law[order], np.arange(len(self._laws) + 1))
        for number, law in enumerate(self._laws):
            at = order[ends[number] : ends[number + 1]]
            sums = np.cumsum(law.p)
            found[at] = law.first + np.searchsorted(sums, shares[at] * sums[-1], side="right")
        return found

    def exposed(self, found: Floats, rule: LeastSquaresRule) -> list[ExposedCell]:
        """The counts with the smallest variance: chosen by the simulated errors, then computed exactly."""
        ratios = (found**2).mean(axis=1) / self.variances
        best = np.zeros(self._size)
        first = np.zeros(self._size, np.int64)
        for piece in self._pieces.pieces.values():
            at = self._at(piece)
            if len(at):
                mean = float(ratios[at].mean())
                best[at] = (found.shape[1] * ratios[at] + PRIOR * mean) / (found.shape[1] + PRIOR)
                first[at] = np.arange(piece.first, piece.first + len(at))
        best *= self.variances
        if self._informed:  # one record is one group, whatever its tables
            best[self.counts < LEAST_AVERAGED] = np.inf
        affordable = EFFORT // max(1, STEPS * len(self.equations.parts))
        chosen = np.argsort(best, kind="stable")[: max(rule.exact, affordable)]
        chosen = chosen[np.isfinite(best[chosen])]
        exact = exact_variances(self.equations, self.variances, chosen)
        return [
            self._cell(int(first[one]), int(one), float(variance))
            for one, variance in zip(chosen.tolist(), exact.tolist(), strict=True)
        ]

    def _cell(self, cell: int, unknown: int, variance: float) -> ExposedCell:
        piece = next(
            one for one in self._pieces.pieces.values() if one.first <= cell < one.first + len(one.values)
        )
        codes = {
            variable: self._pieces.trees[variable].codes[int(code)]
            for (variable, _), code in zip(piece.levels, piece.codes[cell - piece.first], strict=True)
        }
        uses = int(self.equations.uses[unknown])
        return ExposedCell(
            self._pieces.universe.counted,
            codes,
            uses + 1,
            self._size,
            variance / self._cells.variance(piece.levels),
            float(successes(np.array([variance]))[0]),
        )


@dataclass(frozen=True, kw_only=True)
class LeastSquaresJudgement:
    """How often the attack is right: only numbers, never which counts."""

    targets: int
    baseline: int  # counts that are published unchanged
    linear: int
    within_bounds: int


def judge(found: LeastSquares, truth: Truth) -> LeastSquaresJudgement:
    """Compare the estimates with the true counts."""
    sums = np.zeros(3, dtype=np.int64)
    for fit in found.fits:
        true = true_counts_of(fit, truth)
        for column, estimates in enumerate((fit.values, fit.linear, fit.within)):
            sums[column] += int(np.count_nonzero(np.rint(estimates)[fit.unknown] == true))
    return LeastSquaresJudgement(
        targets=found.targets, baseline=int(sums[0]), linear=int(sums[1]), within_bounds=int(sums[2])
    )


def true_counts_of(fit: Fitted, truth: Truth) -> Integers:
    """The true count of each cell of a fit."""
    if fit.counts is not None:
        known: Integers = fit.counts[fit.unknown]
        return known
    counted = PublishedPieces(fit.universe)
    for table in fit.universe.tables:
        counted.add(table.cube, partial(_true_cells, truth, table))
    found = np.zeros(len(fit.unknown), np.int64)
    for key, piece in fit.pieces.pieces.items():
        other = counted.pieces[key]
        row = counted.find(piece.codes, piece, other)
        here = found[piece.first : piece.first + len(piece.values)]
        if len(other.values):
            here[:] = np.where(row >= 0, other.values[np.maximum(row, 0)], 0)
    return found


def _true_cells(truth: Truth, table: PublishedTable) -> NoisyCells:
    cells, counts = cells_of(truth.counted, table.id)
    return NoisyCells(cells, counts, counts)
