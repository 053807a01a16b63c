"""Bounded noise: finding its bound (Bach 2020, section 3), and intervals of true counts tightened by sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement
from itertools import count as count_up
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import njit
from discreet.maths.noise.law import Floats, Pmf

SEXES = 2
LARGEST_BOUND = 1000
LEAST_VARIANCE, LARGEST_VARIANCE = 1e-9, 1e12


def maximum_entropy(variance: float, bound: int) -> Pmf:
    """p(v) proportional to exp(-lambda v^2), abs(v) <= E, with this variance; uniform for V >= E(E+1)/3."""
    if not 1 <= bound <= LARGEST_BOUND:
        raise mistake("", "D", str(bound), f"give a bound of 1 to {LARGEST_BOUND}")
    if not LEAST_VARIANCE <= variance < math.inf:
        raise mistake("", "V", f"{variance:g}", f"give a variance above 0, at least {LEAST_VARIANCE:g}")
    squares = np.arange(-bound, bound + 1, dtype=np.float64) ** 2

    def law(curvature: float) -> Floats:
        weights: Floats = np.exp(-curvature * squares)
        return weights / math.fsum(weights)

    if variance >= law(0.0) @ squares:
        return Pmf(-bound, law(0.0))
    low, high = 0.0, 1 + 1 / variance
    while low < (middle := (low + high) / 2) < high:  # to the last bit; the variance falls with the curvature
        if law(middle) @ squares > variance:
            low = middle
        else:
            high = middle
    return Pmf(-bound, law(low))


def gap_law(noise: Pmf, categories: int = SEXES) -> Pmf:
    """The law of F + M - T, the gap of a published tuple of n categories and their total."""
    gap = noise.p[::-1]
    for _ in range(categories):
        gap = np.convolve(gap, noise.p)
    return Pmf(categories * noise.first - noise.last, gap)


def reveals(noise: Pmf, bound: int, categories: int = SEXES) -> float:
    """p1 = Pr[abs(F + M - T) > 3 (E - 1)]: a tuple shows E as ceil(abs(gap) / 3); n + 1 for 3 in general.

    The text of the paper leaves out the absolute value; its example of uniform noise, 20 / (2E+1)^3, has it.
    """
    gap, least = gap_law(noise, categories), (categories + 1) * (bound - 1) + 1
    if least <= 0:
        return 1.0
    return gap.cdf(-least) + gap.tail(least)


def tuples_needed(p1: float, confidence: float) -> float:
    """m = ceil(log(1 - alpha) / log(1 - p1)) tuples reveal E with this confidence (eq. 11); inf where none can."""
    if p1 >= 1:
        return 1
    needed = math.log1p(-confidence) / math.log1p(-p1) if p1 > 0 else math.inf
    return math.ceil(needed) if math.isfinite(needed) else math.inf


def revealed(p1: float, tuples: int) -> float:
    """1 - (1 - p1)^m: the probability that m tuples reveal E."""
    return -math.expm1(tuples * math.log1p(-p1)) if p1 < 1 else 1.0


def pinned(noise: Pmf, categories: int = SEXES) -> float:
    """The probability that large counts are disclosed by a known E: every part has -E and the total +E, or reversed."""
    low, high = float(noise.p[0]), float(noise.p[-1])
    return low**categories * high + high**categories * low


@dataclass(frozen=True)
class Pinning:
    """The probability that published F, M and T disclose small true counts F and M once the p-table is known."""

    first: int
    second: int
    probability: float


def pinned_small(row: Callable[[int], Pmf], reach: int, largest: int) -> list[Pinning]:
    """Pinning of all pairs of positive counts up to ``largest``, by the rows of a p-table with changes up to ``reach``.

    A published triple discloses when exactly one pair of true counts can have led to it. Counts that cannot fall below
    zero and zeros that stay zero give more such patterns than only +-E: where F is empty the same persons are in M and
    T, which then have the same noise, so that M and T which differ prove that F is positive.
    """
    rows = [row(count) for count in range(2 * (largest + 2 * reach) + 1)]
    p = np.zeros(
        (len(rows), max(one.last for one in rows) + 1)
    )  # (true count, published count) -> probability
    for count, one in enumerate(rows):
        p[count, one.first : one.last + 1] = one.p
    positive = (p > 0).astype(np.int64)
    positive[0] = 0
    disclosing = cache(partial(_disclosing, positive))  # many pairs can be published as the same j and k
    pairs = combinations_with_replacement(range(1, largest + 1), 2)
    return [Pinning(first, second, _pinned_pair(p, first, second, disclosing)) for first, second in pairs]


def _pinned_pair(
    p: Floats, first: int, second: int, disclosing: Callable[[int, int], NDArray[np.int64]]
) -> float:
    total, published, sums = 0.0, np.flatnonzero(p[second]).tolist(), p[first + second]
    for j in np.flatnonzero(p[first]).tolist():
        for k in published:
            if (single := disclosing(j, k)).size:
                total += p[first, j] * p[second, k] * float(sums[single].sum())
    return total


def _disclosing(positive: NDArray[np.int64], j: int, k: int) -> NDArray[np.int64]:
    """The totals that disclose which counts were published as j and k."""
    return np.flatnonzero(_origins(positive, j, k) == 1)


def _origins(positive: NDArray[np.int64], j: int, k: int) -> NDArray[np.int64]:
    """How many pairs of true counts can be published as j, k and each total, by which positive counts can be."""
    sums = np.convolve(positive[:, j], positive[:, k])[: len(positive)]
    found: NDArray[np.int64] = sums @ positive
    if j == 0:  # an empty first part: the total has the second's noise
        found[k] += positive[:, k].sum()
    if k == 0:
        found[j] += positive[:, j].sum()
    if j == k == 0:
        found[0] += 1
    return found


def exceeds_laplace(epsilon: float, bound: float) -> float:
    """Pr[abs(x) > E] = exp(-epsilon E) of continuous Laplace noise (eq. 15, printed with a wrong sign)."""
    return math.exp(-epsilon * bound)


def exceeds_geometric(epsilon: float, bound: int) -> float:
    """Pr[abs(v) > E] = 2 e^(-epsilon (E+1)) / (1 + e^-epsilon) of two-sided geometric noise."""
    return 2 * math.exp(-epsilon * (bound + 1)) / (1 + math.exp(-epsilon))


def epsilon_of_bound(bound: float, counts: float, confidence: float) -> float:
    """The epsilon above which Laplace noise on t counts stays within E: log(t / (1 - alpha)) / E (eq. 16)."""
    return math.log(counts / (1 - confidence)) / bound


def epsilon_of_reconstruction(records: float, confidence: float) -> float:
    """The epsilon of each of n log^2 n counts above which n records can be reconstructed (eq. 8), natural logs.

    The formula needs two records at least; fewer are taken as two.
    """
    records = max(records, 2.0)
    return math.log(records * math.log(records) ** 2 / (1 - confidence)) / math.sqrt(records)


Bounds = NDArray[np.int32]

TILE = 512  # lines of a family that stay in the first-level cache
CACHED = 32_768  # cells that stay in the second-level cache, with their bounds
SERVED = 1000  # from here on a law treats all counts equally
MOST_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class PossibleCounts:
    """For each published count the smallest and the largest true count that can lead to it.

    Beyond the end of the arrays both grow with the published count; low > high where nothing leads to it.
    """

    first: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def of(self, published: NDArray[Any]) -> tuple[Bounds, Bounds]:
        """The intervals of some published counts."""
        wide = published.astype(np.int64)
        at = np.clip(wide - self.first, 0, len(self.low) - 1)
        beyond = wide - self.first - at
        return (self.low[at] + beyond).astype(np.int32), (self.high[at] + beyond).astype(np.int32)


def origins(row: Callable[[int], Pmf], bound: int, step: int = 1, threshold: int = 0) -> PossibleCounts:
    """Find the origins of each published count from the laws of all true counts.

    No noise is larger than ``bound``; published counts are multiples of ``step``, so the last one listed is, too, and
    only zero lies below ``threshold``.
    """
    margin = bound + step
    counts = SERVED + threshold + 8 * margin
    first, last = -margin, (counts - 2 * margin) // step * step
    low = np.ones(last - first + 1, dtype=np.int64)
    high = np.zeros(last - first + 1, dtype=np.int64)
    for count in range(counts + 1):
        law = row(count)
        shown = law.values[law.p > 0]
        at = shown[(shown >= first) & (shown <= last)] - first
        low[at] = np.where(low[at] > high[at], count, low[at])
        high[at] = count
    return PossibleCounts(first, low, high)


@dataclass(frozen=True, eq=False)
class AxisFamilies:
    """The parents of an axis, lowest in the tree first, each with its children: children[starts[f]:starts[f + 1]]."""

    parents: NDArray[np.int64]
    starts: NDArray[np.int64]
    children: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What kernels take."""
        return self.parents, self.starts, self.children


