"""Hierarchical release: time and memory of whole trees, fits of single parents against other solvers, and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import osqp
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target, against
from benchmarks.tree_census import tree_census
from discreet.audit.fits import fit_errors
from discreet.hierarchy.integers import Limits, Tables, integers, limits_of
from discreet.hierarchy.measure import Drawn, measure
from discreet.hierarchy.spine import Spine, spine_of
from discreet.maths.tree.marginals import by_sums
from discreet.maths.tree.nonnegative import Fitted, Groups, Within, fit_support, groups_of, support_weights
from discreet.programme.strategy import Axis, Histogram, Strategy, pl94_2020, strategy_of

PERSONS = 26_000_000
PERSONS_OF_A_BLOCK = 37
SMALL_BLOCKS = 50_000
SMALL_CPU = 15.0
MINUTES, GIGABYTES = 10.0, 12.0
PARENTS = 10  # block groups that every solver fits
TIMES_FASTER = 15.0
ACCURACY_BLOCKS = 10_000
DRAWS = 5  # releases of the same counts whose errors are averaged
KEY = bytes(range(32))
OHIO = Path("ohio2010") / "franklin_sf1_p12_cells.parquet"

Floats = NDArray[np.floating[Any]]


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del repeats
    blocks = max(persons // PERSONS_OF_A_BLOCK, 1)
    small = measured("tree", "release", blocks=min(blocks, SMALL_BLOCKS), threads=1)
    large = measured("tree", "release", blocks=blocks, threads=2)
    cpu = Target("CPU s", small.cpu, SMALL_CPU, 1)
    limits = (Target("wall minutes", large.wall / 60, MINUTES, 1), Target("GB", large.peak, GIGABYTES, 1))
    whole = Section(
        "Hierarchical release",
        (_line(small, (cpu,)), _line(large, limits)),
        (
            (
                "State > county > tract > block group > block, 2,016 cells, shares of pl94-2020, exact state totals, "
                "bounds by group quarters; measured, fitted, rounded."
            ),
        ),
    )
    ours = measured("tree", "fits")
    lines = [Line(_work(ours), "Discreet", ours)]
    lines += [
        against(_work(theirs), name, ours, theirs, 1 / TIMES_FASTER)
        for name in ("Clarabel", "OSQP")
        for theirs in [measured("tree", "solver", name=name)]
    ]
    notes = (
        "The same problems; OSQP ends at 1e-4. Squares: the sum that is minimised, after sums were met.",
    )
    accuracy = [_accuracy("a synthetic census", measured("tree", "synthetic_errors"))]
    if (data / OHIO).exists():
        found = measured("tree", "ohio_errors", path=str(data / OHIO))
        accuracy.append(_accuracy("Franklin County, Ohio, 2010", found))
    return [whole, Section("Fits of block groups", tuple(lines), notes), *accuracy]


def _line(cost: Cost, targets: tuple[Target, ...]) -> Line:
    facts = cost.facts
    work = f"{facts['blocks']:,} blocks, {facts['persons']:,} persons, {facts['unfinished']} fits unfinished"
    return Line(work, "Discreet", cost, targets=targets)


def _work(cost: Cost) -> str:
    return f"{cost.facts['parents']} block groups of 36 blocks: squares {cost.facts['squares']:.7g}"


def _accuracy(name: str, cost: Cost) -> Section:
    head = f"Mean over {DRAWS} releases of the same counts: estimates, fitted to all levels, own level (totals first)."
    notes = tuple(
        f"{where}: estimates {values[0]:.3f}, all levels {values[1]:.3f}, own level {values[2]:.3f}"
        for where, values in cost.facts["errors"].items()
    )
    return Section(
        f"Mean absolute errors, {name}",
        (Line(f"three fits of {DRAWS} releases", "Discreet", cost),),
        (head, *notes),
    )


def release(watch: Stopwatch, blocks: int, threads: int) -> dict[str, int]:
    census = tree_census(blocks, 1)
    with watch.running():
        asked = pl94_2020("persons-us", census.spine.levels)
        limits = limits_of(census.spine, asked, census.counts, ("State",), census.bounds)
        found = integers(measure(census.spine, census.counts, asked, KEY), limits, threads=threads)
    return {"blocks": blocks, "persons": census.persons, "unfinished": found.unfinished}


Problem = tuple[Floats, Floats, Floats, Groups, Floats, Floats, Floats]


def _problems() -> list[Problem]:
    """W, W m, parent, groups, bounds and centre of the block groups' fits in a small census."""
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
        row = found.counts[[parent]].tocsr()
        cells, counts = row.indices.astype(np.int64), row.data.astype(np.float64)
        kind = drawn.plan.kinds[siblings[0].kind]
        weights = support_weights(by_sums(basis, kind.precision), basis.places, cells)
        information = np.zeros((below.stop - below.start, len(cells)))
        for at, values in enumerate(siblings[0].values):
            information += values[:, kind.positions[at][cells]] / kind.variances[at]
        groups = groups_of(limits.group[cells], limits.groups)
        lower, upper = (one[below].astype(np.float64) for one in (limits.lower, limits.upper))
        centre = np.linalg.solve(weights, information.T).T
        problems.append((weights, information, counts, groups, lower, np.minimum(upper, 1e6), centre))
    return problems


