"""The order in which the values of a coded column first occur: a form that does not depend on its dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit


def first_seen(
    codes: NDArray[np.integer[Any]], categories: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The codes numbered by their first occurrence, and the code of each number; a negative code, a gap, is -1."""
    numbers = np.empty(codes.size, dtype=np.int32)
    order = np.empty(min(categories, codes.size), dtype=np.int64)
    found = _number(codes, np.full(categories, -1, dtype=np.int32), numbers, order)
    return numbers, order[:found]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _number(codes: Any, number: Any, numbers: Any, order: Any) -> Any:
    found = 0
    for r in range(codes.size):
        code = codes[r]
        if code < 0:
            numbers[r] = -1
            continue
        if number[code] < 0:
            number[code] = found
            order[found] = code
            found += 1
        numbers[r] = number[code]
    return found


MOST_TEXTS = 1 << 13  # distinct texts that are numbered; their slots fit into the cache of a processor
NONE = -1
SPREAD = -7046029254386353131  # 2^64 divided by the golden ratio, signed


def first_seen_texts(
    text: NDArray[np.uint8],
    bounds: NDArray[np.integer[Any]],
    present: NDArray[np.bool_],
    codes: NDArray[np.int16],
) -> NDArray[np.int64] | None:
    """Number texts by their first occurrence into ``codes``; return the place of each that is the first of its kind.

    ``bounds`` are where each text begins, and the end of the last; where ``present`` is false, or empty for none, the
    code is -1. None: more than ``MOST_TEXTS`` are distinct.
    """
    order, known = np.empty(MOST_TEXTS, dtype=np.int64), np.empty(MOST_TEXTS, dtype=np.int64)
    found = _number_texts(
        text, bounds, present, codes, order, known, np.full(4 * MOST_TEXTS, NONE, dtype=np.int16)
    )
    return None if found < 0 else order[:found]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _number_texts(
    text: Any, bounds: Any, present: Any, codes: Any, order: Any, known: Any, slots: Any
) -> Any:
    """``known``: each distinct text of at most seven bytes as these and their number, a longer one as a negative hash.

    All numbers are signed: Numba would compute with floats where they are mixed.
    """
    found, last = 0, slots.size - 1
    for r in range(codes.size):
        if present.size and not present[r]:
            codes[r] = NONE
            continue
        start, stop = bounds[r], bounds[r + 1]
        word = np.int64(stop - start)
        if word <= 7:
            for k in range(start, stop):
                word = (word << 8) | text[k]
        else:
            for k in range(start, stop - 8, 8):
                word = (word ^ _eight(text, k)) * SPREAD
                word ^= word >> 29
            word = ((word ^ _eight(text, stop - 8)) * SPREAD) | -(1 << 63)
        slot = ((word * SPREAD) >> 40) & last
        code = slots[slot]
        while code >= 0 and not (known[code] == word and (word >= 0 or _same(text, bounds, r, order[code]))):
            slot = (slot + 1) & last
            code = slots[slot]
        if code < 0:
            if found == order.size:
                return -1
            code = np.int16(found)
            slots[slot], order[found], known[found] = code, r, word
            found += 1
        codes[r] = code
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _same(text: Any, bounds: Any, one: Any, other: Any) -> Any:
    """Whether two texts of at least eight bytes are the same."""
    start, size, begin = bounds[one], bounds[one + 1] - bounds[one], bounds[other]
    if bounds[other + 1] - begin != size:
        return False
    for k in range(0, size - 8, 8):
        if _eight(text, start + k) != _eight(text, begin + k):
            return False
    return _eight(text, start + size - 8) == _eight(text, begin + size - 8)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _eight(text: Any, k: Any) -> Any:
    """Eight bytes as a number: one instruction of a processor."""
    at, found = np.uint64(k), np.int64(0)  # an index without a sign need not be checked for one
    for place in range(8):
        found |= np.int64(text[at + np.uint64(place)]) << (8 * place)
    return found
