"""Tests, intervals and models for users of a release, with results that include a sentence and caveats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from discreet.errors import mistake
from discreet.inference.noise import KnownLaw
from discreet.inference.tables import counts_in, table_in
from discreet.maths.inference.binomial import BinomialFit, binomial_test, checked
from discreet.maths.inference.independence import IndependenceTests, independence_tests
from discreet.maths.inference.intervals import (
    Flat,
    Interval,
    Prior,
    SumInference,
    checked_level,
    estimated_prior,
    infer_cell,
    infer_ratio,
    infer_sum,
)
from discreet.maths.inference.loglinear import LogLinearFit, design, fit
from discreet.maths.noise.publishing import NO_NOISE


def _finite(value: Any) -> Any:
    """The value for JSON, which has no infinity: null instead."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Summed:
    """A result that can be returned as a dictionary."""

    def summary(self) -> dict[str, Any]:
        """The whole result, ready for JSON; infinite values are null."""
        found = _finite(asdict(self))  # type: ignore[call-overload]
        return dict(found)


@dataclass(frozen=True)
class Pair:
    """A p-value that allows for the noise, and one that treats the published counts as true."""

    noise_aware: float
    naive: float


@dataclass(frozen=True)
class IndependenceResult(_Summed):
    """Tests of independence in a two-way table."""

    rows: int
    columns: int
    df: int
    statistic: float  # likelihood ratio
    p_value: float
    naive_statistic: float
    naive_p_value: float
    chi_square: float
    chi_square_p: Pair
    settled: bool
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class BinomialResult(_Summed):
    """The test of p = p0 from one published count of n."""

    n: int
    published: int
    p0: float
    estimate: float
    low: float
    high: float
    level: float
    statistic: float
    p_value: float  # exact, by enumeration
    asymptotic_p_value: float
    naive_p_value: float
    naive_estimate: float
    size_at_5_percent: float  # of the test that rejects beyond the chi-square limit
    power: float | None
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Range:
    """An interval from low to high, both included, and its level."""

    low: int
    high: int
    level: float


@dataclass(frozen=True)
class CellResult(_Summed):
    """The true count behind a published one."""

    published: int
    most_likely: tuple[int, int]
    interval: Range  # exact coverage, whatever the true count
    posterior_mean: float
    credible: Range
    empty: float  # posterior probability that the true count is 0
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class SumResult(_Summed):
    """A total or a difference."""

    published: int
    estimate: float
    interval: Range  # the one to quote
    method: str
    posterior_mean: float
    credible: Range
    exact: bool
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class RatioResult(_Summed):
    """A ratio of two counts; an infinite limit is null in the summary."""

    published: float | None
    median: float
    low: float
    high: float
    level: float
    exact: bool
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """A parameter of a log-linear model."""

    name: str
    estimate: float
    standard_error: float  # inf: not identified by the data
    p_value: float
    naive_estimate: float
    naive_standard_error: float


@dataclass(frozen=True)
class LogLinearResult(_Summed):
    """A fitted log-linear model; the deviance tests it against the saturated one."""

    terms: tuple[str, ...]
    effects: tuple[Effect, ...]
    deviance: float
    df: int
    p_value: float
    naive_deviance: float
    naive_p_value: float
    settled: bool
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


MANY = 20  # least number of cells to estimate their prior
BY_NOISE = "by only the law of the summed noise: valid whatever the true counts are"
BY_POSTERIOR = "by the posterior"


def interval(published: Any, noise: KnownLaw, level: float = 0.95, prior: Prior = Flat()) -> CellResult:
    """The true count behind one published count."""
    count = _single(published)
    found = infer_cell(noise.counts, count, level, prior)
    exact, credible = _range(found.exact), _range(found.credible)
    sentence = (
        f"Published {count}: the true count lies between {exact.low} and {exact.high} with at least {level:.0%} "
        f"confidence; given the prior, between {credible.low} and {credible.high} with probability "
        f"{credible.level:.1%}."
    )
    return CellResult(
        count, found.most_likely, exact, found.posterior.mean, credible, found.posterior.at(0), prior.name, noise.name,
        sentence, noise.caveats_for(np.array([count])),
    )  # fmt: skip


def difference(
    first: Any, second: Any, noise: KnownLaw, level: float = 0.95, prior: Prior = Flat()
) -> SumResult:
    """The difference of two true counts of different groups, whose noise is independent."""
    pair = [_single(first), _single(second)]
    found = infer_sum(noise.counts, pair, [1, -1], level, prior)
    return _sum_result("difference", found, noise, prior.name, pair)


