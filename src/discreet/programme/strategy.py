"""What a hierarchical release measures: a histogram, its marginals, and the share of the budget of each.

A strategy gives every level a share of the budget and every query a share of its level's, as Fractions; both sum to 1.
Each query sums disjoint sets of cells, so that one person added or removed changes one of its counts by 1 (squared
sensitivity 1), and one person replaced changes two counts (squared sensitivity 2, sensitivity 2). With
rho = D^2 / (2 s^2) (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020 for the discrete Gaussian) a query whose
part of rho is r has

    s^2 = 1 / r with replaced neighbours, 1 / (2 r) with added or removed ones,

and geometric noise of e / D with D = 2 or 1 for a part e of epsilon (Ghosh, Roughgarden and Sundararajan 2009).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.maths.noise.additive import AdditiveLaw, LawKind, discrete_gaussian, discrete_laplace
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.sensitivity import Reach
from discreet.maths.tree.marginals import Basis, Blocks, Marginal, precision, undetermined

LARGEST_DENSE = 400  # cells of the dense factor; its matrices are inverted for every area with children
LARGEST_HISTOGRAM = 1_000_000
LAWS = (LawKind.DISCRETE_GAUSSIAN, LawKind.GEOMETRIC)  # by rho, and by epsilon


@dataclass(frozen=True)
class Axis:
    """One variable of a histogram, by the number of its categories."""

    name: str
    size: int


@dataclass(frozen=True)
class Grouping:
    """A coarser version of a variable: the group of each category, numbered from 0 without gaps."""

    name: str
    variable: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class StructuralZero:
    """Cells that are empty by definition: those with one of these categories in each variable named."""

    categories: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Histogram:
    """A cross of categorical variables, with groupings and structural zeros; cells are in row-major order."""

    axes: tuple[Axis, ...]
    groupings: tuple[Grouping, ...] = ()
    zeros: tuple[StructuralZero, ...] = ()

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise Mistakes(problems)

    def _problems(self) -> list[Problem]:
        sizes = {axis.name: axis.size for axis in self.axes}
        found = []
        names = [axis.name for axis in self.axes] + [one.name for one in self.groupings]
        found += [
            Problem("", f"histogram.{name}", "is declared twice", "give each variable one name")
            for name in _repeated(names)
        ]
        found += [
            Problem(
                "", f"histogram.{axis.name}", f"{axis.size} categories", "give at least 2, or leave it out"
            )
            for axis in self.axes
            if axis.size < 2
        ]
        for one in self.groupings:
            if one.variable not in sizes:
                remedy = f"choose from {', '.join(sizes)}"
                found.append(Problem("", f"grouping.{one.name}", f"no variable {one.variable!r}", remedy))
            elif len(one.groups) != sizes[one.variable] or set(one.groups) != set(range(max(one.groups) + 1)):
                remedy = (
                    f"give each of the {sizes[one.variable]} categories of {one.variable} a group 0, 1, .."
                )
                found.append(Problem("", f"grouping.{one.name}", "does not fit its variable", remedy))
        for number, zero in enumerate(self.zeros):
            for name, codes in zero.categories:
                if name not in sizes or not all(0 <= code < sizes[name] for code in codes):
                    remedy = "name variables of the histogram and categories that they have"
                    found.append(
                        Problem("", f"structural zero {number + 1}", f"{name} {list(codes)}", remedy)
                    )
        if not found and prod(sizes.values()) > LARGEST_HISTOGRAM:
            value = f"{prod(sizes.values())} cells"
            found.append(Problem("", "histogram", value, f"use at most {LARGEST_HISTOGRAM} cells"))
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of all variables."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Which cells are no structural zeros, in row-major order."""
        found = np.ones(self.shape, dtype=bool)
        for zero in self.zeros:
            codes = dict(zero.categories)
            found[np.ix_(*(codes.get(axis.name, range(axis.size)) for axis in self.axes))] = False
        return found.reshape(-1)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """The variables of the dense factor: those that are grouped or that structural zeros depend on."""
        names = {one.variable for one in self.groupings} | {
            name for zero in self.zeros for name, _ in zero.categories
        }
        return tuple(v for v, axis in enumerate(self.axes) if axis.name in names)

    @property
    def regular(self) -> tuple[int, ...]:
        """All other variables."""
        return tuple(v for v in range(len(self.axes)) if v not in self.dense)

    @cached_property
    def dense_codes(self) -> NDArray[np.int64]:
        """(dense cell, dense variable) -> category, without structural zeros."""
        shape = tuple(self.shape[v] for v in self.dense)
        first = np.moveaxis(self.possible.reshape(self.shape), self.regular, range(-len(self.regular), 0))
        possible = first.reshape((*shape, -1))[..., 0].reshape(-1)
        if not possible.any():
            raise mistake(
                "", "histogram", "every cell is a structural zero", "declare fewer structural zeros"
            )
        codes = np.stack(np.unravel_index(np.flatnonzero(possible), shape), axis=1) if shape else None
        return np.zeros((1, 0), dtype=np.int64) if codes is None else codes.astype(np.int64)

    @cached_property
    def basis(self) -> Basis:
        """The shape in which the mathematics sees the histogram."""
        d = len(self.dense_codes)
        if d > LARGEST_DENSE:
            names = ", ".join(self.axes[v].name for v in self.dense)
            value = f"{names} have {d} cells, and are grouped or have structural zeros"
            raise mistake("", "histogram", value, f"use at most {LARGEST_DENSE} cells of such variables")
        return Basis(d, tuple(self.shape[v] for v in self.regular))

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Cell in row-major order -> its place (a, r), flat, in the basis; -1 for structural zeros."""
        basis = self.basis
        found = np.full(self.shape, -1, dtype=np.int64)
        moved = np.moveaxis(found, (*self.dense, *self.regular), range(len(self.axes)))
        for a, codes in enumerate(self.dense_codes):
            block = np.arange(a * basis.width, (a + 1) * basis.width).reshape(basis.regular)
            moved[tuple(codes.tolist())] = block
        return found.reshape(-1)

    def marginal(self, query: str) -> Marginal:
        """The marginal that a query names: ``total``, ``detailed`` or variables and groupings joined by ``*``."""
        names = self._names(query)
        columns = []
        for at, v in enumerate(self.dense):
            codes = self.dense_codes[:, at]
            if self.axes[v].name in names:
                columns.append(codes)
            columns += [
                np.array(one.groups)[codes]
                for one in self.groupings
                if one.variable == self.axes[v].name and one.name in names
            ]
        kept = sum(1 << at for at, v in enumerate(self.regular) if self.axes[v].name in names)
        if not columns:
            return Marginal(np.zeros(self.basis.d, dtype=np.int32), kept)
        _, rows = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return Marginal(rows.reshape(-1).astype(np.int32), kept)

    def _names(self, query: str) -> tuple[str, ...]:
        if query == "total":
            return ()
        variables = tuple(axis.name for axis in self.axes)
        if query == "detailed":
            return variables
        names = tuple(part.strip() for part in query.split("*"))
        known = (*variables, *(one.name for one in self.groupings))
        for name in names:
            if name not in known:
                remedy = f"use total, detailed or names joined by *, from {', '.join(known)}"
                raise mistake("", f"query {query}", f"no variable or grouping {name!r}", remedy)
        return names


@dataclass(frozen=True)
class LevelShare:
    """The share of one level, and how its queries divide it."""

    level: str
    share: Fraction
    queries: tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True)
class Strategy:
    """What is measured at each level, from the top down, and what of the budget each measurement takes."""

    histogram: Histogram
    budget: Fraction  # rho of Gaussian noise, epsilon of geometric noise
    levels: tuple[LevelShare, ...]
    noise: LawKind = LawKind.DISCRETE_GAUSSIAN
    neighbours: Neighbours = Neighbours.SUBSTITUTE
    reach: Reach | None = None  # how far neighbours differ in a query; None: by one count of one

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise Mistakes(problems)

    def _problems(self) -> list[Problem]:
        found = []
        if self.budget <= 0:
            found.append(Problem("", "strategy.budget", str(self.budget), "give a number above zero"))
        if self.noise not in LAWS:
            found.append(Problem("", "strategy.noise", self.noise, f"choose from {', '.join(LAWS)}"))
        names = [one.level for one in self.levels]
        found += [
            Problem("", f"level {name}", "is declared twice", "give each level one share")
            for name in _repeated(names)
        ]
        total = sum((one.share for one in self.levels), Fraction(0))
        if total != 1:
            value = f"the shares of {', '.join(names)} sum to {total}"
            found.append(Problem("", "strategy.levels", value, "give shares that sum to 1"))
        for one in self.levels:
            found += self._level_problems(one)
        if not found and undetermined(self._last_precision()):
            last = self.levels[-1]
            asked = ", ".join(query for query, _ in last.queries) or "nothing"
            value = f"its queries ({asked}) do not determine every cell"
            remedy = "add the query detailed, or queries that determine it, with a share above 0"
            found.append(Problem("", f"level {last.level}", value, remedy))
        return found

    def _level_problems(self, one: LevelShare) -> list[Problem]:
        found = []
        where = f"level {one.level}"
        if one.share < 0 or any(share <= 0 for _, share in one.queries):
            remedy = "give each level a share of at least 0, each query one above 0"
            found.append(Problem("", where, "a share is not positive", remedy))
        queries = [query for query, _ in one.queries]
        found += [
            Problem("", where, f"query {query} is declared twice", "give it one share")
            for query in _repeated(queries)
        ]
        total = sum((share for _, share in one.queries), Fraction(0))
        if (one.share > 0 or queries) and total != 1:
            value = f"the shares of {', '.join(queries) or 'no query'} sum to {total}"
            found.append(Problem("", where, value, "give shares that sum to 1"))
        for query in queries:
            try:
                self.histogram.marginal(query)
            except Mistakes as error:
                found += [Problem("", f"{where}: {bad.key}", bad.value, bad.remedy) for bad in error.problems]
        return found

    def _last_precision(self) -> Blocks:
        last = self.levels[-1]
        queries = last.queries if last.share > 0 else ()
        marginals = [self.histogram.marginal(query) for query, _ in queries]
        return precision(self.histogram.basis, marginals, [float(share) for _, share in queries])

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Every query that some level asks, in the order of first mention."""
        return tuple(dict.fromkeys(query for one in self.levels for query, _ in one.queries))

    def law(self, part: Fraction) -> AdditiveLaw:
        """The noise of a query that takes this part of the budget; see the module."""
        if self.noise is LawKind.DISCRETE_GAUSSIAN:
            return discrete_gaussian(part / self.squared_sensitivity)
        return discrete_laplace(part / self.sensitivity)

    def part(self, law: AdditiveLaw) -> Fraction:
        """What a query with this noise takes of the budget: rho = D^2 / (2 s^2), and the law has 1 / (2 s^2)."""
        if law.rho_parameter is not None:
            return law.rho_parameter * self.squared_sensitivity
        if law.epsilon_parameter is None:
            raise ValueError("a law without a parameter")
        return law.epsilon_parameter * self.sensitivity

    @property
    def squared_sensitivity(self) -> int:
        """The squared L2 sensitivity of one query."""
        if self.reach is not None:
            return self.reach.l2_squared
        return 2 if self.neighbours is Neighbours.SUBSTITUTE else 1

    @property
    def sensitivity(self) -> int:
        """The L1 sensitivity of one query."""
        if self.reach is not None:
            return self.reach.l1
        return 2 if self.neighbours is Neighbours.SUBSTITUTE else 1


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def strategy_of(
    histogram: Histogram,
    budget: Fraction,
    levels: Mapping[str, Fraction],
    queries: Mapping[str, Mapping[str, Fraction]],
    noise: LawKind = LawKind.DISCRETE_GAUSSIAN,
    neighbours: Neighbours = Neighbours.SUBSTITUTE,
) -> Strategy:
    """Make a strategy of the shares by level and by level and query."""
    shares = tuple(
        LevelShare(level, share, tuple(queries.get(level, {}).items())) for level, share in levels.items()
    )
    return Strategy(histogram, budget, shares, noise, neighbours)


