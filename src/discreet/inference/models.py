"""Tests and models in words: independence, a binomial probability, log-linear models; the formulas are in maths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from discreet.errors import mistake
from discreet.inference.noise import Noise
from discreet.inference.results import BinomialResult, Effect, IndependenceResult, LogLinearResult, Pair
from discreet.inference.tables import counts_in, table_in
from discreet.maths.noisy_binomial import BinomialFit, binomial_test, checked
from discreet.maths.noisy_counts import NO_NOISE
from discreet.maths.noisy_independence import Independence, independence_tests
from discreet.maths.noisy_intervals import checked_level
from discreet.maths.noisy_loglinear import LogLinearFit, design, fit

SIGNIFICANCE = 0.05
SMALL = 5.0
THIN = "many cells are expected to hold fewer than 5: p-values by the chi-square law are rough"
UNSETTLED = "the fit did not come to rest; take the result with care"


def independence(table: Any, noise: Noise) -> IndependenceResult:
    """Test whether rows and columns of a two-way table are independent, allowing for the noise."""
    counts = counts_in(table)
    if counts.ndim != 2:
        raise mistake("", "table", f"{counts.ndim} axes", "give a table of rows and columns")
    return _independence(independence_tests(counts[None], noise.counts), 0, counts, noise)


def independence_of_many(tables: Any, noise: Noise) -> list[IndependenceResult]:
    """Test many tables of one shape: (table, row, column) -> count."""
    counts = counts_in(tables, "tables")
    if counts.ndim != 3:
        raise mistake(
            "", "tables", f"{counts.ndim} axes", "give tables of rows and columns, all of one shape"
        )
    found = independence_tests(counts, noise.counts)
    return [_independence(found, k, counts[k], noise) for k in range(len(counts))]


def _independence(found: Independence, k: int, counts: NDArray[np.int64], noise: Noise) -> IndependenceResult:
    aware, naive = float(found.likelihood_ratio.p_value[k]), float(found.naive_likelihood_ratio.p_value[k])
    caveats = list(noise.caveats_for(counts))
    if (found.fitted[k] < SMALL).mean() > 0.2:
        caveats.append(THIN)
    if not found.settled[k]:
        caveats.append(UNSETTLED)
    return IndependenceResult(
        counts.shape[0],
        counts.shape[1],
        found.likelihood_ratio.df,
        float(found.likelihood_ratio.statistic[k]),
        aware,
        float(found.naive_likelihood_ratio.statistic[k]),
        naive,
        float(found.chi_square.statistic[k]),
        Pair(float(found.chi_square.p_value[k]), float(found.naive_chi_square.p_value[k])),
        bool(found.settled[k]),
        noise.name,
        _verdict("rows and columns are independent", aware, naive),
        tuple(caveats),
    )


def _verdict(claim: str, aware: float, naive: float) -> str:
    """Both p-values and what they mean together."""
    told = f"p = {aware:.3g} with the noise allowed for, {naive:.3g} without"
    if aware > SIGNIFICANCE >= naive:
        return f"The counts do not contradict that {claim}; what looks like it is explained by the noise ({told})."
    if aware > SIGNIFICANCE:
        return f"The counts do not contradict that {claim} ({told})."
    return f"The counts contradict that {claim} ({told})."


def binomial(
    published: Any, n: int, p0: float, noise: Noise, level: float = 0.95, against: float | None = None
) -> BinomialResult:
    """Test whether a published count of n has probability p0; ``against`` asks for the power at another one."""
    count = int(counts_in(published, "x").ravel()[0])
    checked(n, p0)
    checked_level(level)
    if against is not None:
        checked(n, against)
    fitted, test = BinomialFit(n, count, noise.counts), binomial_test(n, p0, noise.counts)
    statistic, limit = fitted.statistic(p0), float(chi2.ppf(1 - SIGNIFICANCE, 1))
    bounded = min(max(count, 0), n)
    plain = BinomialFit(n, bounded, NO_NOISE)
    p_value, naive = test.p_value(statistic), binomial_test(n, p0, NO_NOISE).p_value(plain.statistic(p0))
    low, high = fitted.interval(level)
    return BinomialResult(
        n, count, p0, fitted.estimate, low, high, level, statistic, p_value, float(chi2.sf(statistic, 1)), naive,
        bounded / n, test.size(limit), None if against is None else test.power(against, limit), noise.name,
        f"{_verdict(f'the probability is {p0:g}', p_value, naive)} The best estimate is {fitted.estimate:.4g}, from "
        f"{low:.4g} to {high:.4g} at {level:.0%}.",
        noise.caveats,
    )  # fmt: skip


def loglinear(
    table: Any, terms: Sequence[str], noise: Noise, axes: Sequence[str] | None = None
) -> LogLinearResult:
    """Fit a hierarchical log-linear model, as ``["A*B", "C"]`` for A and B associated and C independent of both."""
    named = table_in(table, axes)
    if named.counts.ndim < 1 or min(named.counts.shape, default=0) < 2:
        raise mistake(
            "", "table", " x ".join(map(str, named.counts.shape)), "give every axis at least two categories"
        )
    if not terms:
        raise mistake("", "model", "no terms", f"give at least one, from {', '.join(named.axes)}")
    model = design(named.counts.shape, named.labels, named.axes, terms)
    cells = named.counts.ravel()
    aware = fit(cells, model, noise.counts)
    naive = fit(np.maximum(cells, 0), model, NO_NOISE)
    caveats = list(noise.caveats_for(cells))
    if not np.isfinite(aware.variances).all():
        caveats.append("some effects cannot be told from these counts; their standard errors are infinite")
    if (aware.fitted < SMALL).mean() > 0.2:
        caveats.append(THIN)
    if not aware.settled:
        caveats.append(UNSETTLED)
    return LogLinearResult(
        tuple(terms), _effects(aware, naive), aware.deviance, aware.df, aware.p_value, naive.deviance, naive.p_value,
        aware.settled, noise.name, _verdict(f"the model {' + '.join(terms)} holds", aware.p_value, naive.p_value),
        tuple(caveats),
    )  # fmt: skip


def _effects(aware: LogLinearFit, naive: LogLinearFit) -> tuple[Effect, ...]:
    columns = (
        aware.estimates,
        aware.standard_errors,
        aware.wald,
        naive.estimates,
        naive.standard_errors,
    )
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(Effect(name, *row) for name, row in zip(aware.names, numbers, strict=True))
