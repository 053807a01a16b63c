"""Identifiers that are unique and say nothing of the order of the records; they are no secret keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 48
_MASK = np.uint64((1 << BITS) - 1)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(BITS // 2)


def identifiers(numbers: NDArray[np.int64], seed: int, kind: int) -> NDArray[np.int64]:
    """Turn running numbers below 2^48 into identifiers from 1 to 2^48, one to one for each seed and kind.

    Every step (adding, an odd factor modulo 2^48, folding the upper half into the lower) is a bijection.
    """
    offset = np.random.SeedSequence([seed, kind]).generate_state(1, np.uint64)[0] & _MASK
    mixed = (numbers.astype(np.uint64) + offset) & _MASK
    for factor in _FACTORS:
        mixed = (mixed * factor) & _MASK
        mixed ^= mixed >> _SHIFT
    unique: NDArray[np.int64] = mixed.astype(np.int64) + 1
    return unique
