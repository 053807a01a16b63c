"""Fits of single block groups against OSQP and Clarabel, as a user of those solvers would write them: sparse.

W = sum_q Q_q' Q_q / s_q^2 is dense. With a variable t_q = Q_q x for every marginal its squares are a diagonal matrix,
and everything else has few entries (the production system of 2020 wrote its problems so). Solvers are set up with these
matrices ready, OSQP starts from a first guess, and both end at the loosest tolerance at which the sums
of squares of all problems together are within 0.4 % of the best, as Discreet's are proven to be. Blocks that must be
empty are variables for none of them. Each problem is fitted by both in turn, in one process, and the cheapest of
several rounds counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import osqp
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from benchmarks.tree_census import tree_census
from discreet.hierarchy.integers import Limits, Tables, gather, integers, limits_of
from discreet.hierarchy.measure import Drawn, measure
from discreet.maths.tree.marginals import by_sums
from discreet.maths.tree.nonnegative import GAP, Groups, Within, fit_support, groups_of, support_weights
from discreet.programme.strategy import pl94_2020

PARENTS = 20  # block groups that every solver fits
ROUNDS = 5
TIMES_FASTER = 15.0
KEY = bytes(range(32))
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 7e-4, 5e-4, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)  # loose to tight
EXACT = 1e-8
FAR = 1e6  # an upper bound of a count that has none

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """The children of one block group: noisy marginals on the parent's cells above zero, and what they must meet."""

    means: Floats  # W of all cells, as sums over subsets
    places: NDArray[np.int32]
    cells: Integers
    positions: NDArray[np.int32]  # (query, cell of the histogram) -> cell of the marginal
    noisy: Sequence[NDArray[np.int32]]  # query -> (child, cell of the marginal)
    variances: Sequence[float]
    parent: Floats
    groups: Groups
    lower: Floats
    upper: Floats

    @property
    def within(self) -> Within:
        return Within(self.groups, self.lower, self.upper, self.parent)

    def weights(self) -> Floats:
        found: Floats = support_weights(self.means, self.places, self.cells)
        return found

    def information(self) -> Floats:
        found = np.zeros((len(self.lower), len(self.cells)))
        for at, values, variance in zip(self.positions, self.noisy, self.variances, strict=True):
            gather(values, at, self.cells, 1 / variance, found)
        return found

    def squares(self, x: Floats) -> float:
        """The sum that is minimised above its smallest value without bounds, once sums are met exactly."""
        weights = self.weights()
        centre = np.linalg.solve(weights, self.information().T).T
        away = self.within.met(np.maximum(x, 0.0)) - centre
        return float(np.sum((away @ weights) * away))


def fits_of_block_groups() -> Section:
    """The lines of all three, each solver beside Discreet in one process."""
    lines, notes = [], []
    for name in ("Clarabel", "OSQP"):
        theirs = measured("tree_solvers", "solver", name=name)
        facts = theirs.facts
        ours, ratios = facts["ours"], sorted(facts["ratios"])
        work = f"{facts['parents']} block groups of 36 blocks"
        mine = Cost(ours, ours, theirs.peak)
        lines.append(Line(f"{work}: squares {facts['our_squares']:.7g}", f"Discreet, beside {name}", mine))
        targets = (Target("ratio", ours / theirs.cpu, 1 / TIMES_FASTER, 3),)
        lines.append(
            Line(f"{work}: squares {facts['squares']:.7g}", name, theirs, ours / theirs.cpu, targets)
        )
        notes.append(
            f"{name}: tolerance {facts['tolerance']:g}, {facts['variables']:,} variables and {facts['entries']:,} "
            f"entries in a problem on average; {theirs.cpu / ours:.1f} times Discreet's CPU time, by block group "
            f"{np.median(ratios):.1f} in the median and {ratios[0]:.1f} to {ratios[-1]:.1f}; without its setup "
            f"{facts['solving'] / ours:.1f}."
        )
    notes.append(
        "Squares: the sum that is minimised, of all problems, after sums were met. The best are "
        f"{facts['best']:.7g} (Clarabel at {EXACT:g}); a solver's tolerance is the loosest of a list within "
        f"{GAP:.1%} of them."
    )
    return Section("Fits of block groups, sparse formulations", tuple(lines), tuple(notes))


