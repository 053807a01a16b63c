"""Risks by formula, without data: what an outsider can find out about counts with some noise.

The functions are those of ``discreet risk``; a law is made by ``discreet.noise``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from discreet.api.arguments import chosen, names_arguments, require
from discreet.api.bayes import (
    LargerGroup,
    Laws,
    Observation,
    bayes,
    bayes_hierarchy,
    bayes_histogram,
    bayes_levels,
    bayes_nested,
)
from discreet.api.columns import AnyTable, Tables
from discreet.api.laws import law_of, table_of
from discreet.api.programme import Programme
from discreet.api.ptables import PTables
from discreet.api.results import Result
from discreet.audit.differencing import THRESHOLD, DifferenceNoise, ExactNoise, NormalNoise
from discreet.audit.differencing_areas import AreaDifferences, difference_areas, read_crossing
from discreet.audit.redundancy import (
    Mode,
    UniverseRedundancy,
    eu_redundancy,
    programme_redundancy,
    regions_of,
)
from discreet.errors import mistake
from discreet.maths.attacks import averaging as averaging_maths
from discreet.maths.attacks import bounds as bounds_maths
from discreet.maths.attacks.bounds import Pinning
from discreet.maths.attacks.differencing import REACH
from discreet.maths.attacks.redundancy import Redundancy
from discreet.maths.attacks.subsets import (
    AddedNoise,
    CellKeys,
    SharedBudget,
    SubsetAnswers,
    SubsetReconstruction,
    reconstruct_subsets,
    usual_queries,
)
from discreet.maths.noise.additive import AdditiveLaw, exact, uniform
from discreet.maths.noise.certificates import fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import PublishedLaw
from discreet.programme import eu2021

__all__ = [
    "LargerGroup",
    "Observation",
    "averaging",
    "bayes",
    "bayes_hierarchy",
    "bayes_histogram",
    "bayes_levels",
    "bayes_nested",
    "bound",
    "differencing",
    "dp",
    "redundancy",
    "subsets",
]

ALPHA = 0.68
SHOWN = 10
SMALL = 8  # pairs of true counts up to this are enumerated
LARGEST_ENUMERATED = 20  # largest change for which they are


@dataclass(frozen=True)
class Averaging:
    """The success of averaging ``t`` representations, sums of ``k`` cells in all."""

    ratio: float  # k / t^2: the share of the variance that is left
    success: float  # by the normal law
    chebyshev: float  # at least, whatever the law
    exact: float | None  # by the law of cell key noise with a largest change
    contour: float  # the variance of one count at which the success is alpha
    least_variance: float  # the same for this k and t
    largest_epsilon: Mapping[str, float]  # of Laplace and geometric noise of this variance


@names_arguments
def averaging(*, V: float, k: int, t: int, D: int | None = None, alpha: float = ALPHA) -> Result[Averaging]:
    """The probability that the mean of ``t`` representations, sums of ``k`` cells in all, rounds to the true count.

    >>> import discreet as ds
    >>> round(ds.risk.averaging(V=2, k=40, t=10).success, 2)
    0.42
    """
    require(V > 0, "V", f"{V:g}", "give a variance above 0")
    require(0 < alpha < 1, "alpha", f"{alpha:g}", "give a number between 0 and 1, e.g. 0.68")
    require(1 <= t <= k, "k", str(k), f"give at least {t}, one cell for each representation")
    ratio = k / t**2
    least = averaging_maths.least_variance(ratio, alpha)
    exact = None if D is None else averaging_maths.exact_success(bounds_maths.maximum_entropy(V, D), k, t)
    found = Averaging(
        ratio=ratio,
        success=averaging_maths.success(V, ratio),
        chebyshev=averaging_maths.chebyshev(V, ratio),
        exact=exact,
        contour=averaging_maths.contour(alpha),
        least_variance=least,
        largest_epsilon={
            "laplace": averaging_maths.laplace_epsilon(least),
            "geometric": averaging_maths.geometric_epsilon(least),
        },
    )
    by_law = "" if exact is None else f", by the exact law {exact:.4f}"
    head = f"k/t2 {ratio:.6g}: averaging succeeds with probability {found.success:.4f}{by_law}."
    return Result(found, (head, f"Below {alpha:g} with a variance of at least {least:.4g}."))


@dataclass(frozen=True)
class Bound:
    """How tuples {F, M, T} reveal the largest change, and what is then disclosed."""

    reach: int  # the largest change
    reveals: float  # the probability that one tuple shows it
    uniform_reveals: float  # .. where the noise is uniform
    needed: float  # tuples that show it with confidence alpha; infinite where none do
    pinned: float  # the probability that a tuple of large counts is then disclosed
    pinned_small: tuple[Pinning, ...] | None  # .. of small ones; None where the largest change is too large
    revealed: float | None  # the probability that the given number of tuples shows it
    expected_pinned: float | None  # tuples of them that are disclosed
    epsilon_of_bound: float | None  # of Laplace noise that stays within it in the given number of counts
    epsilon_of_reconstruction: float | None  # of each count with which the given number of records comes back


@names_arguments
def bound(
    *,
    V: float | None = None,
    D: int | None = None,
    ptable: PTables | None = None,
    tuples: int | None = None,
    counts: int | None = None,
    records: int | None = None,
    alpha: float = ALPHA,
) -> Result[Bound]:
    """How many tuples {F, M, T} reveal the largest change of cell key noise, and how many disclose their counts.

    The noise is that of ``V`` and ``D`` or of a ``ptable``. ``counts`` and ``records`` ask for the epsilon of Laplace
    noise that stays within the bound, and with which so many records could be reconstructed.

    >>> import discreet as ds
    >>> ds.risk.bound(V=2, D=5, tuples=1000).revealed < 0.01
    True
    """
    require(0 < alpha < 1, "alpha", f"{alpha:g}", "give a number between 0 and 1, e.g. 0.68")
    law, table = _bounded(ptable, V, D)
    reach = max(-law.first, law.last)
    p1, pinned = bounds_maths.reveals(law, reach), bounds_maths.pinned(law)
    found = Bound(
        reach=reach,
        reveals=p1,
        uniform_reveals=bounds_maths.reveals(uniform(reach).pmf, reach),
        needed=float(bounds_maths.tuples_needed(p1, alpha)),
        pinned=pinned,
        pinned_small=None if table is None else tuple(bounds_maths.pinned_small(table.row, reach, SMALL)),
        revealed=None if tuples is None else bounds_maths.revealed(p1, tuples),
        expected_pinned=None if tuples is None else tuples * pinned,
        epsilon_of_bound=None if counts is None else bounds_maths.epsilon_of_bound(reach, counts, alpha),
        epsilon_of_reconstruction=None
        if records is None
        else bounds_maths.epsilon_of_reconstruction(records, alpha),
    )
    needed = "No number of" if math.isinf(found.needed) else f"{found.needed:,.0f}"
    lines = (
        f"A tuple reveals the largest change {reach} with probability {p1:.4g}.",
        f"{needed} tuples reveal it with confidence {alpha:g}.",
        f"Once it is known, a tuple of large counts is disclosed with probability {pinned:.4g}.",
    )
    return Result(found, lines)


def _bounded(ptable: PTables | None, V: float | None, D: int | None) -> tuple[Pmf, PTableLaw | None]:
    """The noise of large counts, and the table of the small ones where it is small enough to be enumerated."""
    if ptable is not None:
        require(
            V is None and D is None, "ptable", "together with V or D", "leave them out: the table has them"
        )
        law = PTableLaw(table_of(ptable))
        last = law.ptable.last_row
        return law.row(last).shifted(-last), law if law.ptable.reach <= LARGEST_ENUMERATED else None
    if V is None or D is None:
        raise mistake("", "V, D", "missing", "give both, or ptable=")
    noise = bounds_maths.maximum_entropy(V, D)
    return noise, PTableLaw(solve(PTableParameters(D, V))) if D <= LARGEST_ENUMERATED else None


@dataclass(frozen=True)
class Deltas:
    """The exact delta of a law at each epsilon, and what zeros and repeated noise cost at any epsilon."""

    curve: tuple[tuple[float, float], ...]  # epsilon, delta
    fixed_zeros: float  # delta where zeros stay zero
    same_participants: Mapping[
        int, float
    ]  # count -> delta where the same participants always have the same noise


@names_arguments
def dp(law: Laws, *, epsilon: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 5.0)) -> Result[Deltas]:
    """The exact delta of a law at each epsilon: one record added or removed, in one cell.

    >>> import discreet as ds
    >>> [round(delta, 3) for _, delta in ds.risk.dp(ds.noise("geometric", epsilon=1), epsilon=[0, 1]).curve]
    [0.462, 0.0]
    """
    made = law_of(law)
    require(all(one >= 0 for one in epsilon), "epsilon", "a negative number", "give numbers of at least 0")
    rows = made.ptable.last_row if isinstance(made, PTableLaw) else 1
    same = {count: same_participants_delta(made, count) for count in range(1, rows + 1)}
    curve = tuple((float(one), max(0.0, float(made.delta(one)))) for one in epsilon)
    found = Deltas(curve, fixed_zeros_delta(made), same)
    lines = [f"epsilon {one:g}: delta {delta:.6g}" for one, delta in curve]
    zeros = f"Zeros that stay zero: delta at least {found.fixed_zeros:.6g} at every epsilon."
    return Result(found, (*lines, zeros))


@names_arguments
def redundancy(
    what: Programme | str | Path,
    *,
    country: str | None = None,
    regions: tuple[int, int, int, int] | None = None,
    mode: Literal["literal", "nested", "bach-2020"] = "literal",
) -> Result[tuple[UniverseRedundancy, ...]]:
    """In how many ways each statistic can be computed, from a programme or from ``"eu-census-2021"``.

    The EU programme needs the ``country`` whose regions are meant, or the numbers of its ``regions``: NUTS 1, 2, 3 and
    LAU.

    >>> import discreet as ds
    >>> found = ds.risk.redundancy("eu-census-2021", country="MT")
    >>> found.found[0].counted
    'persons'
    """
    chosen_mode = chosen("mode", mode, Mode)
    if str(what) == eu2021.NAME:
        if (country is None) == (regions is None):
            value = "missing" if country is None else "both"
            raise mistake("", "country or regions", value, 'give one of them: country="MT"')
        if regions is not None:
            four = len(regions) == 4 and all(isinstance(one, int) and one >= 0 for one in regions)
            require(four, "regions", repr(regions), "give numbers of NUTS 1, 2, 3 and LAU: (1, 1, 2, 68)")
        found = tuple(eu_redundancy(regions or regions_of(str(country)), chosen_mode))
    else:
        others = country is None and regions is None
        require(
            others,
            "country, regions",
            "with a programme of its own",
            "leave them out: it declares its regions",
        )
        programme = what if isinstance(what, Programme) else Programme.read(what)
        found = tuple(programme_redundancy(programme.resolved, chosen_mode))
    lines = tuple(line for universe in found for line in _exposed(universe))
    rows = tuple(
        {
            "counted": universe.counted,
            "statistic": _name(one),
            "ways": one.same_noise.all.t,
            "k_over_t2": one.same_noise.all.ratio,
        }
        for universe in found
        for one in universe.statistics
    )
    return Result(found, lines, rows=rows)


def _name(one: Redundancy) -> str:
    return " x ".join(level.name for level in sorted(one.statistic)) or "total"


def _exposed(universe: UniverseRedundancy) -> list[str]:
    def risk(one: Redundancy) -> float:
        return float(one.same_noise.best.variance)

    worst = sorted(universe.statistics, key=risk)[:SHOWN]
    return [
        f"{universe.counted}, {universe.tables} tables; the most exposed statistics:",
        *(
            f"  {_name(one)}: {one.same_noise.all.t} ways, k/t2 {one.same_noise.all.ratio:.4g}"
            for one in worst
        ),
    ]


@names_arguments
def differencing(
    areas: AnyTable,
    a: str,
    b: str,
    *,
    count: str | None = None,
    law: Laws | None = None,
    V: float | None = None,
    threshold: int = THRESHOLD,
    reach: int = REACH,
    alpha: float = 0.5,
    most: int = 20,
) -> Result[AreaDifferences]:
    """The small areas that are a union of areas of one geography minus areas of the other.

    ``areas`` has a row for each record, or for each piece with its number of records in ``count``. With a ``law``, or
    any noise of variance ``V``, the result has which differences remain visible.

    >>> import discreet as ds
    >>> rows = {"grid": ["G0"] * 102 + ["G1"] * 498, "lau": [f"L{k // 100}" for k in range(600)]}
    >>> ds.risk.differencing(rows, "grid", "lau").found.found > 0
    True
    """
    tables = Tables()
    tables.take("areas", areas)
    require(law is None or V is None, "law, V", "both", "give one of them, or neither")
    noise: DifferenceNoise | None = None if V is None else NormalNoise(V)
    if law is not None:
        published = PublishedLaw(law_of(law), keeps_zeros=True)
        noise = ExactNoise(published, published)
    crossing = read_crossing(tables.records("areas"), a, b, count)
    found = difference_areas(crossing, threshold, reach, noise=noise, alpha=alpha, most=most)
    left = "" if found.after is None else f"; {found.revealed:,} are visible through the noise"
    head = f"{found.found:,} differences of fewer than {found.threshold} records{left}."
    return Result(found, (head,))


@dataclass(frozen=True)
class Subsets:
    """How many records of random populations come back from counts of random subsets."""

    reconstructions: tuple[SubsetReconstruction, ...]


@names_arguments
def subsets(
    law: Laws | None = None,
    *,
    budget: float | str | None = None,
    records: int = 128,
    queries: Sequence[int] = (),
    repetitions: int = 10,
    seed: int = 1,
) -> Result[Subsets]:
    """How many records of a random population come back from counts of random subsets (Dinur and Nissim's theorem).

    A ``budget`` in place of a law is one epsilon of geometric noise that all queries share.

    >>> import discreet as ds
    >>> found = ds.risk.subsets(ds.noise("geometric", epsilon=3), records=32, queries=[512], repetitions=2)
    >>> found.reconstructions[0].share > 0.8
    True
    """
    answers = _answers(law, budget)
    require(seed >= 0, "seed", str(seed), "give a whole number, 0 or more")
    asked = list(queries) or usual_queries(records)

    def draws(which: Sequence[int]) -> np.random.Generator:
        return np.random.default_rng([seed, *which])

    found = Subsets(tuple(reconstruct_subsets(answers, records, many, repetitions, draws) for many in asked))
    lines = (
        f"{one.queries:,} queries: {one.share:.1%} of the records are right." for one in found.reconstructions
    )
    return Result(found, tuple(lines))


def _answers(law: Laws | None, budget: float | str | None) -> SubsetAnswers:
    """The mechanism that answers: noise of its own for each query, or one budget for all."""
    if budget is not None:
        require(law is None, "law or budget", "both", "give one of them")
        epsilon = exact("budget", budget)
        require(0 < epsilon <= 10**6, "budget", str(budget), "give an epsilon above 0, at most 1000000")
        return SharedBudget(float(epsilon))
    if law is None:
        raise mistake("", "law or budget", "missing", "give one of them")
    made = law_of(law)
    if isinstance(made, PTableLaw):
        return CellKeys(made)
    if not isinstance(made, AdditiveLaw):
        raise mistake("", "law", "hellinger", "take noise that is added, or a p-table")
    return AddedNoise(made)
