"""Write ``reference/inference-coverage.md``: simulated coverage of intervals and size of tests, with fixed seeds.

``python docs/inference_coverage.py`` runs it, for some minutes; tests recompute parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes
from discreet.maths.inference.independence import fitted_products, independence_tests
from discreet.maths.inference.intervals import infer_sum
from discreet.maths.inference.proportion import infer_proportion
from discreet.maths.inference.simulated import (
    SPARSE,
    KnownMargins,
    drawn_published,
    score_statistics,
    smoothed,
)
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing

PAGE = Path(__file__).parent / "reference" / "inference-coverage.md"
LEVEL, SIZE = 0.95, 0.05
CELLS = (2, 20, 60, 250)
TRUTHS = ("empty", "sparse", "ones", "dense")
DRAWS = 500
MEANS = (1, 3, 10)
PROPORTIONS = ((0, 30), (2, 10), (10, 40), (30, 40), (40, 40), (100, 1000))
TABLES = 500  # standard error about 1.4 points, that of the simulated limit included
ZERO = Negatives.ZERO
LAPLACE, CELL_KEY = truncated_laplace("0.5", 7), PTableLaw(solve(PTableParameters(5, 2.0, 0)))
LAWS = {
    "Laplace, negatives kept": PublishedLaw(LAPLACE),
    "Laplace, negatives zero": PublishedLaw(LAPLACE, Publishing(ZERO)),
    "Laplace, negatives zero, zeros kept": PublishedLaw(LAPLACE, Publishing(ZERO), keeps_zeros=True),
    "Laplace, threshold 3": PublishedLaw(LAPLACE, Publishing(ZERO, threshold=3)),
    "Laplace, threshold 10": PublishedLaw(LAPLACE, Publishing(ZERO, threshold=10)),
    "Laplace, rounding 5, negatives zero": PublishedLaw(LAPLACE, Publishing(ZERO, rounding=5)),
    "geometric, negatives zero": PublishedLaw(discrete_laplace("1"), Publishing(ZERO)),
    "discrete Gaussian, negatives zero": PublishedLaw(discrete_gaussian("0.1"), Publishing(ZERO)),
    "cell key": PublishedLaw(CELL_KEY),
    "cell key, js 2": PublishedLaw(PTableLaw(solve(PTableParameters(5, 2.0, 2)))),
    "cell key, rounding 3": PublishedLaw(CELL_KEY, Publishing(rounding=3)),
}
TESTED = (
    "Laplace, negatives zero",
    "geometric, negatives zero",
    "discrete Gaussian, negatives zero",
    "cell key",
    "cell key, js 2",
)
INTRODUCTION = f"""\
# Coverage and size of inference

Written by `python docs/inference_coverage.py`, with fixed seeds. [Inference](../explanation/inference.md) describes the
methods. Laplace noise has epsilon 0.5 and bound 7, geometric noise epsilon 1, discrete Gaussian noise rho 0.1, cell key
noise D = 5 and V = 2.

## Intervals of a total
How often the interval of {LEVEL:.0%} contains the true total of fixed true counts, in {DRAWS} draws of the noise each
(standard error 1.0 points at 95 %), and its mean width. *empty*: all cells 0; *sparse*: a tenth of the cells 1, a
tenth 2, a tenth 5, the others 0; *ones*: all cells 1; *dense*: cells from 20 on. Above the level means that the bound
on the bias is not reached.

"""
SECOND = f"""
## Tests of independence
How often independence is rejected at {SIZE:.0%} although it holds, in {TABLES} tables of 4 x 4 with unequal margins at
this mean count (standard error 1.0 to 1.4 points). *law*: the likelihood ratio by the chi-square law, as it was before
tables were simulated. *simulated*: as reported; *total*: the same with a public total (both with one simulated table
per table, pooled: Giacomini, Politis & White 2013); *margins*: the score test with known margins, each table against 99
simulated ones. Below a mean of 2 the larger of both p-values is reported, which makes the test too cautious there.

"""


THIRD = f"""
## Proportions with a noisy whole
How often the interval of {LEVEL:.0%} contains the true proportion of a part and a whole that are both published with
noise, in {DRAWS} draws of both, and its mean width in points of percent. The level is guaranteed for every pair of true
counts, so that only chance (standard error 1.0 points at 95 %) is below it.

