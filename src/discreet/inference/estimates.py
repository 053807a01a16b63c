"""Tests, intervals and models for users of a release, with results that include a sentence and caveats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.inference.noise import KnownLaw
from discreet.inference.results import Inferred
from discreet.inference.tables import CrossTable, counts_in, table_in
from discreet.lazy import lazily
from discreet.maths.inference.binomial import BinomialFit, binomial_test, checked
from discreet.maths.inference.intervals import (
    Flat,
    Interval,
    Prior,
    SumInference,
    SumMethod,
    checked_level,
    infer_cell,
    infer_ratio,
    infer_sum,
)
from discreet.maths.inference.likelihood import filled
from discreet.maths.inference.loglinear import LogLinearFit, design, fit
from discreet.maths.inference.proportion import infer_proportion
from discreet.maths.inference.simulated import (
    Known,
    KnownMargins,
    SimulatedTests,
    default_tables,
    simulated_tests,
)
from discreet.maths.noise.publishing import LARGEST_COUNT, NO_NOISE, PublishedLaw

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily("scipy.stats")


@dataclass(frozen=True)
class Pair:
    """A p-value that allows for the noise, and one that treats the published counts as true."""

    noise_aware: float
    naive: float


@dataclass(frozen=True)
class IndependenceResult(Inferred):
    """Tests of independence in a two-way table."""

    rows: int
    columns: int
    empty_rows: int  # left out, as the empty columns: all their cells are most likely empty
    empty_columns: int
    structural: int  # cells left out because they must be empty
    df: int
    test: str
    statistic: float
    p_value: float  # by simulated tables, or by the chi-square law where there are none
    asymptotic_p_value: float  # by the chi-square law
    simulations: int
    naive_statistic: float
    naive_p_value: float
    chi_square: float
    chi_square_p: Pair
    settled: bool
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class BinomialResult(Inferred):
    """The test of p = p0 from one published count of n."""

    n: int
    published: int
    p0: float
    estimate: float
    low: float
    high: float
    level: float
    coverage: float  # of such an interval, exactly, where the probability is the estimate
    statistic: float
    p_value: float  # exact, by enumeration
    asymptotic_p_value: float
    naive_p_value: float
    naive_estimate: float
    size_at_5_percent: float  # of the test that rejects beyond the chi-square limit
    power: float | None
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Range:
    """An interval from low to high, both included, and its level."""

    low: int
    high: int
    level: float


@dataclass(frozen=True)
class CellResult(Inferred):
    """The true count behind a published one."""

    published: int
    most_likely: tuple[int, int]
    interval: Range  # exact coverage, whatever the true count
    posterior_mean: float
    credible: Range
    empty: float  # posterior probability that the true count is 0
    prior: str
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class SumResult(Inferred):
    """A total or a difference."""

    published: int
    estimate: float
    interval: Range
    method: str
    posterior_mean: float | None  # None where no prior is given
    credible: Range | None
    exact: bool  # the interval, by enumeration
    prior: str | None
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class RatioResult(Inferred):
    """A ratio of two counts; an infinite limit is null in the summary."""

    published: float | None
    median: float
    low: float
    high: float
    level: float
    exact: bool
    prior: str
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProportionResult(Inferred):
    """The share of a part in a whole, both published with noise."""

    published: float | None
    estimate: float
    low: float
    high: float
    level: float
    exact: bool
    noise: str
    assumption: str
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
class LogLinearResult(Inferred):
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
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


GIVEN_NOISE = "the stated noise, independent from cell to cell"
BY_ENUMERATION = f"{GIVEN_NOISE}; the limits are exact and need no prior"
GIVEN_PRIOR = "the credible interval also needs the prior to be true"
CHECKED_SUMS = (
    "worst coverage found for a nominal 95 %: 94 %, over 2 to 250 cells, from empty to full, under Laplace, geometric, "
    "discrete Gaussian and cell key noise with negatives as zero, thresholds and rounding"
)
METHODS = {
    SumMethod.EXACT: "by the law of the noise, whatever the true counts are",
    SumMethod.NORMAL: "by the normal law of the summed noise, whatever the true counts are",
    SumMethod.CORRECTED: "by counts corrected for post-processing, whatever the true counts are",
}
ASSUMPTIONS = {
    SumMethod.EXACT: BY_ENUMERATION,
    SumMethod.NORMAL: f"{GIVEN_NOISE}; their sum is normal, because it has too many values to enumerate",
    SumMethod.CORRECTED: f"{GIVEN_NOISE}; the sum of the corrected counts is normal; {CHECKED_SUMS}",
}


def _law(noise: KnownLaw) -> PublishedLaw:
    """The law of published counts; what else a notebook may take for noise is refused."""
    if not isinstance(noise, KnownLaw):
        remedy = "give Table.noise(), inference.noise_of(release) or inference.noise_by(..)"
        raise mistake("", "noise", f"an object of type {type(noise).__name__}", remedy)
    return noise.counts


def interval(published: Any, noise: KnownLaw, level: float = 0.95, prior: Prior = Flat()) -> CellResult:
    """The true count behind one published count.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.interval(12, noise)
    >>> found.interval.low < 12 < found.interval.high
    True
    """
    count = _single(published)
    found = infer_cell(_law(noise), count, level, prior)
    exact, credible = _range(found.exact), _range(found.credible)
    sentence = (
        f"Published {count}: the true count lies between {exact.low} and {exact.high} with at least {level:.0%} "
        f"confidence; given the prior, between {credible.low} and {credible.high} with probability "
        f"{credible.level:.1%}."
    )
    return CellResult(
        count, found.most_likely, exact, found.posterior.mean, credible, found.posterior.at(0), prior.name, noise.name,
        f"{BY_ENUMERATION}; {GIVEN_PRIOR}", sentence, noise.caveats_for(np.array([count])),
    )  # fmt: skip


def difference(
    first: Any, second: Any, noise: KnownLaw, level: float = 0.95, prior: Prior | None = None
) -> SumResult:
    """The difference of two true counts of different groups, whose noise is independent.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.difference(40, 12, noise)
    >>> found.published, found.interval.low > 0
    (28, True)
    """
    pair = [_single(first), _single(second)]
    found = infer_sum(_law(noise), pair, [1, -1], level, prior)
    return _sum_result("difference", found, noise, prior, pair)


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

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> ds.inference.total([3, 8, 12], noise).published
    23
    """
    counts = counts_in(cells, "cells").ravel().tolist()
    factors = [1] * len(counts) if weights is None else counts_in(weights, "weights").ravel().tolist()
    found = infer_sum(_law(noise), counts, factors, level, prior, published)
    return _sum_result("total", found, noise, prior, counts)


