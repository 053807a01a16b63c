"""Targeted record swapping: the risk of households, and the pairing of those to be exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths.cells.keys import hash_word

NOBODY = np.uint32(0xFFFFFFFF)  # least count of a household without members
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLD = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _mixed(word: Any) -> Any:
    """Spread the bits of a word (the finaliser of SplitMix64, a bijection)."""
    word = word + _GOLD
    word = (word ^ (word >> np.uint64(30))) * _M1
    word = (word ^ (word >> np.uint64(27))) * _M2
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def combine(words: Any, codes: Any) -> None:
    """Add one more code to 64-bit words that represent combinations, in place."""
    for r in range(words.size):
        words[r] = _mixed(words[r] ^ np.uint64(codes[r]))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_members(sums: Any, household: Any, words: Any) -> None:
    """Add each person's word to the household's: equal sums mean equal members, in any order."""
    for r in range(words.size):
        if household[r] >= 0:
            sums[household[r]] += _mixed(words[r])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _numbered(words: Any, slots: Any, numbers: Any, out: Any) -> Any:
    mask = np.uint64(slots.size - 1)
    used = 0
    for r in range(words.size):
        at = _mixed(words[r]) & mask
        while numbers[at] >= 0 and slots[at] != words[r]:
            at = (at + np.uint64(1)) & mask
        if numbers[at] < 0:
            if 2 * (used + 1) > slots.size:
                return -1
            slots[at], numbers[at] = words[r], used
            used += 1
        out[r] = numbers[at]
    return used


def numbered(words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Number the distinct words 0, 1, .. in the order of their appearance; return the numbers and how many."""
    out = np.empty(len(words), dtype=np.int32)
    size = 1 << 12
    while True:
        slots, numbers = np.empty(size, dtype=np.uint64), np.full(size, -1, dtype=np.int32)
        used = int(_numbered(words, slots, numbers, out))
        if used >= 0:
            return out, used
        size *= 8


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def counting_order(codes: Any, categories: Any) -> Any:
    """The stable order of some codes, by a counting sort, and where each code begins."""
    begin = np.zeros(categories + 1, dtype=np.int64)
    for r in range(codes.size):
        begin[codes[r] + 1] += 1
    for c in range(categories):
        begin[c + 1] += begin[c]
    following = begin[:-1].copy()
    order = np.empty(codes.size, dtype=np.int32)
    for r in range(codes.size):
        order[following[codes[r]]] = r
        following[codes[r]] += 1
    return order, begin


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _least_counts(region: Any, alike: Any, household: Any, counts: Any, least: Any) -> None:
    """One level; the persons are grouped by region."""
    start = 0
    while start < region.size:
        end = start
        while end < region.size and region[end] == region[start]:
            counts[alike[end]] += np.uint32(1)
            end += 1
        for r in range(start, end):
            home = household[r]
            if home >= 0 and counts[alike[r]] < least[home]:
                least[home] = counts[alike[r]]
        for r in range(start, end):
            counts[alike[r]] = np.uint32(0)
        start = end


def least_counts(
    finest: NDArray[np.int32],
    above: NDArray[np.int32],
    alike: NDArray[np.int32],
    household: NDArray[np.int32],
    households: int,
) -> NDArray[np.uint32]:
    """(level, household) -> the least count among its members.

    ``finest`` is the finest region of each person, ``above`` the region of each finest one at every level, numbered
    so that regions of one parent are adjacent; ``alike`` numbers the combinations of values; ``household`` is -1
    for persons outside, who are counted as well.
    """
    order, _ = counting_order(finest, above.shape[1])
    finest, alike, household = finest[order], alike[order], household[order]
    least = np.full((len(above), households), NOBODY, dtype=np.uint32)
    counts = np.zeros(int(alike.max(initial=0)) + 1, dtype=np.uint32)
    for level in range(len(above)):
        _least_counts(above[level][finest], alike, household, counts, least[level])
    return least


_UNIT = 1 << 24  # weight of a donor with risk 1
_STEP = np.uint64(0x9E3779B97F4A7C15)
_NOT_TRIED, _PAIRED, _NO_DONOR, _CAP, _QUOTA = range(5)


class Outcome(IntEnum):
    """The outcome for a household."""

    LEFT = 0
    AT_RISK = 1
    DONOR = 2
    RATE = 3
    NO_DONOR = 4
    EXCLUDED = 5
    CAP = 6
    QUOTA = 7


