"""``[noise] kind = "hierarchical"``: a tree of areas, a histogram, and what of the budget each measurement takes.

Levels are named by breakdowns of the geography that cut its codelist at one depth; the root is the breakdown of level 0
or ``total``. Queries are named by variables and breakdowns of the histogram, joined by ``*``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag

from discreet.errors import Mistakes, mistake
from discreet.lazy import lazily
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.programme.codelist import TOTAL, Breakdown, Codelist, breakdown
from discreet.programme.cube import Cube
from discreet.programme.filter import Comparison, Filter, Term, alternatives
from discreet.programme.section import Amount, Declared, Findings, Text, text_or_table
from discreet.programme.variables import Variable

if TYPE_CHECKING:
    from discreet.programme import strategy as strategies
    from discreet.programme.strategy import Grouping, Histogram, Strategy, StructuralZero
else:
    strategies = lazily("discreet.programme.strategy")  # few programmes have one

PL94_2020 = "pl94-2020"
PUERTO_RICO = "pl94-2020-pr"
ROOT = "total"
KEY = "noise.strategy"


class DeclaredStrategy(Declared):
    """The histogram, the share of each level, and how the queries of a level divide it."""

    histogram: Annotated[list[Text], Field(min_length=1, max_length=16)]
    levels: Annotated[dict[Text, Amount], Field(min_length=1)]
    queries: Annotated[dict[Text, dict[Text, Amount]], Field(min_length=1)]


class DeclaredBounds(Declared):
    """Public bounds of the counts of one query in every smallest area, from a file."""

    file: Text
    query: Text


class DeclaredInvariants(Declared):
    """What is published without noise, and what every table must meet."""

    totals: list[Text] = []
    bounds: DeclaredBounds | None = None


class DeclaredHierarchical(Declared):
    """Noisy marginals at every level of a geography, and tables that are fitted to all of them and add up."""

    kind: Literal["hierarchical"]
    geography: Text
    strategy: Annotated[
        Annotated[Text, Tag("|text")] | Annotated[DeclaredStrategy, Tag("|table")],
        Discriminator(text_or_table),
    ]
    law: Literal["discrete-gaussian", "geometric"] = "discrete-gaussian"
    rho: Amount | None = None
    epsilon: Amount | None = None
    delta: Amount | None = None
    neighbours: Literal["add-remove", "substitute"] = "add-remove"
    protects: Literal["person", "household"] = "person"
    largest_household: Annotated[int, Field(ge=1, le=10_000)] | None = None
    snapshot: Text | None = None
    large_delta: bool = False
    invariants: DeclaredInvariants = Field(default_factory=DeclaredInvariants)
    outputs: Annotated[list[Literal["counts", "estimates", "measurements"]], Field(min_length=1)] = [
        "counts",
        "estimates",
        "measurements",
    ]
    fit: Literal["tree", "own-level"] = "tree"
    spine: bool = True


class Output(StrEnum):
    """What a hierarchical release publishes beside its whole counts."""

    COUNTS = "counts"
    ESTIMATES = "estimates"
    MEASUREMENTS = "measurements"


@dataclass(frozen=True)
class BoundsRule:
    """A file of bounds: of which query, and the digest of its content."""

    query: str
    path: str
    sha256: str


@dataclass(frozen=True)
class HierarchyRule:
    """A declared hierarchical release; everything in it is public."""

    name: str  # pl94-2020, or empty where the strategy is the programme's own
    unit: str
    geography: str
    depths: tuple[int, ...]  # of the levels of the strategy, in the codelist of the geography; 0 is the root
    axes: tuple[tuple[str, str], ...]  # of the histogram: variable and breakdown
    strategy: Strategy
    totals: tuple[str, ...] = ()
    bounds: BoundsRule | None = None
    outputs: tuple[Output, ...] = tuple(Output)
    fit: str = "tree"
    bypass: bool = True

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, the root first."""
        return tuple(one.level for one in self.strategy.levels)

    def area_axis(self, tree: Codelist) -> Breakdown:
        """The smallest areas, without any level between them and the total."""
        return flat(breakdown(self.geography, "smallest", tree, tree.level(self.depths[-1])))

    def category_axes(self, variables: Mapping[str, Variable]) -> tuple[Breakdown, ...]:
        """The categories of the histogram, without any level between them and the total."""
        return tuple(flat(_axis(variables[variable], name)) for variable, name in self.axes)

    def leaf_cube(self, variables: Mapping[str, Variable]) -> Cube:
        """The table that is counted: smallest areas by histogram. It is never published."""
        areas = self.area_axis(variables[self.geography].codelist)
        return Cube("hierarchy", self.unit, (areas, *self.category_axes(variables)), margins=False)

    def area_parents(self, tree: Codelist) -> tuple[list[NDArray[np.int64]], list[tuple[str, ...]]]:
        """For each level but the first the parent of each area; and the codes of all areas by level.

        A code without codes below it is its own only child at the lower levels.
        """
        cuts = [tree.level(depth) if depth else (-1,) for depth in self.depths]
        codes = [tuple(TOTAL if at < 0 else tree.codes[at] for at in cut) for cut in cuts]
        parents = []
        for above, below in pairwise(cuts):
            place = {at: number for number, at in enumerate(above)}
            found = [next(place[one] for one in (*tree.ancestors(at), -1) if one in place) for at in below]
            parents.append(np.array(found, dtype=np.int64))
        return parents, codes


