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