@dataclass(frozen=True, eq=False)
class Candidates:
    """The households in the order of their ids (hashes, all different), and what may be done with them."""

    ids: NDArray[np.uint64]
    area: NDArray[np.int32]  # (level, household), regions of one parent numbered together
    risk: NDArray[np.float64]  # (level, household)
    at_risk_level: NDArray[np.int8]  # -1 for none
    excluded: NDArray[np.bool_]
    profiles: NDArray[np.int32]  # (profile, household)


@dataclass(frozen=True, eq=False)
class Terms:
    """How much is exchanged and how donors are drawn; numbers of households, not shares."""

    key: NDArray[np.uint64]  # two words of the secret
    target: int  # to be swapped at the end
    cap: int
    by_risk: bool
    inside_parent: bool
    level_quotas: NDArray[np.int64]  # level -> most swapped at it
    region_quotas: tuple[tuple[int, NDArray[np.int64]], ...] = ()  # (level, region -> most swapped)


@dataclass(eq=False)
class Paired:
    """Partners (-1 for none) with level, profile, whether from the same parent region, and outcome."""

    partner: NDArray[np.int64]
    level: NDArray[np.int8]
    profile: NDArray[np.int8]
    inside: NDArray[np.bool_]
    outcome: NDArray[np.uint8]
    swapped: int = 0
    swapped_at: list[int] = field(default_factory=list)
    short: Outcome | None = None  # why the rate was not reached


def pair(households: Candidates, terms: Terms) -> Paired:
    """Exchange every household at risk once, from the coarsest level on, then random ones up to the target."""
    number, levels = len(households.ids), len(households.area)
    none = np.full(number, -1, dtype=np.int8)
    paired = Paired(
        np.full(number, -1, dtype=np.int64),
        none,
        none.copy(),
        np.zeros(number, dtype=bool),
        np.zeros(number, dtype=np.uint8),
        swapped_at=[0] * levels,
    )
    search = _Search(households, terms, paired)
    for level in range(levels):
        search.rescue(level)
    search.top_up()
    risky = (households.at_risk_level >= 0) & (paired.partner < 0) & households.excluded
    paired.outcome[risky] = Outcome.EXCLUDED
    return paired


