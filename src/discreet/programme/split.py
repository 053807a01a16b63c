"""``[noise.split]``: how a budget is divided over cross-tabulations, and which of them are published.

A cross-tabulation is named by its levels, ``SEX x GEO.COUNTY`` or ``SEX x GEO:2``: a variable that has only one level
in the cubes may be written without it, ``total`` is the one without levels, ``interior`` means the finest one of every
cube. One that has no share is not measured. It is not published either, unless it is a public total or, with ``sums``,
a sum of published finest cells (Rinott et al. 2018, section 7: margins by summation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import prod
from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from discreet.errors import mistake
from discreet.maths.exact_numbers import fraction
from discreet.maths.privacy.sensitivity import split_by_margin, split_by_table, split_evenly
from discreet.programme.cube import Cube, Depths, Levels, Shown, Signature, crossed, signatures
from discreet.programme.population import UnitName
from discreet.programme.section import Amount, Declared, Text, text_or_table

INTERIOR, REST, WHOLE = "interior", "rest", "total"
_BETWEEN = " x "


class DeclaredSplit(Declared):
    """Shares of the budget by one rule, which cross-tabulations are measured, and whether others are sums of them."""

    by_axes: dict[str, Amount] | None = None
    by_table: dict[str, Amount] | None = None
    by_margin: dict[str, Amount] | None = None
    by_level: dict[str, Amount] | None = None
    halving: list[Text] | None = None
    margins: Annotated[
        Annotated[Literal["all", "none"], Tag("|text")] | Annotated[list[Text], Tag("|table")],
        Discriminator(text_or_table),
    ] = "all"
    sums: bool = False


class Split(StrEnum):
    """How the budget is divided over the cross-tabulations."""

    EVEN = "even"
    BY_AXES = "by_axes"
    BY_TABLE = "by_table"
    BY_MARGIN = "by_margin"
    BY_LEVEL = "by_level"
    HALVING = "halving"


@dataclass(frozen=True)
class BudgetRule:
    """The whole budget (epsilon, or rho for the discrete Gaussian), how it is divided and over what."""

    total: Fraction
    split: Split = Split.EVEN
    shares: Mapping[str, Fraction] = field(default_factory=dict)  # number of axes, table, .. -> share
    margins: tuple[str, ...] | None = None  # the names of what is measured; None: everything
    sums: bool = False  # publish what is not measured as sums of the finest cells
    public: Mapping[str, int] = field(default_factory=dict)  # unit -> a total that is known and not measured

    @property
    def spent(self) -> Fraction:
        """What the shares use up: all of the budget, except by halving, which always leaves the last half."""
        return self.total * sum(self.shares.values(), Fraction(0)) if self.shares else self.total


SHARES = (Split.BY_AXES, Split.BY_TABLE, Split.BY_MARGIN, Split.BY_LEVEL)


def budget_of(total: Fraction, split: str | DeclaredSplit, totals: Mapping[UnitName, int]) -> BudgetRule:
    """The declared rule."""
    public: dict[str, int] = dict(totals.items())
    if isinstance(split, str):
        return BudgetRule(total, public=public)
    margins = (
        {"all": None, "none": (INTERIOR,)}[split.margins]
        if isinstance(split.margins, str)
        else tuple(split.margins)
    )
    rule, shares = Split.EVEN, {}
    if split.halving is not None:
        rule = Split.HALVING
        shares = {name: Fraction(1, 2**place) for place, name in enumerate(split.halving, start=1)}
    for one in SHARES:
        if (given := getattr(split, one.value)) is not None:
            rule, shares = one, {name: Fraction(str(share)) for name, share in given.items()}
    return BudgetRule(total, rule, shares, margins, split.sums, public)


def refused_split(split: DeclaredSplit) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the declared shares by themselves: (key, value, remedy)."""
    names = [one.value for one in (*SHARES, Split.HALVING)]
    given = [name for name in names if getattr(split, name) is not None]
    chosen = split.margins != "all" or split.sums
    if len(given) > 1 or not (given or chosen):
        value = "not exactly one of " + ", ".join(names[:-1]) + " and halving" if given else "is empty"
        yield "split", value, 'write { by_axes = { "0" = "1/2", "1" = "1/2" } }'
        return
    if split.margins == []:
        yield "split.margins", "an empty list", 'name what is measured, or write "none" for the interior only'
    for name in given:
        shares = getattr(split, name)
        if not shares:
            yield "split", f"{name} is empty", 'write shares such as { "1" = "1/2", "2" = "1/2" }'
        elif isinstance(shares, list):
            if len(set(shares)) < len(shares):
                yield "split.halving", "a name occurs twice", "keep each once"
        elif not all(_is_share(share) for share in shares.values()):
            yield (
                "split",
                "a share that is not a number from 0 to 1",
                'write shares such as 0.25, "1/4" or "0"',
            )
        elif (total := sum(Fraction(str(share)) for share in shares.values())) != 1:
            yield "split", f"the shares sum to {total}", "make them sum to 1 exactly"


