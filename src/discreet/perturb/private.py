"""Noise of a known law in every cell: the mechanism with a differential privacy guarantee; structural zeros."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Problem, mistake
from discreet.maths.cells.counting import absent, counts_of, keys_of, ordered
from discreet.maths.cells.keys import derive
from discreet.maths.noise.draws import (
    LARGEST_N,
    BitSource,
    SparseLaw,
    cell_bits,
    from_words,
    sparse_law,
    visibility,
)
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.noise.thresholds import ThresholdTable, row_table
from discreet.maths.privacy.accounting import rounded_up
from discreet.perturb.budget import NoisePlan, law_of
from discreet.perturb.noise import Guarantee, Noise, NoiseBudget
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import CrossTab, Cube, Signature, crosstabs
from discreet.programme.filter import Comparison, Filter, Term
from discreet.programme.noise import Claim, Draw, KeptZeros, PrivateNoise
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
    notes: tuple[str, ...] = ()
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
        """The noise parameter of every cross-tabulation."""
        return json.dumps({str(s): str(p) for s, p in self.plan.parameters.items()}, sort_keys=True).encode()

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Add noise to every cell that can have records, and post-process."""
        cube = table.cube
        self._refuse_dense(cube)
        cells, sums = _occupied(table)
        where = _depths(cube, cells)
        found = []
        for crosstab in crosstabs(cube, self.codelists):
            inside = where == _code(cube, crosstab.depths)
            found.append(self._crosstab(cube, crosstab, cells[inside], sums[inside]))
        places = np.concatenate([cells for cells, _ in found]).view(np.uint64)
        values = np.concatenate([values for _, values in found]).view(np.uint64)
        found.clear()  # saves a copy while the cells are sorted
        places, values = ordered(places, values, cube.size)
        return ProtectedTable(cube, places.view(np.int64), values.view(np.int64))

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        """Noise for every cell that can have records, visible or not; nothing is post-processed."""
        cube = table.cube
        if self.rule.keep_zeros is not KeptZeros.ALL and cube.size > self.most_cells:
            value = f"{cube.size:.3g} cells that each need a noisy count to make totals add up"
            raise mistake(
                "", f"cube {cube.id}", value, f"use coarser breakdowns; limits.published = {self.most_cells}"
            )
        cells, sums = _occupied(table)
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
        numbers, table = crosstab.numbers(cube, cells), self.plan.table(crosstab.signature)
        return cells, self._noisy(crosstab.signature, table, numbers, sums)

    def _crosstab(
        self, cube: Cube, crosstab: CrossTab, cells: Integers, sums: NDArray[np.uint64]
    ) -> tuple[Integers, Integers]:
        numbers, table = crosstab.numbers(cube, cells), self.plan.table(crosstab.signature)
        noisy = self._noisy(crosstab.signature, table, numbers, sums)
        if self.rule.keep_zeros is KeptZeros.STRUCTURAL:
            drawn, values = self._empty(crosstab, table)
            empty = absent(drawn, np.sort(numbers))
            added, present = crosstab.cells(cube, drawn[empty])
            possible = ~impossible(cube, added, self.structural_zeros)
            cells = np.concatenate([cells, added[possible]])
            noisy = np.concatenate([noisy, values[empty][present][possible]])
        published = self.rule.published.publish(noisy)
        return cells[published != 0], published[published != 0]

    def _noisy(
        self, signature: Signature, table: ThresholdTable, numbers: Integers, sums: NDArray[np.uint64]
    ) -> Integers:
        """True counts plus the noise drawn by their random words."""
        deciding = (keys_of(sums) if self.rule.draw is Draw.PARTICIPANTS else numbers).astype(np.uint64)
        law = law_of(self.rule, self.plan.parameters[signature])
        noisy = counts_of(sums)
        for start in range(0, len(noisy), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            words = self._words(signature, deciding[part])
            if isinstance(law, HellingerLaw):
                noisy[part] = _by_rows(law, noisy[part], words)
            else:
                noisy[part] += from_words(table, words)
        return noisy

    def _empty(self, crosstab: CrossTab, table: ThresholdTable) -> tuple[Integers, Integers]:
        """The numbers and noisy counts of cells that would be visible if they were empty."""
        least = least_visible(self.rule.published)
        if crosstab.size <= ALL_AT_ONCE:
            every = np.arange(crosstab.size, dtype=np.uint64)
            values = from_words(table, self._words(crosstab.signature, every)).astype(np.int64)
            seen = np.flatnonzero(values != 0 if least is None else values >= least)
            return seen, values[seen]
        bits = BitSource(derive(self.key, f"empty-cells/{self._purpose(crosstab.signature)}"))
        return _sparse_law(table, least).draw(crosstab.size, bits)

    def _words(self, signature: Signature, deciding: NDArray[np.uint64]) -> NDArray[np.uint64]:
        codes = np.zeros((len(deciding), 2), dtype=np.uint64)
        codes[:, 1] = deciding
        return cell_bits(self.key, self._purpose(signature), codes)

    def _purpose(self, signature: Signature) -> str:
        """The label of the random words: a group has the same ones in every table, and others under another law.

        Two laws that drew from the same random words would reveal them by their difference, and with them the count.
        """
        law = f"{self.rule.kind.value} {self.plan.parameters[signature]} {self.rule.bound}"
        law = f"every cell/{law}" if self.every_cell else law
        return f"{law}/participants" if self.rule.draw is Draw.PARTICIPANTS else f"{law}/{signature}"

    def _refuse_dense(self, cube: Cube) -> None:
        """Refuse a cube in which noise would fill more empty cells than may be published."""
        if self.rule.keep_zeros is KeptZeros.ALL:
            return
        least = least_visible(self.rule.published)
        expected = sum(
            crosstab.size * self._shares[self.plan.parameters[crosstab.signature], least]
            for crosstab in crosstabs(cube, self.codelists)
        )
        if expected > self.most_cells:
            value = f"noise would make about {expected:.3g} of {cube.size:.3g} cells visible"
            remedy = f"raise the budget, or set a threshold; limits.published allows {self.most_cells}"
            raise mistake("", f"cube {cube.id}", value, remedy)

    @cached_property
    def _shares(self) -> dict[tuple[object, int | None], float]:
        """How likely an empty cell becomes visible, by noise parameter."""
        least = least_visible(self.rule.published)
        return {(p, least): float(visibility(table, least).share) for p, table in self.plan.tables.items()}

    def problems(self, records: int) -> Iterator[Problem]:
        """A delta of one in the population or more would allow publishing a person's record outright."""
        rule = self.rule
        if rule.claim is Claim.DP and not rule.large_delta and self.plan.delta() * records >= 1:
            value = f"delta = {float(self.plan.delta()):.3g} is not below one in the number of records"
            yield Problem("", "noise.delta", value, "lower it, or accept it with large_delta = true")

    def noise(self) -> Noise:
        """Everything except the key is public."""
        rule, parameters = self.rule, self.plan.parameters
        variances = {p: table.pmf().variance for p, table in self.plan.tables.items()}
        widest = max(variances, key=lambda p: variances[p])
        laws = {p: law_of(rule, p) for p in self.plan.tables}
        return Noise(
            kind=rule.kind,
            drawing=rule.draw,
            zeros=rule.keep_zeros,
            variance=variances[widest],
            bound=rule.bound,
            law=laws[widest],
            laws={str(signature): laws[p] for signature, p in parameters.items() if p != widest},
            publishing=rule.published,
            budget=NoiseBudget(
                total=rule.budget.total,
                split=rule.budget.split,
                cross_tabulations=len(parameters),
                neighbours=rule.neighbours,
                unit=rule.protects,
            ),
            guarantee=None if rule.claim is Claim.NONE else self._guarantee(),
        )

    def _guarantee(self) -> Guarantee:
        rule = self.rule
        return Guarantee(
            neighbours=rule.neighbours,
            unit=rule.protects,
            largest_household=rule.largest_household,
            epsilon=None if rule.is_gaussian else rule.budget.total,
            rho=rule.budget.total if rule.is_gaussian else None,
            delta=rule.delta if rule.is_gaussian else rounded_up(self.plan.delta(), DELTA_DIGITS),
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


def _by_rows(law: HellingerLaw, counts: Integers, words: NDArray[np.uint64]) -> Integers:
    """Noisy counts under a law that depends on the count: one table for each different count."""
    if len(counts) and counts.max() > MOST_ROWS:
        remedy = "use it for small tables, or use geometric noise"
        raise mistake("", "noise.kind", f"hellinger noise for counts above {MOST_ROWS}", remedy)
    out = np.empty(len(counts), dtype=np.int64)
    for count in np.unique(counts).tolist():
        here = counts == count
        out[here] = from_words(_row(law, count), words[here])
    return out


@lru_cache(maxsize=MOST_ROWS)
def _row(law: HellingerLaw, count: int) -> ThresholdTable:
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


def _occupied(table: ConfidentialTable) -> tuple[Integers, NDArray[np.uint64]]:
    here = np.flatnonzero(counts_of(table.cells))
    cells = here if table.positions is None else table.positions[here]
    return cells.astype(np.int64), table.cells[here]


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
