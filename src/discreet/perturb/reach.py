"""How far one person or household reaches into a cross-tabulation, by whose attributes its variables are.

Neighbours are defined in docs/explanation/neighbours.md. Households and dwellings are given: a person who comes or goes
joins or leaves one household, and no one else changes theirs. What follows from who lives there may become anything:
the attributes of the household, its families and its dwelling, those of all members that derive from them, and which
families there are, unless they are declared fixed. What is not declared is refused where a guarantee is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import Mistakes, Problem
from discreet.maths.privacy.sensitivity import Change, Reach
from discreet.programme.attributes import UNDECLARED, Attribute, Holder
from discreet.programme.cube import Signature
from discreet.programme.noise import Claim, PrivateNoise, Protects

_CODE = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r"[A-Za-z]\w*")
TOGETHER = (Holder.HOUSEHOLD, Holder.DWELLING)  # all families of a household share what is theirs


def reach(signature: Signature, rule: PrivateNoise) -> Reach:
    """How much one person or household changes a cross-tabulation; a mistake where that is not declared."""
    return change(signature, rule).reach(rule.neighbours)


def change(signature: Signature, rule: PrivateNoise) -> Change:
    """The most records of a cross-tabulation that change when one person or household comes or goes.

    Where no guarantee is claimed, what is not declared is taken as unchanged for everyone else.
    """
    problems = tuple(neighbour_problems([signature], rule, ""))
    if problems:
        raise Mistakes(problems)
    found, members = used(signature, rule), rule.largest_household or 1
    by_household = rule.protects is Protects.HOUSEHOLD
    match signature.unit:
        case "persons":
            return Change(came=members) if by_household else _with_others(found, Change(came=1), members)
        case "families":
            return Change(came=members) if by_household else _families(found, rule, members)
        case "households":
            return Change(came=1) if by_household else _alone(found)
        case _:
            return _alone(found)


def _alone(found: Used) -> Change:
    """One record moves, or begins or ceases to be counted; or it comes or goes, and nothing else can change."""
    if any(not one.fixed for one in found.axes.values()):
        return Change(moved=1)
    if any(not one.fixed for one in found.deciding.values()):
        return Change(crossed=1)
    return Change(came=1)


def _with_others(found: Used, own: Change, members: int) -> Change:
    """What happens to one record itself, and to those of the others who share a derived attribute with it."""
    if any(_is_derived(one) for one in found.axes.values()):
        return Change(came=1, moved=members - 1)
    if any(_is_derived(one) for one in found.deciding.values()):
        return Change(came=1, crossed=members - 1)
    return own


def _is_derived(one: Attribute) -> bool:
    """Whether it can change for others than the one who comes or goes.

    A person may change which families a household has: what belongs to a family reaches the whole household.
    """
    return not one.fixed and one.of not in (None, Holder.PERSON)


def _families(found: Used, rule: PrivateNoise, members: int) -> Change:
    """All families of the household may change; where families are fixed, one changes.

    A family has at least one member: there are at most M with the person and M - 1 without, or the reverse.
    """
    if rule.attributes.fixed_families or rule.largest_household is None:
        return _with_others(_together(found), _alone(found), members)
    if all(one.fixed and one.of in TOGETHER for one in found.axes.values()):
        return Change(came=1, crossed=members - 1)
    return Change(came=1, moved=members - 1)


def _together(found: Used) -> Used:
    """Only what all families of a household share."""
    axes, deciding = (
        {name: one for name, one in part.items() if one.of in TOGETHER}
        for part in (found.axes, found.deciding)
    )
    return Used(axes, deciding)


@dataclass(frozen=True)
class Used:
    """The attributes that a cross-tabulation uses: its axes below the total, and what decides who is counted."""

    axes: Mapping[str, Attribute]
    deciding: Mapping[str, Attribute]  # variables of the base, and a counted column as "column NAME"

    @property
    def every(self) -> dict[str, Attribute]:
        """Both."""
        return {**self.axes, **self.deciding}


def used(signature: Signature, rule: PrivateNoise) -> Used:
    """The attributes that a cross-tabulation uses."""
    known = rule.attributes
    # a user's grouping is named by its variable and a digest
    axes = [variable.partition("~")[0] for variable, _ in signature.levels]
    flags = {f"column {name}": known.flags.get(name, UNDECLARED) for name in (signature.count,) if name}
    return Used(
        {name: known.variables.get(name, UNDECLARED) for name in axes},
        {name: known.variables.get(name, UNDECLARED) for name in _names(signature.base)} | flags,
    )


def fixed_variables(every: Iterable[Signature], rule: PrivateNoise) -> tuple[str, ...]:
    """The attributes of some cross-tabulations that neighbours have in common by definition, sorted."""
    found = {
        name
        for signature in every
        for name, one in used(signature, rule).every.items()
        if one.fixed and _would_change(signature.unit, one, rule)
    }
    return tuple(sorted(name.removeprefix("column ") for name in found))


def _would_change(unit: str, one: Attribute, rule: PrivateNoise) -> bool:
    """Whether an attribute could change for those who stay if it were not fixed."""
    if unit == "persons" and one.of is Holder.PERSON:
        return False
    return unit == "dwellings" or rule.protects is Protects.PERSON or one.of in (None, Holder.DWELLING)


def has_fixed_families(every: Iterable[Signature], rule: PrivateNoise) -> bool:
    """Whether it matters that no one else changes family: families are counted, and a person is protected."""
    return (
        rule.attributes.fixed_families
        and rule.protects is Protects.PERSON
        and any(signature.unit == "families" for signature in every)
    )


@lru_cache(maxsize=4096)
def _names(base: str) -> tuple[str, ...]:
    """The variables of a base in normal form, however long: its words, without codes and connectives."""
    return tuple(sorted(set(_WORD.findall(_CODE.sub("", base))) - {"in", "not", "and", "or"}))


def neighbour_problems(every: Iterable[Signature], rule: PrivateNoise, file: str) -> Iterator[Problem]:
    """What must be declared before anything can be guaranteed; nothing where no guarantee is claimed."""
    if rule.claim is Claim.NONE:
        return
    undeclared: dict[str, None] = {}
    dwelling: dict[str, None] = {}
    derived: dict[str, None] = {}
    families = False
    for signature in every:
        found = used(signature, rule)
        undeclared |= dict.fromkeys(name for name, one in found.every.items() if not one.is_declared)
        if signature.unit != "dwellings":
            dwelling |= dict.fromkeys(name for name, one in found.every.items() if _is_of_dwelling(one))
        if rule.largest_household is None and rule.protects is Protects.PERSON:
            families |= signature.unit == "families" and not rule.attributes.fixed_families
            derived |= dict.fromkeys(_need_members(signature, found))
    yield from _undeclared(sorted(undeclared), file)
    if dwelling:
        value = f"{_listed(dwelling)} of a dwelling may change for all who live in it, and their number is not declared"
        remedy = 'declare fixed = true, or of = "household" where a dwelling has one household'
        yield Problem(file, "variables", value, remedy)
    state = "state how many members the largest household has, or declare "
    if derived:
        value = f"is missing: one person can change {_listed(derived)} for all members of a household"
        yield Problem(file, "noise.largest_household", value, f"{state}fixed = true, which a release states")
    if families:
        value = "is missing: one person can change all families of a household"
        remedy = f"{state}population.fixed_families = true, which a release states"
        yield Problem(file, "noise.largest_household", value, remedy)


def _is_of_dwelling(one: Attribute) -> bool:
    return one.of is Holder.DWELLING and not one.fixed


def _need_members(signature: Signature, found: Used) -> Iterator[str]:
    """The attributes for whose sake the size of a household must be known."""
    if signature.unit == "persons":
        yield from (name for name, one in found.every.items() if _is_derived(one))
    elif signature.unit == "families":
        yield from (name for name, one in _together(found).every.items() if _is_derived(one))


def _undeclared(names: list[str], file: str) -> Iterator[Problem]:
    variables = [name for name in names if not name.startswith("column ")]
    columns = [name.partition(" ")[2] for name in names if name.startswith("column ")]
    if variables:
        value = f"whose attribute is {_listed(variables)}? A guarantee depends on it"
        remedy = 'add of = "person" where it is no one else\'s, else of = "family", "household" or "dwelling"'
        yield Problem(file, "variables", value, remedy)
    for column in columns:
        value = f"whose attribute is the counted column {column!r}? A guarantee depends on it"
        yield Problem(file, "population.flags", value, f'add flags = {{ {column} = {{ of = "person" }} }}')


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