def _is_share(value: object) -> bool:
    try:
        return 0 <= fraction(str(value)) <= 1
    except ValueError:
        return False


def allotted(rule: BudgetRule, cubes: Sequence[Cube]) -> dict[Signature, Fraction]:
    """The part of the budget of each measured cross-tabulation; together they are what is spent, exactly."""
    known = known_levels(cubes)
    every = tuple(one for one in _chosen(rule, cubes, known) if one not in public_totals(rule))
    match rule.split:
        case Split.EVEN:
            found = split_evenly(rule.total, every)
        case Split.BY_AXES:
            axes = {signature: str(len(signature.levels)) for signature in every}
            found = split_by_margin(rule.total, axes, rule.shares)
        case Split.BY_TABLE:
            kept = set(every)
            tables = {cube.id: [one for one in signatures([cube]) if one in kept] for cube in cubes}
            found = split_by_table(rule.total, tables, rule.shares)
        case Split.BY_LEVEL:
            found = split_by_margin(rule.total, *_by_level(rule, every, known))
        case Split.BY_MARGIN | Split.HALVING:
            found = split_by_margin(rule.spent, *_by_margin(rule, every, known))
    return {signature: share for signature, share in found.items() if share}


def public_totals(rule: BudgetRule) -> dict[Signature, int]:
    """The totals that are known beforehand: published as declared, and never measured."""
    return {Signature(unit, "", "", ()): total for unit, total in rule.public.items()}


@dataclass(frozen=True)
class KnownLevels:
    """The levels of the variables of some cubes."""

    depths: Mapping[str, int]  # variable -> its deepest level
    named: Mapping[
        str, tuple[str, int]
    ]  # GEO.COUNTY -> (GEO, 2); of breakdowns all of whose codes end at one depth

    def numbered(self, name: str) -> str:
        """A level by its number, whichever way it is written."""
        return "{}:{}".format(*self.named[name]) if name in self.named else name

    def of(self, variable: str) -> str:
        """The levels of a variable, for a message."""
        names = {place: name for name, place in self.named.items()}
        levels = ((variable, level) for level in range(1, self.depths[variable] + 1))
        return ", ".join(names.get(one, "{}:{}".format(*one)) for one in levels)


def known_levels(cubes: Sequence[Cube]) -> KnownLevels:
    """The levels that the cubes have, by number and by name."""
    depths: dict[str, int] = {}
    named: dict[str, tuple[str, int]] = {}
    for axis in (axis for cube in cubes for axis in cube.axes):
        deepest = int(axis.depths.max())
        depths[axis.variable] = max(depths.get(axis.variable, 0), deepest)
        if (axis.depths[axis.finest] == deepest).all():
            for level, name in enumerate(axis.levels, start=1):
                if name != axis.variable:  # which of its levels a variable means would have to be guessed
                    named.setdefault(name, (axis.variable, level))
    return KnownLevels(depths, named)


def _chosen(rule: BudgetRule, cubes: Sequence[Cube], known: KnownLevels) -> tuple[Signature, ...]:
    """The cross-tabulations that ``margins`` names."""
    every = signatures(cubes)
    if rule.margins is None:
        return every
    names = {levels_of(name, known, "margins") for name in rule.margins if name != INTERIOR}
    interior = (
        {cube.signature(one) for cube in cubes for one in cube.interior}
        if INTERIOR in rule.margins
        else set()
    )
    found = tuple(one for one in every if one.levels in names or one in interior)
    for levels in names - {one.levels for one in found}:
        raise mistake(
            "", "noise.split.margins", crossed(levels), "no cube contains it; remove it, or add a cube"
        )
    return found


def levels_of(name: str, known: KnownLevels, key: str) -> Levels:
    """The levels of a named cross-tabulation."""
    if name == WHOLE:
        return ()
    found: dict[str, int] = {}
    for part in name.split(_BETWEEN):
        variable, _, depth = known.numbered(part.strip()).partition(":")
        deepest = known.depths.get(variable)
        if deepest is None or variable in found:
            names = ", ".join(sorted(known.depths))
            raise mistake(
                "", f"noise.split.{key}", repr(name), f'write "A x B:2" with each of {names} at most once'
            )
        if not depth and deepest == 1:
            depth = "1"
        if not depth.isdecimal() or not 1 <= int(depth) <= deepest:
            remedy = f"{variable} has the levels {known.of(variable)}"
            raise mistake("", f"noise.split.{key}", repr(name), remedy)
        found[variable] = int(depth)
    return tuple(sorted(found.items()))


