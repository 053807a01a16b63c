"""Targeted record swapping: the risk of households, and the pairing of those to be exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
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
def _place(word: Any, ids: Any, begin: Any, shift: Any) -> Any:
    at, end = begin[word >> shift], begin[(word >> shift) + np.uint64(1)]
    while at < end and ids[at] < word:
        at += 1
    return at if at < end and ids[at] == word else -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _find(hashes: Any, ids: Any, number: Any, named: Any, begin: Any, shift: Any, out: Any) -> None:
    last = -1
    for r in range(hashes.size):
        if last >= 0 and named[last] == hashes[r]:
            out[r] = last
        elif last + 1 < named.size and named[last + 1] == hashes[r]:
            last += 1
            out[r] = last
        else:
            at = _place(hashes[r], ids, begin, shift)
            if at >= 0:
                last = number[at]
            out[r] = last if at >= 0 else -1


class Places:
    """Numbered ids (hashes), in which others are looked up.

    ``ids`` ascend and ``number`` is a permutation. The first bits of a hash give nearly where it is; tables of one
    census mostly follow one order, so that the last number and the next are tried first.
    """

    def __init__(self, ids: NDArray[np.uint64], number: NDArray[np.int32]) -> None:
        bits = max(1, len(ids).bit_length() - 2)
        edges = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        begin = np.append(np.searchsorted(ids, edges), len(ids)).astype(np.int32)
        named = np.empty(len(ids), dtype=np.uint64)
        named[number] = ids
        self._index = ids, number, named, begin, np.uint64(64 - bits)

    def numbers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each hash, -1 where it is none of the ids."""
        out = np.empty(len(hashes), dtype=np.int32)
        _find(hashes, *self._index, out)
        return out


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
def _least_counts(finest: Any, above: Any, alike: Any, household: Any, counts: Any, least: Any) -> None:
    """One level; the persons are grouped by region."""
    start = 0
    while start < finest.size:
        end = start
        while end < finest.size and above[finest[end]] == above[finest[start]]:
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
    if (finest[1:] < finest[:-1]).any():
        order, _ = counting_order(finest, above.shape[1])
        finest, alike, household = finest[order], alike[order], household[order]
    least = np.full((len(above), households), NOBODY, dtype=np.uint32)
    counts = np.zeros(int(alike.max(initial=0)) + 1, dtype=np.uint32)
    for level in range(len(above)):
        _least_counts(finest, above[level], alike, household, counts, least[level])
    return least


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def coarsest_at_risk(risk: Any, k: Any) -> Any:
    """The first level at which the risk of each household is above 1/k, -1 for none; ``risk`` is (level, household)."""
    out = np.full(risk.shape[1], -1, dtype=np.int8)
    for level in range(risk.shape[0] - 1, -1, -1):
        for h in range(risk.shape[1]):
            if risk[level, h] * k > 1 + 1e-9:
                out[h] = level
    return out


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
        values, inside = self._all.profiles[profile], terms.inside_parent and level > 0
        index = self._index(waiting, level, values, inside)
        step = np.uint64((level << 40) | (profile << 32) | (1 << 56))
        _pair_up(
            waiting,
            status,
            (self._all.ids, values),
            index,
            (terms.key[0], terms.key[1], step),
            inside,
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
        self, waiting: NDArray[np.int64], level: int, values: NDArray[np.int32], inside: bool
    ) -> tuple[Any, ...]:
        """The remaining households similar to a waiting one, by values and region, with trees of their weights.

        Each kind of values has a tree of its own: donors are drawn among similar households only, and a small tree
        stays in the cache.
        """
        area = self._all.area[level]
        sizes = int(values.max()) + 1, int(area.max()) + 1
        rows, begin, place = _similar(waiting, values, area, self._paired.partner, self._all.excluded, *sizes)
        weights = np.ones(len(rows), dtype=np.int64)
        if self._terms.by_risk:
            weights = np.maximum(1, np.rint(self._all.risk[level][rows] * _UNIT)).astype(np.int64)
        tree = weights.copy()
        _plant(tree, begin)
        own = _stretches(begin, area[rows])
        near = _stretches(begin, self._all.area[level - 1][rows]) if inside else own
        return rows, begin, place, own, near, weights, tree