def ratio(count: Any, base: Any, noise: KnownLaw, level: float = 0.95, prior: Prior = Flat()) -> RatioResult:
    """The ratio of two true counts of different groups.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.ratio(40, 80, noise)
    >>> found.low < 0.5 < found.high
    True
    """
    found = infer_ratio(_law(noise), _single(count), _single(base), level, prior)
    upper = f"{found.high:.4g}" if np.isfinite(found.high) else "any larger value, for the base may be empty"
    sentence = (
        f"The true ratio lies between {found.low:.4g} and {upper} with probability {level:.0%}; its median is "
        f"{found.median:.4g}{_as_normal(found.is_exact)}."
    )
    return RatioResult(
        found.published, found.median, found.low, found.high, level, found.is_exact, prior.name, noise.name,
        f"{GIVEN_NOISE}, and the prior of both counts{_as_normal(found.is_exact)}", sentence,
        noise.caveats_for(np.array([_single(count), _single(base)])),
    )  # fmt: skip


CHECKED_PROPORTIONS = (
    "worst coverage found for a nominal 95 %: 93 %, for wholes of 10 to 1000, under Laplace, geometric, discrete "
    "Gaussian and cell key noise with negatives as zero, thresholds and rounding"
)


def proportion(
    part: Any, whole: Any, noise: KnownLaw, level: float = 0.95, whole_noise: KnownLaw | None = None
) -> ProportionResult:
    """The share of a part in a whole that contains it, both published with noise; no prior is needed.

    ``whole_noise``: the noise of the whole, where it has another law.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.proportion(40, 80, noise)
    >>> found.low < 0.5 < found.high
    True
    """
    x, y, of_whole = _single(part), _single(whole), whole_noise or noise
    found = infer_proportion(_law(noise), _law(of_whole), x, y, level)
    low, estimate, high = _told_apart(found.low, found.estimate, found.high)
    sentence = (
        f"Published {x} of {y}: the true proportion lies between {low} and {high} with about "
        f"{level:.0%} confidence; the best estimate is {estimate}{_as_normal(found.is_exact)}."
    )
    assumption = (
        f"the stated noise, independent in part and whole; the whole contains the part and is not empty; "
        f"{CHECKED_PROPORTIONS}{_as_normal(found.is_exact)}"
    )
    caveats = (*noise.caveats_for(np.array([x])), *of_whole.caveats_for(np.array([y])))
    return ProportionResult(
        found.published, found.estimate, found.low, found.high, level, found.is_exact, noise.name, assumption,
        sentence, tuple(dict.fromkeys(caveats)),
    )  # fmt: skip


