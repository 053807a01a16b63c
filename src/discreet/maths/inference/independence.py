"""Tests of independence in noisy two-way tables: likelihood ratio and chi-square with the noise allowed for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc, gammaln, xlogy

from discreet.errors import mistake
from discreet.maths.inference.likelihood import filled, peaks, tilted_sums
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import Columns, PublishedLaw, packed

EQUAL = 1e-12
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PublishedMoments:
    """E x, Var x and d E x / d mu for true counts Poisson(mu).

    For large a the published count has mean a + d and variance s^2, so only the small counts that differ are summed.
    Rounding leaves no such constant; there d and s^2 are averages over one period of the rounding.
    """

    noise: PublishedLaw

    @cached_property
    def _rows(self) -> tuple[float, float, Floats, Floats]:
        return _by_count(self.noise)

    def __call__(self, mu: Floats) -> tuple[Floats, Floats, Floats]:
        """The three of them in the shape of mu."""
        change, spread, means, seconds = self._rows
        mean, second, slope = mu + change, mu + (mu + change) ** 2 + spread, np.ones_like(mu)
        near = mu - 9 * np.sqrt(mu) < len(means)
        if len(means) and near.any():
            a = np.arange(len(means))
            p = np.exp(xlogy(a, mu[near][:, None]) - mu[near][:, None] - gammaln(a + 1))  # (cell, a)
            drift = means - (a + change)
            mean[near] += p @ drift
            second[near] += p @ (seconds - (a + change) ** 2 - spread)
            slope[near] += p @ (np.append(drift[1:], 0.0) - drift)
        return mean, np.maximum(second - mean**2, LEAST_VARIANCE), slope


def _by_count(noise: PublishedLaw) -> tuple[float, float, Floats, Floats]:
    """The mean change and variance of large counts, and E x and E x^2 of the counts 0, 1, .. that differ from it."""
    rule = noise.publishing
    if noise.is_additive:
        return noise.change.mean, noise.change.variance, np.zeros(0), np.zeros(0)
    reach = max(len(noise.changes), rule.threshold + rule.rounding - noise.span[0], 1)
    period = [noise.row(a) for a in range(reach, reach + rule.rounding)]
    change = float(np.mean([row.mean - a for a, row in enumerate(period, reach)]))
    spread = float(
        np.mean([row.variance + (row.mean - a - change) ** 2 for a, row in enumerate(period, reach)])
    )
    small = [noise.row(a) for a in range(reach)]
    means = np.array([row.mean for row in small])
    seconds = np.array([row.variance for row in small]) + means**2
    return change, spread, *_without_tail(means, seconds, change, spread)


def _without_tail(means: Floats, seconds: Floats, change: float, spread: float) -> tuple[Floats, Floats]:
    a = np.arange(len(means))
    same = (np.abs(means - a - change) < EQUAL) & (np.abs(seconds - means**2 - spread) < EQUAL)
    differing = np.flatnonzero(~same)
    length = int(differing[-1]) + 1 if len(differing) else 0
    return means[:length], seconds[:length]


Integers = NDArray[np.int64]
CYCLES = 500
GAIN = 1e-9  # of log-likelihood
STEP = 1e-8
LEAST = 1e-12
LEAST_SUM = 1e-300
FITTINGS, FITTED = 1000, 1e-11  # cycles of proportional fitting, and the change at which it ends
SCORING = 25
AT_ONCE = 1 << 18  # cells whose weights are in memory at a time


@dataclass(frozen=True, eq=False)
class TestStatistic:
    """A statistic of each table and its p-value by the chi-square law."""

    statistic: Floats
    df: int

    @property
    def p_value(self) -> Floats:
        """Pr[chi-square at least the statistic]."""
        found: Floats = chdtrc(self.df, self.statistic)
        return found


@dataclass(frozen=True, eq=False)
class IndependenceTests:
    """The tests of each table, with the noise and as if there were none; ``fitted`` are the expected true counts."""

    likelihood_ratio: TestStatistic
    chi_square: TestStatistic
    naive_likelihood_ratio: TestStatistic
    naive_chi_square: TestStatistic
    fitted: Floats  # (table, row, column) -> mu
    settled: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Judged:
    """The part of a table that a test of independence is about, and its degrees of freedom.

    A row or column whose cells are all most likely empty has no fitted count: it is left out, as without noise an empty
    margin is. Cells that must be empty (structural zeros) are no observations: the model is mu_ij = r_i c_j over the
    others (quasi-independence; Bishop, Fienberg & Holland 1975, chapter 5). df = cells - rank of the effects, which is
    (r - 1)(c - 1) for a table without such cells and (r - 1)(c - 1) - their number where they do not separate it.
    """

    rows: Integers
    columns: Integers
    possible: NDArray[np.bool_]  # (row, column) of the part
    df: int

    def part(self, tables: NDArray[Any]) -> NDArray[Any]:
        """The rows and columns of tables (.., row, column) that are judged."""
        return tables[..., self.rows[:, None], self.columns[None, :]]


def judged_part(table: Integers, noise: PublishedLaw, structural: NDArray[np.bool_] | None = None) -> Judged:
    """What of a table is judged: rows and columns with a cell that may be and is not most likely empty."""
    possible = np.ones(table.shape, dtype=np.bool_) if structural is None else ~structural
    occupied = possible & filled(np.where(possible, table, 0), noise)
    return _judged(np.asarray(occupied.any(axis=1)), np.asarray(occupied.any(axis=0)), possible)


def judged_margins(rows: Sequence[int], columns: Sequence[int]) -> Judged:
    """What of a table with known margins is judged: what has members."""
    possible = np.ones((len(rows), len(columns)), dtype=np.bool_)
    return _judged(np.array(rows) > 0, np.array(columns) > 0, possible)


def _judged(rows: NDArray[np.bool_], columns: NDArray[np.bool_], possible: NDArray[np.bool_]) -> Judged:
    if min(possible.shape) < 2:
        raise mistake(
            "", "table", " x ".join(map(str, possible.shape)), "give at least two rows and two columns"
        )
    inside = possible[np.ix_(rows, columns)]
    df = _degrees_of_freedom(inside)
    if df < 1:
        value = f"{int(rows.sum())} rows and {int(columns.sum())} columns are not empty"
        raise mistake("", "table", value, "give at least two of each: else there is no dependence to test")
    return Judged(np.flatnonzero(rows), np.flatnonzero(columns), inside, df)


def _degrees_of_freedom(possible: NDArray[np.bool_]) -> int:
    """Cells - (rows + columns - parts that share no row or column): the rank of row and column effects."""
    rows, columns = possible.shape
    if not possible.any():
        return 0
    between = coo_array((np.ones(possible.sum()), np.nonzero(possible)), shape=possible.shape)
    joined = block_array([[None, between], [between.T, None]])
    parts = int(connected_components(joined, directed=False, return_labels=False))
    df: int = int(possible.sum()) - rows - columns + parts
    return df


def independence_tests(
    tables: Integers, noise: PublishedLaw, possible: NDArray[np.bool_] | None = None
) -> IndependenceTests:
    """Test tables (table, row, column) -> published count; true counts are Poisson (Rinott et al. 2018, 6.1).

    likelihood ratio: 2 log (max over all mu / max over mu_ij = r_i c_j / n) of
    prod_ij sum_a P(x_ij | a) Poisson(a; mu_ij), chi-square with (r - 1)(c - 1) degrees of freedom. The unrestricted
    maximum depends only on x and is tabulated. Cells that are not ``possible`` are left out (see ``Judged``);
    ``judged_part`` leaves empty rows and columns out.
    """
    _, rows, columns = tables.shape
    if rows < 2 or columns < 2:
        raise mistake("", "table", f"{rows} x {columns}", "give at least two rows and two columns")
    possible = np.ones((rows, columns), dtype=np.bool_) if possible is None else possible
    df = _degrees_of_freedom(possible)
    tables = np.where(possible, tables, 0)
    packs = packed(noise, tables)
    cells = packs.indices(tables)
    start = _effects(np.where(possible, np.maximum(tables, 0) + 0.5, 0.0), None)
    effects, most, settled = _climbed(cells, packs, start, None, possible)
    saturated = np.where(possible, peaks(packs)[1][cells], 0.0).sum(axis=(1, 2))
    mu = np.exp(effects[:, :rows, None] + effects[:, None, rows:])
    return IndependenceTests(
        TestStatistic(np.maximum(0.0, 2 * (saturated - most)), df),
        TestStatistic(_noisy_chi_square(tables, noise, mu, possible), df),
        TestStatistic(_g_square(tables, possible), df),
        TestStatistic(_chi_square(tables, possible), df),
        mu,
        settled,
    )


def fitted_products(
    tables: Integers, noise: PublishedLaw, total: int | None, possible: NDArray[np.bool_] | None = None
) -> Floats:
    """The most likely mu_ij = r_i c_j / n of each table; possible ones sum to n where a public total is given."""
    possible = np.ones(tables.shape[1:], dtype=np.bool_) if possible is None else possible
    tables = np.where(possible, tables, 0)
    packs = packed(noise, tables)
    start = _effects(np.where(possible, np.maximum(tables, 0) + 0.5, 0.0), total)
    effects, rows = _climbed(packs.indices(tables), packs, start, total, possible)[0], tables.shape[1]
    found: Floats = np.exp(effects[:, :rows, None] + effects[:, None, rows:])
    return found


def _effects(expected: Floats, total: int | None) -> Floats:
    """The M-step: mu_ij = r_i c_j / n, as the logarithms of r_i / sqrt n and c_j / sqrt n, side by side.

    With a public total N it is mu_ij = N (r_i / n) (c_j / n).
    """
    logs = np.log(np.maximum(LEAST, expected.sum(axis=(1, 2))))
    half = 0.5 * logs if total is None else logs - 0.5 * np.log(total)
    sums = np.concatenate([expected.sum(axis=2), expected.sum(axis=1)], axis=1)
    found: Floats = np.log(np.maximum(LEAST, sums)) - half[:, None]
    return found


def _next_effects(expected: Floats, total: int | None, possible: NDArray[np.bool_], before: Floats) -> Floats:
    """The M-step where some cells are impossible: one cycle of proportional fitting (ECM, Meng & Rubin 1993)."""
    if possible.all():
        return _effects(expected, total)
    rows, allowed = expected.shape[1], possible.astype(np.float64)
    across = np.exp(before[:, rows:])
    down = np.maximum(LEAST, expected.sum(axis=2)) / (across @ allowed.T)
    across = np.maximum(LEAST, expected.sum(axis=1)) / (down @ allowed)
    found: Floats = np.log(np.concatenate([down, across], axis=1))
    return found if total is None else _with_total(found, possible, total)


def _expected(
    cells: Integers, columns: Columns, effects: Floats, possible: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The E-step: the expected true counts under mu_ij = exp(row_i + column_j), and the log-likelihoods."""
    rows = cells.shape[1]
    theta = effects[:, :rows, None] + effects[:, None, rows:]
    logs, means, _ = tilted_sums(theta, cells, columns)
    return np.where(possible, means, 0.0), np.where(possible, logs - np.exp(theta), 0.0).sum(axis=(1, 2))


