"""Targeted record swapping: the pairing of the households to be exchanged.

Households are in the order of the hashes of their ids, which is random, and there are more of them than a processor's
cache has room for. So those who may be exchanged are first put beside similar ones (``_Index``), in passes that read
and write in order, and paired there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.keys import hash_order, hash_word
from discreet.maths.swap import counting_order

_UNIT = 1 << 24  # weight of a donor with risk 1
_BLOCK = 4  # bits of the number of weights that are added up one by one: a line of the cache
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

    partner: NDArray[np.int32]
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
        np.full(number, -1, dtype=np.int32),
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
        self._free = ~households.excluded
        count = max(1, len(terms.region_quotas))
        widest = max([1, *(len(most) for _, most in terms.region_quotas)])
        self._quota_area = np.zeros((len(terms.region_quotas), len(households.ids)), dtype=np.int32)
        self._left = np.zeros((count, widest), dtype=np.int64)
        for place, (level, most) in enumerate(terms.region_quotas):
            self._quota_area[place] = households.area[level]
            self._left[place, : len(most)] = most

    def rescue(self, level: int) -> None:
        """Pair the households at risk at a level, or at a coarser one where no donor was found; riskiest first."""
        waiting = _at_risk(self._all.at_risk_level, level, self._free)
        waiting = waiting[np.argsort(-self._all.risk[level][waiting], kind="stable")]
        wide = 2 * len(self._all.ids)
        for profile in range(len(self._all.profiles)):
            tried = self._try(waiting, level, profile, wide, Outcome.AT_RISK, Outcome.DONOR)
            for status, outcome in _REASONS:
                self._paired.outcome[waiting[tried == status]] = outcome
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
                rest = some[self._free[some]]
                if wanted > 0 and len(rest):
                    tried = self._try(rest, level, profile, wanted, Outcome.RATE, Outcome.RATE)
                    self._paired.short = dict(_REASONS).get(int(tried.max(initial=_NOT_TRIED)))

    def _spread(self) -> NDArray[np.int32]:
        """The households that are left, ordered so that every beginning of the order is spread over the regions.

        The r-th of the n households of a region is at (r + u) / n, with u drawn from its id.
        """
        area, key = self._all.area[-1], self._terms.key
        sizes = np.bincount(area, minlength=1)
        left = np.flatnonzero(self._free).astype(np.int32)
        place = np.empty(len(left), dtype=np.uint64)
        _spread_places(self._all.ids, area, sizes, self._free, key[0], key[1], place)
        return left[hash_order(place)[0]]

    def _try(
        self, waiting: NDArray[np.int32], level: int, profile: int, wanted: int, own: int, donor: int
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
        for turns in self._turns(values[waiting], rooms):
            ones = waiting[turns]
            _pair_up(
                turns,
                status,
                (self._all.ids[ones], values[ones], index.place[ones]),
                (index.rows, index.begin, index.stretch, index.bounds, index.weights, index.tree),
                (terms.key[0], terms.key[1], step),
                inside,
                rooms,
                self._quota_area,
                self._left,
                (index.mate, index.role),
            )
        found = paired.partner, paired.level, paired.profile, paired.inside, paired.outcome, self._free
        _note(index.rows, index.mate, index.role, found, (level, profile, own, donor))
        made = wanted - int(rooms[0])
        paired.swapped += made
        paired.swapped_at[level] += made
        return status

    def _turns(self, values: NDArray[np.int32], rooms: NDArray[np.int64]) -> Iterator[NDArray[np.int32]]:
        """The turns of those waiting, in an order in which the outcome is that of one after the other.

        Those with different values share no donors, but what is left of the rooms and of the quotas of regions. As
        long as that is more than all of the next can use up, those with equal values are next to each other: what they
        choose from is near the processor then.
        """
        start, kinds = 0, int(values.max()) + 1
        while start < len(values) and rooms[0] > 0:
            end = min(len(values), start + int(rooms.min()) // 2)
            if len(self._quota_area) or end - start < _FEW:
                yield np.arange(start, len(values), dtype=np.int32)
                return
            yield start + counting_order(values[start:end], kinds)[0]
            start = end

    def _index(
        self, waiting: NDArray[np.int32], level: int, values: NDArray[np.int32], inside: bool
    ) -> _Index:
        area = self._all.area[level]
        upper = self._all.area[level - 1] if inside else area
        kinds, areas = int(values.max()) + 1, int(area.max()) + 1
        risk = self._all.risk[level]
        similar = _similar(waiting, values, area, upper, risk, self._terms.by_risk, self._free, kinds, areas)
        rows, begin, place, stretch, weights, parent = similar
        bounds = _bounds(begin, stretch, parent, inside)
        tree = np.zeros((len(rows) >> _BLOCK) + kinds, dtype=np.int64)
        _plant(tree, begin, weights)
        mate, role = np.empty(len(rows), dtype=np.int32), np.zeros(len(rows), dtype=np.uint8)
        return _Index(rows, begin, place, stretch, bounds, weights, tree, mate, role)


_REASONS = ((_NO_DONOR, Outcome.NO_DONOR), (_CAP, Outcome.CAP), (_QUOTA, Outcome.QUOTA))
_FEW = 1024  # households whose order is not worth a change
_OWN, _DONOR, _INSIDE = 1, 2, 4


@dataclass(frozen=True, eq=False)
class _Index:
    """The free households similar to a waiting one, by values, region and row; a place is one in this order.

    Each kind of values has a tree of the weights of its own, over blocks of 2^``_BLOCK`` of its places.
    """

    rows: NDArray[np.int32]  # place -> household
    begin: NDArray[np.int64]  # kind -> its first place
    place: NDArray[np.int32]  # household -> place, of those waiting only
    stretch: NDArray[np.int32]  # place -> number of the stretch of its kind and region
    bounds: NDArray[
        np.int32
    ]  # (stretch, 4): its first place and its end, and those of the kind in the parent region
    weights: NDArray[np.uint32]  # place -> weight, 0 where it cannot be drawn any more
    tree: NDArray[np.int64]
    mate: NDArray[np.int32]  # place -> that of the partner, where there is a role
    role: NDArray[np.uint8]  # place -> 0, or ``_OWN`` or ``_DONOR``, and ``_INSIDE``


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _at_risk(levels: Any, level: Any, free: Any) -> Any:
    """The free households at risk at a level or a coarser one."""
    number = 0
    for r in range(levels.size):
        number += 0 <= levels[r] <= level and free[r]
    rows = np.empty(number, dtype=np.int32)
    number = 0
    for r in range(levels.size):
        if 0 <= levels[r] <= level and free[r]:
            rows[number] = r
            number += 1
    return rows


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _spread_places(ids: Any, area: Any, sizes: Any, free: Any, k0: Any, k1: Any, out: Any) -> None:
    """The place of each free household within its region, from 0 to 1, in units of 2^-63."""
    before, number = np.zeros(sizes.size, dtype=np.int64), 0
    for r in range(ids.size):
        if free[r]:
            draw = (hash_word(ids[r], k0, k1) >> np.uint64(11)) * 2.0**-53
            out[number] = np.uint64((before[area[r]] + draw) / sizes[area[r]] * 2.0**63)
            number += 1
        before[area[r]] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _similar(
    waiting: Any,
    values: Any,
    area: Any,
    upper: Any,
    risk: Any,
    by_risk: Any,
    free: Any,
    kinds: Any,
    areas: Any,
) -> Any:
    """The free households with values of a waiting one, by values, region and row: two counting sorts.

    What is needed of a household moves with it. Returned are rows, where each kind of values begins, the places of
    those waiting, the region and the weight at each place, and the parent of each region.
    """
    needed, awaits = np.zeros(kinds, dtype=np.bool_), np.zeros(values.size, dtype=np.bool_)
    for w in range(waiting.size):
        needed[values[waiting[w]]] = True
        awaits[waiting[w]] = True
    of_area, begin = np.zeros(areas + 1, dtype=np.int64), np.zeros(kinds + 1, dtype=np.int64)
    parent = np.zeros(areas, dtype=np.int32)
    for r in range(values.size):
        if free[r] and needed[values[r]]:
            of_area[area[r] + 1] += 1
            begin[values[r] + 1] += 1
            parent[area[r]] = upper[r]
    of_area, begin = of_area.cumsum(), begin.cumsum()
    following, number = of_area[:-1].copy(), begin[-1]
    row_there, kind_there = np.empty(number, dtype=np.int32), np.empty(number, dtype=np.int32)
    weight_there = np.empty(number, dtype=np.uint32)
    for r in range(values.size):
        if free[r] and needed[values[r]]:
            at = following[area[r]]
            following[area[r]] = at + 1
            row_there[at], kind_there[at] = ~r if awaits[r] else r, values[r]
            weight_there[at] = max(1, np.rint(risk[r] * _UNIT)) if by_risk else 1
    following, place = begin[:-1].copy(), np.empty(values.size, dtype=np.int32)
    rows, region = np.empty(number, dtype=np.int32), np.empty(number, dtype=np.int32)
    weights = np.empty(number, dtype=np.uint32)
    for a in range(areas):
        for there in range(of_area[a], of_area[a + 1]):
            row, kind = row_there[there], kind_there[there]
            at = following[kind]
            following[kind] = at + 1
            if row < 0:
                row = ~row
                place[row] = at
            rows[at], region[at], weights[at] = row, a, weight_there[there]
    return rows, begin, place, region, weights, parent


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bounds(begin: Any, stretch: Any, parent: Any, inside: Any) -> Any:
    """Turn the region at each place into the number of its stretch; return (stretch, 4), as in ``_Index``."""
    number = 0
    for kind in range(begin.size - 1):
        for at in range(begin[kind], begin[kind + 1]):
            number += at == begin[kind] or stretch[at] != stretch[at - 1]
    bounds = np.empty((number, 4), dtype=np.int32)
    number = 0
    for kind in range(begin.size - 1):
        near, above, last = number, np.int32(-1), np.int32(-1)
        for at in range(begin[kind], begin[kind + 1]):
            if stretch[at] != last:
                last = stretch[at]
                if inside and parent[last] != above:
                    for one in range(near, number):
                        bounds[one, 3] = at
                    above, near = parent[last], number
                bounds[number, 0] = bounds[number, 2] = at
                if number > near:
                    bounds[number, 2] = bounds[near, 2]
                number += 1
            bounds[number - 1, 1] = at + 1
            stretch[at] = number - 1
        for one in range(near, number):
            bounds[one, 3] = begin[kind + 1]
    return bounds


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tree(begin: Any, kind: Any) -> Any:
    """The first place of a kind, its end, where its tree begins, and how many blocks that has.

    There is room for a block that is not full in every kind.
    """
    low, high = begin[kind], begin[kind + 1]
    return low, high, (low >> _BLOCK) + kind, (high - low + (1 << _BLOCK) - 1) >> _BLOCK


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _plant(tree: Any, begin: Any, weights: Any) -> None:
    """Make the Fenwick trees of the weights; the first block of a kind is node 1 of its tree."""
    for kind in range(begin.size - 1):
        low, high, base, blocks = _tree(begin, kind)
        for at in range(low, high):
            tree[base + ((at - low) >> _BLOCK)] += np.int64(weights[at])
        for node in range(1, blocks + 1):
            above = node + (node & -node)
            if above <= blocks:
                tree[base + above - 1] += tree[base + node - 1]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _before(tree: Any, weights: Any, low: Any, base: Any, place: Any) -> Any:
    """The sum of the weights of a kind at places below ``place``."""
    total, node = np.int64(0), (place - low) >> _BLOCK
    for at in range(low + (node << _BLOCK), place):
        total += np.int64(weights[at])
    while node > 0:
        total += tree[base + node - 1]
        node &= node - 1
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _forget(tree: Any, weights: Any, low: Any, base: Any, blocks: Any, place: Any) -> None:
    node, weight = ((place - low) >> _BLOCK) + 1, np.int64(weights[place])
    weights[place] = 0
    while weight and node <= blocks:
        tree[base + node - 1] -= weight
        node += node & -node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _at(tree: Any, weights: Any, low: Any, base: Any, blocks: Any, sought: Any) -> Any:
    """The place whose weight covers a position along the sum of the weights of a kind."""
    step = 1
    while 2 * step <= blocks:
        step *= 2
    node = 0
    while step:
        if node + step <= blocks and tree[base + node + step - 1] <= sought:
            node += step
            sought -= tree[base + node - 1]
        step //= 2
    at = low + (node << _BLOCK)
    while np.int64(weights[at]) <= sought:
        sought -= np.int64(weights[at])
        at += 1
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _drawn(
    tree: Any, weights: Any, kind: Any, low: Any, high: Any, inner_low: Any, inner_high: Any, bits: Any
) -> Any:
    """Draw a place from low..high without inner_low..inner_high by weight; -1 where none is left."""
    first, _, base, blocks = kind
    start, after = _before(tree, weights, first, base, low), _before(tree, weights, first, base, inner_high)
    left = _before(tree, weights, first, base, inner_low) - start
    total = left + _before(tree, weights, first, base, high) - after
    if total <= 0:
        return -1
    sought = np.int64(bits % np.uint64(total))
    return _at(tree, weights, first, base, blocks, start + sought if sought < left else after + sought - left)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _full(row: Any, quota_area: Any, left: Any) -> Any:
    full = False
    for q in range(len(quota_area)):
        full |= left[q, quota_area[q, row]] < 1
    return full


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _donor(
    own_id: Any, place: Any, kind: Any, index: Any, key: Any, inside_parent: Any, quota_area: Any, left: Any
) -> Any:
    """Draw a similar household of another region: its place, whether from inside, whether one was full."""
    rows, _, stretch, bounds, weights, tree = index
    k0, k1, step = key
    low, high, base, blocks = kind
    own = stretch[place]
    inner_low, inner_high = bounds[own, 0], bounds[own, 1]
    some_full = False
    while True:
        bits, at = hash_word(own_id ^ (step * _STEP), k0, k1), -1
        if inside_parent:
            at = _drawn(tree, weights, kind, bounds[own, 2], bounds[own, 3], inner_low, inner_high, bits)
        inside = at >= 0
        if not inside:
            at = _drawn(tree, weights, kind, low, high, inner_low, inner_high, bits)
        if at < 0 or not _full(rows[at], quota_area, left):
            return at, inside, some_full
        some_full = True
        _forget(tree, weights, low, base, blocks, at)  # its region stays full, so it cannot be drawn again
        step += np.uint64(1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hindered(one: Any, rooms: Any, quota_area: Any, left: Any) -> Any:
    if rooms[1] < 2:
        return _CAP
    return _QUOTA if rooms[2] < 2 or _full(one, quota_area, left) else _NOT_TRIED


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pair_up(
    turns: Any,
    status: Any,
    facts: Any,
    index: Any,
    key: Any,
    inside_parent: Any,
    rooms: Any,
    quota_area: Any,
    left: Any,
    out: Any,
) -> None:
    """Give each one a donor from another region; rooms are households wanted, below the cap, at the level."""
    ids, values, places = facts
    rows, begin, _, _, weights, tree = index
    mate, role = out
    for turn in range(turns.size):
        w, one = turns[turn], np.int64(places[turn])
        if rooms[0] <= 0:
            break
        status[w] = _PAIRED if role[one] else _hindered(rows[one], rooms, quota_area, left)
        if status[w] != _NOT_TRIED:
            continue
        kind = _tree(begin, values[turn])
        at, inside, some_full = _donor(ids[turn], one, kind, index, key, inside_parent, quota_area, left)
        if at < 0:
            status[w] = _QUOTA if some_full else _NO_DONOR
            continue
        status[w] = _PAIRED
        mate[one], mate[at] = at, one
        from_inside = _INSIDE if inside else 0
        role[one], role[at] = _OWN | from_inside, _DONOR | from_inside
        low, _, base, blocks = kind
        for place in (one, at):
            _forget(tree, weights, low, base, blocks, place)
            for q in range(len(quota_area)):
                left[q, quota_area[q, rows[place]]] -= 1
        rooms -= 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _note(rows: Any, mate: Any, role: Any, out: Any, marks: Any) -> None:
    """Note the pairs by household."""
    partner, at_level, by_profile, from_inside, outcome, free = out
    level, profile, own_mark, donor_mark = marks
    for place in range(rows.size):
        if role[place]:
            row = rows[place]
            partner[row] = rows[mate[place]]
            at_level[row], by_profile[row] = level, profile
            from_inside[row] = role[place] & _INSIDE != 0
            outcome[row] = own_mark if role[place] & _OWN else donor_mark
            free[row] = False