def _facts(problems: Sequence[Problem], fitted: Sequence[Floats]) -> dict[str, float]:
    squares = 0.0
    for (weights, _, parent, groups, lower, upper, centre), z in zip(problems, fitted, strict=True):
        away = Within(groups, lower, upper, parent).met(np.maximum(z, 0.0)) - centre
        squares += float(np.sum((away @ weights) * away))
    return {"parents": len(problems), "squares": squares}


def fits(watch: Stopwatch) -> dict[str, float]:
    problems = _problems()
    fitted: list[Fitted] = [fit_support(*one[:6]) for one in problems]
    with watch.running():
        fitted = [fit_support(*one[:6]) for one in problems]
    return _facts(problems, [one.values for one in fitted])


def solver(watch: Stopwatch, name: str) -> dict[str, float]:
    problems = _problems()
    solve = {"Clarabel": _clarabel, "OSQP": _osqp}[name]
    fitted = []
    for one in problems:
        rows, low, high = _rows(*one[2:6], n=len(one[1]))
        square = sparse.csc_matrix(sparse.block_diag([sparse.triu(sparse.csc_matrix(one[0]))] * len(one[1])))
        with watch.running():
            found = solve(square, -one[1].reshape(-1), rows, low, high, len(one[2]))
        fitted.append(found.reshape(one[1].shape))
    return _facts(problems, fitted)


def _rows(
    parent: Floats, groups: Groups, lower: Floats, upper: Floats, n: int
) -> tuple[sparse.csc_matrix, Floats, Floats]:
    k = len(parent)
    group = np.empty(k, dtype=np.int64)
    group[groups.order] = np.repeat(np.arange(groups.count), np.diff(groups.starts))
    member = sparse.csc_matrix((np.ones(k), (group, np.arange(k))), shape=(groups.count, k))
    blocks = [
        sparse.hstack([sparse.identity(k)] * n),
        sparse.identity(n * k),
        sparse.block_diag([member] * n),
    ]
    low = np.concatenate([parent, np.zeros(n * k), lower.reshape(-1)])
    high = np.concatenate([parent, np.full(n * k, 1e7), upper.reshape(-1)])
    return sparse.csc_matrix(sparse.vstack(blocks)), low, high


def _osqp(
    square: sparse.csc_matrix, linear: Floats, rows: sparse.csc_matrix, low: Floats, high: Floats, equal: int
) -> Floats:
    del equal
    problem = osqp.OSQP()
    problem.setup(square, linear, rows, low, high, verbose=False, eps_abs=1e-4, eps_rel=1e-4, max_iter=20_000)
    return np.asarray(problem.solve().x)


