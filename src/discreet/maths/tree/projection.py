"""The nearest point of one child within its bounds: no cell below zero, sums over groups of cells within limits.

Distances are |z - v|^2 + s (sum of z - v)^2, s the steepness along the total. The solution is the nearest point to
v + t without steepness, with t = -s (sum of z - v): one increasing equation in t, by Newton's steps within a bracket.
Sums have four parts in a fixed order, so that they are quick and the same on every processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.lazy import njit
from discreet.maths.tree.matrices import total_of

EXACT = 1e-9  # of the equations for the two shifts
MOST_STEPS = 60


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def project(
    v: Any, total: Any, starts: Any, lower: Any, upper: Any, child: Any, steepness: Any, guess: Any, out: Any
) -> Any:
    """Set out to the nearest point to v, and return the shift t that led there; ``guess`` is where it starts.

    v has the cells that may be above zero, group after group: group g from starts[g] on. ``total`` is the sum of v over
    all cells, those that are zero included. Bounds are (child, group).
    """
    shift, low, high = guess, -np.inf, np.inf
    for _ in range(MOST_STEPS):
        found, slope = 0.0, 0.0
        for g in range(starts.size - 1):
            first, last = starts[g], starts[g + 1]
            if first < last and upper[child, g] > 0.0:
                clipped, positive = positive_sum(v, first, last, shift)
                found += min(max(clipped, lower[child, g]), upper[child, g])
                if lower[child, g] <= clipped <= upper[child, g]:
                    slope += positive
        gap = shift + steepness * (found - total)
        if abs(gap) <= EXACT * (1.0 + abs(shift)):
            break
        if gap > 0:
            high = shift
        else:
            low = shift
        shift -= gap / (1.0 + steepness * slope)
        if not low < shift < high:
            shift = 0.5 * (low + high)
    _move_groups(v, starts, lower, upper, child, shift, out)
    return shift


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _move_groups(v: Any, starts: Any, lower: Any, upper: Any, child: Any, shift: Any, out: Any) -> None:
    """Set the cells of each group to the nearest ones to v + shift whose sum is within the group's bounds.

    Where the clipped sum is outside, all cells of the group move by one number m with sum max(v + m, 0) = bound.
    """
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        if first == last:
            continue
        move = -np.inf
        if upper[child, g] > 0.0:
            move = shift
            clipped, _ = positive_sum(v, first, last, shift)
            if clipped < lower[child, g]:
                lacking = (lower[child, g] - total_of(v, first, last)) / (last - first)
                move = _moved_to(v, first, last, lower[child, g], lacking)
            elif clipped > upper[child, g]:
                move = _moved_to(v, first, last, upper[child, g], shift)
        for at in range(first, last):
            out[at] = max(v[at] + move, 0.0)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _moved_to(v: Any, first: Any, last: Any, bound: Any, move: Any) -> Any:
    """The m with sum max(v + m, 0) = bound; Newton's steps from the right never pass it and reach it."""
    for _ in range(last - first + 2):
        total, active = positive_sum(v, first, last, move)
        if active == 0 or abs(total - bound) <= EXACT * (1.0 + bound):
            break
        move -= (total - bound) / active
    return move


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def positive_sum(v: Any, first: Any, last: Any, shift: Any) -> Any:
    """The sum of max(v + shift, 0) from first to last, in four parts, and how many are above zero."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    number = 0
    end = last - (last - first) % 4
    for at in range(first, end, 4):
        w, x, y, z = v[at] + shift, v[at + 1] + shift, v[at + 2] + shift, v[at + 3] + shift
        number += (w > 0.0) + (x > 0.0) + (y > 0.0) + (z > 0.0)
        a += max(w, 0.0)
        b += max(x, 0.0)
        c += max(y, 0.0)
        d += max(z, 0.0)
    for at in range(end, last):
        w = v[at] + shift
        number += w > 0.0
        a += max(w, 0.0)
    return (a + b) + (c + d), number