def _climbed(
    cells: Integers, columns: Columns, effects: Floats, total: int | None, possible: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """EM until nothing is gained, two steps and an extrapolation per cycle (Varadhan & Roland 2008, scheme S3).

    An extrapolation must gain what a plain step gains, else the second step is taken; settled tables are not changed.
    """
    most, moving = np.empty(len(cells)), np.arange(len(cells))
    if total is not None:
        effects = _with_total(effects, possible, total)
    expected, most[:] = _expected(cells, columns, effects, possible)
    for _ in range(CYCLES):
        here, own = effects[moving], cells[moving]
        one = _next_effects(expected, total, possible, here)
        expected, log_one = _expected(own, columns, one, possible)
        two = _next_effects(expected, total, possible, one)
        far, expected, log_far = _extrapolated(own, columns, (here, one, two), log_one, total, possible)
        settled = (log_far - most[moving] < GAIN) | (np.abs(one - here).max(axis=1) < STEP)
        effects[moving], most[moving] = far, log_far
        moving, expected = moving[~settled], expected[~settled]
        if not len(moving):
            break
    return effects, most, ~np.isin(np.arange(len(cells)), moving)


def _extrapolated(
    cells: Integers,
    columns: Columns,
    path: tuple[Floats, Floats, Floats],
    least: Floats,
    total: int | None,
    possible: NDArray[np.bool_],
) -> tuple[Floats, Floats, Floats]:
    """The point that two steps lead to when they are continued, its expected counts and its log-likelihood."""
    here, one, two = path
    step, bend = one - here, two - 2 * one + here
    length = np.sqrt((step**2).sum(axis=1) / np.maximum((bend**2).sum(axis=1), 1e-300))[:, None]
    far = np.where(length > 1, here + 2 * length * step + np.minimum(length, 1e100) ** 2 * bend, two)
    far = np.where(
        np.isfinite(far).all(axis=1, keepdims=True) & (np.abs(far).max(axis=1, keepdims=True) < 300), far, two
    )
    far = far if total is None else _with_total(far, possible, total)
    expected, logs = _expected(cells, columns, far, possible)
    worse = ~(logs >= least)
    if worse.any():
        far[worse] = two[worse]
        expected[worse], logs[worse] = _expected(cells[worse], columns, two[worse], possible)
    return far, expected, logs


def _with_total(effects: Floats, possible: NDArray[np.bool_], total: int) -> Floats:
    """The same products with this sum."""
    rows = len(possible)
    sums = (np.exp(effects[:, :rows]) @ possible * np.exp(effects[:, rows:])).sum(axis=1)
    found: Floats = effects - 0.5 * (np.log(sums) - np.log(total))[:, None]
    return found


def _products(tables: Floats, possible: NDArray[np.bool_]) -> Floats:
    """r_i c_j / n; with impossible cells the fit of quasi-independence, by proportional fitting."""
    total = tables.sum(axis=(1, 2), keepdims=True)
    products = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    found: Floats = products / np.maximum(total, LEAST_SUM)
    if possible.all():
        return found
    found = np.where(possible, found, 0.0)
    for _ in range(FITTINGS):
        before = found
        for axis in (2, 1):
            wanted, has = tables.sum(axis=axis, keepdims=True), found.sum(axis=axis, keepdims=True)
            found = found * wanted / np.maximum(has, LEAST_SUM)
        if np.abs(found - before).max() < FITTED * max(1.0, float(np.abs(tables).max())):
            break
    return found


def _g_square(tables: Integers, possible: NDArray[np.bool_]) -> Floats:
    """2 sum x log(x / mu), negative counts as zero."""
    x = np.maximum(tables, 0).astype(np.float64)
    mu = _products(x, possible)
    found: Floats = 2 * (xlogy(x, x) - xlogy(x, np.maximum(mu, LEAST_SUM))).sum(axis=(1, 2))
    return np.maximum(found, 0.0)


def _chi_square(tables: Integers, possible: NDArray[np.bool_]) -> Floats:
    """sum (x - mu)^2 / mu, negative counts as zero."""
    x = np.maximum(tables, 0).astype(np.float64)
    mu = _products(x, possible)
    found: Floats = ((x - mu) ** 2 / np.where(mu > 0, mu, 1.0)).sum(axis=(1, 2))
    return found


def _noisy_chi_square(
    tables: Integers, noise: PublishedLaw, mu: Floats, possible: NDArray[np.bool_]
) -> Floats:
    """sum (x - E x)^2 / Var x, where E x and Var x are those of the published count; fitted by quasi-likelihood.

    With additive noise of variance s^2: sum (x - mu)^2 / (mu + s^2). The fit solves the quasi-score equations of the
    model mu_ij = r_i c_j / n, for with any other fit the statistic would not lose one degree of freedom per parameter.
    """
    count, rows, columns = tables.shape
    inside = possible.ravel()
    design, moments = _design(rows, columns)[inside], PublishedMoments(noise)
    part = max(1, AT_ONCE // (rows * columns))
    found = np.empty(count)
    for start in range(0, count, part):
        here = slice(start, start + part)
        x = tables[here].reshape(-1, rows * columns)[:, inside].astype(np.float64)
        fitted = mu[here].reshape(-1, rows * columns)[:, inside]
        found[here] = _scored(x, moments, fitted, design)
    return found


def _design(rows: int, columns: int) -> Floats:
    """(cell, effect): all rows, and all columns but the first."""
    cell = np.arange(rows * columns)
    design = np.zeros((rows * columns, rows + columns - 1))
    design[cell, cell // columns] = 1.0
    later = cell % columns > 0
    design[cell[later], rows + cell[later] % columns - 1] = 1.0
    return design


def _scored(x: Floats, moments: PublishedMoments, mu: Floats, design: Floats) -> Floats:
    """Fisher scoring of the quasi-likelihood from a first fit, and the statistic there."""
    theta = np.linalg.lstsq(design, np.log(np.maximum(mu, 1e-8)).T, rcond=None)[0].T
    ridge = 1e-9 * np.eye(design.shape[1])
    for _ in range(SCORING):
        mu = np.exp(np.clip(theta @ design.T, -18.0, 25.0))
        mean, variance, slope = moments(mu)
        statistic = ((x - mean) ** 2 / variance).sum(axis=1)
        move = mu * slope
        score = ((x - mean) * move / variance) @ design
        information = np.einsum("tc,cp,cq->tpq", move**2 / variance, design, design, optimize=True)
        step = np.linalg.solve(information + ridge, score[:, :, None])[:, :, 0]
        theta = theta + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-7:
            break
    found: Floats = statistic
    return found