class _Search:
    def __init__(self, households: Candidates, terms: Terms, paired: Paired) -> None:
        self._all, self._terms, self._paired = households, terms, paired
        count = max(1, len(terms.region_quotas))
        widest = max([1, *(len(most) for _, most in terms.region_quotas)])
        self._quota_area = np.zeros((len(terms.region_quotas), len(households.ids)), dtype=np.int32)
        self._left = np.zeros((count, widest), dtype=np.int64)
        for place, (level, most) in enumerate(terms.region_quotas):
            self._quota_area[place] = households.area[level]
            self._left[place, : len(most)] = most

    def rescue(self, level: int) -> None:
        """Pair the households at risk at a level, or at a coarser one where no donor was found; riskiest first."""
        at_risk, paired = self._all.at_risk_level, self._paired
        waiting = np.flatnonzero(
            (at_risk >= 0) & (at_risk <= level) & (paired.partner < 0) & ~self._all.excluded
        )
        waiting = waiting[np.argsort(-self._all.risk[level][waiting], kind="stable")]
        wide = 2 * len(self._all.ids)
        for profile in range(len(self._all.profiles)):
            tried = self._try(waiting, level, profile, wide, Outcome.AT_RISK, Outcome.DONOR)
            for status, outcome in _REASONS:
                paired.outcome[waiting[tried == status]] = outcome
            waiting = waiting[(tried == _NO_DONOR) | (tried == _QUOTA)]

    def top_up(self) -> None:
        """Add random pairs at the finest level, spread over its regions in proportion to their households."""
        wanted = self._terms.target - self._paired.swapped
        if wanted <= 0:
            return
        order, level = self._spread(), len(self._all.area) - 1
        for some in (order[:wanted], order):  # usually the first few suffice, and need a small index
            for profile in range(len(self._all.profiles)):
                wanted = self._terms.target - self._paired.swapped
                rest = some[self._paired.partner[some] < 0]
                if wanted > 0 and len(rest):
                    tried = self._try(rest, level, profile, wanted, Outcome.RATE, Outcome.RATE)
                    self._paired.short = dict(_REASONS).get(int(tried.max(initial=_NOT_TRIED)))

    def _spread(self) -> NDArray[np.int64]:
        """The households that are left, ordered so that every beginning of the order is spread over the regions.

        The r-th of the n households of a region is at (r + u) / n, with u drawn from its id.
        """
        area = self._all.area[-1]
        order, begin = counting_order(area, int(area.max(initial=0)) + 1)
        place = np.empty(len(area))
        size = np.diff(begin)[area[order]]
        draws = _uniform(self._all.ids, self._terms.key[0], self._terms.key[1])
        place[order] = (np.arange(len(area)) - begin[area[order]] + draws[order]) / size
        left = np.flatnonzero((self._paired.partner < 0) & ~self._all.excluded)
        return left[np.argsort(place[left], kind="stable")]

    def _try(
        self, waiting: NDArray[np.int64], level: int, profile: int, wanted: int, own: int, donor: int
    ) -> NDArray[np.uint8]:
        """Find a donor for each one waiting, until ``wanted`` households are swapped; return what happened."""
        status = np.zeros(len(waiting), dtype=np.uint8)
        if not len(waiting):
            return status
        paired, terms = self._paired, self._terms
        rooms = np.array(
            [wanted, terms.cap - paired.swapped, terms.level_quotas[level] - paired.swapped_at[level]]
        )
        values, area = self._all.profiles[profile], self._all.area[level]
        parent = self._all.area[level - 1] if level else np.zeros_like(area)
        index = self._index(waiting, level, values, area)
        step = np.uint64((level << 40) | (profile << 32) | (1 << 56))
        _pair_up(
            waiting,
            status,
            (self._all.ids, values, area, parent),
            index,
            (terms.key[0], terms.key[1], step),
            terms.inside_parent and level > 0,
            rooms,
            self._quota_area,
            self._left,
            (paired.partner, paired.level, paired.profile, paired.inside, paired.outcome),
            (level, profile, own, donor),
        )
        made = wanted - int(rooms[0])
        paired.swapped += made
        paired.swapped_at[level] += made
        return status

    def _index(
        self, waiting: NDArray[np.int64], level: int, values: NDArray[np.int32], area: NDArray[np.int32]
    ) -> tuple[Any, ...]:
        """The remaining households similar to a waiting one, by values and region, with a tree of their weights."""
        kinds = int(values.max()) + 1
        needed = np.zeros(kinds, dtype=bool)
        needed[values[waiting]] = True
        rows = np.flatnonzero(needed[values] & (self._paired.partner < 0) & ~self._all.excluded)
        rows = rows[counting_order(area[rows], int(area.max()) + 1)[0]]
        order, begin = counting_order(values[rows], kinds)
        rows = rows[order]
        place = np.full(len(values), -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        weights = np.ones(len(rows), dtype=np.int64)
        if self._terms.by_risk:
            weights = np.maximum(1, np.rint(self._all.risk[level][rows] * _UNIT)).astype(np.int64)
        tree = np.concatenate([[0], weights]).astype(np.int64)
        _plant(tree)
        return rows, begin, place, area[rows], weights, tree


_REASONS = ((_NO_DONOR, Outcome.NO_DONOR), (_CAP, Outcome.CAP), (_QUOTA, Outcome.QUOTA))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _uniform(ids: Any, k0: Any, k1: Any) -> Any:
    out = np.empty(ids.size)
    for r in range(ids.size):
        out[r] = (hash_word(ids[r], k0, k1) >> np.uint64(11)) * 2.0**-53
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _plant(tree: Any) -> None:
    """Make a Fenwick tree of weights at indices 1, 2, .."""
    for node in range(1, tree.size):
        above = node + (node & -node)
        if above < tree.size:
            tree[above] += tree[node]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _before(tree: Any, place: Any) -> Any:
    """The sum of the weights at places below ``place``."""
    total = np.int64(0)
    while place > 0:
        total += tree[place]
        place &= place - 1
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _forget(tree: Any, weights: Any, place: Any) -> None:
    node, weight = place + 1, weights[place]
    weights[place] = 0
    while weight and node < tree.size:
        tree[node] -= weight
        node += node & -node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _at(tree: Any, sought: Any) -> Any:
    """The place whose weight covers a position along the sum of all weights."""
    step = 1
    while 2 * step < tree.size:
        step *= 2
    place = 0
    while step:
        if place + step < tree.size and tree[place + step] <= sought:
            place += step
            sought -= tree[place]
        step //= 2
    return place


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _first_at_least(codes: Any, low: Any, high: Any, code: Any) -> Any:
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _parent_range(
    rows: Any, parent: Any, low: Any, high: Any, inner_low: Any, inner_high: Any, own: Any
) -> Any:
    """Where the households of one parent region begin and end, around those of one of its regions."""
    first, last = low, inner_low
    while first < last:
        middle = (first + last) // 2
        if parent[rows[middle]] < own:
            first = middle + 1
        else:
            last = middle
    begin = first
    first, last = inner_high, high
    while first < last:
        middle = (first + last) // 2
        if parent[rows[middle]] <= own:
            first = middle + 1
        else:
            last = middle
    return begin, first


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _drawn(tree: Any, low: Any, high: Any, inner_low: Any, inner_high: Any, bits: Any) -> Any:
    """Draw a place from low..high without inner_low..inner_high by weight; -1 where none is left."""
    start, after = _before(tree, low), _before(tree, inner_high)
    left = _before(tree, inner_low) - start
    total = left + _before(tree, high) - after
    if total <= 0:
        return -1
    sought = np.int64(bits % np.uint64(total))
    return _at(tree, start + sought if sought < left else after + sought - left)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _full(row: Any, quota_area: Any, left: Any) -> Any:
    full = False
    for q in range(len(quota_area)):
        full |= left[q, quota_area[q, row]] < 1
    return full


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _donor(one: Any, facts: Any, index: Any, key: Any, inside_parent: Any, quota_area: Any, left: Any) -> Any:
    """Draw a similar household of another region: its place in the index, whether from inside, whether one was full."""
    ids, values, area, parent = facts
    rows, begin, _, areas, weights, tree = index
    k0, k1, step = key
    low, high = begin[values[one]], begin[values[one] + 1]
    inner_low = _first_at_least(areas, low, high, area[one])
    inner_high = _first_at_least(areas, inner_low, high, area[one] + 1)
    near_low, near_high = low, high
    if inside_parent:
        near_low, near_high = _parent_range(rows, parent, low, high, inner_low, inner_high, parent[one])
    some_full = False
    while True:
        bits = hash_word(ids[one] ^ (step * _STEP), k0, k1)
        at = _drawn(tree, near_low, near_high, inner_low, inner_high, bits)
        inside = inside_parent and at >= 0
        if at < 0 and inside_parent:
            at = _drawn(tree, low, high, inner_low, inner_high, bits)
        if at < 0 or not _full(rows[at], quota_area, left):
            return at, inside, some_full
        some_full = True
        _forget(tree, weights, at)  # its region stays full, so it cannot be drawn again
        step += np.uint64(1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hindered(one: Any, rooms: Any, quota_area: Any, left: Any) -> Any:
    if rooms[1] < 2:
        return _CAP
    return _QUOTA if rooms[2] < 2 or _full(one, quota_area, left) else _NOT_TRIED


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pair_up(
    waiting: Any,
    status: Any,
    facts: Any,
    index: Any,
    key: Any,
    inside_parent: Any,
    rooms: Any,
    quota_area: Any,
    left: Any,
    out: Any,
    marks: Any,
) -> None:
    """Give each one waiting a donor from another region; rooms are households wanted, below the cap, at the level."""
    rows, _, place, _, weights, tree = index
    partner, at_level, by_profile, from_inside, outcome = out
    level, profile, own_mark, donor_mark = marks
    for w in range(waiting.size):
        one = waiting[w]
        if rooms[0] <= 0:
            break
        status[w] = _PAIRED if partner[one] >= 0 else _hindered(one, rooms, quota_area, left)
        if status[w] != _NOT_TRIED:
            continue
        at, inside, some_full = _donor(one, facts, index, key, inside_parent, quota_area, left)
        if at < 0:
            status[w] = _QUOTA if some_full else _NO_DONOR
            continue
        found = rows[at]
        status[w] = _PAIRED
        partner[one], partner[found] = found, one
        outcome[one], outcome[found] = own_mark, donor_mark
        for row in (one, found):
            at_level[row], by_profile[row], from_inside[row] = level, profile, inside
            _forget(tree, weights, place[row])
            for q in range(len(quota_area)):
                left[q, quota_area[q, row]] -= 1
        rooms -= 2