def _problems() -> list[Problem]:
    census = tree_census(PARENTS * 40, 1)
    asked = pl94_2020("persons-us", census.spine.levels)
    limits = limits_of(census.spine, asked, census.counts, ("State",), census.bounds)
    drawn = measure(census.spine, census.counts, asked, KEY)
    return _taken(drawn, limits, integers(drawn, limits))


def _taken(drawn: Drawn, limits: Limits, found: Tables) -> list[Problem]:
    spine, basis = drawn.plan.spine, drawn.plan.strategy.histogram.basis
    problems: list[Problem] = []
    for parent in spine.inner.tolist():
        below = spine.children(parent)
        siblings = drawn.noisy(parent)
        if len(siblings) > 1 or not spine.is_leaf(below.start) or len(problems) == PARENTS:
            continue
        some = np.flatnonzero(limits.upper[below].max(axis=1) > 0)  # the others are empty
        row = found.counts[[parent]].tocsr()
        cells = row.indices.astype(np.int64)
        kind = drawn.plan.kinds[siblings[0].kind]
        problems.append(
            Problem(
                by_sums(basis, kind.precision),
                basis.places,
                cells,
                kind.positions,
                [values[some] for values in siblings[0].values],
                kind.variances,
                row.data.astype(np.float64),
                groups_of(limits.group[cells], limits.groups),
                limits.lower[below][some].astype(np.float64),
                np.minimum(limits.upper[below][some], FAR),
            )
        )
    return problems


def _fitted(problem: Problem) -> Floats:
    return fit_support(
        problem.weights(),
        problem.information(),
        problem.parent,
        problem.groups,
        problem.lower,
        problem.upper,
    ).values


def solver(watch: Stopwatch, name: str) -> dict[str, Any]:
    """The loosest tolerance that is accurate enough, then the time at it beside Discreet's."""
    problems = _problems()
    solve = {"Clarabel": _clarabel, "OSQP": _osqp}[name]
    written = [Sparse(one) for one in problems]
    best = _squares(problems, [_clarabel(one, EXACT, Stopwatch(), Stopwatch()) for one in written])
    for tolerance in TOLERANCES:
        found = _squares(problems, [solve(one, tolerance, Stopwatch(), Stopwatch()) for one in written])
        if found <= (1 + GAP) * best:
            break
    ours = [_fitted(one) for one in problems]
    costs = np.array(
        [
            _compared(one, sparse_one, solve, tolerance)
            for one, sparse_one in zip(problems, written, strict=True)
        ]
    )  # (problem, ours, theirs, theirs without its setup)
    watch.cpu = watch.wall = float(costs[:, 1].sum())
    return {
        "parents": len(problems),
        "best": best,
        "squares": found,
        "our_squares": _squares(problems, ours),
        "ours": float(costs[:, 0].sum()),
        "ratios": (costs[:, 1] / costs[:, 0]).tolist(),
        "tolerance": tolerance,
        "solving": float(costs[:, 2].sum()),
        "variables": sum(one.size for one in written) // len(written),
        "entries": sum(one.rows.nnz for one in written) // len(written),
    }


def _squares(problems: Sequence[Problem], fitted: Sequence[Floats]) -> float:
    return sum(one.squares(x) for one, x in zip(problems, fitted, strict=True))


def _compared(
    problem: Problem, written: Sparse, solve: Callable[..., Floats], tolerance: float
) -> tuple[float, float, float]:
    """The CPU time of one problem: Discreet's, the solver's, and that without its setup; the cheapest rounds."""
    rounds = []
    for _ in range(ROUNDS):
        ours, whole, solving = Stopwatch(), Stopwatch(), Stopwatch()
        with ours.running():
            _fitted(problem)
        solve(written, tolerance, whole, solving)
        rounds.append((ours.cpu, whole.cpu, solving.cpu))
    return min(one[0] for one in rounds), min(one[1] for one in rounds), min(one[2] for one in rounds)


