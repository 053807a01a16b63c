"""What Rinott et al. (2018) simulate: the tables of Figures 1 to 3 and the tests of Table 3; it judges nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.maths.inference.independence import TestStatistic, independence_tests
from discreet.maths.noise.additive import (
    AdditiveLaw,
    SquareSensitivity,
    matched_truncation,
    truncated_laplace,
    truncated_normal,
)
from discreet.maths.noise.publishing import NO_NOISE, PublishedLaw
from discreet.maths.utility import independence

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
LAPLACE, NORMAL = "laplace", "normal"
EPSILONS = ("0.1", "0.5", "1", "1.5", "2", "3")
LEVEL = 0.05
# occupation A to K of the age groups 15-19 to 70-74: Table 1, the data of Figure 1
TABLE_1 = """
2 2 8 7 31 0 7 2 20 0 80
55 68 110 54 134 0 23 13 138 2 129
115 147 132 78 83 0 19 15 45 0 18
191 129 127 89 68 0 18 8 33 4 10
153 113 119 74 49 1 34 15 44 4 9
102 70 78 70 43 1 20 21 24 3 8
94 65 55 72 47 2 29 16 36 4 14
92 81 75 80 65 1 43 17 36 1 8
74 51 56 64 72 2 49 21 67 2 13
63 41 40 70 53 3 22 22 56 4 59
12 5 7 3 12 0 6 4 8 2 287
4 4 1 5 4 0 2 1 4 0 307
"""


@dataclass(frozen=True, eq=False)
class Trial:
    """The measures of every perturbation at one law and epsilon."""

    cramers_v: Floats
    p_value: Floats
    losses: Floats  # [perturbation, l1 l2 l3]


@dataclass(frozen=True, eq=False)
class Figure:
    """One table perturbed again and again."""

    name: str
    true_v: float
    true_p: float
    trials: Mapping[tuple[str, str], Trial]

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Law and epsilon of each trial."""
        return list(self.trials)

    @property
    def epsilons(self) -> tuple[str, ...]:
        """Every epsilon."""
        return tuple(dict.fromkeys(epsilon for _, epsilon in self.trials))

    def spread_of_v(self, law: str, epsilon: str) -> float:
        """The interquartile range of Cramer's V."""
        low, high = np.quantile(self.trials[law, epsilon].cramers_v, (0.25, 0.75))
        return float(high - low)

    def share_laplace_is_better(self) -> float:
        """The share of epsilons and losses for which Laplace noise loses less on average."""
        wins = [
            self.trials[LAPLACE, epsilon].losses.mean(axis=0)
            < self.trials[NORMAL, epsilon].losses.mean(axis=0)
            for epsilon in self.epsilons
        ]
        return float(np.mean(wins))

    def rejected(self, law: str, epsilon: str) -> float:
        """How often the naive test rejects independence."""
        return float((self.trials[law, epsilon].p_value <= LEVEL).mean())


def figures(repeats: int, seed: int = 1) -> list[Figure]:
    """Figures 1, 2 (100 cells) and 3 (1000 cells)."""
    real = np.array([row.split() for row in TABLE_1.split("\n") if row], dtype=np.int64)
    rng = np.random.default_rng(seed)
    tables = {
        "figure-1": real,
        "figure-2": _independent_table(10, 10, rng),
        "figure-3": _independent_table(25, 40, rng),
    }
    return [_figure(name, table, repeats, rng) for name, table in tables.items()]


def _independent_table(rows: int, columns: int, rng: np.random.Generator) -> Integers:
    """10,000 persons over independent attributes; the parameter of the Dirichlet law is not printed, 5 is ours."""
    p = np.outer(rng.dirichlet(np.full(rows, 5.0)), rng.dirichlet(np.full(columns, 5.0)))
    return rng.multinomial(10_000, p.ravel()).reshape(rows, columns).astype(np.int64)


