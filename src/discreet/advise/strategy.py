"""Advice on a hierarchical strategy: shares that make wanted counts most accurate, and what the 2020 shares cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.estimate import forecast, known_totals
from discreet.hierarchy.mechanism import HierarchicalMechanism, hierarchical_mechanism
from discreet.hierarchy.spine import Spine
from discreet.lazy import lazily
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.shares import Forms, exact_shares, mean_variance, optimal_shares
from discreet.programme.codelist import Breakdown
from discreet.programme.filter import alternatives
from discreet.programme.hierarchical import groups_of
from discreet.programme.programme import Programme
from discreet.programme.strategy import Grouping, Histogram, LevelShare, Strategy, pl94_2020

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Floats = NDArray[np.floating[Any]]

PARTS = 4096  # of the budget: shares are whole numbers of them


@dataclass(frozen=True)
class Wanted:
    """A query that matters, where, and how much: the weight of the mean variance of its estimates."""

    level: str
    query: str
    weight: float = 1.0


@dataclass(frozen=True)
class ComparedError:
    """The standard deviation of one query's estimates at one level under three strategies."""

    level: str
    query: str
    declared: float
    proposed: float
    census_2020: float


@dataclass(frozen=True)
class StrategyAdvice:
    """A proposed strategy for the same budget, and how it compares."""

    programme: str
    measure: str
    budget: str
    wanted: tuple[Wanted, ...]
    proposed: Strategy
    errors: tuple[ComparedError, ...]
    saved: float  # the proposed strategy reaches the declared one's mean error with this share of the budget
    census_2020: float  # the budget that the 2020 shares would need for the proposed mean error, in multiples

    @property
    def compared(self) -> str:
        """What the proposal saves, and what the shares of 2020 would cost."""
        return (
            f"The declared mean error needs {self.saved:.2f} of the budget with the proposed shares; the shares of the "
            f"2020 US census would need {self.census_2020:.2f} times the budget for the proposed mean error."
        )

    def lines(self) -> list[str]:
        """The proposal as it is written in a programme file."""
        found = [
            f"levels = {{ {_table((one.level, one.share) for one in self.proposed.levels if one.share)} }}"
        ]
        found.append("[noise.strategy.queries]")
        found += [f"{one.level} = {{ {_table(one.queries)} }}" for one in self.proposed.levels if one.share]
        return found


def _table(items: Iterable[tuple[str, Fraction]]) -> str:
    return ", ".join(
        f'{name if name.isidentifier() else json.dumps(name)} = "{share}"' for name, share in items
    )


def advise_strategy(programme: Programme, stated: Sequence[str] = ()) -> StrategyAdvice:
    """Optimise the shares of a hierarchical programme for stated queries, or the counts that its cubes publish.

    A query that matters is stated as ``LEVEL:QUERY=WEIGHT``, with a weight of 1 where it is left out; queries of cubes
    weigh the same.
    """
    chosen = hierarchical_mechanism(programme)
    if not chosen.rule.is_gaussian:
        remedy = 'it minimises variances for a rho: set law = "discrete-gaussian"'
        raise mistake(programme.path, "noise.law", "geometric noise, for the optimiser", remedy)
    histogram, wanted = (
        stated_queries(programme, chosen, stated) if stated else wanted_queries(programme, chosen)
    )
    spine, rule = chosen.plan.spine, chosen.hierarchy
    own = replace(chosen.plan.strategy, histogram=histogram)
    found = optimise(spine, histogram, wanted, own.budget, own.queries, own.neighbours, rule.totals)
    proposed = replace(found, reach=own.reach)
    census = own if rule.name else shares_of_2020(own)
    queries = tuple(dict.fromkeys(one.query for one in wanted))
    sets = [
        {(one.level, one.query): one.mean for one in forecast(spine, strategy, queries, rule.totals)}
        for strategy in (own, proposed, census)
    ]
    errors = tuple(
        ComparedError(one.level, one.query, *(sqrt(max(some[one.level, one.query], 0.0)) for some in sets))
        for one in wanted
    )
    declared, best, then = (sum(one.weight * some[one.level, one.query] for one in wanted) for some in sets)
    return StrategyAdvice(
        programme.name, "rho", str(own.budget), tuple(wanted), proposed, errors, best / declared, then / best
    )