Labelled = tuple[dict[Signature, str], dict[str, Fraction]]


def _by_margin(rule: BudgetRule, every: Iterable[Signature], known: KnownLevels) -> Labelled:
    """Signature -> its name or the rest, and the shares by these names, which sum to 1."""
    key = rule.split.value
    shares: dict[str, Fraction] = {}
    for name, share in rule.shares.items():
        text = REST if name == REST else crossed(levels_of(name, known, key))
        if text in shares:
            raise mistake("", f"noise.split.{key}", repr(name), "it is named twice: keep it once")
        shares[text] = share / rule.spent * rule.total
    texts = ((signature, crossed(signature.levels)) for signature in every)
    return {one: text if text in shares else REST for one, text in texts}, shares


def _by_level(rule: BudgetRule, every: Iterable[Signature], known: KnownLevels) -> Labelled:
    """Signature -> its level of the one variable that the shares name; level 0 is all areas together."""
    shares = {known.numbered(name): share for name, share in rule.shares.items()}
    variables = {name.partition(":")[0] for name in shares}
    variable = next(iter(variables))
    if len(variables) > 1 or variable not in known.depths:
        value, names = ", ".join(sorted(variables)), ", ".join(sorted(known.depths))
        raise mistake(
            "", "noise.split.by_level", value, f"name the levels of one of {names}, such as GEO:0, GEO:1"
        )
    if len(shares) < len(rule.shares):
        raise mistake("", "noise.split.by_level", variable, "a level is named twice: keep it once")
    labels = {one: f"{variable}:{dict(one.levels).get(variable, 0)}" for one in every}
    return labels, shares


def with_shown(rule: BudgetRule, cubes: Sequence[Cube]) -> tuple[Cube, ...]:
    """The cubes with what of each is published: measured, sums, public totals; unchanged where all is measured."""
    if rule == BudgetRule(rule.total):
        return tuple(cubes)
    measured, fixed = allotted(rule, cubes).keys(), public_totals(rule).keys()
    for total in fixed - {cube.signature((0,) * len(cube.axes)) for cube in cubes}:
        remedy = f"add a cube of all {total.unit}, without base and count, or remove it"
        raise mistake("", "noise.public_totals", total.unit, remedy)
    if not fixed and all(one in measured for one in signatures(cubes)):
        return tuple(cubes)
    sums = _sources(cubes, measured, fixed) if rule.sums else {}
    found = []
    for cube in cubes:
        signature_of = {depths: cube.signature(depths) for depths in cube.depths}
        shown = Shown(
            frozenset(depths for depths, one in signature_of.items() if one in measured),
            frozenset(depths for depths, one in signature_of.items() if sums.get(one) == cube.id),
            frozenset(depths for depths, one in signature_of.items() if one in fixed),
        )
        if not shown.measured:
            remedy = "give one of its cross-tabulations a share, or leave the cube out"
            raise mistake("", f"cube {cube.id}", "none of its cells would be measured", remedy)
        found.append(replace(cube, shown=shown))
    return tuple(found)


def _sources(
    cubes: Iterable[Cube], measured: Iterable[Signature], fixed: Iterable[Signature]
) -> dict[Signature, str]:
    """What is published as a sum -> the one cube that adds it up, from the fewest cells: no cell has two values."""
    known, best = {*measured, *fixed}, dict[Signature, tuple[int, str]]()
    for cube in cubes:
        if any(cube.signature(depths) not in known for depths in cube.interior):
            remedy = f'sums add up the finest cells: give them a share, or add "{INTERIOR}" to margins'
            raise mistake("", f"cube {cube.id}", "its finest cells are not measured", remedy)
        for depths in cube.depths:
            one = cube.signature(depths)
            cells = 0 if one in known else summed_cells(cube, depths)
            if cells and (one not in best or cells < best[one][0]):
                best[one] = (cells, cube.id)
    return {one: cube for one, (_, cube) in best.items()}


def summed_cells(cube: Cube, depths: Depths) -> int:
    """How many finest cells a cell of a cross-tabulation adds up, at most."""
    return prod(axis.most_below[depth] for axis, depth in zip(cube.axes, depths, strict=True))
