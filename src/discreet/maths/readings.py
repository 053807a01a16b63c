"""What a published value says of the true count behind it: which counts are possible, and how likely each made it.

It owns the step from a noise law or a bound to a set of counts with costs; what is done with them is the caller's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.maths.laws import Law
from discreet.maths.pmf import Floats

Integers = NDArray[np.int64]

SLOPES_ALIKE = 1e-9  # lines whose slopes differ by less are one line


@dataclass(frozen=True)
class Shown:
    """A published value, and the noisy counts lowest..highest that are published as it."""

    value: int
    lowest: int
    highest: int


@dataclass(frozen=True, eq=False)
class Reading:
    """costs[k] = -log p(published | count first + k), less its minimum; inf where the count is impossible."""

    first: int
    costs: Floats

    @property
    def last(self) -> int:
        """The largest count that is listed."""
        return self.first + len(self.costs) - 1

    @property
    def counts(self) -> Integers:
        """The possible counts, ascending; none where the value contradicts what is known of the noise."""
        return np.flatnonzero(np.isfinite(self.costs)) + self.first


def by_law(shown: Shown, law: Law, keeps_zeros: bool, tail: float) -> Reading:
    """The counts i in whose law the value is no outlier: Pr_i[X <= value] and Pr_i[X >= value] both above tail/2.

    With tail = 0 these are all counts that can be published as the value. X is what is published in the end.
    """
    start = max(shown.value, 0)
    found: dict[int, float] = {}
    for step, side in ((1, 0), (-1, 2)):
        count = start if step == 1 else start - 1
        while count >= 0:
            below, equal, above = _seen(shown, law, keeps_zeros, count)
            reach = (below + equal, equal, equal + above)
            if reach[side] <= tail / 2:
                break
            found[count] = equal if min(reach[0], reach[2]) > tail / 2 else 0.0
            count += step
    return _reading(found)


def _seen(shown: Shown, law: Law, keeps_zeros: bool, count: int) -> tuple[float, float, float]:
    """How likely a count is published below the value, as it, and above it."""
    if keeps_zeros and count == 0:
        return float(shown.value > 0), float(shown.value == 0), float(shown.value < 0)
    row = law.row(count)
    low, high = max(shown.lowest - row.first, 0), max(shown.highest + 1 - row.first, 0)
    return float(row.p[:low].sum()), float(row.p[low:high].sum()), float(row.p[high:].sum())


def _reading(likelihood: dict[int, float]) -> Reading:
    possible = [count for count, p in likelihood.items() if p > 0]
    if not possible:
        return Reading(0, np.full(1, np.inf))
    counts = range(min(possible), max(possible) + 1)
    costs = np.array(
        [-math.log(p) if (p := likelihood.get(count, 0.0)) > 0 else math.inf for count in counts]
    )
    return Reading(counts.start, costs - costs.min())


def within(shown: Shown, bound: int, least: int, variance: float | None = None) -> Reading:
    """Where only a bound of the noise is known, and perhaps its variance: the counts within the bound.

    The cost of a count at distance d from what is shown so is that of normal noise, d^2 / (2 variance), or d without
    a variance.
    ``least`` is the smallest true count that can be: 1 where empty cells stay empty and the value is not zero.
    """
    counts = np.arange(max(shown.lowest - bound, least), max(shown.highest + bound, least) + 1)
    distances = np.maximum(np.maximum(shown.lowest - counts, counts - shown.highest), 0).astype(np.float64)
    costs = distances**2 / (2 * variance) if variance else distances.copy()
    costs[distances > bound] = np.inf
    least_cost = costs.min()
    return Reading(int(counts[0]), costs - least_cost if np.isfinite(least_cost) else costs)


def plainly(value: int) -> Shown:
    """A value that is published as it is."""
    return Shown(value, value, value)


def both(a: Reading, b: Reading) -> Reading:
    """Two values of independent noise for the same count: only what both allow, and costs add."""
    first, last = max(a.first, b.first), min(a.last, b.last)
    if first > last:
        return Reading(0, np.full(1, np.inf))
    costs = a.costs[first - a.first : last + 1 - a.first] + b.costs[first - b.first : last + 1 - b.first]
    least = costs.min()
    return Reading(first, costs - least if np.isfinite(least) else costs)


def lines(reading: Reading, most: int) -> list[tuple[float, int, float]]:
    """Lines (slope, and a count with the height there) whose maximum is the convex hull of the costs from below.

    For a log-concave law that is the cost itself. Beyond ``most`` lines corners are left out evenly, never the ends or
    the cheapest count, which makes counts between the kept corners a little dearer.
    """
    corners = _hull(reading)
    if len(corners) > most + 1:
        cheapest = min(range(len(corners)), key=lambda k: corners[k][1])
        kept = {*np.linspace(0, len(corners) - 1, most).astype(int).tolist(), cheapest}
        corners = [corners[k] for k in sorted(kept)]
    found: list[tuple[float, int, float]] = []
    for (x, y), (next_x, next_y) in pairwise(corners):
        slope = (next_y - y) / (next_x - x)
        if not found or slope - found[-1][0] > SLOPES_ALIKE:
            found.append((slope, x, y))
    return found


def _hull(reading: Reading) -> list[tuple[int, float]]:
    corners: list[tuple[int, float]] = []
    for x in reading.counts.tolist():
        y = float(reading.costs[x - reading.first])
        while len(corners) > 1 and _above(corners[-2], corners[-1], (x, y)):
            corners.pop()
        corners.append((x, y))
    return corners


def _above(a: tuple[int, float], b: tuple[int, float], c: tuple[int, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0]) - SLOPES_ALIKE
