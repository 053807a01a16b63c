"""Tuples of published parts and their total: the gaps between them and the true counts that they disclose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import expm1, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.attacks.bounds import gap_law, pinned_small
from discreet.maths.cells.alignment import distinct_numbers, nodes_along, wider_cells
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.additive import Law
from discreet.maths.noise.law import Floats, Pmf

BINS = 4096  # of equally many keys
TILE = 1 << 9  # cells that are next to each other, of which parts are counted at once


def occupied_tuples(
    cells: NDArray[np.int64], stride: int, parents: NDArray[np.int32], counted: NDArray[np.bool_]
) -> Counter[tuple[int, int]]:
    """(parts, non-empty parts) -> listed totals along one axis with at least two non-empty parts that are counted."""
    occupied = np.zeros(len(cells), dtype=np.int32)
    _count_parts(wider_cells(cells, stride, parents), counted, occupied)
    totals = np.flatnonzero(occupied > 1)
    children = np.bincount(parents[1:], minlength=len(parents))
    parts = children[nodes_along(cells[totals], stride, len(parents))]
    base = int(children.max(initial=0)) + 1
    numbers, _, times = distinct_numbers(parts * base + occupied[totals], base * base)
    every = zip(numbers.tolist(), times.tolist(), strict=True)
    return Counter({divmod(number, base): often for number, often in every})


LISTED, COUNTED = 1, 3  # a cell of a table that is laid out whole


def tuples_of_grid(cells: NDArray[np.uint8], parents: NDArray[np.int32]) -> Counter[tuple[int, int]]:
    """The same of all cells (before, node, after) of a table, each 0, LISTED or COUNTED."""
    children = np.bincount(parents[1:], minlength=len(parents))
    times = np.zeros((int(children.max(initial=0)) + 1,) * 2, dtype=np.int64)
    occupied = np.zeros((len(parents), min(TILE, cells.shape[2])), dtype=np.int32)
    _count_occupied(cells, parents, np.flatnonzero(children > 1), children, occupied, times)
    parts, numbers = np.nonzero(times[:, 2:])
    every = zip(parts.tolist(), (numbers + 2).tolist(), times[parts, numbers + 2].tolist(), strict=True)
    return Counter({(all_parts, number): often for all_parts, number, often in every})


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _count_occupied(cells: Any, parents: Any, totals: Any, children: Any, occupied: Any, times: Any) -> None:
    """times[parts, counted parts] of all listed totals, a tile of the axes after at a time."""
    outer, nodes, inner = cells.shape
    for o in range(outer):
        for start in range(0, inner, occupied.shape[1]):
            size = min(occupied.shape[1], inner - start)
            here = slice(start, start + size)
            for total in totals:
                occupied[total, :size] = 0
            for node in range(1, nodes):
                below, above = cells[o, node, here], occupied[parents[node], :size]
                for i in range(size):
                    above[i] += below[i] >> 1
            for total in totals:
                listed, parts, found = cells[o, total, here], occupied[total], times[children[total]]
                for i in range(size):
                    found[parts[i]] += listed[i] & 1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _count_parts(wider: Any, counted: Any, occupied: Any) -> None:
    for i in range(wider.size):
        if counted[i] and wider[i] >= 0:
            occupied[wider[i]] += 1


def keyed_joint_law(lookup: Lookup, parts: int) -> Floats:
    """(change of the total, summed change of its n parts) -> probability, for large counts and plain sums of keys.

    The parts have independent, uniform keys. Changes begin with -reach, sums with -n reach. The keys are taken in bins.
    The offsets within the bins sum up to k whole bins with the probability A(n, k)/n! (the Eulerian numbers: Irwin and
    Hall's law), so that only bins with an interval's end in them are approximate.
    """
    shares = _shares(lookup)
    reach = len(shares) // 2
    size = 2 * reach * parts + 1
    joint = np.fft.ifft2(np.fft.fft2(shares, (size, BINS)) ** parts).real  # (summed change, bin) -> p
    carried = np.zeros_like(joint)
    for k, p in enumerate(_eulerian_shares(parts)):
        carried += p * np.roll(joint, k, axis=1)
    found: Floats = np.maximum((shares * BINS) @ carried.T, 0.0)
    return found


def by_gap(joint: Floats) -> Floats:
    """The same by (change of the total, gap): sum of parts - total, from -(n + 1) reach on."""
    changes, size = joint.shape
    found = np.zeros((changes, size + changes - 1))
    for at, sums in enumerate(joint):
        found[at, changes - 1 - at : changes - 1 - at + size] = sums
    return found


def keyed_gap_law(lookup: Lookup, parts: int) -> Pmf:
    """The law of sum of parts - total for large counts, whose n parts have independent, uniform keys."""
    gap = by_gap(keyed_joint_law(lookup, parts)).sum(axis=0)
    return Pmf(-(len(gap) // 2), gap)


def _shares(lookup: Lookup) -> Floats:
    """(change from -reach on, bin) -> share of all keys, in the row of large counts."""
    begin, end = int(lookup.offsets[-2]), int(lookup.offsets[-1])
    upper = lookup.upper[begin:end].astype(np.float64) * (BINS / lookup.modulus)
    changes = lookup.change[begin:end]
    reach = int(np.abs(changes).max())
    shares = np.zeros((2 * reach + 1, BINS))
    edges = np.arange(BINS, dtype=np.float64)
    for change, low, high in zip(changes.tolist(), [0.0, *upper[:-1]], upper, strict=True):
        shares[change + reach] += np.clip(np.minimum(high, edges + 1) - np.maximum(low, edges), 0, None)
    return shares / BINS


def _eulerian_shares(parts: int) -> list[float]:
    """A(n, k)/n!: the probability that the sum of n uniform numbers of [0, 1) lies in [k, k + 1)."""
    shares = [1.0]
    for n in range(2, parts + 1):
        before = [0.0, *shares, 0.0]
        shares = [((k + 1) * before[k + 1] + (n - k) * before[k]) / n for k in range(n)]
    return shares


GapLaw = Callable[[int], Pmf]  # number of parts -> law of their gap
Groups = Mapping[tuple[int, int], int]  # (parts, those of them published above zero) -> tuples

MOST_KEYED = 8  # with more parts the key of their total is nearly hidden
MOST_PARTS = 64  # tuples of more parts reveal nothing that tuples of this many do not
MOST_REACH = 8  # up to here the chance of small pairs is summed over all patterns


@dataclass(frozen=True)
class Expected:
    """Expected numbers of tuples that show this bound of the noise of large counts, and of tuples at the extreme."""

    bound: int
    revealing: float
    probability: float  # that at least one tuple shows the bound
    extreme: float

    def as_json(self) -> Mapping[str, object]:
        """The document for JSON."""
        return {
            "bound": self.bound,
            "revealing_tuples": self.revealing,
            "probability_bound_shown": self.probability,
            "extreme_tuples": self.extreme,
        }


def expected(gap_of: GapLaw, bound: int, groups: Groups, same_noise: bool) -> Expected:
    """Bach 2020, section 3.2, for n parts: Pr[gap > (n + 1)(E - 1)] and Pr[gap = (n + 1) E], summed over the tuples.

    Only n' of the n parts are published above zero. Empty parts have no noise, yet a part published as zero may contain
    up to E persons, so that a negative gap is shared by all n parts. A single part that contains everyone has, with the
    same noise for the same participants, no gap. The probability takes tuples as independent.
    """
    revealing, extreme, unseen = 0.0, 0.0, 0.0
    for (parts, positive), tuples in groups.items():
        if positive == 0 or (same_noise and positive == 1):
            continue
        shows, ends = _chances(gap_of, bound, parts, positive)
        revealing += tuples * shows
        extreme += tuples * ends
        unseen += tuples * (log1p(-shows) if shows < 1 else -np.inf)
    return Expected(bound, revealing, -expm1(unseen), extreme)


def independent_gaps(noise: Pmf) -> GapLaw:
    """The gaps of parts and total whose noises are independent."""
    return cache(lambda parts: gap_law(noise, parts))


def keyed_gaps(lookup: Lookup, noise: Pmf) -> GapLaw:
    """The gaps where a total's key is the sum of its parts' keys; those of many parts as if they were independent."""
    return cache(lambda parts: keyed_gap_law(lookup, parts) if parts <= MOST_KEYED else gap_law(noise, parts))


def _chances(gap_of: GapLaw, bound: int, parts: int, positive: int) -> tuple[float, float]:
    noisy = min(positive, MOST_PARTS)
    empty = parts - positive
    gap = gap_of(noisy)
    above, below = noisy + 1, noisy + empty + 1
    shows = gap.tail(above * (bound - 1) + 1) + gap.cdf(-below * (bound - 1) - 1)
    return min(shows, 1.0), gap.at(above * bound) + gap.at(-below * bound)


def small_pairs(law: Law, reach: int) -> Floats | None:
    """The probability that parts of F and M persons are disclosed by their own tuple; the last row serves the rest.

    None where the reach gives too many patterns.
    """
    if reach > MOST_REACH:
        return None
    largest = 2 * reach + 1
    chances = np.zeros((largest + 1, largest + 1))
    for pair in pinned_small(law.row, reach, largest):
        chances[pair.first, pair.second] = chances[pair.second, pair.first] = pair.probability
    return chances


@dataclass(frozen=True, eq=False)
class Choice:
    """Which tuples along an axis are chosen: fresh[class of axes before, depth of parent, class of axes after]."""

    depths: NDArray[np.int64]  # of each family's parent
    before: NDArray[np.int64]  # position along the axes before -> class
    after: NDArray[np.int64]
    fresh: NDArray[np.bool_]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take."""
        return self.depths, self.before, self.after, self.fresh


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def survey(
    shown: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    by_positive: Any,
    least: Any,
    exact: Any,
) -> None:
    """Compute the gaps of all chosen tuples of a grid (before, node, after).

    by_positive[starts[f] + f + n'] counts the tuples of family f with n' positive parts, least[e] those whose gap needs
    a bound of e, and exact[e] those exactly at that bound: gap = e (n' + 1) or -e (n + 1).
    """
    outer, _, inner = shown.shape
    for o in range(outer):
        for f in range(parents.size):
            for i in range(inner):
                if not fresh[before[o], depths[f], after[i]]:
                    continue
                total = shown[o, parents[f], i]
                gap, positive = -np.int64(total), 0
                for k in range(starts[f], starts[f + 1]):
                    part = shown[o, children[k], i]
                    gap += part
                    positive += part > 0
                by_positive[starts[f] + f + positive] += 1
                terms = positive + 1 if gap > 0 else starts[f + 1] - starts[f] + (total > 0)
                bound = (abs(gap) + terms - 1) // terms
                if bound < least.size:
                    least[bound] += 1
                    exact[bound] += bound > 0 and bound * terms == abs(gap)
                else:
                    least[least.size - 1] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pinned_pairs(
    low: Any,
    high: Any,
    shown: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    same: Any,
) -> Any:
    """Count the chosen tuples of two parts that by themselves leave one pair of true counts."""
    outer, _, inner = low.shape
    found = 0
    for o in range(outer):
        for f in range(parents.size):
            if starts[f + 1] - starts[f] != 2:
                continue
            trio = (parents[f], children[starts[f]], children[starts[f] + 1])
            for i in range(inner):
                if fresh[before[o], depths[f], after[i]]:
                    found += _fitting(low[o, :, i], high[o, :, i], shown[o, :, i], trio, same) == 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fitting(low: Any, high: Any, shown: Any, trio: Any, same: Any) -> Any:
    """How many pairs of true counts fit, at most two; an empty total is not counted as disclosed."""
    total, first, second = trio
    fits = 0
    for one in range(low[first], high[first] + 1):
        if same and one == 0 and shown[second] != shown[total]:
            continue
        for two in range(max(low[second], low[total] - one), min(high[second], high[total] - one) + 1):
            if same and two == 0 and shown[first] != shown[total]:
                continue
            fits += 1 if one + two else 2
            if fits > 1:
                return fits
    return fits


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_pairs(
    counts: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    pairs: Any,
) -> None:
    """Add to pairs[F, M] the chosen tuples of two parts with F and M persons; the last row and column serve more."""
    outer, _, inner = counts.shape
    most = pairs.shape[0] - 1
    for o in range(outer):
        for f in range(parents.size):
            if starts[f + 1] - starts[f] != 2:
                continue
            first, second = children[starts[f]], children[starts[f] + 1]
            for i in range(inner):
                if fresh[before[o], depths[f], after[i]]:
                    pairs[min(counts[o, first, i], most), min(counts[o, second, i], most)] += 1
