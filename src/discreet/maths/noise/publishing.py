"""The noise and its post-processing as a reader of published counts sees them: P(published x | true a).

Rows are these probabilities by true count, columns by published count; ``maths.inference`` draws conclusions from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from discreet.errors import mistake
from discreet.maths.noise.additive import AdditiveLaw, Law
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Floats, Pmf
from discreet.maths.noise.ptable import PTable

LARGEST_COUNT = 10**9
LARGEST_ROUNDING = 1000


@dataclass(frozen=True)
class Publishing:
    """The post-processing of noisy counts, in this order; empty cells may have no noise at all."""

    negatives_to_zero: bool = False
    rounding: int = 1  # to the nearest multiple, halves up
    threshold: int = 0  # smaller counts are published as zero
    keeps_zeros: bool = False  # an empty cell is published as zero

    def __post_init__(self) -> None:
        if not 1 <= self.rounding <= LARGEST_ROUNDING:
            raise mistake("", "rounding", str(self.rounding), f"give 1 to {LARGEST_ROUNDING}")
        if self.threshold < 0:
            raise mistake("", "threshold", str(self.threshold), "give 0 or more")

    def sources(self, published: int) -> tuple[int | None, int] | None:
        """The noisy counts, first (None: no limit) to last, that are published as this value; None where none are."""
        half = -(-(2 * published - self.rounding) // 2)
        first, last = half, half + self.rounding - 1
        if published % self.rounding or (published < 0 and self.negatives_to_zero):
            return None
        if published != 0:
            return None if self.threshold and published < self.threshold else (first, last)
        if self.threshold > 0:
            steps = -(-self.threshold // self.rounding) - 1  # the largest multiple below the threshold
            return None, last + steps * self.rounding
        return (None if self.negatives_to_zero else first), last


@dataclass(frozen=True, eq=False)
class Column:
    """p[k] = P(published x | true first + k); beyond the array it is zero."""

    first: int
    p: Floats

    @property
    def last(self) -> int:
        """The largest true count that can lead to x."""
        return self.first + len(self.p) - 1


@dataclass(frozen=True, eq=False)
class CountNoise:
    """rows[a] is the law of the change of a true count a; the last row serves all larger counts."""

    rows: tuple[Pmf, ...]
    published: Publishing = Publishing()

    @property
    def is_additive(self) -> bool:
        """Whether the published count is the true count plus noise of one law for all counts."""
        return len(self.rows) == 1 and self.published == Publishing()

    @property
    def change(self) -> Pmf:
        """The law of the change of large counts."""
        return self.rows[-1]

    @cached_property
    def span(self) -> tuple[int, int]:
        """The lowest and highest change of any count, before post-processing."""
        return min(row.first for row in self.rows), max(row.last for row in self.rows)

    def column(self, published: int) -> Column:
        """The likelihood of each true count, given what is published; refused where no count leads to it."""
        sources = self.published.sources(published)
        if sources is None or abs(published) > LARGEST_COUNT:
            raise _impossible(published)
        first, last = sources
        low = 0 if first is None else max(0, first - self.span[1])
        counts = np.arange(low, max(low, last - self.span[0] + 1), dtype=np.int64)
        column = _trimmed(low, self._likelihoods(counts, first, last, published))
        if column is None:
            raise _impossible(published)
        return column

    def _likelihoods(self, counts: NDArray[np.int64], first: int | None, last: int, published: int) -> Floats:
        """P(first <= a + v <= last) for each true count a."""
        served = np.minimum(counts, len(self.rows) - 1)
        p = np.zeros(len(counts))
        for row in np.unique(served).tolist():
            here = served == row
            p[here] = _between(self.rows[row], counts[here], first, last)
        if self.published.keeps_zeros and len(counts) and counts[0] == 0:
            p[0] = 1.0 if published == 0 else 0.0
        return p

    def tails(self, column: Column, published: int) -> tuple[Floats, Floats]:
        """P(published at least x | a) and P(at most x | a) for the true counts of the column of x.

        Post-processing keeps the order of counts, so both are tails of the noisy count.
        """
        first, last = self.published.sources(published) or (None, published)
        counts = np.arange(column.first, column.last + 1, dtype=np.int64)
        served = np.minimum(counts, len(self.rows) - 1)
        above, below = np.ones(len(counts)), np.ones(len(counts))
        for row in np.unique(served).tolist():
            here, change = served == row, self.rows[row]
            below[here] = _between(change, counts[here], None, last)
            if first is not None:
                mirrored = Pmf(-change.last, change.p[::-1])
                above[here] = _between(mirrored, -counts[here], None, -first)
        if self.published.keeps_zeros and counts[0] == 0:
            above[0], below[0] = float(published <= 0), float(published >= 0)
        return above, below

    def row(self, count: int) -> Pmf:
        """The law of what is published for a true count."""
        if self.published.keeps_zeros and count == 0:
            return Pmf(0, np.ones(1))
        noisy = self.rows[min(count, len(self.rows) - 1)].shifted(count)
        shown = self.shown(noisy.values)
        p: Floats = np.bincount(shown - shown[0], weights=noisy.p).astype(np.float64)
        return Pmf(int(shown[0]), p)

    def shown(self, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is published for noisy counts."""
        rule = self.published
        values = np.maximum(noisy, 0) if rule.negatives_to_zero else noisy
        values = (2 * values + rule.rounding) // (2 * rule.rounding) * rule.rounding
        return np.where(values < rule.threshold, 0, values) if rule.threshold else values


