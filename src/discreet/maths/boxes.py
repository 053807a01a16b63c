"""Boxes of cells, as the codes that a table shows of a cross-tabulation: what lies inside, what is left beside others.

It owns that geometry; which tables are compared is the callers'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

Box = tuple[NDArray[np.bool_], ...]  # along each axis: which nodes belong to it


def inside(
    box: Box, cells: NDArray[np.int64], strides: Sequence[int], axes: Iterable[int]
) -> NDArray[np.bool_]:
    """Which cells lie in a box, as far as some axes tell."""
    found = np.ones(len(cells), dtype=np.bool_)
    for k in axes:
        found &= box[k][(cells // strides[k]) % len(box[k])]
    return found


def covers(box: Box, other: Box) -> bool:
    """Whether a box holds all of another."""
    return all(bool(one[two].all()) for one, two in zip(box, other, strict=True))


def meets(box: Box, other: Box) -> bool:
    """Whether two boxes have a cell in common."""
    return all(bool((one & two).any()) for one, two in zip(box, other, strict=True))


def left_over(box: Box, others: Sequence[Box]) -> int:
    """How many cells of a box lie in none of the others: axis by axis, codes that lie in the same ones together."""
    if not box:
        return 0 if others else 1
    if not others:
        return prod(int(one.sum()) for one in box)
    along = np.stack([other[0][box[0]] for other in others])  # [other, code]
    kinds, numbers = np.unique(along, axis=1, return_counts=True)
    return sum(
        int(number)
        * left_over(box[1:], [other[1:] for other, within in zip(others, kind, strict=True) if within])
        for kind, number in zip(kinds.T, numbers, strict=True)
    )
