"""Noise of a known law in every cell: the mechanism with a differential privacy guarantee; structural zeros."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.maths.cells.counting import absent, counts_of, keys_of, ordered
from discreet.maths.cells.keys import derive
from discreet.maths.cells.margins import with_margins
from discreet.maths.noise.additive import AdditiveLaw, LawKind
from discreet.maths.noise.draws import (
    LARGEST_N,
    BitSource,
    SparseLaw,
    cell_bits,
    from_words,
    sparse_law,
    visibility,
)
from discreet.maths.noise.law import UNSETTLED
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.noise.thresholds import RowLaw, ThresholdTable, row_table
from discreet.maths.privacy.accounting import EpsilonDelta, rounded_up
from discreet.maths.privacy.amplification import amplified
from discreet.perturb.budget import UNITS_OF_WEIGHT, NoisePlan, law_of
from discreet.perturb.mechanism import Certified
from discreet.perturb.noise import Amplified, Guarantee, Noise, NoiseBudget, SumOf, WeightNoise
from discreet.perturb.reach import fixed_variables, has_fixed_families
from discreet.population.encode import WEIGHT_UNIT
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import CrossTab, Cube, Signature, crosstabs, signatures
from discreet.programme.filter import Comparison, Filter, Term
from discreet.programme.noise import Claim, Draw, KeptZeros, PrivateNoise
from discreet.programme.population import Sample
from discreet.programme.statistic import Statistics
from discreet.tabulate.tables import ConfidentialTable, NoisyTable, ProtectedTable


def impossible(cube: Cube, cells: NDArray[np.int64], rules: Sequence[Filter]) -> NDArray[np.bool_]:
    """Mark the cells all of whose possible records pass some rule.

    A rule with an alternative (or) counts only where one of its parts covers the cell; a cell that is missed like this
    gets noise, which costs nothing.
    """
    found = np.zeros(len(cells), dtype=bool)
    for rule in rules:
        found |= _covered(rule.term, cube, cells)
    return found


def _covered(term: Term, cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    if isinstance(term, Comparison):
        return _within(term, cube, cells)
    join = np.logical_and if term.word == "and" else np.logical_or
    parts = (_covered(part, cube, cells) for part in term.terms)
    return reduce(join, parts, np.full(len(cells), term.word == "and"))


def _within(term: Comparison, cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    for k, axis in enumerate(cube.axes):
        if axis.variable == term.variable:
            return passing_nodes(axis, term.lookup)[cube.nodes(cells, k)]
    return np.full(len(cells), all(term.passing))


def passing_nodes(axis: Breakdown, passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the nodes of an axis all of whose leaves pass."""
    nodes = np.ones(len(axis), dtype=bool)
    np.logical_and.at(nodes, axis.node_of_leaf, passing)
    for node in range(len(axis) - 1, 0, -1):
        nodes[axis.parents[node]] &= nodes[node]
    return nodes


