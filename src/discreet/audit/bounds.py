"""The attack by bounds: what tables prove of the noise bound, which true counts follow from it, and how many are right.

The propagation of bounds is in ``bound_propagation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bound_propagation import (
    Deductions,
    PropagatedBounds,
    Propagation,
    PropagationLimits,
    assumption,
    cut,
)
from discreet.audit.evidence import Published, Truth, values_at
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.bounds import maximum_entropy
from discreet.maths.attacks.tuples import (
    Expected,
    Groups,
    count_pairs,
    expected,
    independent_gaps,
    keyed_gaps,
    small_pairs,
)
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.law import Floats, Pmf
from discreet.perturb.noise import LARGE, Noise

Marks = NDArray[np.bool_]

SMALL = 3  # persons
WHOLE = PropagationLimits()


@dataclass(frozen=True)
class TableCell:
    """One published cell by its codes."""

    counted: str
    table: str
    cell: Mapping[str, str]
    published: int


@dataclass(frozen=True)
class Deduced:
    """One cell whose true count is deduced: the codes that describe it, and both counts."""

    counted: str
    table: str
    cell: Mapping[str, str]
    published: int
    deduced: int

    @property
    def place(self) -> TableCell:
        """The cell without the deduced count."""
        return TableCell(self.counted, self.table, self.cell, self.published)


@dataclass(frozen=True, kw_only=True)
class BoundFindings:
    """Results of the attack by bounds: numbers, and the first cells."""

    bound: int | None
    least_bound: int
    cells: int
    tuples: int
    tuples_by_bound_needed: Mapping[int, int]
    extreme_tuples: int | None
    pairs_told: int | None
    expected: Expected | None
    pinned: int
    pinned_small: int
    proved_empty: int
    contradicted: int
    named: tuple[Deduced, ...] | tuple[TableCell, ...]
    contradictions: tuple[TableCell, ...]
    tables_cut: tuple[str, ...]
    tables_left_out: tuple[str, ...]
    tables_unfinished: tuple[str, ...]
    crosstabs_not_exchanged: int

    @property
    def is_cut(self) -> bool:
        """Whether some tables were too large to be finished."""
        return bool(self.tables_cut or self.tables_left_out or self.tables_unfinished)

    def without_counts(self) -> BoundFindings:
        """The same without deduced counts, which with the right bound are the true ones."""
        return replace(
            self, named=tuple(one.place if isinstance(one, Deduced) else one for one in self.named)
        )


@dataclass(frozen=True, eq=False)
class BoundAttack:
    """What an outsider deduces; without a known or assumed bound, only the least bound that the tables prove."""

    bound: int | None  # known or assumed
    tuples: int
    groups: Groups
    shown: Mapping[int, int]  # bound that a gap needs -> tuples; the bound is at least the largest
    extreme: int | None  # tuples whose gap only +-bound in every cell can make
    expected: Expected | None  # of these, by the published law
    pairs: int | None  # tuples of two parts that determine their counts by themselves
    cells: int  # of all tables
    deductions: tuple[Deductions, ...]
    contradictions: tuple[Deductions, ...]
    named: tuple[Deduced, ...]
    named_contradictions: tuple[TableCell, ...]
    cut: tuple[str, ...]
    left_out: tuple[str, ...]
    unfinished: tuple[str, ...]
    unexchanged: int

    @property
    def least_bound(self) -> int:
        """The least bound that the tables prove."""
        return max(self.shown, default=0)

    @property
    def pinned(self) -> int:
        """Different cells whose count is deduced, without those published as zero that are zero."""
        return sum(int(np.count_nonzero(_is_count(one))) for one in self.deductions)

    @property
    def small(self) -> int:
        """Those of them with 1 to 3 persons."""
        return sum(int(np.count_nonzero(_is_small(one))) for one in self.deductions)

    @property
    def empty(self) -> int:
        """Cells published as zero that are proved to be empty."""
        return sum(int(np.count_nonzero(~_is_count(one))) for one in self.deductions)

    @property
    def contradicted(self) -> int:
        """Cells that no count fits: the assumed bound is too small, or the tables are not of one release."""
        return sum(len(one.cells) for one in self.contradictions)

    def findings(self) -> BoundFindings:
        """The findings; deduced counts follow from public files only."""
        return BoundFindings(
            bound=self.bound,
            least_bound=self.least_bound,
            cells=self.cells,
            tuples=self.tuples,
            tuples_by_bound_needed=dict(sorted(self.shown.items())),
            extreme_tuples=self.extreme,
            pairs_told=self.pairs,
            expected=self.expected,
            pinned=self.pinned,
            pinned_small=self.small,
            proved_empty=self.empty,
            contradicted=self.contradicted,
            named=self.named,
            contradictions=self.named_contradictions,
            tables_cut=self.cut,
            tables_left_out=self.left_out,
            tables_unfinished=self.unfinished,
            crosstabs_not_exchanged=self.unexchanged,
        )


def bound_attack(
    published: Published,
    bound: int | None = None,
    limits: PropagationLimits = WHOLE,
    progress: Progress | None = None,
) -> BoundAttack:
    """Compute the gaps of all tuples and, with a public or assumed bound, deduce true counts."""
    progress = progress or Quiet()
    known = assumption(published.noise, bound)
    rounds = 1 if known is None else 2
    progress.stage(
        "bound of the noise",
        rounds * sum(table.cube.size for one in published.universes for table in one.tables),
    )
    found = PropagatedBounds()
    for universe in published.universes:
        Propagation(universe, known, limits, found, progress).run()
    return _attack(found, None if known is None else known.bound, published.noise, limits)


def _attack(
    found: PropagatedBounds, bound: int | None, noise: Noise, limits: PropagationLimits
) -> BoundAttack:
    return BoundAttack(
        bound,
        sum(found.groups.values()),
        dict(found.groups),
        {int(needed): int(found.shown[needed]) for needed in np.flatnonzero(found.shown)},
        None if bound is None else int(found.exact[bound]),
        _expected(noise, bound, found.groups, None),
        None if bound is None else found.pairs,
        found.cells,
        tuple(found.deductions),
        tuple(found.contradictions),
        tuple(_named(found.deductions, limits.named)),
        tuple(_contradicted(found.contradictions, limits.named)),
        tuple(found.cut),
        tuple(found.left_out),
        tuple(dict.fromkeys(found.unfinished)),
        found.unexchanged,
    )


def _expected(noise: Noise, bound: int | None, groups: Groups, lookup: Lookup | None) -> Expected | None:
    law = None if bound is None else large_noise(noise, bound)
    if law is None or bound is None:
        return None
    gaps = independent_gaps(law) if lookup is None else keyed_gaps(lookup, law)
    return expected(gaps, bound, groups, noise.same_noise)


def large_noise(noise: Noise, bound: int) -> Pmf | None:
    """The law of the change of large counts, known or assumed; None where it is not one law."""
    if noise.laws or noise.publishing.rounding > 1 or noise.publishing.threshold:
        return None
    if noise.law is not None:
        return noise.law.row(LARGE).shifted(-LARGE)
    return None if noise.variance is None else maximum_entropy(noise.variance, bound)


@dataclass(frozen=True)
class BoundJudgement:
    """How many deductions of an attack are right: all, with the right bound."""

    bound: int | None  # of the noise
    is_bound_shown: bool  # the tables prove the full bound
    pinned: int
    right: int
    right_small: int  # counts of 1 to 3
    right_before_swapping: int
    empty: int
    right_empty: int
    expected: (
        Expected | None
    )  # for the true law: against the tuples that need the bound, or have it throughout
    expected_by_keys: Expected | None  # the same where a total's cell key is the sum of its parts' keys
    revealing: int | None  # tuples that show the bound
    extreme: int | None  # tuples at +-bound in every cell
    pairs: int | None
    expected_pairs: float | None  # for the true counts and the true law

    @property
    def share_right(self) -> float | None:
        """The share of deduced counts that are right; None where none was deduced."""
        return self.right / self.pinned if self.pinned else None

    def as_json(self) -> Mapping[str, object]:
        """The document, without any single cell."""
        return {
            "bound": self.bound,
            "bound_shown": self.is_bound_shown,
            "pinned": self.pinned,
            "right": self.right,
            "right_small": self.right_small,
            "right_before_swapping": self.right_before_swapping,
            "share_right": self.share_right,
            "proved_empty": self.empty,
            "right_empty": self.right_empty,
            "revealing_tuples": self.revealing,
            "extreme_tuples": self.extreme,
            "expected": self.expected,
            "expected_by_keys": self.expected_by_keys,
            "pairs_told": self.pairs,
            "expected_pairs": self.expected_pairs,
        }


def judge(
    found: BoundAttack,
    published: Published,
    truth: Truth,
    noise: Noise,
    lookup: Lookup | None = None,
    limits: PropagationLimits = WHOLE,
) -> BoundJudgement:
    """Judge an attack by the true counts and by the noise as the office knows it, with the lookup of the cell keys."""
    bound = noise.bound
    right = [one.deduced == values_at(truth.counted[one.cube.id], one.cells) for one in found.deductions]
    before = [one.deduced == values_at(truth.original[one.cube.id], one.cells) for one in found.deductions]
    counts = [_is_count(one) for one in found.deductions]
    return BoundJudgement(
        bound,
        found.least_bound == bound,
        found.pinned,
        _both(right, counts),
        _both(right, [_is_small(one) for one in found.deductions]),
        _both(before, counts),
        found.empty,
        _both(right, [~count for count in counts]),
        _expected(noise, bound, found.groups, None),
        None if lookup is None else _expected(noise, bound, found.groups, lookup),
        None if bound is None else sum(many for needed, many in found.shown.items() if needed >= bound),
        found.extreme,
        found.pairs,
        _expected_pairs(published, truth, noise, limits),
    )


def _expected_pairs(
    published: Published, truth: Truth, noise: Noise, limits: PropagationLimits
) -> float | None:
    """The expected number of tuples of two parts that determine their counts, summed over the true counts."""
    if noise.law is None or noise.laws or noise.bound is None or not (noise.same_noise and noise.keeps_zeros):
        return None
    chances = small_pairs(noise.law, noise.bound)
    if chances is None:
        return None
    return float((_true_pairs(published, truth, limits, len(chances)) * chances).sum())


def _true_pairs(published: Published, truth: Truth, limits: PropagationLimits, size: int) -> Floats:
    pairs = np.zeros((size, size), dtype=np.int64)
    for universe in published.universes:
        for table in cut(universe, limits.block):
            for block in table.blocks:
                counts = block.dense(truth.counted[table.table.id])
                for tuples in table.tuples(block):
                    count_pairs(counts.reshape(tuples.shape), *tuples.arrays, pairs)
    return pairs.astype(np.float64)


def _is_count(one: Deductions) -> Marks:
    """Which deductions are more than an empty cell published as zero."""
    more: Marks = (one.published != 0) | (one.deduced != 0)
    return more


def _is_small(one: Deductions) -> Marks:
    small: Marks = (one.deduced >= 1) & (one.deduced <= SMALL)
    return small


def _both(first: Iterable[Marks], second: Iterable[Marks]) -> int:
    return sum(int(np.count_nonzero(one & other)) for one, other in zip(first, second, strict=True))


def _named(deductions: Iterable[Deductions], most: int) -> list[Deduced]:
    """The first deductions that are counts, the small ones before the others."""
    deductions = list(deductions)
    small = ((one, np.flatnonzero(_is_small(one))) for one in deductions)
    others = ((one, np.flatnonzero(_is_count(one) & ~_is_small(one))) for one in deductions)
    return list(
        islice((_name(one, at) for one, found in chain(small, others) for at in found.tolist()), most)
    )


def _name(one: Deductions, at: int) -> Deduced:
    return Deduced(one.counted, one.cube.id, _codes(one, at), int(one.published[at]), int(one.deduced[at]))


def _contradicted(contradictions: Iterable[Deductions], most: int) -> list[TableCell]:
    places = ((one, at) for one in contradictions for at in range(len(one.cells)))
    return [
        TableCell(one.counted, one.cube.id, _codes(one, at), int(one.published[at]))
        for one, at in islice(places, most)
    ]


def _codes(one: Deductions, at: int) -> dict[str, str]:
    return one.cube.codes_of(int(one.cells[at]))
