"""F. Bach (2020), Differential privacy and noisy confidentiality concepts for European population statistics.

It sets the paper's numbers beside those of ``discreet.maths`` and ``discreet.audit.redundancy``; its charts are in
bach_2020_charts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np

from discreet.audit.redundancy import Mode, eu_redundancy, regions_of
from discreet.maths.attacks.averaging import contour, exact_success, laplace_epsilon, least_variance, success
from discreet.maths.attacks.bounds import (
    epsilon_of_bound,
    epsilon_of_reconstruction,
    exceeds_geometric,
    exceeds_laplace,
    maximum_entropy,
    reveals,
    tuples_needed,
)
from discreet.maths.attacks.redundancy import CategoryLevel, PublishedAxes, Redundancy, redundancies
from discreet.maths.noise.additive import uniform
from examples.bach_2020_charts import charts
from examples.claims import Claim, differs, exact, near, rounding_error, unprinted
from examples.running import Example, Replication, Size, main

PERSONS = "persons"
ALPHA = 0.68
RULE = "the counting rule is not stated"
# statistic -> t, k of Germany, k of Malta with the same noise, and the three without
TABLE_1 = {
    "total": ("2775", "8.6e7", "2.1e6", "6378", "9.7e7", "2.6e6"),
    "SEX": ("1376", "2.8e7", "7.1e5", "3105", "3.2e7", "8.4e5"),
    "AGE.M": ("926", "3.0e6", "7.9e4", "2281", "3.4e6", "9.7e4"),
    "GEO.L": ("766", "5.4e5", "5.4e5", "1734", "6.6e5", "6.6e5"),
    "AGE.M x SEX": ("458", "9.6e5", "2.6e4", "1097", "1.1e6", "3.2e4"),
}
TABLE_2_SAME = (
    ("LU", "AGE.M", "0.0867"),
    ("CY", "AGE.M", "0.0884"),
    ("MT", "AGE.M", "0.0916"),
    ("EE", "AGE.M", "0.108"),
)
TABLE_2_FRESH = (
    ("total", "0.0118"),
    ("GEO.L", "0.0170"),
    ("AGE.M", "0.0170"),
    ("SEX", "0.0234"),
    ("AGE.M x GEO.L", "0.0237"),
)
EPSILONS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
IN_BIN, BIN = 11_680, range(61, 81)


@cache
def statistics(country: str, mode: Mode) -> dict[str, Redundancy]:
    """The redundancy of each statistic on persons."""
    found = next(one for one in eu_redundancy(regions_of(country), mode) if one.counted == PERSONS)
    return {
        " x ".join(sorted(level.name for level in one.statistic)) or "total": one for one in found.statistics
    }


def replicate(size: Size) -> Replication:
    """Compute everything; the sizes differ in how fine the charts are."""
    parts = (
        _bound(),
        _example_of_nine(),
        _table_1(),
        _table_2(),
        _averaging(),
        _private(),
        _areas(),
        _region(),
        _frequent(),
    )
    claims = [claim for part in parts for claim in part]
    return Replication(claims, charts(statistics("DE", Mode.BACH_2020).values(), size is Size.FULL))


def _bound() -> Iterator[Claim]:
    """Section 3.2 and Figure 1."""
    p1 = {E: reveals(uniform(E).pmf, E) for E in (2, 5, 10)}
    printed = [repr(20 / (2 * E + 1) ** 3) for E in p1]
    formula = max(abs(value - float(text)) for value, text in zip(p1.values(), printed, strict=True))
    difference = "p1 of uniform noise less 20/(2E+1)³, E = 2, 5, 10"
    yield exact("footnote 14", difference, "0.000000000", rounding_error(formula))
    one = reveals(maximum_entropy(2.0, 5), 5)
    yield exact("section 3.2", "p1 at E = 5, V = 2: order of magnitude (log10)", "-7", round(math.log10(one)))
    yield unprinted(
        "section 3.2", "the same in digits; the text lacks an absolute value, its footnote has it", one
    )
    yield exact(
        "section 3.2",
        "p1 at E = 10, V = 4: practically zero",
        "0.00000000",
        reveals(maximum_entropy(4.0, 10), 10),
    )
    limit = reveals(maximum_entropy(5 * 6 / 3, 5), 5) / reveals(uniform(5).pmf, 5)
    yield exact("section 3.2", "p1 at V = E(E+1)/3 by that of uniform noise, E = 5", "1.000", limit)
    yield exact(
        "section 3.2",
        "true F, M, T of the published 3, 2, 11 with E = 2",
        ("5", "4", "9"),
        _pinned(3, 2, 11, 2),
    )


def _pinned(first: int, second: int, total: int, bound: int) -> tuple[int, ...]:
    """The only true counts that noise within a bound leads from to what is published."""
    changes = range(-bound, bound + 1)
    fits = [
        (first - a, second - b, total - c)
        for a, b, c in product(changes, repeat=3)
        if first - a + second - b == total - c
    ]
    return fits[0] if len(fits) == 1 else ()


def _example_of_nine() -> Iterator[Claim]:
    """Footnote 18 and table 9.2 (eq. 18)."""
    sex, age = CategoryLevel("SEX", "SEX", 2), CategoryLevel("AGE", "AGE", 2)
    found = {
        one.statistic: one.same_noise.all for one in redundancies(PublishedAxes((((sex,), (age,)),), {}))
    }
    for statistic, t, ratio in (((), "4", "0.5625"), ((sex,), "2", "0.75"), ((sex, age), "1", "1")):
        one = found[frozenset(statistic)]
        name = " x ".join(level.name for level in statistic) or "total"
        yield exact("footnote 18", f"t and k/t² of {name}", (t, ratio), (one.t, one.ratio))
    levels = [CategoryLevel(name, name, 2) for name in ("GEO.M", "SEX", "AGE.M", "YAE.H")]
    table = redundancies(PublishedAxes((tuple((level,) for level in levels),), {}))
    times = {one.statistic: one.same_noise.all.t for one in table}
    both = times[frozenset(levels[:2])]
    yield exact(
        "annex B.1",
        "table 9.2: cross-tabulations, and how often GEO.M x SEX",
        ("16", "4"),
        (len(table), both),
    )


def _table_1() -> Iterator[Claim]:
    """How often a statistic is represented, and by how many cells."""
    for name, printed in TABLE_1.items():
        large, small = (statistics(country, Mode.BACH_2020)[name] for country in ("DE", "MT"))
        literal = statistics("DE", Mode.LITERAL)[name]
        times = (large.same_noise.all.t, large.fresh_noise.all.t)
        as_printed = tuple(map(int, (printed[0], printed[3])))
        why = f"{RULE}; eq. 21 and 22 as printed give {literal.same_noise.all.t} and {literal.fresh_noise.all.t}"
        place = "Table 1"
        if times == as_printed:
            yield exact(
                place, f"t of {name}, with and without the same noise", (printed[0], printed[3]), times
            )
        else:
            yield near(
                place,
                f"t of {name}, with and without the same noise",
                (printed[0], printed[3]),
                times,
                0.016,
                why,
            )
        cells = [
            float(one.all.k)
            for one in (large.same_noise, small.same_noise, large.fresh_noise, small.fresh_noise)
        ]
        what = f"k of {name} (DE, MT), with and without the same noise"
        texts = (printed[1], printed[2], printed[4], printed[5])
        yield near(place, what, texts, cells, 0.14, f"{RULE}; the numbers of regions are not printed either")


def _table_2() -> Iterator[Claim]:
    """The riskiest statistics, chosen as the paper chooses: stop at the first increase."""
    for country, name, printed in TABLE_2_SAME:
        one = statistics(country, Mode.BACH_2020)[name].same_noise
        literal = statistics(country, Mode.LITERAL)[name].same_noise.first_minimum.ratio
        why = f"{RULE}; {literal:.4f} by eq. 22 as printed"
        yield differs(
            "Table 2", f"k/t² of {name}, {country}, same noise", printed, one.first_minimum.ratio, why
        )
    total = statistics("DE", Mode.BACH_2020)["total"].same_noise
    why = f"{RULE}; the minimum over all choices is {total.riskiest.ratio:.4f}"
    yield near("Table 2", "k/t² of the total, same noise (DE)", "0.112", total.first_minimum.ratio, 0.06, why)
    for name, printed in TABLE_2_FRESH:
        one = statistics("DE", Mode.BACH_2020)[name].fresh_noise
        why = f"{RULE}; the minimum over all choices is {one.riskiest.ratio:.4f}"
        what = f"k/t² of {name}, without (DE)"
        if abs(one.first_minimum.ratio - float(printed)) <= 0.00005:
            yield exact("Table 2", what, printed, one.first_minimum.ratio)
        else:
            yield near("Table 2", what, printed, one.first_minimum.ratio, 0.03, why)


def _frequent() -> Iterator[Claim]:
    """Footnote 36 and Figure 7: the statistics of areas, whose representations hold no other geography."""
    ratios = Counter(
        round(one.same_noise.first_minimum.ratio, 6)
        for one in statistics("DE", Mode.BACH_2020).values()
        if any(level.variable == "GEO" for level in one.statistic)
    )
    often = sorted(ratio for ratio, _ in ratios.most_common(2))
    yield exact("footnote 36, Figure 7", "the two most frequent k/t²", ("0.75", "1"), often)


def _averaging() -> Iterator[Claim]:
    """Section 3.3, Figure 2 and annex B.3."""
    ratio = 1000 / 100**2
    yield exact(
        "footnote 35",
        "success of averaging, V = 2, k = 1000, t = 100, normal, %",
        "73.6",
        100 * success(2, ratio),
    )
    for bound, printed in ((10, "741"), (5, "725")):
        chance = exact_success(maximum_entropy(2.0, bound), 1000, 100) or math.nan
        error = 1000 * math.sqrt(chance * (1 - chance) / 1000)
        yield exact(
            "footnote 35",
            f"of 1000 samples, E = {bound}: expected exactly",
            printed,
            1000 * chance,
            printed_error=error,
        )
    yield exact(
        "section 3.3",
        "V from which averaging succeeds below 68 %, k/t² = 0.0867",
        "3",
        least_variance(0.0867, ALPHA),
    )
    for smallest, text in ((0.0118, "0.3"), (0.0867, "0.8")):
        epsilon = laplace_epsilon(least_variance(smallest, ALPHA))
        yield exact("section 3.3", f"epsilon of Laplace noise for the same, k/t² = {smallest}", text, epsilon)
    yield unprinted("Figure 2", "V k/t² on the bold 68 % line", contour(ALPHA))
    yield exact("footnote 19", "0.68²¹, %", "0.03", 100 * 0.68**21)


def _private() -> Iterator[Claim]:
    """Sections 2.4, 3.1 and 4.1: what epsilon means for a count."""
    yield exact(
        "section 3.1",
        "epsilon of reconstruction, a million records, 99 %",
        "0.024",
        epsilon_of_reconstruction(1e6, 0.99),
    )
    orders = [round(math.log10(math.sqrt(2) * noise)) for noise in (2**10, 2775 / 1, 6378 / 1)]
    yield exact(
        "sections 2.4, 3.3",
        "√V (log10): tenth halving of epsilon 1; Δ = 2775, 6378 at epsilon 1",
        ("3", "4", "4"),
        orders,
    )
    yield differs(
        "eq. 14",
        "share of a table in the budget, %",
        "10",
        67.5 / 6,
        "67.5 % of a sixth is 11.25 %, and 10 % is used",
    )
    variances = [2 / epsilon**2 for epsilon in EPSILONS]
    yield exact("section 4.1", "V of Laplace noise", ("3200", "800", "200", "50", "12.5", "3.125"), variances)
    roots = [math.sqrt(variance) for variance in variances]
    yield exact("section 4.1", "√V", ("56.6", "28.3", "14.1", "7.1", "3.5", "1.8"), roots)


def _areas() -> Iterator[Claim]:
    """Section 4.2 as far as it needs no census of 2011."""
    chance = exceeds_laplace(0.1, 40)
    yield differs("eq. 15", "Pr(abs(x) > 40), epsilon = 0.1", "-0.0183", chance, "printed with a wrong sign")
    yield exact(
        "footnote 29", "the same, %, and of 11,680 counts", ("1.83", "214"), (100 * chance, IN_BIN * chance)
    )
    yield unprinted("footnote 29", "the same of integer noise, %", 100 * exceeds_geometric(0.1, 40))
    each = np.array([exceeds_geometric(0.1, math.ceil(count / 2) - 1) for count in BIN])
    what = "counts in (60, 80] off by 50 %, sampled; ours expected if spread evenly"
    yield exact("footnote 29", what, "339", IN_BIN * each.mean(), printed_error=math.sqrt(339))
    for name, areas, printed in (("EU-27", 1.1e5, "0.6"), ("France", 3.7e4, "0.6"), ("Malta", 68, "0.3")):
        yield exact(
            "eq. 16, Figure 5",
            f"epsilon for E = 20 at 68 %, {name}",
            printed,
            epsilon_of_bound(20, areas, ALPHA),
        )


def _region() -> Iterator[Claim]:
    """Section 5 and Figure 6."""
    ends = (epsilon_of_bound(20, 68, ALPHA), laplace_epsilon(least_variance(0.0170, ALPHA)))
    yield exact("Figure 6", "the band of epsilon that is left", ("0.27", "0.37"), ends)
    least = [_least_bound(V, tuples) for tuples in (2.8e7, 7.1e5) for V in (2.0, 3.0)]
    what = (
        "least E that stays hidden at V = 2, 3: Germany; Malta (in the text: E from about 5 on, V of 2 to 3)"
    )
    yield unprinted("section 5", what, least)


def _least_bound(variance: float, tuples: float) -> int:
    """The smallest E that so many tuples reveal with less than 68 %."""
    bounds = range(2, 20)
    return next(E for E in bounds if tuples_needed(reveals(maximum_entropy(variance, E), E), ALPHA) > tuples)


EXAMPLE = Example("bach-2020", "Bach (2020), Noisy confidentiality concepts", replicate)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
