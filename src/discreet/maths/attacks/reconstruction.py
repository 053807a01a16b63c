"""Reconstruction of the records of one area: the counts that a published value leaves possible, and the findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw

Integers = NDArray[np.int64]

FAR_BELOW = -(10**9)  # no noise reaches it
SLOPES_ALIKE = 1e-9  # lines whose slopes differ by less count as one line


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
        """The possible counts, ascending; none where the value contradicts the assumed noise."""
        return np.flatnonzero(np.isfinite(self.costs)) + self.first


def by_law(published: int, law: PublishedLaw, tail: float) -> Reading:
    """The counts i in whose law the value is no outlier: Pr_i[X <= value] and Pr_i[X >= value] both above tail/2.

    With tail = 0 these are all counts that can be published as the value. X is the finally published value.
    """
    start = max(published, 0)
    found: dict[int, float] = {}
    for step in (1, -1):
        count = start if step == 1 else start - 1
        while count >= 0:
            row = law.row(count)
            below, above = row.cdf(published), row.tail(published)
            if (below if step == 1 else above) <= tail / 2:
                break
            found[count] = row.at(published) if min(below, above) > tail / 2 else 0.0
            count += step
    return _reading(found)


def _reading(likelihood: dict[int, float]) -> Reading:
    possible = [count for count, p in likelihood.items() if p > 0]
    if not possible:
        return Reading(0, np.full(1, np.inf))
    counts = range(min(possible), max(possible) + 1)
    costs = np.array(
        [-math.log(p) if (p := likelihood.get(count, 0.0)) > 0 else math.inf for count in counts]
    )
    return Reading(counts.start, costs - costs.min())


def within(sources: tuple[int | None, int], bound: int, least: int, variance: float | None = None) -> Reading:
    """Where only a bound of the noise is known, and perhaps its variance: the counts within the bound.

    ``sources`` are the noisy counts that are published as the value (``Publishing.sources``). The cost of a count at
    distance d from them is that of normal noise, d^2 / (2 variance), or d without a variance.
    ``least`` is the smallest possible true count: 1 where empty cells stay empty and the value is not zero.
    """
    lowest, highest = sources[0] if sources[0] is not None else FAR_BELOW, sources[1]
    counts = np.arange(max(lowest - bound, least), max(highest + bound, least) + 1)
    distances = np.maximum(np.maximum(lowest - counts, counts - highest), 0).astype(np.float64)
    costs = distances**2 / (2 * variance) if variance else distances.copy()
    costs[distances > bound] = np.inf
    least_cost = costs.min()
    return Reading(int(counts[0]), costs - least_cost if np.isfinite(least_cost) else costs)


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
    the cheapest count, which slightly raises the costs of counts between the remaining corners.
    """
    corners = _hull(reading)
    if len(corners) > most + 1:
        cheapest = min(range(len(corners)), key=lambda k: corners[k][1])
        chosen = {*np.linspace(0, len(corners) - 1, most).astype(int).tolist(), cheapest}
        corners = [corners[k] for k in sorted(chosen)]
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


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"  # nothing is likelier by more than a tenth of a nat
    FEASIBLE = "feasible"  # fits all published values; the work ended before a proof that nothing is likelier
    INFEASIBLE = (
        "infeasible"  # nothing fits: the noise is larger than assumed, or the tables contradict each other
    )
    TIMEOUT = "timeout"  # the work ended before anything was found
    TOO_LARGE = "too large"  # beyond the limit of memory; not tried
    NOT_BEGUN = "not begun"  # the time for all areas had run out


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sum m adds up the cells members[starts[m] : starts[m + 1]] of a histogram with ``cells`` cells."""

    cells: int
    starts: Integers
    members: Integers

    def of(self, m: int) -> Integers:
        """The cells of one sum."""
        return self.members[self.starts[m] : self.starts[m + 1]]


@dataclass(frozen=True, eq=False)
class LikeliestHistogram:
    """The likeliest histogram that was found, and how much of it every other feasible one shares."""

    status: Status
    counts: Integers  # cell -> records; all zero where nothing was found
    certain: int  # records that every feasible histogram has: at least this many are right
    unique: bool  # no other histogram is feasible
    seconds: float

    @property
    def found(self) -> bool:
        """Whether there is a histogram at all."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)


def nothing(status: Status, cells: int, seconds: float = 0.0) -> LikeliestHistogram:
    """No histogram, and why."""
    return LikeliestHistogram(status, np.zeros(cells, dtype=np.int64), 0, False, seconds)


def most_records(sums: CellSums, readings: Sequence[Reading]) -> Integers:
    """The most records that a cell can have: the smallest upper limit of any sum that it is part of.

    Every cell must be part of a sum; the area's total is one for all.
    """
    highest = np.array([int(one.counts.max(initial=-1)) for one in readings], dtype=np.int64)
    most = np.full(sums.cells, np.iinfo(np.int64).max)
    np.minimum.at(most, sums.members, np.repeat(highest, np.diff(sums.starts)))
    return most
