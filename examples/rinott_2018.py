"""Y. Rinott et al. (2018), Confidentiality and differential privacy in the dissemination of frequency tables.

It sets the paper's numbers beside those of ``discreet.maths``; what is simulated is in rinott_2018_trials, the
figures in rinott_2018_charts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from scipy.stats import chi2

from discreet.maths.inference.binomial import binomial_test
from discreet.maths.noise.additive import (
    AdditiveLaw,
    SquareSensitivity,
    discrete_laplace,
    matched_truncation,
    truncated_laplace,
    truncated_normal,
)
from discreet.maths.noise.law import Loss
from discreet.maths.noise.publishing import NO_NOISE, PublishedLaw
from discreet.maths.privacy.sensitivity import with_margins
from examples.claims import Claim, differs, exact, near, unprinted
from examples.rinott_2018_charts import charts
from examples.rinott_2018_trials import Figure, Sizes, figures, independent, larger, with_dependence
from examples.running import Example, Replication, Size, main

PAPER = SquareSensitivity.PAPER
TABLE_2 = {  # law -> rows of the original values 0 to 4 and 5 and over, within 0 to 4
    "Laplace, epsilon 1.5, m = 7": (
        truncated_laplace("1.5", 7),
        (
            "0.82 0.96 0.99 1.00 1.00", "0.64 0.96 0.99 1.00 1.00", "0.64 0.92 0.99 1.00 1.00",
            *["0.64 0.92 0.98 1.00 1.00"] * 3,
        ),
    ),
    "Laplace, epsilon 0.5, m = 7": (
        truncated_laplace("0.5", 7),
        (
            "0.63 0.78 0.87 0.93 0.96", "0.25 0.78 0.87 0.93 0.96", "0.25 0.55 0.87 0.93 0.96",
            "0.25 0.55 0.74 0.93 0.96", "0.25 0.55 0.74 0.85 0.96", "0.25 0.55 0.74 0.85 0.92",
        ),
    ),
    "normal, epsilon 1.5, m = 12": (
        truncated_normal("1.5", 12, PAPER),
        (
            "0.57 0.70 0.81 0.89 0.94", "0.14 0.70 0.81 0.89 0.94", "0.14 0.40 0.81 0.89 0.94",
            "0.14 0.40 0.62 0.89 0.94", "0.14 0.40 0.62 0.78 0.94", "0.14 0.40 0.62 0.78 0.88",
        ),
    ),
    "normal, epsilon 0.5, m = 10": (
        truncated_normal("0.5", 10, PAPER),
        (
            "0.54 0.63 0.71 0.78 0.84", "0.09 0.63 0.71 0.78 0.84", "0.09 0.26 0.71 0.78 0.84",
            "0.09 0.26 0.42 0.78 0.84", "0.09 0.26 0.42 0.57 0.84", "0.09 0.26 0.42 0.57 0.69",
        ),
    ),
}  # fmt: skip
# epsilon, m -> size in %, mean statistic and its standard error, mean p-value: original, naive, likelihood ratio
TABLE_3 = {
    ("0.1", 10): (
        ("5.0", "81.6", 0.395, "0.487"),
        ("86.7", "124.5", 0.616, "0.027"),
        ("3.0", "78.6", 0.388, "0.555"),
    ),
    ("0.1", 7): (
        ("6.0", "81.7", 0.423, "0.487"),
        ("53.3", "105.1", 0.524, "0.123"),
        ("4.0", "80.1", 0.400, "0.521"),
    ),
    ("0.5", 10): (
        ("5.8", "81.7", 0.414, "0.485"),
        ("25.4", "92.9", 0.476, "0.274"),
        ("6.9", "82.5", 0.419, "0.467"),
    ),
    ("0.5", 7): (
        ("4.7", "81.4", 0.395, "0.485"),
        ("18.7", "90.8", 0.435, "0.299"),
        ("5.3", "82.0", 0.391, "0.473"),
    ),
}
# standard error of the mean p-value of the naive test; of the others it is 0.009
P_ERRORS = {("0.1", 10): 0.002, ("0.1", 7): 0.006, ("0.5", 10): 0.008, ("0.5", 7): 0.008}
DEPENDENT = {  # size in % of the original table, the naive and the likelihood-ratio test
    ("0.1", 10): ("79.3", "99.6", "51.0"),
    ("0.1", 7): ("87.3", "98.3", "73.3"),
    ("0.5", 10): ("82.1", "91.3", "76.3"),
    ("0.5", 7): ("81.3", "91.0", "76.9"),
}
MATCHED = dict(zip(("0.1", "0.5", "1", "1.5", "2", "3"), ("8", "10", "12", "12", "13", "14"), strict=True))
PRINTED_TABLES = 1000


def replicate(size: Size) -> Replication:
    """Compute everything; sizes differ in how many tables are drawn."""
    tables, repeats = (4000, 100) if size is Size.FULL else (150, 20)
    drawn = figures(repeats)
    parts = (
        _deltas(),
        _table_2(),
        _losses(),
        _figures(drawn),
        _table_3(tables),
        _dependent(tables),
        _binomial(),
        _overlapping(),
    )
    return Replication([claim for part in parts for claim in part], charts(drawn, binomial_histograms()))


def _deltas() -> Iterator[Claim]:
    for epsilon, m, printed in (
        ("1", 10, "0.00002"),
        ("0.5", 5, "0.02"),
        ("0.1", 10, "0.0283"),
        ("0.1", 7, "0.0470"),
    ):
        yield exact(
            "sections 5.1, 6",
            f"delta of Laplace noise, epsilon {epsilon}, m = {m}",
            printed,
            truncated_laplace(epsilon, m).pmf.at(m),
        )
    ours = truncated_laplace("0.5", 10).pmf.at(10)
    yield near(
        "section 5.1",
        "the same, epsilon 0.5, m = 10",
        "0.0016",
        ours,
        0.04,
        "cut, not rounded; Table 3 has 0.0017",
    )
    yield exact("Table 3, section 6.2", "the same once more", ("0.0017", "0.00166"), (ours, ours))
    yield exact(
        "Table 3",
        "delta of Laplace noise, epsilon 0.5, m = 7",
        "0.0076",
        truncated_laplace("0.5", 7).pmf.at(7),
    )
    for epsilon, printed in (("1", "0.001"), ("0.5", "0.008")):
        yield exact(
            "section 5.2",
            f"delta of normal noise, epsilon {epsilon}, m = 10",
            printed,
            truncated_normal(epsilon, 10, PAPER).pmf.at(10),
        )
    exactly = truncated_normal("1", 10).pmf.at(10)
    yield unprinted(
        "section 5.2",
        "the same, epsilon 1, by the exact sensitivity 2m - 1",
        exactly,
        "2m + 1, as printed, is conservative",
    )
    bounds = [
        matched_truncation(epsilon, truncated_laplace(epsilon, 7).pmf.at(7), PAPER) for epsilon in MATCHED
    ]
    why = "with the printed m normal noise has the larger delta at epsilon 0.5 and 1.5"
    yield differs(
        "section 5.6.2",
        "least m of normal noise with the delta of Laplace noise, m = 7",
        tuple(MATCHED.values()),
        bounds,
        why,
    )


def _table_2() -> Iterator[Claim]:
    for name, (law, rows) in TABLE_2.items():
        for count, row in enumerate(rows):
            original = str(count) if count < 5 else "5 and over"
            yield exact("Table 2", f"{name}, original {original}", tuple(row.split()), within(law, count))


def within(law: AdditiveLaw, count: int) -> list[float]:
    """Pr[within 0 to 4 of a count], negative counts published as zero."""
    shown = law.row(count).negatives_to_zero()
    return [shown.within(count, distance) for distance in range(5)]


def _losses() -> Iterator[Claim]:
    a = math.exp(-1)
    printed = a / ((1 + 2 * a / (1 - a)) * (1 - a) ** 2)
    ours = discrete_laplace(1).pmf.expected_loss(0, Loss.L1)
    yield differs(
        "section 5.6.1",
        "expected l1 of untruncated Laplace noise, epsilon 1",
        f"{printed:.4f}",
        ours,
        "the formula lacks a factor 2",
    )


def _figures(drawn: list[Figure]) -> Iterator[Claim]:
    """What the text says of Figures 1 to 3."""
    real = next(one for one in drawn if one.name == "figure-1")
    yield unprinted("Figure 1", "Cramér's V of Table 1, the horizontal line", real.true_v)
    widest = max(real.spread_of_v(*key) for key in real.keys)
    yield unprinted(
        "Figure 1", "widest interquartile range of V, in words below 0.005", widest, error=widest / 4
    )
    better = [one.share_laplace_is_better() for one in drawn]
    yield exact(
        "Figures 1 to 3",
        "share of epsilons at which Laplace noise has smaller l1, l2, l3",
        ("1.00",) * 3,
        better,
    )
    large = next(one for one in drawn if one.name == "figure-3")
    rejected = [large.rejected("normal", epsilon) for epsilon in large.epsilons]
    yield exact(
        "Figure 3",
        "large table, normal noise: rejected at every epsilon",
        ("1.0",),
        (min(rejected),),
        printed_error=0.02,
    )
    kept = [large.rejected("laplace", epsilon) for epsilon in ("1.5", "3")]
    yield unprinted(
        "Figure 3",
        "large table, Laplace noise: rejected at 1.5 and 3; in words, kept above 2",
        kept,
        error=0.1,
    )


def _table_3(tables: int) -> Iterator[Claim]:
    for (epsilon, m), rows in TABLE_3.items():
        found = independent(epsilon, m, tables)
        for row, ours in zip(rows, found, strict=True):
            p_error = P_ERRORS[epsilon, m] if ours.name == "naive" else 0.009
            yield from _row(f"independent, epsilon {epsilon}, m = {m}, {ours.name}", row, ours, p_error)


def _row(what: str, printed: tuple[str, str, float, str], ours: Sizes, p_error: float) -> Iterator[Claim]:
    size, mean, error, p = printed
    place = "Table 3"
    yield exact(
        place, f"{what}: size, %", size, ours.size, printed_error=_percent_error(size), error=ours.size_error
    )
    if p_error < P_ERRORS["0.5", 10]:  # the naive test at epsilon 0.1
        why = "more than chance; margins drawn once for all tables would explain it"
        claim = near(place, f"{what}: mean statistic", mean, ours.mean, 0.04, why)
        yield claim.with_errors(error, ours.mean_error)
    else:
        yield exact(
            place, f"{what}: mean statistic", mean, ours.mean, printed_error=error, error=ours.mean_error
        )
    yield exact(place, f"{what}: mean p-value", p, ours.p, printed_error=p_error, error=ours.p_error)


def _percent_error(size: str) -> float:
    share = float(size) / 100
    return 100 * math.sqrt(share * (1 - share) / PRINTED_TABLES)


def _dependent(tables: int) -> Iterator[Claim]:
    why = "with the coefficient 0.7 as printed dependence is always found"
    for (epsilon, m), printed in DEPENDENT.items():
        sizes = [one.size for one in with_dependence(epsilon, m, 0.7, max(40, tables // 20))]
        what = f"dependent, epsilon {epsilon}, m = {m}: powers of original, naive and LR test, %"
        yield differs("Table 3", what, printed, sizes, why)
    for epsilon, m in DEPENDENT:
        sizes = [one.size for one in with_dependence(epsilon, m, 0.31, tables)]
        what = f"dependent, epsilon {epsilon}, m = {m}, coefficient 0.31: powers, %"
        yield unprinted(
            "Table 3",
            what,
            sizes,
            "0.31 fits the power without noise; at epsilon 0.1, m = 7 the printed powers are up to 9 points higher",
            error=100 * math.sqrt(0.2 / tables),
            digits=3,
        )
    naive, aware = larger(tables)
    yield exact(
        "section 6.1",
        "counts of about 400, epsilon 0.1, m = 10: naive size",
        "0.12",
        naive.size / 100,
        error=naive.size_error / 100,
        printed_error=0.01,
    )
    yield exact(
        "section 6.1",
        "the same, likelihood-ratio test",
        "0.05",
        aware.size / 100,
        error=aware.size_error / 100,
        printed_error=0.007,
    )


def _binomial() -> Iterator[Claim]:
    limit = float(chi2.ppf(0.95, 1))
    for m, critical, power in ((5, "3.36", "0.95"), (10, "3.82", "0.92")):
        noise = PublishedLaw(truncated_laplace("0.5", m))
        test = binomial_test(80, 0.5, noise)
        nearest = min(test.statistic.tolist(), key=lambda one: abs(one - float(critical)))
        yield exact(
            "section 6.2",
            f"critical value of 500 draws, m = {m}: a value of the statistic",
            critical,
            nearest,
        )
        yield unprinted("section 6.2", "the exact critical value at 5 %", test.critical(0.05))
        exactly = binomial_test(80, 0.7, noise).power(0.5, float(critical))
        error = math.sqrt(exactly * (1 - exactly) / 500)
        yield exact(
            "section 6.2",
            f"power at that value against p = 0.7, m = {m}",
            power,
            exactly,
            printed_error=error,
        )
    bare = binomial_test(80, 0.7, NO_NOISE).power(0.5, limit)
    yield exact(
        "section 6.2",
        "the same without noise, at 3.84",
        "0.96",
        bare,
        printed_error=math.sqrt(bare * (1 - bare) / 500),
    )
    yield exact("section 6.2", "critical value of the chi-square law", "3.84", limit)


def binomial_histograms() -> dict[str, tuple[list[float], list[float]]]:
    """Figure 4 exactly: the statistic of each outcome under p = 0.5 and its probability, for both hypotheses."""
    noise = PublishedLaw(truncated_laplace("0.5", 5))
    outcomes = binomial_test(80, 0.5, noise)
    other = {int(x): float(s) for x, s in zip(*_statistics(0.7), strict=True)}
    kept = [k for k, x in enumerate(outcomes.values.tolist()) if x in other]
    shifted = [min(50.0, other[int(outcomes.values[k])]) for k in kept]
    weights = [float(outcomes.probability[k]) for k in kept]
    return {
        "p = 0.5": (outcomes.statistic.tolist(), outcomes.probability.tolist()),
        "p = 0.7": (shifted, weights),
    }


def _statistics(p0: float) -> tuple[list[int], list[float]]:
    test = binomial_test(80, p0, PublishedLaw(truncated_laplace("0.5", 5)))
    return test.values.tolist(), test.statistic.tolist()


def _overlapping() -> Iterator[Claim]:
    """Section 7: how many cells a person is in, and the noise that follows."""
    cells = [len(with_margins([[name] for name in range(t)], "")) - 1 for t in (3, 4)]
    yield exact(
        "section 7", "cells of one person in a 3-way and a 4-way table with its margins", ("7", "15"), cells
    )
    pairs = sum(len(levels) == 2 for levels, _ in with_margins([[name] for name in range(4)], ""))
    yield exact("section 7", "two-way margins of a 4-way table", "6", pairs)
    summed = math.sqrt(100) * _deviation(1)
    yield exact(
        "section 7",
        "deviation x epsilon of a two-way margin: summed; two-way alone; all margins",
        ("14", "8.5", "21"),
        (summed, _deviation(6), _deviation(15)),
    )


def _deviation(cells: int, epsilon: Fraction = Fraction(1, 100)) -> float:
    """epsilon x the standard deviation of a count in so many cells a person, for a small epsilon."""
    return float(epsilon) * math.sqrt(discrete_laplace(epsilon / cells).pmf.variance)


EXAMPLE = Example(
    "rinott-2018",
    "Rinott, O'Keefe, Shlomo & Skinner (2018), Frequency tables and differential privacy",
    replicate,
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
