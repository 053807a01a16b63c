"""The records of one area from sums of their histogram, by constraint programming (CP-SAT).

It owns the model and its two searches; which sums are published, and with what noise, is told to it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from discreet.maths.readings import Reading, lines

Integers = NDArray[np.int64]

SCALE = 1000  # costs are rounded to thousandths of a nat
GAP = 0.1  # nats: a histogram that is likelier by less is not searched for
MOST_LINES = 24  # of one cost curve
FIRST_SHARE = 0.7  # of the time may go to the first search; what is left goes to the second


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"  # nothing is likelier by more than a tenth of a nat
    FEASIBLE = "feasible"  # fits all that is published; time ran out before a proof that nothing is likelier
    INFEASIBLE = (
        "infeasible"  # nothing fits: the noise is larger than assumed, or the tables contradict each other
    )
    TIMEOUT = "timeout"  # time ran out before anything was found
    TOO_LARGE = "too large"  # beyond the limit of memory; not tried
    NOT_BEGUN = "not begun"  # the time for all areas was over


@dataclass(frozen=True, eq=False)
class Sums:
    """Sum m adds up the cells members[starts[m] : starts[m + 1]] of a histogram of so many cells."""

    cells: int
    starts: Integers
    members: Integers

    def of(self, m: int) -> Integers:
        """The cells of one sum."""
        return self.members[self.starts[m] : self.starts[m + 1]]


@dataclass(frozen=True, eq=False)
class Solution:
    """The likeliest histogram that was found, and how much of it every other feasible one shares."""

    status: Status
    counts: Integers  # cell -> records; all zero where nothing was found
    certain: int  # records that every feasible histogram has: so many are right, whichever they are
    unique: bool  # no other histogram is feasible
    seconds: float

    @property
    def found(self) -> bool:
        """Whether there is a histogram at all."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)


def nothing(status: Status, cells: int, seconds: float = 0.0) -> Solution:
    """No histogram, and why."""
    return Solution(status, np.zeros(cells, dtype=np.int64), 0, False, seconds)


def most_records(sums: Sums, readings: Sequence[Reading]) -> Integers:
    """The most records that a cell can have: the smallest upper limit of any sum that it is part of.

    Every cell must be part of a sum; the area's total is one for all.
    """
    highest = np.array([int(one.counts.max(initial=-1)) for one in readings], dtype=np.int64)
    most = np.full(sums.cells, np.iinfo(np.int64).max)
    np.minimum.at(most, sums.members, np.repeat(highest, np.diff(sums.starts)))
    return most


def reconstruct(
    sums: Sums, readings: Sequence[Reading], seconds: float, seed: int, most_terms: int
) -> Solution:
    """Find integers n >= 0 with sum(n over sum m) possible under reading m and the smallest sum of costs.

    That is the maximum-likelihood histogram where noise is independent and its law log-concave (else its convex
    hull is used). A second search then makes the overlap sum_c min(n_c, n*_c) with the found n* as small as
    possible over all feasible n, likely or not. Its proven lower limit is ``certain``: the truth is among them.
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
    status, counts = model.likeliest(_solver(seconds * FIRST_SHARE, seed))
    if counts is None:
        return nothing(status, sums.cells, time.monotonic() - begun)
    left = seconds - (time.monotonic() - begun)
    certain = model.least_overlap(counts, _solver(left, seed)) if left > 0 else 0
    unique = certain == counts.sum() == model.most_in_all
    return Solution(status, counts, certain, bool(unique), time.monotonic() - begun)


class _Model:
    """Variables of the cells that can have records, and the constraints; two objectives on top of them."""

    def __init__(self, sums: Sums, readings: Sequence[Reading], most: Integers) -> None:
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


def _solver(seconds: float, seed: int) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # areas are solved side by side instead
    solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    solver.parameters.random_seed = seed
    return solver