def families(parents: NDArray[np.int32]) -> AxisFamilies:
    """Group the nodes of an axis by their parents, which come before them; -1 marks a node without parent."""
    order = np.argsort(parents, kind="stable")
    order = order[parents[order] >= 0]
    above, sizes = np.unique(parents[order], return_counts=True)
    groups = np.split(order, np.cumsum(sizes)[:-1]) if len(above) else []
    children = np.concatenate(groups[::-1]) if groups else np.empty(0, dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes[::-1])])
    return AxisFamilies(above[::-1].astype(np.int64), starts.astype(np.int64), children.astype(np.int64))


@dataclass(frozen=True)
class Tightening:
    """How a propagation ended: number of sweeps, whether at a fixpoint, and cells left without a possible count."""

    sweeps: int
    is_fixpoint: bool
    contradictions: int


def tighten(
    low: Bounds,
    high: Bounds,
    shown: Bounds,
    axes: Sequence[AxisFamilies],
    shape: Sequence[int],
    same_noise: bool,
) -> Tightening:
    """Tighten intervals in place until no sum along an axis tightens them further: parent = sum of its children.

    A parent lies between the sums of its children's bounds, and a child between the parent's bounds less those of the
    other children. With the same noise for the same participants, a child that is published differently from its
    parent does not contain everyone: someone is in the others. A contradiction ends the propagation.
    """
    buffers = _buffers()
    for sweep in count_up(1):
        changes, broken = 0, 0
        for axis, members in enumerate(axes):
            view = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
            grids = low.reshape(view), high.reshape(view), shown.reshape(view)
            kernel = _sweep if view[2] >= TILE else _sweep_together
            changed, empty = kernel(*grids, *members.arrays, same_noise, *buffers)
            changes, broken = changes + changed, broken + empty
        if broken or not changes or sweep == MOST_SWEEPS:
            return Tightening(sweep, not changes, int(np.count_nonzero(low > high)))
    raise AssertionError  # count_up has no end


