"""Counts of persons alike in each region, and the least of a household's members; it knows no names of variables.

The count of a person at level h is the number of persons in the same region at h with the same combination of values
(k-anonymity, Samarati 2001); its risk is 1/count, a household has its members' largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
    """Take one more code into 64-bit words that stand for combinations, in place."""
    for r in range(words.size):
        words[r] = _mixed(words[r] ^ np.uint64(codes[r]))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_members(sums: Any, household: Any, words: Any) -> None:
    """Add each person's word to the household's: equal sums stand for equal members, in whatever order."""
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
    """One level; the persons stand together by region."""
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
    so that regions of one parent stand together; ``alike`` numbers the combinations of values; ``household`` is -1
    for persons outside, who are counted all the same.
    """
    order, _ = counting_order(finest, above.shape[1])
    finest, alike, household = finest[order], alike[order], household[order]
    least = np.full((len(above), households), NOBODY, dtype=np.uint32)
    counts = np.zeros(int(alike.max(initial=0)) + 1, dtype=np.uint32)
    for level in range(len(above)):
        _least_counts(above[level][finest], alike, household, counts, least[level])
    return least