_REASONS = ((_NO_DONOR, Outcome.NO_DONOR), (_CAP, Outcome.CAP), (_QUOTA, Outcome.QUOTA))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _uniform(ids: Any, k0: Any, k1: Any) -> Any:
    out = np.empty(ids.size)
    for r in range(ids.size):
        out[r] = (hash_word(ids[r], k0, k1) >> np.uint64(11)) * 2.0**-53
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _similar(
    waiting: Any, values: Any, area: Any, partner: Any, excluded: Any, kinds: Any, areas: Any
) -> Any:
    """The free households with values of a waiting one, by values, region and row: two counting sorts.

    Also where each kind of values begins, and the place of each household in the order (-1 for none).
    """
    needed = np.zeros(kinds, dtype=np.bool_)
    for w in range(waiting.size):
        needed[values[waiting[w]]] = True
    of_area, begin = np.zeros(areas + 1, dtype=np.int64), np.zeros(kinds + 1, dtype=np.int64)
    for r in range(values.size):
        if needed[values[r]] and partner[r] < 0 and not excluded[r]:
            of_area[area[r] + 1] += 1
            begin[values[r] + 1] += 1
    of_area, begin = of_area.cumsum(), begin.cumsum()
    following, by_area = begin[:-1].copy(), np.empty(begin[-1], dtype=np.int32)
    for r in range(values.size):
        if needed[values[r]] and partner[r] < 0 and not excluded[r]:
            by_area[of_area[area[r]]] = r
            of_area[area[r]] += 1
    rows, place = np.empty(by_area.size, dtype=np.int32), np.full(values.size, -1, dtype=np.int32)
    for a in range(by_area.size):
        row = by_area[a]
        at = following[values[row]]
        following[values[row]] = at + 1
        rows[at], place[row] = row, at
    return rows, begin, place


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _plant(tree: Any, begin: Any) -> None:
    """Make Fenwick trees of weights, one from each begin to the next; the first weight of a tree is its node 1."""
    for kind in range(begin.size - 1):
        base, size = begin[kind], begin[kind + 1] - begin[kind]
        for node in range(1, size + 1):
            above = node + (node & -node)
            if above <= size:
                tree[base + above - 1] += tree[base + node - 1]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _before(tree: Any, base: Any, place: Any) -> Any:
    """The sum of the weights of a tree at places from its base to below ``place``."""
    total, node = np.int64(0), place - base
    while node > 0:
        total += tree[base + node - 1]
        node &= node - 1
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _forget(tree: Any, base: Any, size: Any, weights: Any, place: Any) -> None:
    node, weight = place - base + 1, weights[place]
    weights[place] = 0
    while weight and node <= size:
        tree[base + node - 1] -= weight
        node += node & -node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _at(tree: Any, base: Any, size: Any, sought: Any) -> Any:
    """The place whose weight covers a position along the sum of the weights of a tree."""
    step = 1
    while 2 * step <= size:
        step *= 2
    node = 0
    while step:
        if node + step <= size and tree[base + node + step - 1] <= sought:
            node += step
            sought -= tree[base + node - 1]
        step //= 2
    return base + node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _stretches(begin: Any, regions: Any) -> Any:
    """Where the stretch of equal regions around each place of a tree begins and ends: (place, 2)."""
    bounds = np.empty((regions.size, 2), dtype=np.int32)
    for kind in range(begin.size - 1):
        low = begin[kind]
        for place in range(begin[kind], begin[kind + 1]):
            bounds[place, 0] = low
            if place + 1 == begin[kind + 1] or regions[place + 1] != regions[place]:
                for inner in range(low, place + 1):
                    bounds[inner, 1] = place + 1
                low = place + 1
    return bounds


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _drawn(
    tree: Any, base: Any, size: Any, low: Any, high: Any, inner_low: Any, inner_high: Any, bits: Any
) -> Any:
    """Draw a place from low..high without inner_low..inner_high by weight; -1 where none is left."""
    start, after = _before(tree, base, low), _before(tree, base, inner_high)
    left = _before(tree, base, inner_low) - start
    total = left + _before(tree, base, high) - after
    if total <= 0:
        return -1
    sought = np.int64(bits % np.uint64(total))
    return _at(tree, base, size, start + sought if sought < left else after + sought - left)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _full(row: Any, quota_area: Any, left: Any) -> Any:
    full = False
    for q in range(len(quota_area)):
        full |= left[q, quota_area[q, row]] < 1
    return full


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _donor(one: Any, facts: Any, index: Any, key: Any, inside_parent: Any, quota_area: Any, left: Any) -> Any:
    """Draw a similar household of another region: its place in the index, whether from inside, whether one was full."""
    ids, values = facts
    rows, begin, place, own, near, weights, tree = index
    k0, k1, step = key
    low, high = begin[values[one]], begin[values[one] + 1]
    at = place[one]
    inner_low, inner_high = own[at, 0], own[at, 1]
    near_low, near_high = low, high
    if inside_parent:
        near_low, near_high = near[at, 0], near[at, 1]
    some_full = False
    while True:
        bits = hash_word(ids[one] ^ (step * _STEP), k0, k1)
        at = _drawn(tree, low, high - low, near_low, near_high, inner_low, inner_high, bits)
        inside = inside_parent and at >= 0
        if at < 0 and inside_parent:
            at = _drawn(tree, low, high - low, low, high, inner_low, inner_high, bits)
        if at < 0 or not _full(rows[at], quota_area, left):
            return at, inside, some_full
        some_full = True
        _forget(tree, low, high - low, weights, at)  # its region stays full, so it cannot be drawn again
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
    rows, begin, place, _, _, weights, tree = index
    values = facts[1]
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
        found = np.int64(rows[at])
        base, size = begin[values[one]], begin[values[one] + 1] - begin[values[one]]
        status[w] = _PAIRED
        partner[one], partner[found] = found, one
        outcome[one], outcome[found] = own_mark, donor_mark
        for row in (one, found):
            at_level[row], by_profile[row], from_inside[row] = level, profile, inside
            _forget(tree, base, size, weights, place[row])
            for q in range(len(quota_area)):
                left[q, quota_area[q, row]] -= 1
        rooms -= 2