def flat(axis: Breakdown) -> Breakdown:
    """Only the finest nodes of an axis, directly below the total."""
    finest = np.flatnonzero(axis.finest)
    place = np.zeros(len(axis), dtype=np.int32)
    place[finest] = np.arange(1, len(finest) + 1)
    return Breakdown(
        axis.variable,
        f"{axis.name} flat",
        (axis.codes[0], *(axis.codes[node] for node in finest)),
        (axis.labels[0], *(axis.labels[node] for node in finest)),
        np.array([-1, *([0] * len(finest))], dtype=np.int32),
        place[axis.node_of_leaf],
    )


def _axis(variable: Variable, name: str) -> Breakdown:
    tree = variable.codelist
    return variable.breakdowns[name] if name else breakdown(variable.name, variable.name, tree, tree.leaves)


def groups_of(fine: Breakdown, coarse: Breakdown) -> NDArray[np.int64] | None:
    """The finest node of a coarser breakdown that contains each category of a finer one; None where one is divided."""
    category = np.searchsorted(np.flatnonzero(fine.finest), fine.node_of_leaf)
    found = np.full(int(fine.finest.sum()), -1, dtype=np.int64)
    found[category] = coarse.node_of_leaf
    return found if (found[category] == coarse.node_of_leaf).all() else None


def resolve_hierarchy(
    declared: DeclaredHierarchical,
    budget: Fraction,
    variables: Mapping[str, Variable],
    cubes: Sequence[Cube],
    zeros: Sequence[Filter],
    findings: Findings,
) -> HierarchyRule | None:
    """The hierarchy of a programme whose variables and cubes are sound; every mistake is reported."""
    resolver = _Resolver(declared, budget, variables, zeros, findings)
    before = len(findings.problems)
    try:
        rule = resolver.rule(cubes)
    except Mistakes as mistakes:
        for one in mistakes.problems:
            own = one.key.startswith(("noise.", "cube ", "structural_zeros"))
            key = one.key if own else f"{KEY}, {one.key}"
            findings.add(key, one.value, one.remedy)
        return None
    _check_cubes(rule, cubes, variables, findings)
    return rule if len(findings.problems) == before else None


