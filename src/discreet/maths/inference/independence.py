"""Tests of independence in noisy two-way tables: likelihood ratio and chi-square with the noise allowed for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy
from scipy.stats import chi2

from discreet.errors import mistake
from discreet.maths.inference.likelihood import peaks, tilted_sums
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
        found: Floats = chi2.sf(self.statistic, self.df)
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


def independence_tests(tables: Integers, noise: PublishedLaw) -> IndependenceTests:
    """Test tables (table, row, column) -> published count; true counts are Poisson (Rinott et al. 2018, 6.1).

    likelihood ratio: 2 log (max over all mu / max over mu_ij = r_i c_j / n) of
    prod_ij sum_a P(x_ij | a) Poisson(a; mu_ij), chi-square with (r - 1)(c - 1) degrees of freedom. The unrestricted
    maximum depends only on x and is tabulated.
    """
    _, rows, columns = tables.shape
    if rows < 2 or columns < 2:
        raise mistake("", "table", f"{rows} x {columns}", "give at least two rows and two columns")
    df = (rows - 1) * (columns - 1)
    packs = packed(noise, tables)
    cells = packs.indices(tables)
    effects, most, settled = _climbed(cells, packs, _effects(np.maximum(tables, 0) + 0.5, None), None)
    saturated = peaks(packs)[1][cells].sum(axis=(1, 2))
    mu = np.exp(effects[:, :rows, None] + effects[:, None, rows:])
    return IndependenceTests(
        TestStatistic(np.maximum(0.0, 2 * (saturated - most)), df),
        TestStatistic(_noisy_chi_square(tables, noise, mu), df),
        TestStatistic(_g_square(tables), df),
        TestStatistic(_chi_square(tables), df),
        mu,
        settled,
    )


def fitted_products(tables: Integers, noise: PublishedLaw, total: int | None) -> Floats:
    """The most likely mu_ij = r_i c_j / n of each table, with sum n where a public total is given."""
    packs = packed(noise, tables)
    start = _effects(np.maximum(tables, 0) + 0.5, total)
    effects, rows = _climbed(packs.indices(tables), packs, start, total)[0], tables.shape[1]
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


def _expected(cells: Integers, columns: Columns, effects: Floats) -> tuple[Floats, Floats]:
    """The E-step: the expected true counts under mu_ij = exp(row_i + column_j), and the log-likelihoods."""
    rows = cells.shape[1]
    theta = effects[:, :rows, None] + effects[:, None, rows:]
    logs, means, _ = tilted_sums(theta, cells, columns)
    return means, (logs - np.exp(theta)).sum(axis=(1, 2))


def _climbed(
    cells: Integers, columns: Columns, effects: Floats, total: int | None
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """EM until nothing is gained, two steps and an extrapolation per cycle (Varadhan & Roland 2008, scheme S3).

    An extrapolation must gain what a plain step gains, else the second step is taken; settled tables are not changed.
    """
    most, moving = np.empty(len(cells)), np.arange(len(cells))
    expected, most[:] = _expected(cells, columns, effects)
    for _ in range(CYCLES):
        here, own = effects[moving], cells[moving]
        one = _effects(expected, total)
        expected, log_one = _expected(own, columns, one)
        two = _effects(expected, total)
        far, expected, log_far = _extrapolated(own, columns, (here, one, two), log_one, total)
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
) -> tuple[Floats, Floats, Floats]:
    """The point that two steps lead to when they are continued, its expected counts and its log-likelihood."""
    here, one, two = path
    step, bend = one - here, two - 2 * one + here
    length = np.sqrt((step**2).sum(axis=1) / np.maximum((bend**2).sum(axis=1), 1e-300))[:, None]
    far = np.where(length > 1, here + 2 * length * step + np.minimum(length, 1e100) ** 2 * bend, two)
    far = np.where(
        np.isfinite(far).all(axis=1, keepdims=True) & (np.abs(far).max(axis=1, keepdims=True) < 300), far, two
    )
    far = far if total is None else _with_total(far, cells.shape[1], total)
    expected, logs = _expected(cells, columns, far)
    worse = ~(logs >= least)
    if worse.any():
        far[worse] = two[worse]
        expected[worse], logs[worse] = _expected(cells[worse], columns, two[worse])
    return far, expected, logs


def _with_total(effects: Floats, rows: int, total: int) -> Floats:
    """The same products with this sum."""
    sums = np.exp(effects[:, :rows]).sum(axis=1) * np.exp(effects[:, rows:]).sum(axis=1)
    found: Floats = effects - 0.5 * (np.log(sums) - np.log(total))[:, None]
    return found


def _products(tables: Floats) -> Floats:
    """r_i c_j / n."""
    total = tables.sum(axis=(1, 2), keepdims=True)
    products = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    found: Floats = products / np.maximum(total, 1e-300)
    return found


def _g_square(tables: Integers) -> Floats:
    """2 sum x log(x / mu), negative counts as zero."""
    x = np.maximum(tables, 0).astype(np.float64)
    mu = _products(x)
    found: Floats = 2 * (xlogy(x, x) - xlogy(x, np.maximum(mu, 1e-300))).sum(axis=(1, 2))
    return np.maximum(found, 0.0)


def _chi_square(tables: Integers) -> Floats:
    """sum (x - mu)^2 / mu, negative counts as zero."""
    x = np.maximum(tables, 0).astype(np.float64)
    mu = _products(x)
    found: Floats = ((x - mu) ** 2 / np.where(mu > 0, mu, 1.0)).sum(axis=(1, 2))
    return found


def _noisy_chi_square(tables: Integers, noise: PublishedLaw, mu: Floats) -> Floats:
    """sum (x - E x)^2 / Var x, where E x and Var x are those of the published count; fitted by quasi-likelihood.

    With additive noise of variance s^2: sum (x - mu)^2 / (mu + s^2). The fit solves the quasi-score equations of the
    model mu_ij = r_i c_j / n, for with any other fit the statistic would not lose one degree of freedom per parameter.
    """
    count, rows, columns = tables.shape
    design, moments = _design(rows, columns), PublishedMoments(noise)
    part = max(1, AT_ONCE // (rows * columns))
    found = np.empty(count)
    for start in range(0, count, part):
        x = tables[start : start + part].reshape(-1, rows * columns).astype(np.float64)
        found[start : start + part] = _scored(x, moments, mu[start : start + part].reshape(x.shape), design)
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
