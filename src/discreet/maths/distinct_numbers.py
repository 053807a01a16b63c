"""The different numbers of an array, found by counting where they are few and by sorting where they are far apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
FEW = 2**16  # entries of an array that costs next to nothing


def distinct_numbers(number: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """The different numbers below ``size``, where each stands among them, and how often; unsorted where that pays."""
    if size > 4 * len(number) + FEW:
        return np.unique(number, return_inverse=True, return_counts=True)
    times = np.bincount(number, minlength=size)
    numbers = np.flatnonzero(times)
    places = np.zeros(size, dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    return numbers, places[number], times[numbers]
