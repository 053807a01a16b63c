"""The nearest point of one child within its bounds: no cell below zero, sums over groups of cells within limits.

Distances are |z - v|^2 + s (sum of z - v)^2, s the steepness along the total. The solution is the nearest point to
v + t without steepness, with t = -s (sum of z - v): one increasing equation in t, by Newton's steps within a bracket. Sums
have four parts in a fixed order, so that they are quick and the same on every processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

EXACT = 1e-9  # of the equations for the two shifts
MOST_STEPS = 60


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def project(
    v: Any, total: Any, starts: Any, lower: Any, upper: Any, steepness: Any, guess: Any, out: Any
) -> Any:
    """Set out to the nearest point to v, and return the shift t that led there; ``guess`` is where it starts.

    v has the cells that may be above zero, group after group: group g from starts[g] on. ``total`` is the sum of v over
    all cells, those that are zero included.
    """
    shift, low, high = guess, -np.inf, np.inf
    for _ in range(MOST_STEPS):
        found, slope = _nearest(v, starts, lower, upper, shift, out)
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
    return shift


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nearest(v: Any, starts: Any, lower: Any, upper: Any, shift: Any, out: Any) -> Any:
    """Set out to the nearest point to v + shift; return its sum and how fast it grows with the shift.

    Where the clipped sum of a group is outside of its bounds, all its cells move by one number m with
    sum max(v + m, 0) = bound; Newton's steps from the right never pass it and reach it.
    """
    found, slope = 0.0, 0.0
    for g in range(starts.size - 1):
        mine, to = v[starts[g] : starts[g + 1]], out[starts[g] : starts[g + 1]]
        if mine.size == 0:
            continue
        if upper[g] <= 0.0:
            to[:] = 0.0
            continue
        clipped, positive = positive_sum(mine, shift)
        move = shift
        if lower[g] <= clipped <= upper[g]:
            found += clipped
            slope += positive
        else:
            bound = lower[g] if clipped < lower[g] else upper[g]
            if clipped < lower[g]:
                move += (bound - total_of(mine) - shift * mine.size) / mine.size
            for _ in range(mine.size + 2):
                total, active = positive_sum(mine, move)
                if active == 0 or abs(total - bound) <= EXACT * (1.0 + bound):
                    break
                move -= (total - bound) / active
            found += bound
        for at in range(mine.size):
            to[at] = max(mine[at] + move, 0.0)
    return found, slope


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def total_of(v: Any) -> Any:
    """The sum, in four parts."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    last = v.size - v.size % 4
    for at in range(0, last, 4):
        a += v[at]
        b += v[at + 1]
        c += v[at + 2]
        d += v[at + 3]
    for at in range(last, v.size):
        a += v[at]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def positive_sum(v: Any, shift: Any) -> Any:
    """The sum of max(v + shift, 0), in four parts, and how many are above zero."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    number = 0
    last = v.size - v.size % 4
    for at in range(0, last, 4):
        w, x, y, z = v[at] + shift, v[at + 1] + shift, v[at + 2] + shift, v[at + 3] + shift
        number += (w > 0.0) + (x > 0.0) + (y > 0.0) + (z > 0.0)
        a += max(w, 0.0)
        b += max(x, 0.0)
        c += max(y, 0.0)
        d += max(z, 0.0)
    for at in range(last, v.size):
        w = v[at] + shift
        number += w > 0.0
        a += max(w, 0.0)
    return (a + b) + (c + d), number