class Sparse:
    """One problem with a variable for every count and for every cell of a marginal, children after each other."""

    def __init__(self, problem: Problem) -> None:
        k, n = len(problem.cells), len(problem.lower)
        self.children, self.cells = n, k
        group = np.empty(k, dtype=np.int64)
        group[problem.groups.order] = np.repeat(
            np.arange(problem.groups.count), np.diff(problem.groups.starts)
        )
        positions = problem.positions[:, problem.cells]
        detailed = [at for at, one in enumerate(positions) if len(np.unique(one)) == k]
        diagonal, linear = np.zeros(k), np.zeros((n, k))
        for at in detailed:  # no variable of its own: every count is one cell of it
            diagonal += 1 / problem.variances[at]
            linear -= problem.noisy[at][:, positions[at]] / problem.variances[at]
        extra, sums, more = [], [], []
        for at, place in enumerate(positions):
            if at in detailed:
                continue
            used, number = np.unique(place, return_inverse=True)
            sums.append(
                sparse.csc_matrix((np.ones(k), (number.reshape(-1), np.arange(k))), shape=(len(used), k))
            )
            extra.append(np.full(len(used), 1 / problem.variances[at]))
            more.append(-problem.noisy[at][:, used] / problem.variances[at])
        added = sum(map(len, extra))
        one = np.concatenate([diagonal, *extra])
        width = k + added
        self.size = n * width
        self.square = sparse.diags(np.tile(one, n), format="csc")
        self.linear = np.concatenate([linear, *more], axis=1).reshape(-1)
        pick = sparse.hstack([sparse.identity(k), sparse.csc_matrix((k, added))])
        define = sparse.hstack([sparse.vstack(sums), -sparse.identity(added)])
        # only groups of several cells, or with bounds above zero, need a row of their own
        member = sparse.csc_matrix((np.ones(k), (group, np.arange(k))), shape=(problem.groups.count, k))
        bounded = np.flatnonzero(np.diff(problem.groups.starts) > 0)
        member = sparse.hstack([member[bounded], sparse.csc_matrix((len(bounded), added))])
        blocks = [
            sparse.hstack([pick] * n),
            sparse.block_diag([define] * n),
            sparse.block_diag([pick] * n),
            sparse.block_diag([member] * n),
        ]
        self.equal = k + n * added
        self.rows = sparse.csc_matrix(sparse.vstack(blocks))
        low, high = problem.lower[:, bounded].reshape(-1), problem.upper[:, bounded].reshape(-1)
        self.low = np.concatenate([problem.parent, np.zeros(n * added), np.zeros(n * k), low])
        self.high = np.concatenate([problem.parent, np.zeros(n * added), np.full(n * k, np.inf), high])
        share = np.concatenate([np.eye(k), *(one.toarray() for one in sums)]) @ (problem.parent / n)
        self.guess = np.tile(share, n)

    def counts(self, x: Floats) -> Floats:
        """(child, cell)."""
        return np.asarray(x).reshape(self.children, -1)[:, : self.cells]


def _osqp(one: Sparse, tolerance: float, whole: Stopwatch, solving: Stopwatch) -> Floats:
    problem = osqp.OSQP()
    with whole.running():
        problem.setup(
            one.square,
            one.linear,
            one.rows,
            one.low,
            one.high,
            verbose=False,
            eps_abs=tolerance,
            eps_rel=tolerance,
            max_iter=50_000,
        )
        problem.warm_start(x=one.guess)
        with solving.running():
            found = problem.solve()
    return one.counts(found.x)


def _clarabel(one: Sparse, tolerance: float, whole: Stopwatch, solving: Stopwatch) -> Floats:
    bounded, equal = one.rows[one.equal :], one.equal
    above = np.flatnonzero(np.isfinite(one.high[equal:]))
    rows = sparse.csc_matrix(sparse.vstack([one.rows[:equal], -bounded, bounded[above]]))
    right = np.concatenate([one.high[:equal], -one.low[equal:], one.high[equal:][above]])
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(right) - equal)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    with whole.running():
        solver_ = clarabel.DefaultSolver(one.square, one.linear, rows, right, cones, settings)
        with solving.running():
            found = solver_.solve()
    return one.counts(np.array(found.x))