def wanted_queries(programme: Programme, chosen: HierarchicalMechanism) -> tuple[Histogram, list[Wanted]]:
    """The finest counts of every cube at each of its levels; the histogram with the groupings that they need."""
    rule, groupings = chosen.hierarchy, _Groupings(chosen)
    wanted: dict[tuple[str, str], Wanted] = {}
    for cube in programme.cubes:
        places = [axis for axis in cube.axes if axis.variable == rule.geography]
        deepest = int(places[0].depths.max()) if places else 0
        parts = [groupings.name(axis) for axis in cube.axes if axis.variable != rule.geography]
        query = "*".join(sorted(parts)) or "total"
        for level in rule.levels[: deepest + 1]:
            wanted[level, query] = Wanted(level, query)
    # exact totals have no error to weigh
    kept = [one for one in wanted.values() if not (one.query == "total" and one.level in rule.totals)]
    return groupings.histogram, kept


def stated_queries(
    programme: Programme, chosen: HierarchicalMechanism, stated: Sequence[str]
) -> tuple[Histogram, list[Wanted]]:
    """The queries that a user states with their weights; the histogram with the groupings that they need."""
    groupings = _Groupings(chosen)
    wanted = []
    for text in stated:
        level, _, rest = text.rpartition(":")
        query, _, weight = rest.partition("=")
        try:
            number = float(weight or 1)
        except ValueError:
            number = nan
        if not level or not query or not isfinite(number):
            remedy = 'write LEVEL:QUERY=WEIGHT, such as "TRACT:total=2" or "TRACT:SEX*AGE.L"'
            raise mistake("", "--wanted", repr(text), remedy)
        parts = [groupings.stated(programme, part.strip()) for part in query.split("*")]
        wanted.append(Wanted(level.strip(), "*".join(parts), number))
    return groupings.histogram, wanted


class _Groupings:
    """The groupings of a histogram, and further ones that queries need."""

    def __init__(self, chosen: HierarchicalMechanism) -> None:
        self._histogram = chosen.hierarchy.strategy.histogram
        self._fine = {axis.variable: axis for axis in chosen.leaf.axes[1:]}
        self._found = {one.name: one for one in self._histogram.groupings}

    @property
    def histogram(self) -> Histogram:
        """With all groupings."""
        return replace(self._histogram, groupings=tuple(self._found.values()))

    def name(self, axis: Breakdown) -> str:
        """How a query names a breakdown: by its variable, or by a grouping."""
        groups = groups_of(self._fine[axis.variable], axis)
        if groups is None:
            value = f"{axis.full_name} divides categories of the histogram"
            raise mistake("", "queries", value, "use a coarser breakdown")
        _, numbers = np.unique(groups, return_inverse=True)
        listed = tuple(numbers.reshape(-1).tolist())
        if len(set(listed)) == len(listed):
            return axis.variable
        self._found.setdefault(axis.full_name, Grouping(axis.full_name, axis.variable, listed))
        return axis.full_name

    def stated(self, programme: Programme, name: str) -> str:
        """How a query names what a user wrote: total, detailed, a variable or one of its breakdowns."""
        variable, _, level = name.partition(".")
        if name in ("total", "detailed", *self._fine, *self._found):
            return name
        breakdowns = programme.variables[variable].breakdowns if variable in self._fine else {}
        if level not in breakdowns:
            every = (
                axis.full_name for one in self._fine for axis in programme.variables[one].breakdowns.values()
            )
            known = dict.fromkeys(("total", "detailed", *self._fine, *every))
            remedy = alternatives(name, list(known))
            raise mistake("", "--wanted", f"unknown query {name!r}", remedy)
        return self.name(breakdowns[level])


def shares_of_2020(own: Strategy) -> Strategy:
    """The published shares of the 2020 redistricting data: of the last levels, and of totals against all cells.

    Levels are matched from the smallest areas up; the share of the levels that are not there moves to the first one.
    """
    published = pl94_2020("persons-us").levels
    last = own.levels[-len(published) :]
    matched = published[-len(last) :]
    spare = sum((one.share for one in published[: len(published) - len(last)]), Fraction(0))
    levels = [LevelShare(one.level, Fraction(0), ()) for one in own.levels[: len(own.levels) - len(last)]]
    for number, (mine, theirs) in enumerate(zip(last, matched, strict=True)):
        share = theirs.share + (spare if number == 0 else 0)
        total = dict(theirs.queries).get("total", Fraction(0))
        asked = (("total", total),) if total else ()
        levels.append(LevelShare(mine.level, share, (*asked, ("detailed", 1 - total))))
    return replace(own, levels=tuple(levels))