ALL_AT_ONCE = 1 << 16  # cross-tabulations of at most this many cells are drawn cell by cell
AT_ONCE = 1 << 20  # cells whose random words are in memory together
DELTA_DIGITS = 12  # of a certified delta, rounded up
MOST_ROWS = 10_000  # counts up to this under a law that depends on the count

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrivateMechanism:
    """Noise by a plan; the key decides it, and must never meet two different populations with a guarantee."""

    plan: NoisePlan
    codelists: Mapping[str, Codelist]
    structural_zeros: tuple[Filter, ...]
    most_cells: int
    key: bytes
    statistics: Statistics
    notes: tuple[str, ...] = ()
    sums: Mapping[Signature, tuple[Signature, int]] = field(default_factory=dict)  # -> finest, cells at most
    totals: Mapping[Signature, int] = field(default_factory=dict)  # public ones, published as declared
    sample: Sample | None = None  # where the records are a secret sample
    every_cell: bool = (
        False  # noise is drawn for every cell, visible or not: other words than where it is not
    )

    @property
    def rule(self) -> PrivateNoise:
        """What was declared."""
        return self.plan.rule

    @property
    def key_modulus(self) -> int:
        """Cell keys matter where the participants decide."""
        return 2**32 if self.rule.draw is Draw.PARTICIPANTS else 1

    @property
    def identity(self) -> bytes:
        """The noise of every cross-tabulation."""
        laws = {str(s): _law_identity(self.rule, p) for s, p in self.plan.parameters.items()}
        return json.dumps(laws, sort_keys=True).encode()

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Add noise to every cell that can have records, and post-process."""
        cube = table.cube
        self._require_publishable(cube)
        cells, sums, true = _occupied(table)
        where = _depths(cube, cells)
        found = []
        for crosstab in self._drawn(cube):
            inside = where == _code(cube, crosstab.depths)
            found.append(self._crosstab(cube, crosstab, cells[inside], sums[inside], true[inside]))
        found += [*self._added_up(cube, found), *self._fixed(cube)]
        places = np.concatenate([cells for cells, _ in found]).view(np.uint64)
        values = np.concatenate([values for _, values in found]).view(np.uint64)
        found.clear()  # saves a copy while the cells are sorted
        places, values = ordered(places, values, cube.size)
        weighted = values.view(np.int64) / float(UNITS_OF_WEIGHT) if cube.weight else None
        return ProtectedTable(cube, places.view(np.int64), values.view(np.int64), weighted)

    def _drawn(self, cube: Cube) -> Iterator[CrossTab]:
        """The cross-tabulations of a cube that have noise of their own."""
        return (one for one in crosstabs(cube, self.codelists) if one.signature not in self.totals)

    def _added_up(
        self, cube: Cube, drawn: Sequence[tuple[Integers, Integers]]
    ) -> Iterator[tuple[Integers, Integers]]:
        """The cross-tabulations that are published as sums of the cube's finest published cells."""
        if cube.shown is None or not cube.shown.summed:
            return
        cells, values = (np.concatenate(some) for some in zip(*drawn, strict=True))
        finest = cube.is_finest(cells)
        at, sums = ordered(cells[finest].view(np.uint64), values[finest].view(np.uint64), cube.size)
        cells, added = with_margins(at, sums, cube.shape, [axis.parents for axis in cube.axes])
        wanted = np.isin(_depths(cube, cells), [_code(cube, depths) for depths in cube.shown.summed])
        yield cells[wanted], added[wanted].view(np.int64)

    def _fixed(self, cube: Cube) -> Iterator[tuple[Integers, Integers]]:
        """The public total of a cube, as declared."""
        total = self.totals.get(cube.signature((0,) * len(cube.axes)))
        if total is not None:
            yield np.zeros(1, dtype=np.int64), np.full(1, total, dtype=np.int64)

    def _publishing(self, weight: str | None) -> Publishing:
        """What is done to noisy counts, or to noisy sums of weights, which are in units of a weight."""
        rule = self.rule.published
        if not weight:
            return rule
        return Publishing(rule.negatives, rule.rounding * UNITS_OF_WEIGHT, rule.threshold * UNITS_OF_WEIGHT)

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        """Noise for every cell that can have records, visible or not; nothing is post-processed."""
        cube = table.cube
        self._require_publishable(cube)
        cells, sums, _ = _occupied(table)
        where = _depths(cube, cells)
        variances = np.empty([int(axis.depths.max()) + 1 for axis in cube.axes])
        found = []
        for crosstab in crosstabs(cube, self.codelists):
            variances[crosstab.depths] = self.plan.table(crosstab.signature).pmf().variance
            inside = where == _code(cube, crosstab.depths)
            found.append(self._every(cube, crosstab, cells[inside], sums[inside]))
        places = np.concatenate([cells for cells, _ in found])
        values = np.concatenate([values for _, values in found])
        order = np.argsort(places, kind="stable")
        return NoisyTable(cube, places[order], values[order], variances)

    def _every(
        self, cube: Cube, crosstab: CrossTab, cells: Integers, sums: NDArray[np.uint64]
    ) -> tuple[Integers, Integers]:
        """The noisy counts of all possible cells of a cross-tabulation, empty ones drawn as occupied ones are."""
        if self.rule.keep_zeros is KeptZeros.STRUCTURAL:
            every = _all_cells(cube, crosstab)
            every = every[~impossible(cube, every, self.structural_zeros)]
            full = np.zeros(len(every), dtype=np.uint64)
            held = np.isin(cells, every, assume_unique=True)
            full[np.searchsorted(every, cells[held])] = sums[held]
            cells, sums = every, full
        numbers, purpose = crosstab.numbers(cube, cells), self._purpose(cube, crosstab.signature)
        return cells, self._noisy(crosstab.signature, purpose, numbers, sums, counts_of(sums))

    def _crosstab(
        self, cube: Cube, crosstab: CrossTab, cells: Integers, sums: NDArray[np.uint64], true: Integers
    ) -> tuple[Integers, Integers]:
        numbers, table = crosstab.numbers(cube, cells), self.plan.table(crosstab.signature)
        purpose = self._purpose(cube, crosstab.signature)
        noisy = self._noisy(crosstab.signature, purpose, numbers, sums, true)
        if self.rule.keep_zeros is KeptZeros.STRUCTURAL:
            drawn, values = self._empty(crosstab, purpose, table)
            empty = absent(drawn, np.sort(numbers))
            added, present = crosstab.cells(cube, drawn[empty])
            possible = ~impossible(cube, added, self.structural_zeros)
            cells = np.concatenate([cells, added[possible]])
            noisy = np.concatenate([noisy, values[empty][present][possible]])
        published = self._publishing(cube.weight).publish(noisy)
        return cells[published != 0], published[published != 0]

    def _noisy(
        self,
        signature: Signature,
        purpose: str,
        numbers: Integers,
        sums: NDArray[np.uint64],
        true: Integers,
    ) -> Integers:
        """True counts plus the noise drawn by their random words."""
        table = self.plan.table(signature)
        deciding = (keys_of(sums) if self.rule.draw is Draw.PARTICIPANTS else numbers).astype(np.uint64)
        law = law_of(self.rule, self.plan.parameters[signature])
        noisy = true.copy()
        for start in range(0, len(noisy), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            words = self._words(purpose, deciding[part])
            if isinstance(law, AdditiveLaw):
                noisy[part] += from_words(table, words)
            else:
                noisy[part] = _by_rows(law, noisy[part], words)
        return noisy

    def _empty(self, crosstab: CrossTab, purpose: str, table: ThresholdTable) -> tuple[Integers, Integers]:
        """The numbers and noisy counts of cells that would be visible if they were empty."""
        least = least_visible(self._publishing(crosstab.signature.weight))
        if crosstab.size <= ALL_AT_ONCE:
            every = np.arange(crosstab.size, dtype=np.uint64)
            values = from_words(table, self._words(purpose, every)).astype(np.int64)
            seen = np.flatnonzero(values != 0 if least is None else values >= least)
            return seen, values[seen]
        bits = BitSource(derive(self.key, f"empty-cells/{purpose}"))
        return _sparse_law(table, least).draw(crosstab.size, bits)

    def _words(self, purpose: str, deciding: NDArray[np.uint64]) -> NDArray[np.uint64]:
        codes = np.zeros((len(deciding), 2), dtype=np.uint64)
        codes[:, 1] = deciding
        return cell_bits(self.key, purpose, codes)

    def identities(self, cubes: Iterable[Cube]) -> set[str]:
        """What all noise of some cubes belongs to; equal sets under one key are equal noise."""
        return {self._purpose(cube, signature) for cube in cubes for signature in signatures([cube])}

    def _purpose(self, cube: Cube, signature: Signature) -> str:
        """The label of the random words: of a group of people, or of what a cross-tabulation counts."""
        parameter = self.plan.parameters[signature]
        if self.rule.draw is Draw.PARTICIPANTS:
            return f"{_law_identity(self.rule, parameter)}/participants"
        identity = noise_identity(self.rule, parameter, self.statistics.identity(cube, signature))
        return f"every cell/{identity}" if self.every_cell else identity

    def _require_publishable(self, cube: Cube) -> None:
        problems = list(self.cube_problems(cube))
        if problems:
            raise Mistakes(problems)

    def certified(self) -> Certified:
        """The plan's delta and distance."""
        return Certified(self.rule, self.plan.delta(), self.plan.distance())

    def cube_problems(self, cube: Cube) -> Iterator[Problem]:
        """The problem of a cube in which noise would fill more empty cells than may be published."""
        if self.rule.keep_zeros is KeptZeros.ALL:
            return
        if self.every_cell:
            if cube.size > self.most_cells:
                value = f"{cube.size:.3g} cells that each need a noisy count to make totals add up"
                remedy = f"use coarser breakdowns; limits.published = {self.most_cells}"
                yield Problem("", f"cube {cube.id}", value, remedy)
            return
        least = least_visible(self._publishing(cube.weight))
        expected = sum(
            crosstab.size * _visible(self.plan.table(crosstab.signature), least)
            for crosstab in self._drawn(cube)
            if crosstab.signature in self.plan.parameters  # all are, unless the programme has other mistakes
        )
        if expected > self.most_cells:
            value = f"noise would make about {expected:.3g} of {cube.size:.3g} cells visible"
            remedy = f"raise the budget, or set a threshold; limits.published allows {self.most_cells}"
            yield Problem("", f"cube {cube.id}", value, remedy)

    def problems(self, records: int) -> Iterator[Problem]:
        """A delta of one in the population or more would allow publishing a person's record outright.

        Hellinger-type noise has a law of its own for every count, so that a total of many records is refused.
        """
        rule = self.rule
        measured = any(not (one.levels or one.base or one.count) for one in self.plan.parameters)
        if rule.kind is LawKind.HELLINGER and measured and records > MOST_ROWS:
            yield _too_many_rows()
        if rule.claim is Claim.DP and not rule.large_delta and self.plan.delta() * records >= 1:
            value = f"delta = {float(self.plan.delta()):.3g} is not below one in the number of records"
            yield Problem("", "noise.delta", value, "lower it, or accept it with large_delta = true")

    def noise(self) -> Noise:
        """Everything except the key is public."""
        rule, parameters = self.rule, self.plan.parameters
        variances = {p: table.pmf().variance for p, table in self.plan.tables.items()}
        counts = {p for signature, p in parameters.items() if not signature.weight}
        widest = max(counts or variances, key=lambda p: variances[p])
        laws = {p: law_of(rule, p) for p in self.plan.tables}
        return Noise(
            kind=rule.kind,
            drawing=rule.draw,
            zeros=rule.keep_zeros,
            variance=variances[widest] / (1 if counts else UNITS_OF_WEIGHT**2),
            bound=rule.bound,
            utility=rule.utility,
            law=laws[widest],
            laws={str(signature): laws[p] for signature, p in parameters.items() if p != widest},
            publishing=rule.published,
            sums={str(one): SumOf(str(finest), cells) for one, (finest, cells) in self.sums.items()},
            totals={one.unit: total for one, total in self.totals.items()},
            weights=self._weights(),
            budget=NoiseBudget(
                total=rule.budget.total,
                spent=None if rule.budget.spent == rule.budget.total else rule.budget.spent,
                shares=rule.budget.shares,
                split=rule.budget.split,
                cross_tabulations=len(parameters),
                neighbours=rule.neighbours,
                unit=rule.protects,
            ),
            guarantee=None if rule.claim is Claim.NONE else self._guarantee(),
        )

    def _weights(self) -> WeightNoise | None:
        largest = self.rule.largest_weight
        return None if largest is None else WeightNoise(largest, Fraction(1, UNITS_OF_WEIGHT))

    def _amplified(self) -> Amplified | None:
        if self.sample is None:
            return None
        loss = EpsilonDelta(self.rule.budget.spent, rounded_up(self.plan.delta(), DELTA_DIGITS))
        found = amplified(loss, self.sample.rate)
        return Amplified(
            method=self.sample.method,
            rate=self.sample.rate,
            unit=self.sample.unit,
            epsilon=found.epsilon,
            delta=rounded_up(found.delta, DELTA_DIGITS),
        )

    def _guarantee(self) -> Guarantee:
        rule = self.rule
        return Guarantee(
            sample=self._amplified(),
            neighbours=rule.neighbours,
            unit=rule.protects,
            largest_household=rule.largest_household,
            composition=rule.composition,
            fixed=fixed_variables(self.plan.parameters, rule),
            fixed_families=has_fixed_families(self.plan.parameters, rule),
            epsilon=None if rule.is_gaussian else rule.budget.spent,
            rho=rule.budget.spent if rule.is_gaussian else None,
            delta=rule.delta if rule.is_gaussian else rounded_up(self.plan.delta(), DELTA_DIGITS),
            distance=rounded_up(self.plan.distance(), DELTA_DIGITS) if rule.is_gaussian else Fraction(0),
        )


def _law_identity(rule: PrivateNoise, parameter: Fraction) -> str:
    utility = "" if rule.utility is None else f" {rule.utility.digest}"
    return f"{rule.kind.value} {parameter} {rule.bound}{utility}"


def noise_identity(rule: PrivateNoise, parameter: Fraction, statistic: str) -> str:
    """What noise belongs to: the law, how counts are published, and the identity of what is counted.

    Two laws that drew from the same random words would reveal them by their difference, and with them the count. How
    counts are published decides which empty cells are drawn at all, so that another threshold is other noise.
    """
    shown = rule.published
    return "/".join(
        (
            _law_identity(rule, parameter),
            f"{rule.keep_zeros.value} {shown.negatives.value} {shown.rounding} {shown.threshold}",
            statistic,
        )
    )


def least_visible(published: Publishing) -> int | None:
    """The smallest noise that shows in an empty cell; None where every noise but 0 may.

    Counts are rounded before they are compared with the threshold: what shows is a multiple of the rounding that is not
    below it, and the smallest such multiple is what counts from half a step below it on are rounded to.
    """
    if published.negatives is Negatives.KEEP:
        return None
    least = -(-max(1, published.threshold) // published.rounding) * published.rounding
    return least - published.rounding // 2


def drawing_distances(
    found: NoisePlan, cubes: Iterable[Cube], codelists: Mapping[str, Codelist]
) -> dict[Signature, Fraction]:
    """By cross-tabulation: how far what is drawn can be from the law that its guarantee is computed from.

    The delta of a pure epsilon is computed from the integer tables: only gaps between visible empty cells add to it.
    Rho is that of the ideal discrete Gaussian law, to which every cell has the distance of its table.
    """
    rule, distances = found.rule, {}
    listed = (one for cube in cubes for one in crosstabs(cube, codelists))
    for crosstab in (
        one for one in listed if one.signature in found.parameters
    ):  # a public total is not drawn
        table = found.table(crosstab.signature)
        every = crosstab.size * table.total_variation() if rule.is_gaussian else Fraction(0)
        if rule.keep_zeros is KeptZeros.STRUCTURAL and crosstab.size > ALL_AT_ONCE:
            every += _sparse_law(table, least_visible(rule.published)).distance(crosstab.size)
        if every:
            distances[crosstab.signature] = every
    return distances


def _too_many_rows() -> Problem:
    remedy = "use it for small tables, or use geometric noise"
    return Problem("", "noise.kind", f"hellinger noise for counts above {MOST_ROWS}", remedy)


def _by_rows(law: RowLaw, counts: Integers, words: NDArray[np.uint64]) -> Integers:
    """Noisy counts under a law that depends on the count: one table for each different count, up to the last row."""
    if law.settled == UNSETTLED and len(counts) and counts.max() > MOST_ROWS:
        raise Mistakes([_too_many_rows()])
    out = np.empty(len(counts), dtype=np.int64)
    served = np.minimum(counts, law.settled)
    for count in np.unique(served).tolist():
        here = served == count
        out[here] = from_words(_row(law, count), words[here])
    return out + (counts - served)


@lru_cache(maxsize=MOST_ROWS)
def _row(law: RowLaw, count: int) -> ThresholdTable:
    return row_table(law, count)


@lru_cache(maxsize=256)
def _sparse_law(table: ThresholdTable, least: int | None) -> SparseLaw:
    return sparse_law(table, least, LARGEST_N)


def _all_cells(cube: Cube, crosstab: CrossTab) -> Integers:
    """The cells of a cube that belong to a cross-tabulation, ascending."""
    cells = np.zeros(1, dtype=np.int64)
    for level, stride in zip(crosstab.levels, cube.strides, strict=True):
        cells = (cells[:, None] + np.sort(level.nodes)[None, :] * stride).reshape(-1)
    return cells


@lru_cache(maxsize=256)
def _visible(table: ThresholdTable, least: int | None) -> float:
    """How likely an empty cell becomes visible."""
    return float(visibility(table, least).share)


def _occupied(table: ConfidentialTable) -> tuple[Integers, NDArray[np.uint64], Integers]:
    """The non-empty cells with their accumulators, and their true counts, or sums of weights in units of a weight.

    A sum is rounded to the nearest unit after all weights were added: a change of at most W units before changes it by
    at most W after, where W is a whole number, since rounding is monotone and commutes with adding whole units.
    """
    here = np.flatnonzero(counts_of(table.cells))
    cells = here if table.positions is None else table.positions[here]
    sums = table.cells[here]
    if table.weights is None:
        return cells.astype(np.int64), sums, counts_of(sums)
    step = WEIGHT_UNIT // UNITS_OF_WEIGHT
    return cells.astype(np.int64), sums, ((table.weights[here].astype(np.int64) + step // 2) // step)


def _code(cube: Cube, depths: tuple[int, ...]) -> int:
    code = 0
    for axis, depth in zip(cube.axes, depths, strict=True):
        code = code * (int(axis.depths.max()) + 1) + depth
    return code


def _depths(cube: Cube, cells: Integers) -> NDArray[np.int16]:
    """Which cross-tabulation each cell belongs to, as one number."""
    levels = [int(axis.depths.max()) + 1 for axis in cube.axes]
    depths = [axis.depths.astype(np.int64) for axis in cube.axes]
    return cube.numbered(cells, depths, levels, range(len(levels))).astype(np.int16)
