"""Risks by formula, without data: what an outsider can find out about counts with some noise.

The functions are those of ``discreet risk``; a law is made by ``discreet.noise``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.api.arguments import names_arguments
from discreet.api.columns import AnyTable, Tables
from discreet.api.laws import NoiseLaw, law_of
from discreet.api.programme import Programme
from discreet.api.results import Result
from discreet.audit.differencing import THRESHOLD, ExactNoise
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
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.differencing import REACH
from discreet.maths.attacks.redundancy import Redundancy
from discreet.maths.attacks.subsets import (
    AddedNoise,
    CellKeys,
    SubsetReconstruction,
    queries_of_theorem,
    reconstruct_subsets,
)
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.certificates import fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.publishing import PublishedLaw
from discreet.programme import eu2021

__all__ = ["averaging", "bayes", "bound", "differencing", "dp", "redundancy", "subsets"]

Laws = NoiseLaw | Result[NoiseLaw]
ALPHA = 0.68
SHOWN = 10


@dataclass(frozen=True)
class Averaging:
    """The success of averaging ``t`` representations, sums of ``k`` cells in all."""

    ratio: float  # k / t^2: the share of the variance that is left
    success: float  # by the normal law
    chebyshev: float  # at least, whatever the law
    exact: float | None  # by the law of cell key noise with a largest change
    least_variance: float  # at which the success is alpha


@names_arguments
def averaging(*, V: float, k: int, t: int, D: int | None = None, alpha: float = ALPHA) -> Result[Averaging]:
    """The probability that the mean of ``t`` representations, sums of ``k`` cells in all, rounds to the true count.

    >>> import discreet as ds
    >>> round(ds.risk.averaging(V=2, k=40, t=10).success, 2)
    0.42
    """
    _require(V > 0, "V", f"{V:g}", "give a variance above 0")
    _require(0 < alpha < 1, "alpha", f"{alpha:g}", "give a number between 0 and 1, e.g. 0.68")
    _require(1 <= t <= k, "k", str(k), f"give at least {t}, one cell for each representation")
    ratio = k / t**2
    least = averaging_maths.least_variance(ratio, alpha)
    exact = None if D is None else averaging_maths.exact_success(bounds_maths.maximum_entropy(V, D), k, t)
    success = averaging_maths.success(V, ratio)
    found = Averaging(ratio, success, averaging_maths.chebyshev(V, ratio), exact, least)
    by_law = "" if exact is None else f", by the exact law {exact:.4f}"
    head = f"k/t2 {ratio:.6g}: averaging succeeds with probability {found.success:.4f}{by_law}."
    return Result(found, (head, f"Below {alpha:g} with a variance of at least {least:.4g}."))


@dataclass(frozen=True)
class Bound:
    """How tuples {F, M, T} reveal the largest change, and what is then disclosed."""

    reach: int  # the largest change
    reveals: float  # the probability that one tuple shows it
    needed: float  # tuples that show it with confidence alpha; infinite where none do
    pinned: float  # the probability that a tuple of large counts is then disclosed
    revealed: float | None  # the probability that the given number of tuples shows it
    expected_pinned: float | None  # tuples of them that are disclosed


@names_arguments
def bound(*, V: float, D: int, tuples: int | None = None, alpha: float = ALPHA) -> Result[Bound]:
    """How many tuples {F, M, T} reveal the largest change of cell key noise, and how many disclose their counts.

    >>> import discreet as ds
    >>> ds.risk.bound(V=2, D=5, tuples=1000).revealed < 0.01
    True
    """
    law = bounds_maths.maximum_entropy(V, D)
    p1, pinned = bounds_maths.reveals(law, D), bounds_maths.pinned(law)
    shown = None if tuples is None else bounds_maths.revealed(p1, tuples)
    pairs = None if tuples is None else tuples * pinned
    found = Bound(D, p1, float(bounds_maths.tuples_needed(p1, alpha)), pinned, shown, pairs)
    needed = "No number of" if math.isinf(found.needed) else f"{found.needed:,.0f}"
    lines = (
        f"A tuple reveals the largest change {D} with probability {p1:.4g}.",
        f"{needed} tuples reveal it with confidence {alpha:g}.",
        f"Once it is known, a tuple of large counts is disclosed with probability {pinned:.4g}.",
    )
    return Result(found, lines)


@dataclass(frozen=True)
class Deltas:
    """The exact delta of a law at each epsilon, and what zeros and repeated noise cost at any epsilon."""

    curve: tuple[tuple[float, float], ...]  # epsilon, delta
    fixed_zeros: float  # delta where zeros stay zero
    same_participants: float  # the largest delta where the same participants always have the same noise


@names_arguments
def dp(law: Laws, *, epsilon: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 5.0)) -> Result[Deltas]:
    """The exact delta of a law at each epsilon: one record added or removed, in one cell.

    >>> import discreet as ds
    >>> [round(delta, 3) for _, delta in ds.risk.dp(ds.noise("geometric", epsilon=1), epsilon=[0, 1]).curve]
    [0.462, 0.0]
    """
    made = law_of(law)
    _require(all(one >= 0 for one in epsilon), "epsilon", "a negative number", "give numbers of at least 0")
    rows = made.ptable.last_row if isinstance(made, PTableLaw) else 1
    worst = max(same_participants_delta(made, count) for count in range(1, rows + 1))
    curve = tuple((float(one), max(0.0, float(made.delta(one)))) for one in epsilon)
    found = Deltas(curve, fixed_zeros_delta(made), worst)
    lines = [f"epsilon {one:g}: delta {delta:.6g}" for one, delta in curve]
    zeros = f"Zeros that stay zero: delta at least {found.fixed_zeros:.6g} at every epsilon."
    return Result(found, (*lines, zeros))


@names_arguments
def bayes(law: Laws, *, known: int = 0, prior: float = 0.5) -> Result[Adversary]:
    """An adversary who knows ``known`` others in a cell: what a published count adds to the prior.

    >>> import discreet as ds
    >>> found = ds.risk.bayes(ds.noise("geometric", epsilon=1), known=3, prior=0.1)
    >>> round(found.posterior(4), 3), round(found.risk, 2)
    (0.232, 1.8)
    """
    _require(0 < prior < 1, "prior", f"{prior:g}", "give a probability between 0 and 1")
    _require(known >= 0, "known", str(known), "give a whole number of at least 0")
    found = Adversary(law_of(law), known, prior)
    belief = f"the mean posterior of a target who is there is {found.mean_posterior:.4g}"
    lines = (
        f"Prior {prior:g}, {known} others known: {belief}, {found.risk:.3g} times the prior.",
        f"A target who is there is found with probability {found.correct:.4g}, a wrong one with {found.mistaken:.4g}.",
    )
    near = range(max(0, known - SHOWN), known + SHOWN + 1)
    rows = tuple({"published": one, "posterior": found.posterior(one)} for one in near)
    return Result(found, lines, rows=rows)


@names_arguments
def redundancy(
    what: Programme | str | Path, *, country: str | None = None, mode: str = "literal"
) -> Result[tuple[UniverseRedundancy, ...]]:
    """In how many ways each statistic can be computed; ``"eu-census-2021"`` with a ``country`` is the EU programme.

    >>> import discreet as ds
    >>> found = ds.risk.redundancy("eu-census-2021", country="MT")
    >>> found.found[0].counted
    'persons'
    """
    _require(mode in list(Mode), "mode", repr(mode), f"choose from {', '.join(Mode)}")
    if str(what) == eu2021.NAME:
        if country is None:
            raise mistake("", "country", "missing", 'name the country whose regions are meant: country="MT"')
        found = tuple(eu_redundancy(regions_of(country), Mode(mode)))
    else:
        programme = what if isinstance(what, Programme) else Programme.read(what)
        found = tuple(programme_redundancy(programme.resolved, Mode(mode)))
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
    threshold: int = THRESHOLD,
    reach: int = REACH,
    alpha: float = 0.5,
    most: int = 20,
) -> Result[AreaDifferences]:
    """The small areas that are a union of areas of one geography minus areas of the other.

    ``areas`` has a row for each record, or for each piece with its number of records in ``count``.

    >>> import discreet as ds
    >>> rows = {"grid": ["G0"] * 102 + ["G1"] * 498, "lau": [f"L{k // 100}" for k in range(600)]}
    >>> ds.risk.differencing(rows, "grid", "lau").found.found > 0
    True
    """
    tables = Tables()
    tables.take("areas", areas)
    noise = None
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
    law: Laws, *, records: int = 128, queries: Sequence[int] = (), repetitions: int = 10, seed: int = 1
) -> Result[Subsets]:
    """How many records of a random population come back from counts of random subsets (Dinur and Nissim's theorem).

    >>> import discreet as ds
    >>> found = ds.risk.subsets(ds.noise("geometric", epsilon=3), records=32, queries=[512], repetitions=2)
    >>> found.reconstructions[0].share > 0.8
    True
    """
    made = law_of(law)
    if not isinstance(made, AdditiveLaw | PTableLaw):
        raise mistake("", "law", "hellinger", "take noise that is added, or a p-table")
    answers = CellKeys(made) if isinstance(made, PTableLaw) else AddedNoise(made)
    asked = list(queries) or [records // 2, records, 2 * records, queries_of_theorem(max(records, 2))]

    def repeated(many: int) -> SubsetReconstruction:
        draws = [np.random.default_rng([seed, records, many, at]) for at in range(repetitions)]
        return reconstruct_subsets(answers, records, many, draws)

    found = Subsets(tuple(map(repeated, asked)))
    lines = (
        f"{one.queries:,} queries: {one.share:.1%} of the records are right." for one in found.reconstructions
    )
    return Result(found, tuple(lines))


def _require(sound: bool, key: str, value: str, remedy: str) -> None:
    if not sound:
        raise mistake("", key, value, remedy)