def count_noise(law: Law, published: Publishing = Publishing()) -> CountNoise:
    """The noise of a law; the rows of a p-table need no rule for zeros and negatives, they have their own."""
    if isinstance(law, AdditiveLaw):
        return CountNoise((law.pmf,), published)
    if isinstance(law, PTableLaw):
        return CountNoise(tuple(law.row(i).shifted(-i) for i in range(law.ptable.last_row + 1)), published)
    remedy = "take a law of added noise or a p-table; hellinger noise spreads too far for columns"
    raise mistake("", "law", type(law).__name__, remedy)


def noise_of_rows(rows: Sequence[Mapping[int, float]], published: Publishing = Publishing()) -> CountNoise:
    """The noise of laws written out as change -> probability, for true counts 0, 1, ..; the last serves the rest."""
    if not rows or any(not row for row in rows):
        raise mistake("", "law", "empty", "give the probability of each change for each true count")
    return CountNoise(tuple(_dense(row) for row in rows), published)


def noise_of_ptable(table: PTable) -> CountNoise:
    """The noise of the cell key method."""
    return count_noise(PTableLaw(table))


NO_NOISE = CountNoise((Pmf(0, np.ones(1)),))


def _dense(row: Mapping[int, float]) -> Pmf:
    first, last = min(row), max(row)
    p = np.zeros(last - first + 1)
    for change, probability in row.items():
        p[change - first] = probability
    if not (np.isfinite(p).all() and (p >= 0).all() and abs(p.sum() - 1) < 1e-6):
        raise mistake("", "law", f"probabilities that sum to {p.sum():.8g}", "give a law that sums to 1")
    return Pmf(first, p / p.sum())


def _between(change: Pmf, counts: NDArray[np.int64], first: int | None, last: int) -> Floats:
    """P(first <= a + v <= last) as sums of positive terms, so that small tails stay precise."""
    if first is None:
        below = np.concatenate([[0.0], np.cumsum(change.p)])
        found: Floats = below[np.clip(last - counts - change.first + 1, 0, len(change.p))]
        return found
    padded = np.concatenate([[0.0], change.p, [0.0]])
    found = np.zeros(len(counts))
    for noisy in range(first, last + 1):
        found += padded[np.clip(noisy - counts - change.first + 1, 0, len(padded) - 1)]
    return found


def _trimmed(first: int, p: Floats) -> Column | None:
    possible = np.flatnonzero(p > 0)
    if not len(possible):
        return None
    return Column(first + int(possible[0]), p[possible[0] : possible[-1] + 1])


def _impossible(published: int) -> Exception:
    remedy = "check the law, its bound and the treatment of negative counts"
    return mistake("", "published count", str(published), f"this noise never publishes it; {remedy}")


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of several published counts, packed for tilted_sums.

    ``base`` is log P(x | a) - log a! of column k at offsets[k] : offsets[k + 1], for a = first[k], first[k] + 1, ..
    """

    values: NDArray[np.int64]  # the published counts, ascending
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    base: Floats
    concave: NDArray[np.bool_]  # whether the logarithm is concave, so that its largest term can be searched

    def indices(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The column of each published count, in the shape of the counts."""
        return np.searchsorted(self.values, counts)


def packed(noise: CountNoise, counts: NDArray[np.int64], records: int = 0) -> Columns:
    """The columns of all different published counts; with ``records`` N, log C(N, a) replaces -log a!."""
    values = np.unique(counts)
    columns = [_cut(noise.column(int(x)), int(x), records) for x in values]
    lengths = [len(column.p) for column in columns]
    base = [_base(column, records) for column in columns]
    return Columns(
        values,
        np.array([column.first for column in columns], dtype=np.int64),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(base) if base else np.zeros(0),
        np.array([_is_concave(one) for one in base], dtype=np.bool_),
    )


def _cut(column: Column, published: int, records: int) -> Column:
    """Of N records no more than N are in a cell."""
    if not records or column.last <= records:
        return column
    cut = _trimmed(column.first, column.p[: max(0, records + 1 - column.first)])
    if cut is None:
        raise _impossible(published)
    return cut


def _base(column: Column, records: int) -> Floats:
    a = np.arange(column.first, column.last + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        base: Floats = np.log(column.p) - gammaln(a + 1)
    return base + gammaln(records + 1) - gammaln(records - a + 1) if records else base


def _is_concave(base: Floats) -> bool:
    return bool(np.isfinite(base).all() and (np.diff(base, 2) <= 1e-9).all())