def optimise(
    spine: Spine,
    histogram: Histogram,
    wanted: Sequence[Wanted],
    rho: Fraction,
    queries: Sequence[str] = (),
    neighbours: Neighbours = Neighbours.SUBSTITUTE,
    totals: Sequence[str] = (),
) -> Strategy:
    """Choose the shares of rho that make the weighted variance of the estimates smallest (``maths.tree.shares``).

    ``queries`` may be measured at every level; those in ``wanted`` and ``detailed`` always may. Variances are those of
    the tree as it is, with its bypassed areas and known ``totals``.
    """
    _checked(spine, wanted)
    basis = histogram.basis
    different: dict[tuple[int, bytes], str] = {}  # queries with other names that ask the same are one
    for name in ("detailed", *queries, *(one.query for one in wanted)):
        marginal = histogram.marginal(name)
        different.setdefault((marginal.kept, marginal.rows.tobytes()), name)
    names = tuple(different.values())
    marginals = [histogram.marginal(name) for name in names]
    targets = [np.zeros((basis.subsets, basis.d, basis.d)) for _ in spine.levels]
    for one in wanted:
        level = spine.levels.index(one.level)
        targets[level] += one.weight * mean_variance(basis, histogram.marginal(one.query))
    needed = np.zeros((len(spine.levels), len(names)), dtype=bool)
    needed[-1, names.index("detailed")] = True
    forms = forms_of(spine, known_totals(spine, totals))
    found = optimal_shares(basis, marginals, forms, targets, needed / PARTS)
    shares = exact_shares(_on_shown_levels(spine, found.shares), PARTS, needed)
    levels = []
    for name, row in zip(spine.levels, shares, strict=True):
        total = sum(row, Fraction(0))
        asked = tuple((query, part / total) for query, part in zip(names, row, strict=True) if part)
        levels.append(LevelShare(name, total, asked))
    return Strategy(histogram, rho, tuple(levels), LawKind.DISCRETE_GAUSSIAN, neighbours)


def _on_shown_levels(spine: Spine, shares: Floats) -> Floats:
    """A level whose areas all are bypassed measures nothing: its shares are those of the next level."""
    found = shares.copy()
    for level in range(len(spine.levels) - 1):
        if not (spine.bottom[spine.node_of[level]] == level).any():
            found[level + 1] += found[level]
            found[level] = 0
    return found


def forms_of(spine: Spine, known: NDArray[np.bool_]) -> Forms:
    """The different trees below the nodes of a spine, children before parents."""
    numbers: dict[tuple[object, ...], int] = {}
    form_of = np.zeros(len(spine), dtype=np.int64)
    rows: list[tuple[int, int, bool, list[tuple[int, int]]]] = []
    for node in range(len(spine) - 1, -1, -1):
        below = (
            sorted(Counter(form_of[spine.children(node)].tolist()).items()) if not spine.is_leaf(node) else []
        )
        own = int(spine.top[node]), int(spine.bottom[node]), bool(known[node])
        key = (*own, *below)
        if key not in numbers:
            numbers[key] = len(rows)
            rows.append((*own, below))
        form_of[node] = numbers[key]
    levels = np.arange(len(spine.levels))
    starts = np.cumsum([0, *(len(below) for *_, below in rows)])
    pairs = [pair for *_, below in rows for pair in below]
    children = sparse.csr_array(
        (
            np.array([number for _, number in pairs], dtype=np.float64),
            np.array([form for form, _ in pairs], dtype=np.int64),
            starts,
        ),
        shape=(len(rows), len(rows)),
    )
    return Forms(
        children,
        np.stack([(levels >= top) & (levels <= bottom) for top, bottom, *_ in rows]),
        np.array([exact for _, _, exact, _ in rows]),
        np.array([len(nodes) for nodes in spine.node_of], dtype=np.int64),
    )


def _checked(spine: Spine, wanted: Sequence[Wanted]) -> None:
    if not wanted:
        raise mistake("", "queries", "no query is named", "name at least one level and query")
    problems = [
        Problem("", "queries", f"no level {one.level!r}", f"choose from {', '.join(spine.levels)}")
        for one in wanted
        if one.level not in spine.levels
    ]
    problems += [
        Problem("", f"query {one.query} at {one.level}", f"weight {one.weight:g}", "give a weight above zero")
        for one in wanted
        if not one.weight > 0
    ]
    if problems:
        raise Mistakes(problems)