"""


def true_counts(truth: str, cells: int) -> NDArray[np.int64]:
    """The fixed true counts of a total."""
    if truth == "dense":
        return np.arange(cells) % 30 + 20
    true = np.full(cells, int(truth == "ones"))
    if truth == "sparse":
        for value, at in ((1, 0), (2, 1), (5, 2)):
            true[at::10] = value
    return true


def coverage(noise: PublishedLaw, true: NDArray[np.int64], draws: int, seed: int) -> tuple[float, float]:
    """The share of intervals that contain the true total, and their mean width."""
    rng, ones = np.random.default_rng(seed), [1] * len(true)
    published = drawn_published(noise, np.tile(true, (draws, 1)), rng)
    found = [infer_sum(noise, x, ones, LEVEL).interval for x in published.tolist()]
    hits = [one.low <= true.sum() <= one.high for one in found]
    return float(np.mean(hits)), float(np.mean([one.high - one.low for one in found]))


def null_means(mean: float) -> NDArray[np.float64]:
    """Expected counts of a 4 x 4 table with independent rows and columns."""
    effects = np.exp([-0.5, -0.2, 0.2, 0.5])
    mu = np.multiply.outer(effects, effects)
    return np.asarray(mu * mean / mu.mean(), dtype=np.float64)


def sizes(noise: PublishedLaw, mean: float, tables: int, seed: int) -> tuple[float, float, float, float]:
    """By the chi-square law, by simulation, with a public total, with known margins."""
    rng, mu = np.random.default_rng(seed), null_means(mean)
    number = round(float(mu.sum()))
    by_law, simulated = _pooled(noise, rng.poisson(mu, (tables, *mu.shape)), None, rng)
    shares = (mu / mu.sum()).ravel()
    true = rng.multinomial(number, shares, tables).reshape(tables, *mu.shape)
    with_total = _pooled(noise, true, number, rng)[1]
    return by_law, simulated, with_total, _known(noise, rng.poisson(mu, (tables, *mu.shape)), rng)


def _pooled(
    noise: PublishedLaw, true: NDArray[np.int64], total: int | None, rng: np.random.Generator
) -> tuple[float, float]:
    x = drawn_published(noise, true.astype(np.int64), rng)
    own, mu = independence_tests(x, noise), smoothed(fitted_products(x, noise, total))
    if total is None:
        again = rng.poisson(mu)
    else:
        again = np.array([rng.multinomial(total, p.ravel() / p.sum()).reshape(p.shape) for p in mu])
    null = independence_tests(drawn_published(noise, again.astype(np.int64), rng), noise)
    statistic, by_law = own.likelihood_ratio.statistic, own.likelihood_ratio.p_value <= SIZE
    simulated = statistic > np.quantile(null.likelihood_ratio.statistic, 1 - SIZE)
    sparse = own.fitted.mean(axis=(1, 2)) < SPARSE
    return float(by_law.mean()), float(np.where(sparse, simulated & by_law, simulated).mean())


def _known(noise: PublishedLaw, true: NDArray[np.int64], rng: np.random.Generator) -> float:
    return float(np.mean([p <= SIZE for p in known_p_values(noise, true, rng)]))


def known_p_values(
    noise: PublishedLaw, true: NDArray[np.int64], rng: np.random.Generator, against: int = 99
) -> Iterator[float]:
    """The p-value of each table by the score test with its own margins, where two rows and columns are not empty."""
    for table in true:
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        if min((rows > 0).sum(), (columns > 0).sum()) < 2:
            continue
        known = KnownMargins(tuple(rows.tolist()), tuple(columns.tolist()))
        drawn = known.tables(against, rng)
        x = drawn_published(noise, np.concatenate([table[None], drawn]).astype(np.int64), rng)
        statistics = score_statistics(x, noise, known)
        yield float((1 + (statistics[1:] >= statistics[0] - 1e-7).sum()) / (1 + against))


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def page() -> str:
    """The whole page."""
    return INTRODUCTION + coverage_table() + SECOND + size_table() + THIRD + proportion_table()


def coverage_table() -> str:
    """Coverage and mean width of totals."""
    text = _line(["noise", "cells", *TRUTHS]) + _line(["---"] * (2 + len(TRUTHS)))
    for name in LAWS:
        for cells in CELLS:
            text += coverage_line(name, cells)
    return text


def coverage_line(name: str, cells: int) -> str:
    """One row of the first table."""
    seed = list(LAWS).index(name)
    found = [coverage(LAWS[name], true_counts(truth, cells), DRAWS, seed) for truth in TRUTHS]
    return _line([name, str(cells), *(f"{100 * hit:.1f} % ({width:.0f})" for hit, width in found)])


def size_table() -> str:
    """Sizes of the tests of independence."""
    text = _line(["noise", "mean count", "law", "simulated", "total", "margins"]) + _line(["---"] * 6)
    for name in TESTED:
        for mean in MEANS:
            text += size_line(name, mean)
    return text


def size_line(name: str, mean: int) -> str:
    """One row of the second table."""
    found = sizes(LAWS[name], mean, TABLES, 100 + list(LAWS).index(name))
    return _line([name, str(mean), *(f"{100 * one:.1f} %" for one in found)])


def proportion_coverage(
    noise: PublishedLaw, part: int, whole: int, draws: int, seed: int
) -> tuple[float, float]:
    """The share of intervals that contain the true proportion, and their mean width."""
    rng = np.random.default_rng(seed)
    x, y = (drawn_published(noise, np.full(draws, true), rng) for true in (part, whole))
    hits, widths = [], []
    for seen in zip(x.tolist(), y.tolist(), strict=True):
        found = interval_of(noise, *seen)
        hits.append(found is not None and found[0] <= part / whole + 1e-9 and part / whole <= found[1] + 1e-9)
        widths.append(1.0 if found is None else found[1] - found[0])
    return float(np.mean(hits)), float(np.mean(widths))


@cache
def interval_of(noise: PublishedLaw, part: int, whole: int) -> tuple[float, float] | None:
    """The limits of a proportion; None where the part cannot be inside the whole."""
    try:
        found = infer_proportion(noise, noise, part, whole, LEVEL)
    except Mistakes:
        return None
    return found.low, found.high


def proportion_table() -> str:
    """Coverage and mean width of proportions."""
    heads = [f"{part} of {whole}" for part, whole in PROPORTIONS]
    text = _line(["noise", *heads]) + _line(["---"] * (1 + len(heads)))
    return text + "".join(proportion_line(name) for name in LAWS)


def proportion_line(name: str) -> str:
    """One row of the third table."""
    seed = 200 + list(LAWS).index(name)
    found = [proportion_coverage(LAWS[name], *pair, DRAWS, seed) for pair in PROPORTIONS]
    return _line([name, *(f"{100 * hit:.1f} % ({100 * width:.1f})" for hit, width in found)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