HOUSING_TYPES = 8  # household; correctional, juvenile, nursing, other institution; college, military, other
NURSING = 3
MINOR = 0


def pl94_persons() -> Histogram:
    """The persons of the 2020 redistricting data: 8 x 2 x 2 x 63 cells, no minors in nursing facilities."""
    return Histogram(
        (Axis("hhgq", HOUSING_TYPES), Axis("votingage", 2), Axis("hispanic", 2), Axis("cenrace", 63)),
        (Grouping("hhinstlevels", "hhgq", (0, 1, 1, 1, 1, 2, 2, 2)),),
        (StructuralZero((("hhgq", (NURSING,)), ("votingage", (MINOR,)))),),
    )


def pl94_units() -> Histogram:
    """The housing units of the 2020 redistricting data: occupied, vacant."""
    return Histogram((Axis("occupancy", 2),))


PL94 = ("persons-us", "persons-pr", "units-us", "units-pr")


def pl94_2020(name: str, levels: Sequence[str] | None = None) -> Strategy:
    """A published strategy of the 2020 redistricting data, with its exact fractions of rho.

    For a part of the country give the ``levels`` to retain: the shares of the others move to the first level below them
    that stays, as they do where an area is its parent's only child.
    """
    if name not in PL94:
        raise mistake("", "strategy", f"no strategy {name!r}", f"choose from {', '.join(PL94)}")
    with (files("discreet.programme") / "pl94_2020.toml").open("rb") as file:
        declared = tomllib.load(file)[name]
    shares = {level: Fraction(share) for level, share in declared["levels"].items()}
    queries = {
        level: {query: Fraction(share) for query, share in found.items()}
        for level, found in declared["queries"].items()
    }
    if levels is not None:
        shares = _handed_down(shares, levels)
    histogram = pl94_persons() if name.startswith("persons") else pl94_units()
    return strategy_of(histogram, Fraction(declared["rho"]), shares, queries)


def _handed_down(shares: Mapping[str, Fraction], levels: Sequence[str]) -> dict[str, Fraction]:
    unknown = [level for level in levels if level not in shares]
    if unknown or list(shares)[-1] not in levels:
        value = f"levels {', '.join(levels)}"
        raise mistake("", "strategy", value, f"choose from {', '.join(shares)}, with {list(shares)[-1]}")
    found: dict[str, Fraction] = {}
    carried = Fraction(0)
    for level, share in shares.items():
        carried += share
        if level in levels:
            found[level], carried = carried, Fraction(0)
    return found