class _Resolver:
    """Turns the declared names into a strategy."""

    def __init__(
        self,
        declared: DeclaredHierarchical,
        budget: Fraction,
        variables: Mapping[str, Variable],
        zeros: Sequence[Filter],
        findings: Findings,
    ) -> None:
        self._declared, self._budget, self._variables = declared, budget, variables
        self._zeros, self._findings = zeros, findings

    def rule(self, cubes: Sequence[Cube]) -> HierarchyRule:
        declared = self._declared
        geography = self._variables.get(declared.geography)
        if geography is None:
            remedy = alternatives(declared.geography, sorted(self._variables))
            raise mistake("", "noise.geography", f"unknown variable {declared.geography!r}", remedy)
        units = sorted({cube.unit for cube in cubes})
        if len(units) != 1:
            value = f"cubes of {', '.join(units)}"
            raise mistake("", "cubes", value, "count one unit; publish the other as a release of its own")
        known = _levels(geography)
        if isinstance(declared.strategy, str):
            depths, axes, strategy = self._built_in(declared.strategy, units[0], known)
        else:
            depths, axes, strategy = self._own(declared.strategy, known)
        totals = tuple(
            self._level(name, known, "noise.invariants.totals") for name in declared.invariants.totals
        )
        for name in totals:
            if name not in {one.level for one in strategy.levels}:
                value = f"{name} is no level of the strategy"
                raise mistake("", "noise.invariants.totals", value, "give it a share, or leave it out")
        if totals and declared.neighbours == "add-remove":
            value = 'exact totals with neighbours = "add-remove"'
            why = 'one person more changes them, so that no neighbours agree in them: set neighbours = "substitute"'
            raise mistake("", "noise.invariants.totals", value, why)
        return HierarchyRule(
            declared.strategy if isinstance(declared.strategy, str) else "",
            units[0],
            geography.name,
            depths,
            axes,
            strategy,
            totals,
            self._bounds(strategy, axes),
            tuple(one for one in Output if one.value in declared.outputs),
            declared.fit,
            declared.spine,
        )

    def _own(
        self, declared: DeclaredStrategy, known: Mapping[str, int]
    ) -> tuple[tuple[int, ...], tuple[tuple[str, str], ...], Strategy]:
        shares = {
            self._level(name, known, f"{KEY}.levels"): _share(share, f"{KEY}.levels.{name}")
            for name, share in declared.levels.items()
        }
        axes = tuple(self._entry(name) for name in declared.histogram)
        names = [variable for variable, _ in axes]
        if self._declared.geography in names:
            value = f"{self._declared.geography} is the geography"
            raise mistake(
                "", f"{KEY}.histogram", value, "leave it out: every level of it is a level of the tree"
            )
        queries: dict[str, dict[str, Fraction]] = {}
        groupings: dict[str, Grouping] = {}
        for level, asked in declared.queries.items():
            named = self._level(level, known, f"{KEY}.queries")
            if named not in shares:
                value = f"{level} has queries and no share"
                raise mistake("", f"{KEY}.levels", value, "give it a share, or leave its queries out")
            queries[named] = {}
            for query, share in asked.items():
                text = self._query(query, axes, groupings)
                if text in queries[named]:
                    raise mistake("", f"{KEY}.queries.{level}", f"{query} is asked twice", "keep it once")
                queries[named][text] = _share(share, f'{KEY}.queries.{level}."{query}"')
        if (bounds := self._declared.invariants.bounds) is not None:
            self._query(bounds.query, axes, groupings)
        histogram = self._histogram(axes, tuple(groupings.values()), ())
        return self._strategy(histogram, axes, shares, queries, known)

    def _built_in(
        self, name: str, unit: str, known: Mapping[str, int]
    ) -> tuple[tuple[int, ...], tuple[tuple[str, str], ...], Strategy]:
        if name not in (PL94_2020, PUERTO_RICO):
            remedy = f'write "{PL94_2020}" or "{PUERTO_RICO}", or a table with histogram, levels and queries'
            raise mistake("", KEY, repr(name), remedy)
        asked = f"{'persons' if unit == 'persons' else 'units'}-{'us' if name == PL94_2020 else 'pr'}"
        published = strategies.pl94_2020(asked)
        here = {_plain(level): level for level in known if level != ROOT}
        matched = {
            one.level: here[_plain(one.level)] for one in published.levels if _plain(one.level) in here
        }
        if not matched or published.levels[-1].level not in matched:
            value = f"{self._declared.geography} has the levels {', '.join(known)}"
            wanted = ", ".join(one.level for one in published.levels)
            remedy = f"name its breakdowns as the published levels, the last always: {wanted}"
            raise mistake("", KEY, value, remedy)
        part = strategies.pl94_2020(asked, tuple(matched))
        by_name = {name.casefold(): name for name in self._variables}
        for axis in part.histogram.axes:
            size = len(self._variables[by_name[axis.name]].codelist.leaves) if axis.name in by_name else None
            if size != axis.size:
                found = "is missing" if size is None else f"has {size} codes"
                remedy = f"{PL94_2020} has a variable of this name with {axis.size} codes, in its order"
                raise mistake("", f"variables.{axis.name.upper()}", found, remedy)
        names = {axis.name: by_name[axis.name] for axis in part.histogram.axes}
        axes = tuple((names[axis.name], "") for axis in part.histogram.axes)
        groupings: list[Grouping] = []
        for one in part.histogram.groupings:
            found_name = self._published_grouping(names[one.variable], one)
            names[one.name] = found_name
            groupings.append(strategies.Grouping(found_name, names[one.variable], one.groups))
        zeros = tuple(
            strategies.StructuralZero(tuple((names[variable], codes) for variable, codes in zero.categories))
            for zero in part.histogram.zeros
        )
        shares = {matched[one.level]: one.share for one in part.levels}
        queries = {
            matched[one.level]: {_renamed(query, names): share for query, share in one.queries}
            for one in part.levels
        }
        return self._strategy(self._histogram(axes, tuple(groupings), zeros), axes, shares, queries, known)

    def _published_grouping(self, variable: str, wanted: Grouping) -> str:
        """The breakdown of a variable that groups its codes as published."""
        fine = _axis(self._variables[variable], "")
        for axis in self._variables[variable].breakdowns.values():
            groups = groups_of(fine, axis)
            if (
                groups is not None
                and tuple(np.unique(groups, return_inverse=True)[1].tolist()) == wanted.groups
            ):
                return axis.full_name
        sizes = " + ".join(str(wanted.groups.count(group)) for group in sorted(set(wanted.groups)))
        remedy = f"{PL94_2020} measures {wanted.name}: add a breakdown of {sizes} codes, in their order"
        raise mistake("", f"variables.{variable}.breakdowns", f"none for {wanted.name}", remedy)

    def _strategy(
        self,
        histogram: Histogram,
        axes: tuple[tuple[str, str], ...],
        shares: Mapping[str, Fraction],
        queries: Mapping[str, Mapping[str, Fraction]],
        known: Mapping[str, int],
    ) -> tuple[tuple[int, ...], tuple[tuple[str, str], ...], Strategy]:
        declared = self._declared
        named = {depth: name for name, depth in known.items()}
        deepest = max(known[name] for name in shares)
        levels = [named.get(depth, f"{declared.geography}:{depth}") for depth in range(deepest + 1)]
        ordered = {level: shares.get(level, Fraction(0)) for level in levels}
        strategy = strategies.strategy_of(
            histogram,
            self._budget,
            ordered,
            queries,
            LawKind(declared.law),
            Neighbours(declared.neighbours),
        )
        return tuple(range(deepest + 1)), axes, strategy

    def _level(self, name: str, known: Mapping[str, int], key: str) -> str:
        """The name of a level as its breakdown has it."""
        plain = name.removeprefix(f"{self._declared.geography}.")
        if plain not in known and plain == ROOT:
            return next(level for level, depth in known.items() if depth == 0)
        if plain not in known:
            remedy = f"the levels of {self._declared.geography} are {', '.join(known)}"
            raise mistake("", key, f"unknown level {name!r}", remedy)
        return plain

    def _entry(self, name: str) -> tuple[str, str]:
        """A variable of the histogram, and its breakdown where one is named."""
        variable, _, level = name.partition(".")
        if variable not in self._variables:
            remedy = alternatives(variable, sorted(self._variables))
            raise mistake("", f"{KEY}.histogram", f"unknown variable {variable!r}", remedy)
        breakdowns = self._variables[variable].breakdowns
        if level and level not in breakdowns:
            remedy = alternatives(name, [axis.full_name for axis in breakdowns.values()])
            raise mistake("", f"{KEY}.histogram", f"unknown breakdown {name!r}", remedy)
        return variable, level

    def _query(self, query: str, axes: tuple[tuple[str, str], ...], groupings: dict[str, Grouping]) -> str:
        """A query by the names of the histogram; breakdowns that are coarser than its categories become groupings."""
        if query in ("total", "detailed"):
            return query
        parts = []
        for part in (one.strip() for one in query.split("*")):
            variable, _, level = part.partition(".")
            own = next((name for known, name in axes if known == variable), None)
            if own is None:
                known_names = ", ".join(name for name, _ in axes)
                remedy = f"use total, detailed or names joined by *, from {known_names} and their breakdowns"
                raise mistake("", f'{KEY}.queries "{query}"', f"{part!r} is not in the histogram", remedy)
            parts.append(
                variable if level in ("", own) else self._grouping(query, variable, own, level, groupings)
            )
        return "*".join(parts)

    def _grouping(
        self, query: str, variable: str, own: str, level: str, groupings: dict[str, Grouping]
    ) -> str:
        breakdowns = self._variables[variable].breakdowns
        key = f'{KEY}.queries "{query}"'
        if level not in breakdowns:
            remedy = alternatives(f"{variable}.{level}", [axis.full_name for axis in breakdowns.values()])
            raise mistake("", key, f"unknown breakdown '{variable}.{level}'", remedy)
        coarse = breakdowns[level]
        groups = groups_of(_axis(self._variables[variable], own), coarse)
        if groups is None:
            value = f"{coarse.full_name} divides categories of the histogram"
            raise mistake("", key, value, f"name the finer breakdown of {variable} in {KEY}.histogram")
        numbered = np.unique(groups, return_inverse=True)[1].reshape(-1).tolist()
        if len(set(numbered)) == len(numbered):
            return variable
        groupings[coarse.full_name] = strategies.Grouping(coarse.full_name, variable, tuple(numbered))
        return coarse.full_name

    def _histogram(
        self,
        axes: tuple[tuple[str, str], ...],
        groupings: tuple[Grouping, ...],
        published: tuple[StructuralZero, ...],
    ) -> Histogram:
        found = [flat(_axis(self._variables[variable], name)) for variable, name in axes]
        for rule in self._zeros:
            if self._declared.geography in rule.variables:
                value = f"{rule.canonical} depends on {self._declared.geography}, the tree of areas"
                remedy = "leave it out, or give noise.invariants.bounds with upper 0 in these areas"
                raise mistake("", "structural_zeros", value, remedy)
        zeros = [zero for rule in self._zeros for zero in _products(rule.term, found)]
        return strategies.Histogram(
            tuple(strategies.Axis(axis.variable, len(axis) - 1) for axis in found),
            groupings,
            tuple(dict.fromkeys((*published, *zeros))),
        )

    def _bounds(self, strategy: Strategy, axes: tuple[tuple[str, str], ...]) -> BoundsRule | None:
        declared = self._declared.invariants.bounds
        if declared is None:
            return None
        path = self._findings.folder / declared.file
        try:
            content = path.read_bytes()
        except OSError:
            value = f"no file {declared.file!r}"
            raise mistake(
                "", "noise.invariants.bounds.file", value, "correct the path of the bounds"
            ) from None
        query = self._query(declared.query, axes, {})
        strategy.histogram.marginal(query)
        return BoundsRule(query, str(path), hashlib.sha256(content).hexdigest())


