"""The law of a published count: noise, then post-processing, with empty cells left empty where that is the rule.

``Publishing`` is the post-processing, forward (what is published for a noisy count) and inverse (the noisy counts that
are published as a value). ``PublishedLaw`` is P(published x | true a) by true count (rows) and by published count
(columns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.noise.law import UNSETTLED, Floats, Pmf

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

Integers = NDArray[np.int64]

LARGEST_COUNT = 10**9
LARGEST_ROUNDING = 1000  # by which columns are summed up
LARGEST_THRESHOLD = 1_000_000  # so many counts can be published as zero


class Negatives(StrEnum):
    """What is published for a negative noisy count: itself, or zero (post-processing, biased)."""

    KEEP = "keep"
    ZERO = "zero"


@dataclass(frozen=True)
class Publishing:
    """What is done to noisy counts before they are published, in this order; it costs no privacy."""

    negatives: Negatives = Negatives.KEEP
    rounding: int = 1  # to the nearest multiple, halves up
    threshold: int = 0  # smaller counts are published as zero

    def __post_init__(self) -> None:
        if not 1 <= self.rounding <= LARGEST_ROUNDING:
            raise mistake("", "rounding", str(self.rounding), f"give 1 to {LARGEST_ROUNDING}")
        if not 0 <= self.threshold <= LARGEST_THRESHOLD:
            raise mistake("", "threshold", str(self.threshold), f"give 0 to {LARGEST_THRESHOLD}")

    @property
    def hides_negatives(self) -> bool:
        """Whether no negative count is published."""
        return self.negatives is Negatives.ZERO or self.threshold > 0

    def publish(self, noisy: Integers) -> Integers:
        """What is published for noisy counts."""
        values = np.maximum(noisy, 0) if self.negatives is Negatives.ZERO else noisy
        if self.rounding > 1:
            values = (2 * values + self.rounding) // (2 * self.rounding) * self.rounding
        return np.where(values < self.threshold, 0, values) if self.threshold else values

    def sources(self, published: int) -> tuple[int | None, int] | None:
        """The noisy counts, first (None: no limit) to last, that are published so; None where none are."""
        first, last = self.rounded_from(published)
        if published % self.rounding or (published < 0 and self.hides_negatives):
            return None
        if published != 0:
            return None if 0 < published < self.threshold else (first, last)
        hidden = max(-(-self.threshold // self.rounding) - 1, 0)  # positive multiples below the threshold
        return (None if self.hides_negatives else first), last + hidden * self.rounding

    def rounded_from(self, published: int) -> tuple[int, int]:
        """The counts, first to last, that rounding takes to a multiple; it moves with the multiple."""
        first = published - self.rounding // 2
        return first, first + self.rounding - 1


UNCHANGED = Publishing()  # counts are published as the noise leaves them


class CountLaw(Protocol):
    """A law of the noisy count for each true count."""

    def row(self, count: int) -> Pmf:
        """The law of the noisy count for a true count."""
        ...

    @property
    def settled(self) -> int:
        """The smallest count such that the change of all larger ones has the same law; UNSETTLED where none exists."""
        ...


@dataclass(frozen=True, eq=False)
class WrittenLaw:
    """changes[a] is the law of the change of a true count a; the last one serves all larger counts."""

    changes: tuple[Pmf, ...]

    @property
    def settled(self) -> int:
        """The last count that is written out."""
        return len(self.changes) - 1

    def row(self, count: int) -> Pmf:
        """The law of the noisy count."""
        return self.changes[min(count, self.settled)].shifted(count)


@dataclass(frozen=True, eq=False)
class Column:
    """p[k] = P(published x | true first + k); beyond the array it is zero."""

    first: int
    p: Floats

    @property
    def last(self) -> int:
        """The largest true count that can lead to x."""
        return self.first + len(self.p) - 1


@dataclass(frozen=True)
class PublishedLaw:
    """The law of a published count: a law of noise and what is done to its counts before they are published."""

    law: CountLaw
    publishing: Publishing = UNCHANGED
    keeps_zeros: bool = False  # an empty cell has no noise and is published as zero

    @property
    def is_additive(self) -> bool:
        """Whether what is published is the true count plus noise of one law, whatever the count."""
        return self.publishing == UNCHANGED and not self.keeps_zeros and len(self.changes) == 1

    @cached_property
    def changes(self) -> tuple[Pmf, ...]:
        """The law of the noise of a true count 0, 1, ..; the last serves all larger counts."""
        if self.law.settled == UNSETTLED:
            remedy = "take a law of added noise or a p-table; hellinger noise spreads too far for columns"
            raise mistake("", "law", type(self.law).__name__, remedy)
        return tuple(self.law.row(count).shifted(-count) for count in range(self.law.settled + 1))

    @property
    def change(self) -> Pmf:
        """The law of the noise of large counts."""
        return self.changes[-1]

    @cached_property
    def span(self) -> tuple[int, int]:
        """The lowest and highest change of any count, before post-processing."""
        return min(row.first for row in self.changes), max(row.last for row in self.changes)

    @property
    def settled(self) -> int:
        """The smallest count such that all larger ones have the same noise, before post-processing."""
        return max(self.law.settled, int(self.keeps_zeros))

    @cached_property
    def _alike_from(self) -> int:
        rule = self.publishing
        if rule.rounding > 1 or self.law.settled == UNSETTLED:
            return UNSETTLED
        return max(self.settled, rule.threshold - self.span[0] if rule.hides_negatives else 0)

    @cached_property
    def settled_published(self) -> int:
        """A published count at and above which columns move with it: that of x + k is that of x, moved by k."""
        rule = self.publishing
        least = max(self.settled + self.span[1] + rule.rounding // 2, rule.threshold) + 1
        return -(-least // rule.rounding) * rule.rounding

    def alike(self, count: int) -> int:
        """A count whose published change has the same law, one for as many as possible."""
        return min(count, self._alike_from)

    def row(self, count: int) -> Pmf:
        """The law of what is published for a true count."""
        if self.keeps_zeros and count == 0:
            return Pmf(0, np.ones(1))
        noisy = self.law.row(count)
        if self.publishing == UNCHANGED:
            return noisy
        shown = self.publishing.publish(noisy.values)
        p: Floats = np.bincount(shown - shown.min(), weights=noisy.p).astype(np.float64)
        return Pmf(int(shown.min()), p, noisy.omitted)

    def column(self, published: int) -> Column:
        """The likelihood of each true count, given what is published; refused where no count leads to it."""
        if abs(published) > LARGEST_COUNT:
            remedy = f"inference is for counts of at most {LARGEST_COUNT}"
            raise mistake("", "published or simulated count", str(published), remedy)
        sources = self.publishing.sources(published)
        if sources is None:
            raise _impossible(published)
        first, last = sources
        low = 0 if first is None else max(0, first - self.span[1])
        counts = np.arange(low, max(low, last - self.span[0] + 1), dtype=np.int64)
        column = _trimmed(low, self._likelihoods(counts, first, last, published))
        if column is None:
            raise _impossible(published)
        return column

    def _likelihoods(self, counts: Integers, first: int | None, last: int, published: int) -> Floats:
        """P(first <= a + v <= last) for each true count a."""
        served = np.minimum(counts, len(self.changes) - 1)
        p = np.zeros(len(counts))
        for row in np.unique(served).tolist():
            here = served == row
            p[here] = _between(self.changes[row], counts[here], first, last)
        if self.keeps_zeros and len(counts) and counts[0] == 0:
            p[0] = 1.0 if published == 0 else 0.0
        return p

    def tails(self, column: Column, published: int) -> tuple[Floats, Floats]:
        """P(published at least x | a) and P(at most x | a) for the true counts of the column of x.

        Post-processing keeps the order of counts, so both are tails of the noisy count.
        """
        first, last = self.publishing.sources(published) or (None, published)
        counts = np.arange(column.first, column.last + 1, dtype=np.int64)
        served = np.minimum(counts, len(self.changes) - 1)
        above, below = np.ones(len(counts)), np.ones(len(counts))
        for row in np.unique(served).tolist():
            here, change = served == row, self.changes[row]
            below[here] = _between(change, counts[here], None, last)
            if first is not None:
                mirrored = Pmf(-change.last, change.p[::-1])
                above[here] = _between(mirrored, -counts[here], None, -first)
        if self.keeps_zeros and counts[0] == 0:
            above[0], below[0] = float(published <= 0), float(published >= 0)
        return above, below


def written_law(rows: Sequence[Mapping[int, float]]) -> WrittenLaw:
    """A law written out as change -> probability, for true counts 0, 1, ..; the last serves the rest."""
    if not rows or any(not row for row in rows):
        raise mistake("", "law", "empty", "give the probability of each change for each true count")
    return WrittenLaw(tuple(_dense(row) for row in rows))


NO_NOISE = PublishedLaw(WrittenLaw((Pmf(0, np.ones(1)),)))


def _dense(row: Mapping[int, float]) -> Pmf:
    first, last = min(row), max(row)
    p = np.zeros(last - first + 1)
    for change, probability in row.items():
        p[change - first] = probability
    if not (np.isfinite(p).all() and (p >= 0).all() and abs(p.sum() - 1) < 1e-6):
        raise mistake("", "law", f"probabilities that sum to {p.sum():.8g}", "give a law that sums to 1")
    return Pmf(first, p / p.sum())


def _between(change: Pmf, counts: Integers, first: int | None, last: int) -> Floats:
    """P(first <= a + v <= last) as sums of positive terms, so that small tails keep their digits."""
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
    remedy = "check the law, its bound and what is done to negative counts"
    return mistake("", "published count", str(published), f"this noise never publishes it; {remedy}")


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of several published counts, packed for tilted_sums.

    ``base`` holds log P(x | a) - log a! of column k at offsets[k] : offsets[k + 1], for a = first[k], first[k] + 1, ..
    """

    values: NDArray[np.int64]  # the published counts, ascending
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    base: Floats
    concave: NDArray[np.bool_]  # whether the logarithm is concave, so that its largest term can be searched

    def indices(self, counts: Integers) -> NDArray[np.int64]:
        """The column of each published count, in the shape of the counts."""
        return np.searchsorted(self.values, counts)


def packed(noise: PublishedLaw, counts: Integers, records: int = 0) -> Columns:
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
        base: Floats = np.log(column.p) - special.gammaln(a + 1)
    return base + special.gammaln(records + 1) - special.gammaln(records - a + 1) if records else base


def _is_concave(base: Floats) -> bool:
    return bool(np.isfinite(base).all() and (np.diff(base, 2) <= 1e-9).all())
