"""Targeted record swapping: households found by their hashes, what they are like, and their risk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.counting import recode

NOBODY = np.uint32(0xFFFFFFFF)  # least count of a household without members
NO_REGION = -1
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
    """Add the words of members to the household's: equal sums mean equal members, in any order."""
    for r in range(words.size):
        if household[r] >= 0:
            sums[household[r]] += words[r]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _numbered(words: Any, slots: Any, numbers: Any, used: Any, start: Any, out: Any) -> Any:
    """Number words from ``start`` on; return where the table was half full, or the end, and how many are known."""
    mask = np.uint64(slots.size - 1)
    for r in range(start, words.size):
        at = _mixed(words[r]) & mask
        while numbers[at] >= 0 and slots[at] != words[r]:
            at = (at + np.uint64(1)) & mask
        if numbers[at] < 0:
            if 2 * (used + 1) > slots.size:
                return r, used
            slots[at], numbers[at] = words[r], used
            used += 1
        out[r] = numbers[at]
    return words.size, used


class Numbering:
    """Numbers the distinct words of any number of arrays 0, 1, .. in the order of their appearance."""

    def __init__(self, size: int = 1 << 12) -> None:
        self._slots = np.empty(size, dtype=np.uint64)
        self._numbers = np.full(size, -1, dtype=np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def numbers(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each word."""
        out = np.empty(len(words), dtype=np.int32)
        done = 0
        while True:
            done, self._used = _numbered(words, self._slots, self._numbers, self._used, done, out)
            if done == len(words):
                return out
            self._grow()

    def _grow(self) -> None:
        known, taken = np.empty(self._used, dtype=np.uint64), self._numbers >= 0
        known[self._numbers[taken]] = self._slots[taken]
        larger = Numbering(8 * len(self._slots))
        larger.numbers(known)
        self._slots, self._numbers = larger._slots, larger._numbers


def numbered(words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Number the distinct words 0, 1, .. in the order of their appearance; return the numbers and how many."""
    numbering = Numbering()
    return numbering.numbers(words), len(numbering)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _place(word: Any, ids: Any, begin: Any, shift: Any) -> Any:
    at, end = begin[word >> shift], begin[(word >> shift) + np.uint64(1)]
    while at < end and ids[at] < word:
        at += 1
    return at if at < end and ids[at] == word else -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _find(
    hashes: Any, start: Any, last: Any, named: Any, ids: Any, number: Any, begin: Any, shift: Any, out: Any
) -> Any:
    """Find hashes from ``start`` on; return where the index was needed but is empty, or the end, and the last found."""
    for r in range(start, hashes.size):
        following = last + 1 if last + 1 < named.size else 0
        if r and hashes[r] == hashes[r - 1]:
            out[r] = out[r - 1]
        elif named.size and named[following] == hashes[r]:
            out[r] = last = following
        elif not begin.size:
            return r, last
        else:
            at = _place(hashes[r], ids, begin, shift)
            if at >= 0:
                last = number[at]
            out[r] = last if at >= 0 else -1
    return hashes.size, last


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _index(ids: Any, shift: Any, begin: Any) -> None:
    """Where the ids with the same first bits begin."""
    for r in range(ids.size):
        begin[(ids[r] >> shift) + np.uint64(1)] += 1
    for b in range(1, begin.size):
        begin[b] += begin[b - 1]


class Places:
    """Numbered ids (hashes), in which others are looked up.

    ``ids`` ascend and ``number`` is a permutation, or their order where it is left out. Tables of one census mostly
    follow one order, so that the next number is tried first. Where that fails, the first bits of a hash give nearly
    where it is; this index is made when it is first needed.
    """

    def __init__(self, ids: NDArray[np.uint64], number: NDArray[np.int32] | None = None) -> None:
        named = ids
        if number is None:
            number = np.arange(len(ids), dtype=np.int32)
        else:
            named = np.empty(len(ids), dtype=np.uint64)
            named[number] = ids
        self._named, self._ids, self._number = named, ids, number
        self._bits = max(1, len(ids).bit_length() - 2)
        self._begin = np.empty(0, dtype=np.int32)
        self._last = -1

    def numbers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each hash, -1 where it is none of the ids."""
        out = np.empty(len(hashes), dtype=np.int32)
        done = 0
        while True:
            index = self._named, self._ids, self._number, self._begin, np.uint64(64 - self._bits)
            done, self._last = _find(hashes, done, self._last, *index, out)
            if done == len(hashes):
                return out
            begin = np.zeros((1 << self._bits) + 1, dtype=np.int32)
            _index(self._ids, index[-1], begin)
            self._begin = begin


def values_at(values: NDArray[Any], rows: NDArray[np.int32]) -> NDArray[Any]:
    """The values at some rows; NumPy would first copy the rows to 64 bits."""
    found = np.empty(len(rows), dtype=values.dtype)
    recode(rows, values, found)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def inverse(numbers: Any, out: Any) -> Any:
    """Note the last row of each number, negative ones aside; return how many rows have a number."""
    found = 0
    for r in range(numbers.size):
        if numbers[r] >= 0:
            out[numbers[r]] = r
            found += 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def one_for_all(household: Any, values: Any, out: Any) -> Any:
    """Note the value of each household (-1 for none); return whether all its rows have the same."""
    for r in range(values.size):
        if household[r] >= 0:
            out[household[r]] = values[r]
    agree = True
    for r in range(values.size):
        if household[r] >= 0:
            agree &= out[household[r]] == values[r]
    return agree


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def nest(parents: Any, codes: Any, above: Any) -> Any:
    """Note the region above that of each record; return the first record whose region is in two, -1 for none."""
    for r in range(codes.size):
        parent = parents[codes[r]]
        if parent == NO_REGION:
            parents[codes[r]] = above[r]
        elif parent != above[r]:
            return r
    return -1


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
def _least_counts(
    finest: Any, above: Any, begin: Any, alike: Any, household: Any, counts: Any, least: Any
) -> None:
    """One level; the rows of persons are grouped by region."""
    start = 0
    while start < finest.size:
        end = start
        while end < finest.size and above[finest[end]] == above[finest[start]]:
            end += 1
        for p in range(begin[start], begin[end]):
            counts[alike[p]] += np.uint32(1)
        for r in range(start, end):
            home = household[r]
            if home >= 0:
                fewest = least[home]
                for p in range(begin[r], begin[r + 1]):
                    fewest = min(fewest, counts[alike[p]])
                least[home] = fewest
        if begin[end] - begin[start] < counts.size:
            for p in range(begin[start], begin[end]):
                counts[alike[p]] = np.uint32(0)
        else:
            counts[:] = np.uint32(0)
        start = end


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _in_order(order: Any, begin: Any, alike: Any, moved: Any, out: Any) -> None:
    """Persons in another order of their rows; ``moved`` is where each row begins then."""
    for r in range(order.size):
        first = begin[order[r]]
        for p in range(moved[r], moved[r + 1]):
            out[p] = alike[first + p - moved[r]]


def least_counts(
    finest: NDArray[np.int32],
    above: NDArray[np.int32],
    persons: NDArray[np.int32],
    alike: NDArray[np.int32],
    household: NDArray[np.int32],
    households: int,
) -> NDArray[np.uint32]:
    """(level, household) -> the least count among its members.

    Persons come in rows: ``persons`` is how many are in each, ``household`` is that of the row, -1 for persons outside,
    who are counted as well, and ``finest`` is the row's finest region. ``above`` is the region of each finest one at
    every level, numbered so that regions of one parent are adjacent; ``alike`` numbers the values of each person.
    """
    begin = _begins(persons)
    if (finest[1:] < finest[:-1]).any():
        order, _ = counting_order(finest, above.shape[1])
        finest, persons, household = finest[order], persons[order], household[order]
        there, moved, alike = alike, _begins(persons), np.empty_like(alike)
        _in_order(order, begin, there, moved, alike)
        begin = moved
    least = np.full((len(above), households), NOBODY, dtype=np.uint32)
    counts = np.zeros(int(alike.max(initial=0)) + 1, dtype=np.uint32)
    for level in range(len(above)):
        _least_counts(finest, above[level], begin, alike, household, counts, least[level])
    return least


def _begins(sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where each of some adjacent stretches begins, and the end."""
    begin = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=begin[1:])
    return begin


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def coarsest_at_risk(risk: Any, k: Any) -> Any:
    """The first level at which the risk of each household is above 1/k, -1 for none; ``risk`` is (level, household)."""
    out = np.full(risk.shape[1], -1, dtype=np.int8)
    for level in range(risk.shape[0] - 1, -1, -1):
        for h in range(risk.shape[1]):
            if risk[level, h] * k > 1 + 1e-9:
                out[h] = level
    return out