def _products(term: Term, axes: Sequence[Breakdown]) -> Iterator[StructuralZero]:
    """The structural zeros of a filter: products of categories all of whose codes pass.

    Conditions on variables outside of the histogram cover none of its cells.
    """
    for product in _alternatives(term, {axis.variable: axis for axis in axes}):
        if all(product.values()):
            yield strategies.StructuralZero(
                tuple(sorted((name, tuple(sorted(codes))) for name, codes in product.items()))
            )


def _alternatives(term: Term, axes: Mapping[str, Breakdown]) -> list[dict[str, frozenset[int]]]:
    if isinstance(term, Comparison):
        if term.variable not in axes:
            return []
        passing = np.ones(len(axes[term.variable]), dtype=bool)
        np.logical_and.at(passing, axes[term.variable].node_of_leaf, term.lookup)
        return [{term.variable: frozenset((np.flatnonzero(passing[1:])).tolist())}]
    found = [_alternatives(part, axes) for part in term.terms]
    if term.word == "or":
        return [product for part in found for product in part]
    joined: list[dict[str, frozenset[int]]] = [{}]
    for part in found:
        joined = [_both(one, other) for one in joined for other in part]
    return joined


def _both(
    one: Mapping[str, frozenset[int]], other: Mapping[str, frozenset[int]]
) -> dict[str, frozenset[int]]:
    names = {*one, *other}
    return {
        name: one.get(name, other.get(name, frozenset())) & other.get(name, one.get(name, frozenset()))
        for name in names
    }