def total(
    cells: Any,
    noise: KnownLaw,
    level: float = 0.95,
    prior: Prior | None = None,
    weights: Sequence[int] | None = None,
    published: int | None = None,
) -> SumResult:
    """The true total of cells with independent noise; a total ``published`` with its own noise helps.

    A group that is in several of the cells has the same noise there: give it once, with its number as weight.
    Without a prior one is estimated from the cells where there are enough of them, and is flat where there are few.
    """
    counts = counts_in(cells, "cells").ravel().tolist()
    factors = [1] * len(counts) if weights is None else counts_in(weights, "weights").ravel().tolist()
    extra, used = 0.0, prior
    if used is None and len(counts) >= MANY and weights is None:
        estimate = estimated_prior(noise.counts, counts)
        used, extra = estimate.prior, estimate.total_variance
    used = used or Flat()
    found = infer_sum(noise.counts, counts, factors, level, used, published, extra)
    return _sum_result("total", found, noise, used.name, counts, helped=published is not None)


def ratio(count: Any, base: Any, noise: KnownLaw, level: float = 0.95, prior: Prior = Flat()) -> RatioResult:
    """The ratio of two true counts of different groups."""
    found = infer_ratio(noise.counts, _single(count), _single(base), level, prior)
    upper = f"{found.high:.4g}" if np.isfinite(found.high) else "any larger value, for the base may be empty"
    sentence = (
        f"The true ratio lies between {found.low:.4g} and {upper} with probability {level:.0%}; its median is "
        f"{found.median:.4g}{_as_normal(found.is_exact)}."
    )
    return RatioResult(
        found.published, found.median, found.low, found.high, level, found.is_exact, prior.name, noise.name, sentence,
        noise.caveats_for(np.array([_single(count), _single(base)])),
    )  # fmt: skip


def _sum_result(
    what: str, found: SumInference, noise: KnownLaw, prior: str, counts: list[int], helped: bool = False
) -> SumResult:
    """The interval by only the noise where there is one and nothing more is known, else the posterior's."""
    credible = _range(found.credible)
    by_noise = None if helped or found.noise_only is None else _range(found.noise_only)
    shown, method = (credible, BY_POSTERIOR) if by_noise is None else (by_noise, BY_NOISE)
    estimate = found.posterior_mean
    if by_noise is not None:
        estimate = (by_noise.low + by_noise.high) / 2
    sentence = (
        f"The published {what} is {found.published}; the true {what} lies between {shown.low} and {shown.high} "
        f"({shown.level:.1%}, {method}){_as_normal(found.is_exact)}."
    )
    return SumResult(
        found.published, estimate, shown, method, found.posterior_mean, credible, found.is_exact, prior, noise.name,
        sentence, noise.caveats_for(np.array(counts)),
    )  # fmt: skip


def _as_normal(is_exact: bool) -> str:
    return "" if is_exact else ", by the normal law because the exact one is too large"


def _range(found: Interval) -> Range:
    return Range(found.low, found.high, found.level)


def _single(value: Any) -> int:
    counts = counts_in(value, "count")
    if counts.size != 1:
        raise mistake("", "count", f"{counts.size} values", "give one published count")
    return int(counts.flat[0])


SIGNIFICANCE = 0.05
SMALL = 5.0
THIN = "many cells have expected counts below 5: p-values by the chi-square law are rough"
UNSETTLED = "the fit did not converge; use the result with care"


def independence(table: Any, noise: KnownLaw) -> IndependenceResult:
    """Test whether rows and columns of a two-way table are independent, allowing for the noise."""
    counts = counts_in(table)
    if counts.ndim != 2:
        raise mistake("", "table", f"{counts.ndim} axes", "give a table of rows and columns")
    return _independence(independence_tests(counts[None], noise.counts), 0, counts, noise)


def independence_of_many(tables: Any, noise: KnownLaw) -> list[IndependenceResult]:
    """Test many tables of one shape: (table, row, column) -> count."""
    counts = counts_in(tables, "tables")
    if counts.ndim != 3:
        raise mistake(
            "", "tables", f"{counts.ndim} axes", "give tables of rows and columns, all of one shape"
        )
    found = independence_tests(counts, noise.counts)
    return [_independence(found, k, counts[k], noise) for k in range(len(counts))]


def _independence(
    found: IndependenceTests, k: int, counts: NDArray[np.int64], noise: KnownLaw
) -> IndependenceResult:
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
    both = f"p = {aware:.3g} with the noise allowed for, {naive:.3g} without"
    if aware > SIGNIFICANCE >= naive:
        return f"The counts do not contradict that {claim}; the apparent deviation is explained by the noise ({both})."
    if aware > SIGNIFICANCE:
        return f"The counts do not contradict that {claim} ({both})."
    return f"The counts contradict that {claim} ({both})."


def binomial(
    published: Any, n: int, p0: float, noise: KnownLaw, level: float = 0.95, against: float | None = None
) -> BinomialResult:
    """Test whether a published count of n has probability p0; ``against`` adds the power at another probability."""
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
    table: Any, terms: Sequence[str], noise: KnownLaw, axes: Sequence[str] | None = None
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
        caveats.append(
            "some effects cannot be estimated from these counts; their standard errors are infinite"
        )
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