def _sum_result(
    what: str, found: SumInference, noise: KnownLaw, prior: Prior | None, counts: list[int]
) -> SumResult:
    shown, method, posterior = _range(found.interval), METHODS[found.method], found.posterior
    credible, assumption = None, ASSUMPTIONS[found.method]
    sentence = (
        f"The published {what} is {found.published}; the true {what} lies between {shown.low} and {shown.high} "
        f"({shown.level:.0%}, {method})"
    )
    if posterior is not None:
        credible, assumption = _range(posterior.credible), f"{assumption}; {GIVEN_PRIOR}"
        sentence += (
            f"; given the prior, between {credible.low} and {credible.high} with probability {credible.level:.1%}"
            f"{_as_normal(posterior.is_exact)}"
        )
    return SumResult(
        found.published, found.estimate, shown, method, None if posterior is None else posterior.mean, credible,
        found.method is SumMethod.EXACT, None if prior is None else prior.name, noise.name, assumption,
        f"{sentence}.", noise.caveats_for(np.array(counts)),
    )  # fmt: skip


def _told_apart(low: float, middle: float, high: float) -> tuple[str, str, str]:
    """The limits and the estimate with as many digits, at least four, as show that the limits differ."""
    digits = next((n for n in range(4, 12) if f"{low:.{n}g}" != f"{high:.{n}g}"), 12 if low != high else 4)
    return f"{low:.{digits}g}", f"{middle:.{digits}g}", f"{high:.{digits}g}"


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


NO_SIMULATION = (
    "p-values are by the chi-square law, which is rough where counts are small; simulate tables instead"
)
NULLS = {
    "nothing": "true counts are Poisson",
    "total": "the public total is exact and true counts are multinomial",
    "margins": "the known margins are exact and no other parameter is estimated",
}
TESTS = {
    "nothing": "likelihood ratio",
    "total": "likelihood ratio, total known",
    "margins": "score, margins known",
}
CHECKED_TESTS = (
    "size found for a nominal 5 %: 2 to 11 % at mean counts of 3 and 10 under cell key, Laplace, geometric and "
    "discrete Gaussian noise, less at a mean of 1"
)
EXACT_TEST = "the p-value is exact whatever the counts are"