def _levels(geography: Variable) -> dict[str, int]:
    """The breakdowns of a geography that cut its codelist at one depth, coarse ones first; the root is one of them."""
    tree = geography.codelist
    found: dict[str, int] = {}
    for depth in range(tree.depth + 1):
        codes = tuple(code for code, at in zip(tree.codes, tree.depths, strict=True) if at <= depth)
        for name, axis in geography.breakdowns.items():
            if axis.codes[1:] == codes and depth not in found.values():
                found[name] = depth
    return found if 0 in found.values() else {ROOT: 0, **found}


def _share(value: Amount, key: str) -> Fraction:
    try:
        return fraction(str(value))
    except ValueError:
        raise mistake("", key, repr(value), 'write a share such as "1/3" or 0.25') from None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _renamed(query: str, names: Mapping[str, str]) -> str:
    return query if query in ("total", "detailed") else "*".join(names[part] for part in query.split("*"))


def _check_cubes(
    rule: HierarchyRule, cubes: Sequence[Cube], variables: Mapping[str, Variable], findings: Findings
) -> None:
    """Every cube must be a sum of the histogram of the smallest areas."""
    fine = {rule.geography: rule.area_axis(variables[rule.geography].codelist)}
    fine |= {axis.variable: axis for axis in rule.category_axes(variables)}
    for cube in cubes:
        key = f"cube {cube.id}"
        if cube.base or cube.count or cube.weight:
            what = "base" if cube.base else "count" if cube.count else "weight"
            findings.add(key, f"has a {what}", "hierarchical tables are sums of one histogram: leave it out")
        for axis in cube.axes:
            known = ", ".join(fine)
            if axis.variable not in fine:
                findings.add(key, f"{axis.variable} is not in the histogram", f"cross only {known}")
            elif groups_of(fine[axis.variable], axis) is None:
                value = f"{axis.full_name} is finer than what is measured"
                findings.add(
                    key, value, f"use a coarser breakdown, or measure a finer one of {axis.variable}"
                )