def _figure(name: str, table: Integers, repeats: int, rng: np.random.Generator) -> Figure:
    trials = {
        (kind, epsilon): _trial(table, law, repeats, rng)
        for epsilon in EPSILONS
        for kind, law in ((LAPLACE, truncated_laplace(epsilon, 7)), (NORMAL, _matched(epsilon)))
    }
    true = _test(table)
    return Figure(name, true[0], true[1], trials)


def _matched(epsilon: str) -> AdditiveLaw:
    delta = truncated_laplace(epsilon, 7).pmf.at(7)
    bound = matched_truncation(epsilon, delta, SquareSensitivity.PAPER)
    return truncated_normal(epsilon, bound, SquareSensitivity.PAPER)


def _trial(table: Integers, law: AdditiveLaw, repeats: int, rng: np.random.Generator) -> Trial:
    shown = table + rng.choice(law.pmf.values, (repeats, *table.shape), p=law.pmf.p)
    tested = np.array([_test(one) for one in shown])
    change = np.abs(shown - table).astype(np.float64)
    roots = np.abs(np.sign(shown) * np.sqrt(np.abs(shown)) - np.sqrt(table))
    losses = np.stack([one.sum(axis=(1, 2)) for one in (change, change**2, roots)], axis=1)
    return Trial(tested[:, 0], tested[:, 1], losses)


def _test(table: Integers) -> tuple[float, float]:
    rows, columns = np.indices(table.shape).reshape(2, -1)
    found = independence(rows, columns, table.ravel())
    return found.cramers_v or 0.0, 1.0 if found.p_value is None else found.p_value


@dataclass(frozen=True)
class Sizes:
    """How often a test rejects, its mean statistic and its mean p-value over many tables, with standard errors."""

    name: str
    size: float  # percent
    mean: float
    p: float
    size_error: float
    mean_error: float
    p_error: float


def independent(epsilon: str, m: int, tables: int) -> list[Sizes]:
    """Table 3, upper rows: 10 x 10 tables of independent attributes."""
    return _tested(_true(4.0, 0.0, tables, 11), epsilon, m)


def with_dependence(epsilon: str, m: int, coefficient: float, tables: int) -> list[Sizes]:
    """Table 3, lower rows: log mu = 4 + row + column + coefficient x gamma, all uniform on (-1/2, 1/2)."""
    return _tested(_true(4.0, coefficient, tables, 12), epsilon, m)


def larger(tables: int) -> tuple[Sizes, Sizes]:
    """The naive and the noise-aware test where counts are about 400."""
    _, naive, aware = _tested(_true(math.log(400) - 0.083, 0.0, tables, 13), "0.1", 10)
    return naive, aware


def _true(eta: float, coefficient: float, tables: int, seed: int) -> Integers:
    rng = np.random.default_rng(seed)
    rows, columns = rng.uniform(-0.5, 0.5, (tables, 10, 1)), rng.uniform(-0.5, 0.5, (tables, 1, 10))
    both = coefficient * rng.uniform(-0.5, 0.5, (tables, 10, 10))
    return rng.poisson(np.exp(eta + rows + columns + both)).astype(np.int64)


def _tested(true: Integers, epsilon: str, m: int) -> list[Sizes]:
    noise = PublishedLaw(truncated_laplace(epsilon, m))
    drawn = np.random.default_rng(17).choice(noise.change.values, true.shape, p=noise.change.p)
    found = independence_tests(true + drawn, noise)
    bare = independence_tests(true, NO_NOISE).naive_likelihood_ratio
    named = (("original", bare), ("naive", found.naive_likelihood_ratio), ("LR test", found.likelihood_ratio))
    return [_sizes(name, one) for name, one in named]


def _sizes(name: str, one: TestStatistic) -> Sizes:
    rejected, root = one.p_value <= LEVEL, math.sqrt(len(one.statistic))
    share = (rejected.sum() + 1) / (len(rejected) + 2)  # never without an error
    return Sizes(
        name,
        100 * float(rejected.mean()),
        float(one.statistic.mean()),
        float(one.p_value.mean()),
        100 * math.sqrt(share * (1 - share)) / root,
        float(one.statistic.std()) / root,
        float(one.p_value.std()) / root,
    )
