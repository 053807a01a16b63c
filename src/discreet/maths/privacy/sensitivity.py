"""How far neighbours differ in a cross-tabulation, and how a budget is split over cross-tabulations.

A cross-tabulation is perturbed once and then reused by every cube that contains it: a set of breakdowns over a
population base. Here it is any hashable signature. A record lies in at most one cell of each, so that what neighbours
can change is summed over the distinct signatures (Rinott et al. 2018, section 7: d = 2^t - 1 for a t-way table with
all its margins but the total).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeVar

from discreet.errors import BudgetExceeded, Mistakes, Problem, mistake
from discreet.maths.privacy.accounting import Neighbours, exact

Signature = TypeVar("Signature", bound=Hashable)
Margin = TypeVar("Margin", bound=Hashable)
Level = TypeVar("Level", bound=Hashable)


def distinct(signatures: Iterable[Signature]) -> tuple[Signature, ...]:
    """Each cross-tabulation once, in the order in which it is first met."""
    return tuple(dict.fromkeys(signatures))


def with_margins(
    axes: Sequence[Sequence[Level]], base: Hashable
) -> tuple[tuple[frozenset[Level], Hashable], ...]:
    """The cross-tabulations of a cube: each axis at one of its levels or summed out; the total comes last.

    The levels of an axis are its breakdowns from fine to coarse, without the total: SEX has one, a geography of LAU,
    NUTS 3 and NUTS 2 has three. With one level an axis, t axes give 2^t signatures.
    """
    choices = (((level,) for level in axis) for axis in axes)
    crossed = product(*([*levels, ()] for levels in choices))
    return tuple((frozenset(level for part in parts for level in part), base) for parts in crossed)


@dataclass(frozen=True)
class Reach:
    """How far neighbours differ in a cross-tabulation: sums of absolute and squared differences, the largest one."""

    l1: int
    l2_squared: int
    largest: int


@dataclass(frozen=True)
class Change:
    """How many records of a cross-tabulation one person or household changes, at most, when it comes or goes.

    ``came`` records come with it or go with it, ``moved`` ones leave a cell for another, ``crossed`` ones begin or
    cease to be counted.
    """

    came: int = 0
    moved: int = 0
    crossed: int = 0

    def reach(self, neighbours: Neighbours) -> Reach:
        """The largest differences between the counts of neighbours.

        One that comes or goes changes counts by c + 2m + e in all; the squares are largest where all is in one cell
        and all that moves goes to one other: (c + m + e)^2 + m^2. With substitution one goes and another comes: twice
        the sum, and what moves or crosses may do so alike, but what goes and what comes differ in sign:
        (c + 2m + 2e)^2 + (c + 2m)^2.
        """
        times = neighbours.cells
        from_one = self.came + times * (self.moved + self.crossed)
        to_another = (times - 1) * self.came + times * self.moved
        return Reach(
            times * (self.came + 2 * self.moved + self.crossed), from_one**2 + to_another**2, from_one
        )


def refuse_overspending(budget: Fraction, shares: Mapping[Signature, Fraction]) -> None:
    """Raise where the shares together exceed the budget."""
    spent = sum(shares.values(), Fraction(0))
    if spent > budget:
        raise BudgetExceeded(f"the shares sum to {spent}, the budget is {budget}; lower the shares")


def split_evenly(total: Fraction, signatures: Iterable[Signature]) -> dict[Signature, Fraction]:
    """Give each distinct cross-tabulation the same part of the total."""
    once = distinct(signatures)
    if not once:
        raise mistake("", "budget", "nothing to split it over", "declare a cube")
    return dict.fromkeys(once, _positive(total) / len(once))


def split_by_margin(
    total: Fraction, margins: Mapping[Signature, Margin], shares: Mapping[Margin, Fraction]
) -> dict[Signature, Fraction]:
    """Give each margin its share, divided evenly among its cross-tabulations (Rinott et al. section 7).

    A margin is any label by which the caller groups the cross-tabulations: the number of axes, or a name. A share of
    0 is possible: such cross-tabulations are not measured.
    """
    sizes = Counter(margins.values())
    _check(shares, sizes, "margin")
    whole = _positive(total)
    return {signature: whole * shares[margin] / sizes[margin] for signature, margin in margins.items()}


def split_by_table(
    total: Fraction, tables: Mapping[str, Iterable[Signature]], shares: Mapping[str, Fraction]
) -> dict[Signature, Fraction]:
    """Give each table its share, divided evenly among its cross-tabulations.

    A cross-tabulation in several tables is still perturbed once, with the sum of its parts.
    """
    _check(shares, tables, "table")
    split: dict[Signature, Fraction] = {}
    for table, signatures in tables.items():
        if not shares[table]:
            split.update({signature: split.get(signature, Fraction(0)) for signature in signatures})
            continue
        for signature, part in split_evenly(_positive(total) * shares[table], signatures).items():
            split[signature] = split.get(signature, Fraction(0)) + part
    return split


def _positive(total: Fraction) -> Fraction:
    if exact(total, "budget") == 0:
        raise mistake("", "budget", "0", "give a budget above 0")
    return total


def _check(shares: Mapping[Margin, Fraction], known: Iterable[Margin], what: str) -> None:
    names = list(dict.fromkeys(known))
    problems = [
        Problem("", f"{what} {name}", f"no such {what}", f"choose from {', '.join(map(str, names))}")
        for name, share in shares.items()
        if exact(share, f"share of {what} {name}") and name not in names
    ]
    problems += [
        Problem(
            "",
            f"{what} {name}",
            "has no share of the budget",
            "give it one; a share of 0 leaves it out of the release",
        )
        for name in names
        if name not in shares
    ]
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        problems.append(
            Problem("", f"shares by {what}", f"they sum to {total}", "make them sum to 1 exactly")
        )
    if problems:
        raise Mistakes(problems)
