"""How far published totals are from the sums of their parts; it owns the gaps of one axis, not what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths.aligned import NOWHERE, Integers, Places
from discreet.maths.pmf import Floats


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Mean and variance of the noise of each listed cell, and of an empty cell of each cross-tabulation."""

    listed: Floats  # [cell, 2]
    empty: Floats  # [cross-tabulation, 2]
    same_noise: bool  # the same participants have the same noise


@dataclass(frozen=True, eq=False)
class Gaps:
    """Sums by cross-tabulation of the parts: [totals, open gaps, sum of sizes, sum of squares, expected squares]."""

    sums: Floats
    largest: Integers

    TOTALS, OPEN, SIZE, SQUARE, EXPECTED = range(5)


def gaps(
    published: Integers,
    true: Integers,
    noise: CellNoise,
    wider: Places,
    children: Integers,
    crosstab: Places,
    own: NDArray[np.bool_],
) -> Gaps:
    """Compare each total with somebody in it with the sum of the cells below it along one axis.

    With independent noise the gap has the expected square var(total) + sum var(parts) + (bias of the total - sum of
    biases)^2; with the noise of participants it is zero where one part has all of them. ``children`` is the number of
    parts that each cell has along the axis, listed or not, ``crosstab`` the cross-tabulation of the parts, and ``own``
    tells whether they are counted here.
    """
    found = Gaps(np.zeros((len(noise.empty), 5)), np.zeros(len(noise.empty), dtype=np.int64))
    parts, number = np.zeros((2, len(published)), dtype=np.int64)
    summed = np.zeros((len(published), 2))
    same = np.zeros(len(published), dtype=np.bool_)
    _gather(published, true, noise.listed, wider, noise.same_noise, parts, number, summed, same)
    _compare(
        published, true, noise.listed, noise.empty, children, crosstab, own, parts, number, summed, same,
        found.sums, found.largest,
    )  # fmt: skip
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather(
    published: Any,
    true: Any,
    moments: Any,
    wider: Any,
    same_noise: Any,
    parts: Any,
    number: Any,
    summed: Any,
    same: Any,
) -> None:
    for i in range(published.size):
        j = wider[i]
        if j == NOWHERE:
            continue
        parts[j] += published[i]
        number[j] += 1
        summed[j, 0] += moments[i, 0]
        summed[j, 1] += moments[i, 1]
        same[j] |= same_noise and true[i] == true[j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _compare(
    published: Any,
    true: Any,
    moments: Any,
    empty: Any,
    children: Any,
    crosstab: Any,
    own: Any,
    parts: Any,
    number: Any,
    summed: Any,
    same: Any,
    sums: Any,
    largest: Any,
) -> None:
    for j in range(published.size):
        if true[j] <= 0 or children[j] == 0 or not own[j]:
            continue
        c, gap = crosstab[j], abs(published[j] - parts[j])
        unlisted = children[j] - number[j]
        sums[c, 0] += 1
        sums[c, 1] += gap != 0
        sums[c, 2] += gap
        sums[c, 3] += float(gap) * gap
        if not same[j]:
            bias = moments[j, 0] - summed[j, 0] - unlisted * empty[c, 0]
            sums[c, 4] += moments[j, 1] + summed[j, 1] + unlisted * empty[c, 1] + bias * bias
        largest[c] = max(largest[c], gap)