def _buffers() -> tuple[NDArray[np.int64], ...]:
    return tuple(np.empty(TILE, dtype=np.int64) for _ in range(5))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sweep(
    low: Any,
    high: Any,
    shown: Any,
    parents: Any,
    starts: Any,
    children: Any,
    same: Any,
    lows: Any,
    highs: Any,
    holders: Any,
    one: Any,
    other: Any,
) -> Any:
    """Tighten every family from the leaves up and from the root down; count changes and empty intervals."""
    changes, empty = 0, 0
    outer, _, inner = low.shape
    families_ = parents.size
    for o in range(outer):
        for step in range(2 * families_):
            f = step if step < families_ else 2 * families_ - 1 - step
            members = children[starts[f] : starts[f + 1]]
            for start in range(0, inner, TILE):
                size = min(TILE, inner - start)
                part = slice(start, start + size)
                grids = low[o, :, part], high[o, :, part], shown[o, :, part]
                _add_up(grids[0], grids[1], members, lows, highs, holders, one, other)
                changed, broken = _tighten_family(
                    *grids, parents[f], members, same, lows, highs, holders, one, other
                )
                changes += changed
                empty += broken
    return changes, empty


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sweep_together(
    low: Any,
    high: Any,
    shown: Any,
    parents: Any,
    starts: Any,
    children: Any,
    same: Any,
    lows: Any,
    highs: Any,
    holders: Any,
    one: Any,
    other: Any,
) -> Any:
    """``_sweep`` where lines are short: many of them are copied side by side, tightened at once and copied back."""
    changes, empty = 0, 0
    outer, nodes, inner = low.shape
    families_ = parents.size
    many = min(outer, max(1, min(TILE, CACHED // nodes) // inner))
    near_low = np.empty((nodes, many * inner), low.dtype)
    near_high = np.empty((nodes, many * inner), high.dtype)
    near_shown = np.empty((nodes, many * inner), shown.dtype)
    for first in range(0, outer, many):
        size = (min(outer, first + many) - first) * inner
        for o in range(first, first + size // inner):
            begin = (o - first) * inner
            for node in range(nodes):
                for i in range(inner):
                    near_low[node, begin + i] = low[o, node, i]
                    near_high[node, begin + i] = high[o, node, i]
                    near_shown[node, begin + i] = shown[o, node, i]
        grids = near_low[:, :size], near_high[:, :size], near_shown[:, :size]
        found = 0
        for step in range(2 * families_):
            f = step if step < families_ else 2 * families_ - 1 - step
            members = children[starts[f] : starts[f + 1]]
            _add_up(grids[0], grids[1], members, lows, highs, holders, one, other)
            changed, broken = _tighten_family(
                *grids, parents[f], members, same, lows, highs, holders, one, other
            )
            found += changed
            empty += broken
        changes += found
        if found:
            for o in range(first, first + size // inner):
                begin = (o - first) * inner
                for node in range(nodes):
                    for i in range(inner):
                        low[o, node, i] = near_low[node, begin + i]
                        high[o, node, i] = near_high[node, begin + i]
    return changes, empty


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_up(
    low: Any, high: Any, members: Any, lows: Any, highs: Any, holders: Any, one: Any, other: Any
) -> None:
    """Sum the children's bounds and note the first and the last of them that may be nonempty."""
    size = low.shape[1]
    lows[:size] = 0
    highs[:size] = 0
    holders[:size] = 0
    for child in members:
        for i in range(size):
            lows[i] += low[child, i]
            highs[i] += high[child, i]
            if high[child, i] > 0:
                if holders[i] == 0:
                    one[i] = child
                other[i] = child
                holders[i] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tighten_family(
    low: Any,
    high: Any,
    shown: Any,
    parent: Any,
    members: Any,
    same: Any,
    lows: Any,
    highs: Any,
    holders: Any,
    one: Any,
    other: Any,
) -> Any:
    changes, empty = 0, 0
    size = low.shape[1]
    for i in range(size):
        least, most = max(low[parent, i], lows[i]), min(high[parent, i], highs[i])
        changes += (least > low[parent, i]) + (most < high[parent, i])
        empty += least > most
        low[parent, i], high[parent, i] = least, most
    for child in members:
        for i in range(size):
            least, most = low[child, i], high[child, i]
            others_least, others_most = lows[i] - least, highs[i] - most
            if same and shown[child, i] != shown[parent, i]:
                others_least = max(others_least, 1)
                if least + others_least > low[parent, i]:
                    low[parent, i] = least + others_least
                    changes += 1
            new_least = max(least, low[parent, i] - others_most)
            new_most = min(most, high[parent, i] - others_least)
            if same and most > 0 and holders[i] == 2:
                partner = one[i] if other[i] == child else other[i]
                if shown[partner, i] != shown[parent, i]:
                    new_least = max(new_least, 1)
            changes += (new_least > least) + (new_most < most)
            empty += new_least > new_most
            low[child, i], high[child, i] = new_least, new_most
    return changes, empty