def independence(
    table: Any,
    noise: KnownLaw,
    *,
    public_total: int | None = None,
    known_margins: tuple[Any, Any] | None = None,
    simulations: int | None = None,
    seed: int = 0,
    structural: Any = None,
) -> IndependenceResult:
    """Test whether rows and columns of a two-way table are independent, allowing for the noise.

    ``public_total``: the exact number of records. ``known_margins``: the exact totals of rows and of columns. The
    p-value is that of ``simulations`` tables drawn under independence (by default 999, fewer for large tables); with 0
    it is that of the chi-square law. ``structural``: true for cells that must be empty by definition, which are no
    observations. Rows and columns that are empty are left out, as without noise.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.independence([[30, 10], [10, 30]], noise, simulations=0)
    >>> found.sentence.startswith("The counts contradict")
    True
    """
    counts = counts_in(table)
    impossible = _structural(table, structural, counts)
    if counts.ndim != 2:
        raise mistake("", "table", f"{counts.ndim} axes", "give a table of rows and columns")
    if public_total is not None and known_margins is not None:
        raise mistake(
            "", "public total and known margins", "both", "give the margins: they contain the total"
        )
    if public_total is not None and not 1 <= public_total <= LARGEST_COUNT * counts.size:
        remedy = f"give the number of records, from 1 to {LARGEST_COUNT * counts.size} for such a table"
        raise mistake("", "public total", str(public_total), remedy)
    known: Known = public_total
    if known_margins is not None:
        rows, columns = (counts_in(totals, "known margins").ravel().tolist() for totals in known_margins)
        known = KnownMargins(tuple(rows), tuple(columns))
    tables = default_tables(counts.size) if simulations is None else simulations
    if not (tables == 0 or 19 <= tables <= LARGEST_SIMULATIONS):
        raise mistake("", "simulations", str(tables), f"give 19 to {LARGEST_SIMULATIONS}, or 0 for none")
    rng = np.random.default_rng(seed)
    found = simulated_tests(counts, _law(noise), known, tables, rng, impossible)
    return _independence(found, known, counts, noise)


LARGEST_SIMULATIONS = 10**5


