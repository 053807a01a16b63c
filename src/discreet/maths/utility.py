"""Utility: errors of published counts, realised and expected, and measures of association."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit
from discreet.maths.cells.alignment import Integers, Places, distinct_numbers
from discreet.maths.noise.law import UNSETTLED, Floats
from discreet.maths.noise.publishing import UNCHANGED, PublishedLaw

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

PLAIN = 64  # absolute errors below this have a bin of their own
PER_OCTAVE = 16  # bins beyond, each with its upper end: a quantile is told at most 4.5 % too high
OCTAVES = 24
ABSOLUTE_BINS = PLAIN + PER_OCTAVE * OCTAVES
LEAST_RELATIVE = -14  # relative errors from 2^-14 to 2^10 have bins; 0 has one of its own
RELATIVE_BINS = 1 + PER_OCTAVE * OCTAVES
SMALL = 1 << 12  # counts below this are their own places among the distinct ones
STORED = 1 << 17  # counts below this have their expectations stored
AT_ONCE = 1 << 20  # values that expectations are worked out for at a time
FEW_CHANGES, FEW_COUNTS = 16, 1 << 12  # errors and counts below these have their bins and roots stored


class Measure(IntEnum):
    """What is added up over cells."""

    L1 = 0
    L2 = 1
    L3 = 2
    UNCHANGED = 3
    ZERO = 4  # published as zero
    POSITIVE = 5  # published above zero
    BIAS = 6  # published minus true


@dataclass(frozen=True, eq=False)
class DistinctCounts:
    """The counts that some cells may have ascending, zero among them, and which of them each cell has."""

    counts: Integers
    place: Places

    @property
    def zero(self) -> int:
        """The place of the count zero."""
        return int(np.searchsorted(self.counts, 0))

    @classmethod
    def of(cls, counts: Integers) -> DistinctCounts:
        """Without sorting, but for the few large ones: all small counts are listed, whether a cell has them or not."""
        if counts.min(initial=0) < 0:
            distinct, where = np.unique(np.append(counts, 0), return_inverse=True)
            return cls(distinct, where[:-1].astype(np.int32))
        place, large = np.minimum(counts, SMALL).astype(np.int32), np.flatnonzero(counts >= SMALL)
        distinct, where = np.unique(counts[large], return_inverse=True)
        place[large] = SMALL + where
        return cls(np.concatenate([np.arange(SMALL), distinct]), place)


@dataclass(frozen=True, eq=False)
class CellErrors:
    """Sums by cross-tabulation and size class of the true count; class 0 are the empty cells."""

    cells: Integers  # [cross-tabulation, class]
    sums: Floats  # [cross-tabulation, class, measure]
    absolute: Integers  # [group of cross-tabulations, class, bin]
    relative: Integers  # [group of cross-tabulations, class, bin]
    overlap: (
        Floats  # [cross-tabulation, 4]: sum sqrt(a b), sum a, sum b, sum (sqrt a - sqrt b)^2; negative b as 0
    )


def errors(
    true: Integers,
    published: Integers,
    crosstab: Places,
    possible: Integers,
    edges: tuple[int, ...],
    own: NDArray[np.bool_] | None = None,
    groups: Integers | None = None,
) -> CellErrors:
    """Add up the errors of the listed cells, and of the ``possible`` ones that are zero on both sides.

    ``possible`` is the number of cells of each cross-tabulation, 0 for those that are not looked at. A size class
    begins at each edge, the first of which is 1. ``own``: which cells are looked at; ``groups``: by which group of
    cross-tabulations the sizes of errors are counted, each its own where none are given.
    """
    groups = np.arange(len(possible)) if groups is None else groups
    shape, grouped = (len(possible), len(edges) + 1), (int(groups.max(initial=-1)) + 1, len(edges) + 1)
    found = CellErrors(
        np.zeros(shape, dtype=np.int64),
        np.zeros((*shape, len(Measure))),
        np.zeros((*grouped, ABSOLUTE_BINS), dtype=np.int64),
        np.zeros((*grouped, RELATIVE_BINS), dtype=np.int64),
        np.zeros((len(possible), 4)),
    )
    _add(
        true, published, crosstab, _every(own, crosstab), possible, groups, np.array(edges, dtype=np.int64),
        found.cells, found.sums, found.absolute, found.relative, *_small_bins(), found.overlap,
    )  # fmt: skip
    both_zero = np.maximum(possible - found.cells.sum(axis=1), 0)
    found.cells[:, 0] += both_zero
    found.sums[:, 0, [Measure.UNCHANGED, Measure.ZERO]] += both_zero[:, None]
    np.add.at(found.absolute[:, 0, 0], groups, both_zero)
    return found


def _every(own: NDArray[np.bool_] | None, crosstab: Places) -> NDArray[np.bool_]:
    return np.ones(len(crosstab), dtype=np.bool_) if own is None else own


def expected_errors(
    true: DistinctCounts,
    crosstab: Places,
    possible: Integers,
    edges: tuple[int, ...],
    losses: Floats,
    own: NDArray[np.bool_] | None = None,
) -> Floats:
    """The expected sums[cross-tabulation, class, measure] where every cell's noise has the same law.

    ``losses`` has the expectations of each of the counts; ``own``: which cells are looked at.
    """
    sums = np.zeros((len(possible), len(edges) + 1, len(Measure)))
    klass = np.searchsorted(np.array(edges), true.counts, side="right")
    occupied = np.zeros(len(possible), dtype=np.int64)
    own = _every(own, crosstab)
    _add_expected(losses, klass, true.place, crosstab, own, possible, sums, occupied)
    sums[:, 0] = (possible - occupied)[:, None] * losses[true.zero]
    return sums


@dataclass(frozen=True, eq=False)
class ExpectedLosses:
    """The exact expectations of the law of a published count."""

    law: PublishedLaw

    @cached_property
    def _stored(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The expectations of counts below a limit as far as they were needed, and of which they are known."""
        return np.zeros((STORED, len(Measure))), np.zeros(STORED, dtype=np.bool_)

    @cached_property
    def _large(self) -> tuple[float, Integers, Floats, Floats]:
        """The smallest count from which only L3 varies, the changes and their probabilities, the other expectations.

        From there on all noise has one law, is published as it is, and leaves no count at or below zero.
        """
        if self.law.publishing != UNCHANGED or self.law.settled == UNSETTLED:
            return math.inf, np.empty(0, dtype=np.int64), np.empty(0), np.zeros(len(Measure))
        noise = self.law.law.row(self.law.settled)
        first = max(self.law.settled, 1 - (noise.first - self.law.settled))
        changes = noise.values - self.law.settled
        return (
            first,
            changes,
            noise.p,
            _expectations(np.array([first]), (first + changes)[None], noise.p[None])[0],
        )

    def at(self, counts: Integers) -> Floats:
        """[count, measure]: sum over j of p(i -> j) times the measure; each small count is worked out once."""
        stored, known = self._stored
        is_small, found = counts < STORED, np.empty((len(counts), len(Measure)))
        small = counts[is_small]
        if not known[small].all():
            new = np.unique(small[~known[small]])
            stored[new], known[new] = self._computed(new), True
        found[is_small], found[~is_small] = stored[small], self._computed(counts[~is_small])
        return found

    def _computed(self, counts: Integers) -> Floats:
        first, changes, p, others = self._large
        large = counts >= first
        if not large.any():
            return self._by_rows(counts)
        found = np.tile(others, (len(counts), 1))
        found[~large] = self._by_rows(counts[~large])
        found[large, Measure.L3] = _mean_root_change(counts[large], changes, p)
        return found

    def _by_rows(self, counts: Integers) -> Floats:
        found = np.zeros((len(counts), len(Measure)))
        last = self.law.settled
        for place in np.flatnonzero(counts < last).tolist():
            row = self.law.row(int(counts[place]))
            found[place] = _expectations(counts[place : place + 1], row.values[None], row.p[None])[0]
        large = np.flatnonzero(counts >= last)
        if len(large):
            noise = self.law.law.row(last)
            changes = noise.values - last
            step = max(1, AT_ONCE // len(changes))
            for start in range(0, len(large), step):
                part = large[start : start + step]
                shown = self.law.publishing.publish(counts[part, None] + changes)
                found[part] = _expectations(counts[part], shown, noise.p[None])
        return found

    def tails(self, true: Integers, counted: Integers, limits: Sequence[float]) -> tuple[Floats, Floats]:
        """[cell, limit]: Pr[b >= (1 + r) a] and Pr[b <= (1 - r) a] for each limit r.

        The noise is on ``counted``, judged by a = ``true``; each pair of them is worked out once.
        """
        pairs, where = np.unique(np.stack([true, counted]), axis=1, return_inverse=True)
        found = np.zeros((2, pairs.shape[1], len(limits)))
        known = pairs[1] >= self.law.settled
        for at in np.flatnonzero(~known).tolist():
            row = self.law.row(int(pairs[1, at]))
            found[:, at] = _tails(pairs[:1, at], row.values[None], row.p, limits)[:, 0]
        if known.any():
            noise = self.law.law.row(self.law.settled)
            shown = self.law.publishing.publish(pairs[1, known, None] + (noise.values - self.law.settled))
            found[:, known] = _tails(pairs[0, known], shown, noise.p, limits)
        up, down = found[:, where.ravel()]
        return up, down


def _tails(true: Integers, published: Integers, p: Floats, limits: Sequence[float]) -> Floats:
    """[side, count, limit] where published[count, k] has the probability p[k]."""
    relative = (published - true[:, None]) / true[:, None]
    sides = [[np.where(sign * relative >= limit, p, 0.0).sum(axis=1) for limit in limits] for sign in (1, -1)]
    return np.moveaxis(np.array(sides).reshape(2, len(limits), len(true)), 1, 2)


def _mean_root_change(counts: Integers, changes: Integers, p: Floats) -> Floats:
    """E abs(sqrt(a + v) - sqrt(a)) of each count a, where the change v has the probability p."""
    roots, found = np.sqrt(counts), np.zeros(len(counts))
    for change, chance in zip(changes.tolist(), p.tolist(), strict=True):
        found += np.abs(np.sqrt(counts + change) - roots) * chance
    return found


def moments(losses: Floats) -> Floats:
    """[count, 2]: mean and variance of the change, from the expectations of each count."""
    bias = losses[:, Measure.BIAS]
    return np.stack([bias, np.maximum(losses[:, Measure.L2] - bias**2, 0)], axis=1)


def _expectations(counts: Integers, published: Integers, p: Floats) -> Floats:
    """[count, measure] where published[count, k] has the probability p[., k]."""
    change = (published - counts[:, None]).astype(np.float64)
    roots = np.sign(published) * np.sqrt(np.abs(published))
    each = {
        Measure.L1: np.abs(change),
        Measure.L2: change**2,
        Measure.L3: np.abs(roots - np.sqrt(counts)[:, None]),
        Measure.UNCHANGED: change == 0,
        Measure.ZERO: published == 0,
        Measure.POSITIVE: published > 0,
        Measure.BIAS: change,
    }
    return np.stack([(each[measure] * p).sum(axis=1) for measure in Measure], axis=1)


def hellinger(overlap: Floats) -> Floats:
    """The Hellinger distance of each cross-tabulation's relative frequencies; 1 where one side is empty.

    sqrt(1 - sum sqrt(a b) / sqrt(sum a sum b)), from 0 to 1 whatever the size of the table.
    """
    joint, true, published = np.moveaxis(overlap[..., :3], -1, 0)
    norm = np.sqrt(true * published)
    ratio = np.divide(joint, norm, out=np.zeros_like(joint), where=norm > 0)
    ratio = np.where((true <= 0) & (published <= 0), 1.0, ratio)
    distance: Floats = np.sqrt(np.clip(1 - ratio, 0, 1))
    return distance


def hellinger_of_counts(overlap: Floats) -> Floats:
    """The Hellinger distance of each cross-tabulation's counts, (sum_k (sqrt a_k - sqrt b_k)^2)^(1/2).

    Rinott et al. 2018, section 4.2 (the unnumbered formula after the losses l1 to l3), from Shlomo 2007; it grows
    with the table.
    """
    distance: Floats = np.sqrt(overlap[..., 3])
    return distance


def absolute_quantiles(bins: Integers, shares: Sequence[float]) -> list[int | None]:
    """The smallest error that so many do not exceed: exact below 64, then the end of its bin; None of no cells."""
    return [
        at if at is None or at < PLAIN else math.floor(PLAIN * 2 ** ((at - PLAIN) / PER_OCTAVE))
        for at in _bins_at(bins, shares)
    ]


def relative_quantiles(bins: Integers, shares: Sequence[float]) -> list[float | None]:
    """The same of relative errors: the end of the bin."""
    return [
        at if at is None or at == 0 else float(2 ** (LEAST_RELATIVE + (at - 1) / PER_OCTAVE))
        for at in _bins_at(bins, shares)
    ]


def _bins_at(bins: Integers, shares: Sequence[float]) -> list[int] | list[None]:
    up_to = np.cumsum(bins)
    if not len(up_to) or not up_to[-1]:
        return [None] * len(shares)
    wanted = np.array(shares) * int(up_to[-1]) - 1e-9
    found: list[int] = np.searchsorted(up_to, wanted, side="left").tolist()
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _octave_bin(ratio: Any, most: Any) -> int:
    found: int = min(most, max(0, math.ceil(PER_OCTAVE * math.log2(ratio))))
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _relative_bin(change: Any, a: Any) -> int:
    """The bin of the relative error of a true count above zero."""
    if change == 0:
        return 0
    at: int = 1 + _octave_bin(change / a * 2.0**-LEAST_RELATIVE, RELATIVE_BINS - 2)
    return at


@cache
def _small_bins() -> tuple[NDArray[np.int16], Floats]:
    """[change, true count] -> bin of the relative error, and the roots of counts: of small ones, worked out once."""
    bins = np.zeros((FEW_CHANGES, FEW_COUNTS), dtype=np.int16)
    _fill_bins(bins)
    return bins, np.sqrt(np.arange(FEW_COUNTS, dtype=np.float64))


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _fill_bins(bins: Any) -> None:
    for change in range(bins.shape[0]):
        for a in range(1, bins.shape[1]):
            bins[change, a] = _relative_bin(change, a)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add(
    true: Any,
    published: Any,
    crosstab: Any,
    own: Any,
    possible: Any,
    groups: Any,
    edges: Any,
    cells: Any,
    sums: Any,
    absolute: Any,
    relative: Any,
    small: Any,
    roots: Any,
    overlap: Any,
) -> None:
    for i in range(true.size):
        c, a, b = crosstab[i], true[i], published[i]
        if not own[i] or possible[c] == 0 or (a == 0 and b == 0):
            continue
        k = 0
        while k < edges.size and a >= edges[k]:
            k += 1
        change = abs(b - a)
        true_root = roots[a] if 0 <= a < roots.size else math.sqrt(a)
        size_root = roots[abs(b)] if abs(b) < roots.size else math.sqrt(abs(b))
        shown = size_root if b > 0 else 0.0  # negative values as zero
        cells[c, k] += 1
        here = sums[c, k]
        here[0] += change
        here[1] += float(change) * change
        here[2] += abs((size_root if b >= 0 else -size_root) - true_root)
        here[3] += change == 0
        here[4] += b == 0
        here[5] += b > 0
        here[6] += b - a
        g = groups[c]
        at = change if change < PLAIN else PLAIN + _octave_bin(change / PLAIN, PER_OCTAVE * OCTAVES - 1)
        absolute[g, k, at] += 1
        if a > 0:
            few = change < small.shape[0] and a < small.shape[1]
            relative[g, k, small[change, a] if few else _relative_bin(change, a)] += 1
        both = overlap[c]
        both[0] += math.sqrt(float(a) * max(b, 0))
        both[1] += a
        both[2] += max(b, 0)
        both[3] += (true_root - shown) ** 2


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add_expected(
    per_count: Any, klass: Any, place: Any, crosstab: Any, own: Any, possible: Any, sums: Any, occupied: Any
) -> None:
    for i in range(place.size):
        c, k = crosstab[i], klass[place[i]]
        if k == 0 or not own[i] or possible[c] == 0:
            continue
        occupied[c] += 1
        for m in range(per_count.shape[1]):
            sums[c, k, m] += per_count[place[i], m]


def class_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    """How the size classes are called: 0, 1-2, .., 500+."""
    ends = [*(edge - 1 for edge in edges[1:]), None]
    names = [
        f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"
        for first, last in zip(edges, ends, strict=True)
    ]
    return ("0", *names)


@dataclass(frozen=True)
class CellError:
    """Expected errors of a published count b for the true count a.

    l1 = E abs(b - a); rmse = sqrt(E (b - a)^2); relative = l1/a; unchanged = Pr[b = a]; false_zero = Pr[b = 0] where
    a > 0; false_positive = Pr[b > 0] where a = 0. None where a measure has no meaning.
    """

    count: int
    l1: float
    rmse: float
    relative: float | None
    unchanged: float
    false_zero: float | None
    false_positive: float | None


def expected_error(count: int, published: NDArray[np.int64], p: Floats) -> CellError:
    """The expected errors where published[k] has the probability p[k]; a value may occur several times."""
    distance = np.abs(published - count).astype(np.float64)
    l1 = float(p @ distance)
    return CellError(
        count,
        l1,
        math.sqrt(float(p @ distance**2)),
        l1 / count if count else None,
        float(p[distance == 0].sum()),
        float(p[published == 0].sum()) if count else None,
        None if count else float(p[published > 0].sum()),
    )


@dataclass(frozen=True)
class Association:
    """chi2 = n (sum x^2 / (r c) - 1); V = sqrt(chi2 / (n min(rows - 1, columns - 1))); None where it has no meaning."""

    cramers_v: float | None
    p_value: float | None


NEITHER = Association(None, None)


def independence(rows: Integers, columns: Integers, values: Integers) -> Association:
    """Test the cells of a two-way table; negative values are taken as zero, and margins are sums of the cells."""
    here = values > 0
    rows, columns, x = rows[here], columns[here], values[here].astype(np.float64)
    r, c, n = np.bincount(rows, weights=x), np.bincount(columns, weights=x), float(x.sum())
    height, width = int((r > 0).sum()), int((c > 0).sum())
    if min(height, width) < 2:
        return NEITHER
    statistic = max(0.0, n * (float((x**2 / (r[rows] * c[columns])).sum()) - 1))
    freedom = (height - 1) * (width - 1)
    return Association(
        math.sqrt(statistic / (n * (min(height, width) - 1))), float(special.chdtrc(freedom, statistic))
    )


def rank_correlation(true: Integers, published: Integers) -> float | None:
    """Spearman's correlation of the cells' order, ties shared; None where one side does not vary."""
    if len(true) < 2:
        return None
    ranks: list[Floats] = [_ranks(side) - (len(true) + 1) / 2 for side in (true, published)]
    norm = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else None


def _ranks(values: Integers) -> Floats:
    """Ranks from 1; equal values share the mean of their ranks."""
    first = values.min(initial=0)
    _, which, number = distinct_numbers(values - first, int(values.max(initial=0) - first) + 1)
    means: Floats = np.cumsum(number) - (number - 1) / 2
    return means[which]