def _clarabel(
    square: sparse.csc_matrix, linear: Floats, rows: sparse.csc_matrix, low: Floats, high: Floats, equal: int
) -> Floats:
    both = sparse.csc_matrix(sparse.vstack([rows[:equal], rows[equal:], -rows[equal:]]))
    right = np.concatenate([high[:equal], high[equal:], -low[equal:]])
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(right) - equal)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    return np.array(clarabel.DefaultSolver(square, linear, both, right, cones, settings).solve().x)


def synthetic_errors(watch: Stopwatch) -> dict[str, dict[str, list[float]]]:
    census = tree_census(ACCURACY_BLOCKS, 2)
    asked = pl94_2020("persons-us", census.spine.levels)
    limits = limits_of(census.spine, asked, census.counts, ("State",), census.bounds)
    queries = ("total", "hhgq", "votingage", "hispanic*cenrace")
    with watch.running():
        found = _errors(census.spine, census.counts, asked, limits, queries)
    return {"errors": found}


def ohio_errors(watch: Stopwatch, path: str) -> dict[str, dict[str, list[float]]]:
    """Real counts of 2010 by race, sex and age; every query a fourth of its level, levels a fourth of rho 2.56."""
    spine, counts, histogram = _ohio(path)
    queries = ("total", "race", "sex*age", "detailed")
    shares = {level: Fraction(1, 4) for level in spine.levels}
    each = {query: Fraction(1, 4) for query in queries}
    asked = strategy_of(histogram, Fraction(293764, 114921), shares, dict.fromkeys(spine.levels, each))
    limits = limits_of(spine, asked, counts, (spine.levels[0],))
    with watch.running():
        found = _errors(spine, counts, asked, limits, queries)
    return {"errors": found}


def _ohio(path: str) -> tuple[Spine, csr_array, Histogram]:
    table = pq.read_table(path)
    codes = {}
    names = {}
    for name in ("tract", "blkgrp", "block", "race", "sex", "age"):
        column = np.asarray(table.column(name).to_numpy(zero_copy_only=False)).astype(str)
        names[name], codes[name] = np.unique(column, return_inverse=True)
    first = np.zeros(len(names["block"]), dtype=np.int64)
    first[codes["block"]] = np.arange(len(codes["block"]))
    group = np.zeros(len(names["blkgrp"]), dtype=np.int64)
    group[codes["blkgrp"]] = codes["tract"]
    parents = [np.zeros(len(names["tract"]), dtype=np.int64), group, codes["blkgrp"][first]]
    shape = tuple(len(names[name]) for name in ("race", "sex", "age"))
    cell = np.ravel_multi_index((codes["race"], codes["sex"], codes["age"]), shape)
    count = table.column("count").to_numpy().astype(np.int64)
    counts = csr_array((count, (codes["block"], cell)), shape=(len(names["block"]), int(np.prod(shape))))
    axes = tuple(Axis(name, size) for name, size in zip(("race", "sex", "age"), shape, strict=True))
    return spine_of(("County", "Tract", "Block_Group", "Block"), parents), counts, Histogram(axes)


def _errors(
    spine: Spine, counts: csr_array, asked: Strategy, limits: Limits, queries: Sequence[str]
) -> dict[str, list[float]]:
    """By level and query, as the audit of a release has them, of several releases: one has only one state."""
    found: dict[str, list[list[float]]] = {}
    for draw in range(DRAWS):
        drawn = measure(spine, counts, asked, bytes([draw, *KEY[1:]]))
        for one in fit_errors(drawn, limits, counts).queries:
            if one.query in queries:
                row = [one.estimates, one.tree, np.nan if one.own_level is None else one.own_level]
                found.setdefault(f"{one.level}, {one.query}", []).append(row)
    return {where: np.mean(rows, axis=0).tolist() for where, rows in found.items()}