def _structural(table: Any, given: Any, counts: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """The cells that must be empty: those given, or those that the table states; a count in one is refused."""
    stated = table.structural if given is None and isinstance(table, CrossTable) else given
    if stated is None:
        return None
    found = np.asarray(stated)
    if found.dtype != np.bool_ or found.shape != counts.shape:
        value = f"{found.dtype} of shape {' x '.join(map(str, found.shape))}"
        raise mistake("", "structural", value, "give true or false for each cell of the table")
    if counts[found].any():
        raise mistake("", "structural", "a cell with a count", "give 0 in cells that must be empty")
    return found


def independence_of_many(
    tables: Any, noise: KnownLaw, *, simulations: int | None = None, seed: int = 0
) -> list[IndependenceResult]:
    """Test many tables of one shape: (table, row, column) -> count; simulations = 0 is much faster.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> tables = [[[30, 10], [10, 30]], [[20, 20], [20, 20]]]
    >>> len(ds.inference.independence_of_many(tables, noise, simulations=0))
    2
    """
    counts = counts_in(tables, "tables")
    if counts.ndim != 3:
        raise mistake(
            "", "tables", f"{counts.ndim} axes", "give tables of rows and columns, all of one shape"
        )
    return [independence(one, noise, simulations=simulations, seed=seed) for one in counts]


def _independence(
    found: SimulatedTests, known: Known, counts: NDArray[np.int64], noise: KnownLaw
) -> IndependenceResult:
    what = "nothing" if known is None else "margins" if isinstance(known, KnownMargins) else "total"
    test = found.score or found.likelihood_ratio
    tests, caveats = found.tests, list(noise.caveats_for(counts))
    naive = float(tests.naive_likelihood_ratio.p_value[0])
    assumption = f"{GIVEN_NOISE}; {NULLS[what]}; "
    if not found.tables:
        assumption += NO_SIMULATION
        if (tests.fitted[0][found.judged.possible] < SMALL).mean() > 0.2:
            caveats.append(THIN)
    else:
        checked = EXACT_TEST if what == "margins" else CHECKED_TESTS
        assumption += f"p-values are by {found.tables} simulated tables; {checked}"
    if not tests.settled[0]:
        caveats.append(UNSETTLED)
    judged = found.judged
    empty = (counts.shape[0] - len(judged.rows), counts.shape[1] - len(judged.columns))
    structural = int((~judged.possible).sum())
    if any(empty):
        caveats.append(f"{_number(empty[0], 'row')} and {_number(empty[1], 'column')} are empty and left out")
    if structural:
        caveats.append(
            f"{_number(structural, 'cell')} must be empty and left out: independence is that of the other cells "
            "(quasi-independence)"
        )
    return IndependenceResult(
        rows=counts.shape[0],
        columns=counts.shape[1],
        empty_rows=empty[0],
        empty_columns=empty[1],
        structural=structural,
        df=tests.likelihood_ratio.df,
        test=TESTS[what],
        statistic=test.statistic,
        p_value=test.p_value,
        asymptotic_p_value=test.asymptotic_p_value,
        simulations=found.tables,
        naive_statistic=float(tests.naive_likelihood_ratio.statistic[0]),
        naive_p_value=naive,
        chi_square=found.chi_square.statistic,
        chi_square_p=Pair(found.chi_square.p_value, float(tests.naive_chi_square.p_value[0])),
        settled=bool(tests.settled[0]),
        noise=noise.name,
        assumption=assumption,
        sentence=_verdict("rows and columns are independent", test.p_value, naive, found.tables),
        caveats=tuple(caveats),
    )


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _verdict(claim: str, aware: float, naive: float, simulated: int = 0) -> str:
    """Both p-values and what they mean together; no p-value by simulated tables is below one in all of them."""
    is_least = simulated > 0 and aware * (simulated + 1) < 1.5
    least = f", the least that {simulated:,} simulated tables can show;" if is_least else ","
    both = f"p = {aware:.3g} with the noise allowed for{least} {naive:.3g} without"
    if aware > SIGNIFICANCE >= naive:
        return f"The counts do not contradict that {claim}; the apparent deviation is explained by the noise ({both})."
    if aware > SIGNIFICANCE:
        return f"The counts do not contradict that {claim} ({both})."
    return f"The counts contradict that {claim} ({both})."


def binomial(
    published: Any, n: int, p0: float, noise: KnownLaw, level: float = 0.95, against: float | None = None
) -> BinomialResult:
    """Test whether a published count of n has probability p0; ``against`` adds the power at another probability.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> ds.inference.binomial(52, 100, 0.5, noise).sentence.startswith("The counts do not contradict")
    True
    """
    count = int(counts_in(published, "x").ravel()[0])
    checked(n, p0)
    checked_level(level)
    if against is not None:
        checked(n, against)
    fitted, test = BinomialFit(n, count, _law(noise)), binomial_test(n, p0, _law(noise))
    statistic, limit = fitted.statistic(p0), float(stats.chi2.ppf(1 - SIGNIFICANCE, 1))
    bounded = min(max(count, 0), n)
    plain = BinomialFit(n, bounded, NO_NOISE)
    p_value, naive = test.p_value(statistic), binomial_test(n, p0, NO_NOISE).p_value(plain.statistic(p0))
    low, high = fitted.interval(level)
    there = min(max(fitted.estimate, 0.5 / n), 1 - 0.5 / n)
    coverage = 1 - binomial_test(n, there, _law(noise)).size(float(stats.chi2.ppf(level, 1)))
    return BinomialResult(
        n, count, p0, fitted.estimate, low, high, level, coverage, statistic, p_value,
        float(stats.chi2.sf(statistic, 1)), naive, bounded / n, test.size(limit),
        None if against is None else test.power(against, limit), noise.name,
        f"the stated noise, n known exactly, records independent; the p-value is exact; the interval is by the "
        f"chi-square law and contains a probability of {there:.4g} in {coverage:.1%} of cases (enumerated)",
        f"{_verdict(f'the probability is {p0:g}', p_value, naive)} The best estimate is {fitted.estimate:.4g}, from "
        f"{low:.4g} to {high:.4g} at {level:.0%}.",
        noise.caveats,
    )  # fmt: skip


def loglinear(
    table: Any,
    terms: Sequence[str],
    noise: KnownLaw,
    axes: Sequence[str] | None = None,
    structural: Any = None,
) -> LogLinearResult:
    """Fit a hierarchical log-linear model, as ``["A*B", "C"]`` for A and B associated and C independent of both.

    ``structural``: true for cells that must be empty by definition. Empty categories and the cells of empty margins of
    the model's terms are left out, as without noise.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("geometric", epsilon=1)
    >>> found = ds.inference.loglinear([[30, 10], [10, 30]], ["sex*lms"], noise, axes=["sex", "lms"])
    >>> len(found.effects) > 0
    True
    """
    named = table_in(table, axes)
    impossible = _structural(table, structural, named.counts)
    if not terms:
        raise mistake("", "model", "no terms", f"give at least one, from {', '.join(named.axes)}")
    if named.counts.ndim < 1 or min(named.counts.shape, default=0) < 2:
        raise mistake(
            "", "table", " x ".join(map(str, named.counts.shape)), "give every axis at least two categories"
        )
    left, impossible, empty = _without_empty(named, impossible, noise)
    model = design(left.counts.shape, left.labels, left.axes, terms)
    cells = left.counts.ravel()
    aware = fit(cells, model, _law(noise), impossible.ravel())
    naive = fit(np.maximum(cells, 0), model, NO_NOISE, impossible.ravel())
    caveats = list(noise.caveats_for(cells))
    if empty:
        caveats.append(f"empty categories are left out: {', '.join(empty)}")
    beside = int((~aware.used).sum() - impossible.sum())
    if beside:
        caveats.append(f"{_number(beside, 'cell')} of empty margins of the model left out")
    if impossible.any():
        caveats.append(f"{_number(int(impossible.sum()), 'cell')} that must be empty left out")
    if not np.isfinite(aware.variances).all():
        caveats.append(
            "some effects cannot be estimated from these counts; their standard errors are infinite"
        )
    if (aware.fitted[aware.used] < SMALL).mean() > 0.2:
        caveats.append(THIN)
    if not aware.settled:
        caveats.append(UNSETTLED)
    return LogLinearResult(
        tuple(terms), _effects(aware, naive), aware.deviance, aware.df, aware.p_value, naive.deviance, naive.p_value,
        aware.settled, noise.name,
        f"{GIVEN_NOISE}; true counts are Poisson; p-values and standard errors are those of large counts, rough where "
        "expected counts are below 5",
        _verdict(f"the model {' + '.join(terms)} holds", aware.p_value, naive.p_value),
        tuple(caveats),
    )  # fmt: skip


def _without_empty(
    table: CrossTable, structural: NDArray[np.bool_] | None, noise: KnownLaw
) -> tuple[CrossTable, NDArray[np.bool_], list[str]]:
    """The categories that are not empty, so that the first of them is the reference, and the names of the others."""
    impossible = np.zeros(table.counts.shape, dtype=np.bool_) if structural is None else structural
    occupied = ~impossible & filled(np.where(impossible, 0, table.counts), _law(noise))
    places, empty = [], []
    for axis, (name, labels) in enumerate(zip(table.axes, table.labels, strict=True)):
        here = occupied.any(axis=tuple(k for k in range(occupied.ndim) if k != axis))
        places.append(np.flatnonzero(here))
        empty += [f"{name}={labels[at]}" for at in np.flatnonzero(~here)]
        if here.sum() < 2:
            value = f"{name} has {_number(int(here.sum()), 'category')} that is not empty"
            raise mistake("", "table", value, "give at least two, or leave the axis out")
    left = tuple(
        tuple(labels[at] for at in at_axis) for labels, at_axis in zip(table.labels, places, strict=True)
    )
    grid = np.ix_(*places)
    return CrossTable(table.counts[grid], table.axes, left), impossible[grid], empty


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
