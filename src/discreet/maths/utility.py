"""Utility: errors of published counts, realised and expected, additivity gaps, and measures of association."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit
from discreet.maths.cells.alignment import NOWHERE, Integers, Places
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw

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
STORED = 1 << 17  # counts below this have their expectations stored
AT_ONCE = 1 << 20  # values that expectations are worked out for at a time


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
    """The different counts of some cells ascending, and which of them each cell has."""

    counts: Integers
    place: Places

    @classmethod
    def of(cls, counts: Integers) -> DistinctCounts:
        """Without sorting, but for the few large ones."""
        if counts.min(initial=0) < 0:
            distinct, where = np.unique(counts, return_inverse=True)
            return cls(distinct, where.astype(np.int32))
        few = np.minimum(counts, STORED)
        small = np.flatnonzero(np.bincount(few, minlength=STORED + 1)[:STORED])
        places = np.zeros(STORED + 1, dtype=np.int32)
        places[small] = np.arange(len(small))
        place, large = places[few], np.flatnonzero(counts >= STORED)
        distinct, where = np.unique(counts[large], return_inverse=True)
        place[large] = len(small) + where
        return cls(np.concatenate([small, distinct]), place)


@dataclass(frozen=True, eq=False)
class CellErrors:
    """Sums by cross-tabulation and size class of the true count; class 0 are the empty cells."""

    cells: Integers  # [cross-tabulation, class]
    sums: Floats  # [cross-tabulation, class, measure]
    absolute: Integers  # [cross-tabulation, class, bin]
    relative: Integers  # [cross-tabulation, class, bin]
    overlap: (
        Floats  # [cross-tabulation, 4]: sum sqrt(a b), sum a, sum b, sum (sqrt a - sqrt b)^2; negative b as 0
    )


def errors(
    true: Integers,
    published: Integers,
    crosstab: Places,
    possible: Integers,
    edges: tuple[int, ...],
) -> CellErrors:
    """Add up the errors of the listed cells, and of the ``possible`` ones that are zero on both sides.

    ``possible`` is the number of cells of each cross-tabulation, 0 for those that are not looked at. A size class
    begins at each edge, the first of which is 1.
    """
    shape = (len(possible), len(edges) + 1)
    found = CellErrors(
        np.zeros(shape, dtype=np.int64),
        np.zeros((*shape, len(Measure))),
        np.zeros((*shape, ABSOLUTE_BINS), dtype=np.int64),
        np.zeros((*shape, RELATIVE_BINS), dtype=np.int64),
        np.zeros((len(possible), 4)),
    )
    _add(true, published, crosstab, possible, np.array(edges, dtype=np.int64), *vars(found).values())
    both_zero = np.maximum(possible - found.cells.sum(axis=1), 0)
    found.cells[:, 0] += both_zero
    found.sums[:, 0, [Measure.UNCHANGED, Measure.ZERO]] += both_zero[:, None]
    found.absolute[:, 0, 0] += both_zero
    return found


def expected_errors(
    true: DistinctCounts,
    crosstab: Places,
    possible: Integers,
    edges: tuple[int, ...],
    per_count: ExpectedLosses,
) -> Floats:
    """The expected sums[cross-tabulation, class, measure] where every cell's noise has the same law."""
    sums = np.zeros((len(possible), len(edges) + 1, len(Measure)))
    klass = np.searchsorted(np.array(edges), true.counts, side="right")
    occupied = np.zeros(len(possible), dtype=np.int64)
    _add_expected(per_count.at(true.counts), klass, true.place, crosstab, possible, sums, occupied)
    sums[:, 0] = (possible - occupied)[:, None] * per_count.at(np.zeros(1, dtype=np.int64))
    return sums


