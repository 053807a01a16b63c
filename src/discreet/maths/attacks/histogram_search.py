"""The likeliest records of one area, searched by constraint programming (CP-SAT)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from discreet.maths.attacks.reconstruction import (
    CellSums,
    Integers,
    LikeliestHistogram,
    Reading,
    Status,
    lines,
    most_records,
    nothing,
)

SCALE = 1000  # costs are rounded to thousandths of a nat
GAP = 0.1  # nats: a histogram that is likelier by less is not searched for
MOST_LINES = 24  # of one cost curve
FIRST_SHARE = 0.7  # of the work may go to the first search; what is left goes to the second
UNIT = 3.0  # seconds of an idle core for one unit of CP-SAT's deterministic time; 2 to 4 in searches that were cut off
STALLED, SLOWEST = 600.0, 100  # a search also stops after these seconds plus this multiple of its work


def likeliest(
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
