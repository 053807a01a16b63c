"""Reconstruction of the records of one area from published sums, by constraint programming (CP-SAT)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

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


SCALE = 1000  # costs are rounded to thousandths of a nat
GAP = 0.1  # nats: a histogram that is likelier by less is not searched for
MOST_LINES = 24  # of one cost curve
FIRST_SHARE = 0.7  # of the work may go to the first search; what is left goes to the second
UNIT = 3.0  # seconds of an idle core for one unit of CP-SAT's deterministic time; 2 to 4 in searches that were cut off
STALLED, SLOWEST = 600.0, 100  # a search also stops after these seconds plus this multiple of its work


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


def reconstruct(
    sums: CellSums,
    readings: Sequence[Reading],
    work: float,
    seed: int,
    most_terms: int,
    seconds: float = math.inf,
) -> LikeliestHistogram:
    """Find integers n >= 0 with sum(n over sum m) possible under reading m and the smallest sum of costs.

    That is the maximum-likelihood histogram where noise is independent and its law log-concave (else its convex
    hull is used). A second search then makes the overlap sum_c min(n_c, n*_c) with the found n* as small as
    possible over all feasible n, likely or not. Its proven lower limit is ``certain``: the true records are among them.

    ``work`` limits both searches, in about the seconds that they take on an idle core. It is not measured by
    the clock but by CP-SAT's deterministic time, which counts operations: the same seed gives the same answer, however
    fast or busy the machine is. The clock stops only what has stalled (``STALLED``) or goes beyond ``seconds``.
    """
    begun = time.monotonic()
    most = most_records(sums, readings)
    if (most < 0).any():
        return nothing(Status.INFEASIBLE, sums.cells)
    if int((most[sums.members] > 0).sum()) > most_terms:
        return nothing(Status.TOO_LARGE, sums.cells)
    model = _Model(sums, readings, most)
    if not model.consistent:
        return nothing(Status.INFEASIBLE, sums.cells, time.monotonic() - begun)
    first = _solver(work * FIRST_SHARE, seed, seconds)
    status, counts = model.likeliest(first)
    if counts is None:
        return nothing(status, sums.cells, time.monotonic() - begun)
    left, remaining = work - UNIT * first.deterministic_time, seconds - (time.monotonic() - begun)
    certain = model.least_overlap(counts, _solver(left, seed, remaining)) if min(left, remaining) > 0 else 0
    unique = certain == counts.sum() == model.most_in_all
    return LikeliestHistogram(status, counts, certain, bool(unique), time.monotonic() - begun)


class _Model:
    """Variables of the cells that can have records, and the constraints; two objectives on top of them."""

    def __init__(self, sums: CellSums, readings: Sequence[Reading], most: Integers) -> None:
        self.model = cp_model.CpModel()
        self.consistent = True
        self.live = np.flatnonzero(most > 0)
        self.most = most
        self.variables = {
            int(cell): self.model.new_int_var(0, int(most[cell]), "") for cell in self.live.tolist()
        }
        self.most_in_all = int(most[self.live].sum())
        self.costs: list[cp_model.IntVar] = []
        for m, reading in enumerate(readings):
            cells = sums.of(m)
            self._add(cells[most[cells] > 0].tolist(), reading)

    def _add(self, cells: list[int], reading: Reading) -> None:
        """One published value: its sum has a possible count, and a cost where some counts are likelier."""
        possible = reading.counts
        if not cells:
            self.consistent &= 0 in possible
            return
        if len(cells) == len(self.live):
            self.most_in_all = min(self.most_in_all, int(possible.max()))
        total = cp_model.LinearExpr.sum([self.variables[cell] for cell in cells])
        domain = cp_model.Domain.from_values(possible.tolist())
        self.model.add_linear_expression_in_domain(total, domain)
        costs = reading.costs[np.isfinite(reading.costs)]
        if costs.max() > 0:
            self._cost(total, reading, float(costs.max()))

    def _cost(self, total: cp_model.LinearExprT, reading: Reading, highest: float) -> None:
        cost = self.model.new_int_var(0, math.ceil(highest * SCALE) + SCALE, "")
        for slope, count, height in lines(reading, MOST_LINES):
            steep = round(slope * SCALE)
            self.model.add(cost >= steep * total + round(height * SCALE) - steep * count)
        self.costs.append(cost)

    def likeliest(self, solver: cp_model.CpSolver) -> tuple[Status, Integers | None]:
        """The first search; without costs any feasible histogram is as good as another."""
        if self.costs:
            solver.parameters.absolute_gap_limit = GAP * SCALE
            self.model.minimize(cp_model.LinearExpr.sum(self.costs))
        status = solver.solve(self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return (Status.INFEASIBLE if status == cp_model.INFEASIBLE else Status.TIMEOUT), None
        counts = np.zeros(len(self.most), dtype=np.int64)
        for cell, variable in self.variables.items():
            counts[cell] = solver.value(variable)
        return (Status.OPTIMAL if status == cp_model.OPTIMAL else Status.FEASIBLE), counts

    def least_overlap(self, found: Integers, solver: cp_model.CpSolver) -> int:
        """The second search: max(0, n* - n) summed over the cells of n*, as large as possible."""
        occupied = np.flatnonzero(found).tolist()
        lost = []
        for cell in occupied:
            gone = self.model.new_int_var(0, int(found[cell]), "")
            self.model.add_max_equality(gone, [0, int(found[cell]) - self.variables[cell]])
            lost.append(gone)
        for cell, variable in self.variables.items():
            self.model.add_hint(variable, int(found[cell]))
        self.model.maximize(cp_model.LinearExpr.sum(lost))
        if solver.solve(self.model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return 0
        return max(int(found.sum()) - math.floor(solver.best_objective_bound + 1e-6), 0)


def _solver(work: float, seed: int, seconds: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # areas are solved in parallel instead, and several workers would race
    solver.parameters.max_deterministic_time = work / UNIT
    solver.parameters.max_time_in_seconds = max(min(STALLED + SLOWEST * work, seconds), 0.01)
    solver.parameters.random_seed = seed
    return solver