@dataclass(frozen=True, eq=False)
class ExpectedLosses:
    """The exact expectations of the law of a published count."""

    law: PublishedLaw

    @cached_property
    def _stored(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The expectations of counts below a limit as far as they were needed, and of which they are known."""
        return np.zeros((STORED, len(Measure))), np.zeros(STORED, dtype=np.bool_)

    def at(self, counts: Integers) -> Floats:
        """[count, measure]: sum over j of p(i -> j) times the measure; each small count is worked out once."""
        stored, known = self._stored
        small = counts < STORED
        if not small.all():
            found = np.empty((len(counts), len(Measure)))
            distinct, place = np.unique(counts[~small], return_inverse=True)
            found[small], found[~small] = self.at(counts[small]), self._computed(distinct)[place]
            return found
        if not known[counts].all():
            new = np.unique(counts[~known[counts]])
            stored[new], known[new] = self._computed(new), True
        return stored[counts]

    def _computed(self, counts: Integers) -> Floats:
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

    def moments(self, counts: Integers) -> Floats:
        """[count, 2]: mean and variance of the change."""
        expected = self.at(counts)
        bias = expected[:, Measure.BIAS]
        return np.stack([bias, np.maximum(expected[:, Measure.L2] - bias**2, 0)], axis=1)

    def tails(self, true: int, counted: int, limits: Sequence[float]) -> tuple[list[float], list[float]]:
        """Pr[b >= (1 + r) a] and Pr[b <= (1 - r) a] for each limit r: noise on ``counted``, judged by a = ``true``."""
        row = self.law.row(counted)
        relative = (row.values - true) / true
        return (
            [float(row.p[relative >= limit].sum()) for limit in limits],
            [float(row.p[relative <= -limit].sum()) for limit in limits],
        )


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


def absolute_quantile(bins: Integers, share: float) -> int | None:
    """The smallest error that so many do not exceed: exact below 64, then the end of its bin; None of no cells."""
    at = _bin_at(bins, share)
    if at is None or at < PLAIN:
        return at
    return math.floor(PLAIN * 2 ** ((at - PLAIN) / PER_OCTAVE))


def relative_quantile(bins: Integers, share: float) -> float | None:
    """The same of relative errors: the end of the bin."""
    at = _bin_at(bins, share)
    return at if at is None or at == 0 else float(2 ** (LEAST_RELATIVE + (at - 1) / PER_OCTAVE))


def _bin_at(bins: Integers, share: float) -> int | None:
    total = int(bins.sum())
    if not total:
        return None
    return int(np.searchsorted(np.cumsum(bins), share * total - 1e-9, side="left"))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _octave_bin(ratio: Any, most: Any) -> int:
    found: int = min(most, max(0, math.ceil(PER_OCTAVE * math.log2(ratio))))
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(
    true: Any,
    published: Any,
    crosstab: Any,
    possible: Any,
    edges: Any,
    cells: Any,
    sums: Any,
    absolute: Any,
    relative: Any,
    overlap: Any,
) -> None:
    for i in range(true.size):
        c, a, b = crosstab[i], true[i], published[i]
        if possible[c] == 0 or (a == 0 and b == 0):
            continue
        k = np.searchsorted(edges, a, side="right")
        change = abs(b - a)
        root = math.sqrt(abs(b)) if b >= 0 else -math.sqrt(abs(b))
        cells[c, k] += 1
        sums[c, k, 0] += change
        sums[c, k, 1] += float(change) * change
        sums[c, k, 2] += abs(root - math.sqrt(a))
        sums[c, k, 3] += change == 0
        sums[c, k, 4] += b == 0
        sums[c, k, 5] += b > 0
        sums[c, k, 6] += b - a
        at = change if change < PLAIN else PLAIN + _octave_bin(change / PLAIN, PER_OCTAVE * OCTAVES - 1)
        absolute[c, k, at] += 1
        if a > 0:
            ratio = change / a * 2.0**-LEAST_RELATIVE
            relative[c, k, 1 + _octave_bin(ratio, RELATIVE_BINS - 2) if change else 0] += 1
        overlap[c, 0] += math.sqrt(float(a) * max(b, 0))
        overlap[c, 1] += a
        overlap[c, 2] += max(b, 0)
        overlap[c, 3] += (math.sqrt(a) - math.sqrt(max(b, 0))) ** 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_expected(
    per_count: Any, klass: Any, place: Any, crosstab: Any, possible: Any, sums: Any, occupied: Any
) -> None:
    for i in range(place.size):
        c, k = crosstab[i], klass[place[i]]
        if k == 0 or possible[c] == 0:
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


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Mean and variance of the noise of each listed cell, and of an empty cell of each cross-tabulation."""

    moments: Floats  # [kind, 2]
    kind: NDArray[np.int32]  # cell -> which of them it has
    empty: Floats  # [cross-tabulation, 2]
    same_noise: bool  # the same participants have the same noise


@dataclass(frozen=True, eq=False)
class PartsAlong:
    """The parts of the cells of a table along one axis."""

    stride: int
    children: Integers  # node -> its parts, listed or not
    wider: Places  # cell -> the one that it is a part of
    deeper: int  # what is added to the number of a cell's cross-tabulation for that of its parts
    totals: NDArray[np.bool_]  # cross-tabulation -> whether its cells are compared with their parts ..
    own: NDArray[np.bool_]  # .. and whether its cells are counted here as parts
    elsewhere: NDArray[np.bool_] | None = None  # cell -> whether its parts are counted elsewhere all the same


@dataclass(frozen=True, eq=False)
class Gaps:
    """Sums by cross-tabulation of the parts: [totals, open gaps, sum of sizes, sum of squares, expected squares]."""

    sums: Floats
    largest: Integers

    TOTALS, OPEN, SIZE, SQUARE, EXPECTED = range(5)


def gaps(
    cells: Integers,
    published: Integers,
    true: Integers,
    noise: CellNoise,
    crosstab: Places,
    along: PartsAlong,
) -> Gaps:
    """Compare each total that is not zero with the sum of the cells below it along one axis.

    With independent noise the gap has the expected square var(total) + sum var(parts) + (bias of the total - sum of
    biases)^2; with the noise of participants it is zero where one part has all of them.
    """
    found = Gaps(np.zeros((len(noise.empty), 5)), np.zeros(len(noise.empty), dtype=np.int64))
    below = (
        *np.zeros((2, len(cells)), dtype=np.int64),
        np.zeros((len(cells), 2)),
        np.zeros(len(cells), dtype=np.bool_),
    )
    _gather(published, true, noise.moments, noise.kind, along.wider, noise.same_noise, *below)
    elsewhere = np.empty(0, dtype=np.bool_) if along.elsewhere is None else along.elsewhere
    axis = (along.stride, along.children, along.deeper, along.totals, along.own, elsewhere)
    _compare(
        cells, published, true, noise.moments, noise.kind, noise.empty, crosstab, axis, below,
        found.sums, found.largest,
    )  # fmt: skip
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather(
    published: Any,
    true: Any,
    moments: Any,
    kind: Any,
    wider: Any,
    same_noise: Any,
    parts: Any,
    number: Any,
    summed: Any,
    same: Any,
) -> None:
    for i in range(published.size):
        j = wider[i]
        if j == NOWHERE:
            continue
        parts[j] += published[i]
        number[j] += 1
        summed[j, 0] += moments[kind[i], 0]
        summed[j, 1] += moments[kind[i], 1]
        same[j] |= same_noise and true[i] == true[j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _compare(
    cells: Any,
    published: Any,
    true: Any,
    moments: Any,
    kind: Any,
    empty: Any,
    crosstab: Any,
    axis: Any,
    below: Any,
    sums: Any,
    largest: Any,
) -> None:
    stride, children, deeper, totals, own, elsewhere = axis
    parts, number, summed, same = below
    node, end = 0, np.int64(-1)  # the node is computed once for each run of cells that share it
    for j in range(published.size):
        if cells[j] >= end:
            node = (cells[j] // stride) % children.size
            end = (cells[j] // stride + 1) * stride
        if true[j] <= 0 or children[node] == 0 or not totals[crosstab[j]]:
            continue
        c = crosstab[j] + deeper
        if not own[c] or (elsewhere.size and elsewhere[j]):
            continue
        gap = abs(published[j] - parts[j])
        unlisted = children[node] - number[j]
        sums[c, 0] += 1
        sums[c, 1] += gap != 0
        sums[c, 2] += gap
        sums[c, 3] += float(gap) * gap
        if not same[j]:
            bias = moments[kind[j], 0] - summed[j, 0] - unlisted * empty[c, 0]
            sums[c, 4] += moments[kind[j], 1] + summed[j, 1] + unlisted * empty[c, 1] + bias * bias
        largest[c] = max(largest[c], gap)


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
    _, which, number = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = np.cumsum(number) - (number - 1) / 2
    return means[which]
