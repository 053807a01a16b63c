"""Whose attribute a variable is: it decides how far one person or household reaches into a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from discreet.programme.section import Declared

HolderName = Literal["person", "family", "household", "dwelling"]


class Holder(StrEnum):
    """Who has an attribute, and shares it with the others of the same family, household or dwelling."""

    PERSON = "person"
    FAMILY = "family"
    HOUSEHOLD = "household"
    DWELLING = "dwelling"


HOLDERS = {
    "persons": Holder.PERSON,
    "families": Holder.FAMILY,
    "households": Holder.HOUSEHOLD,
    "dwellings": Holder.DWELLING,
}  # unit -> who one of it is


class DeclaredAttribute(Declared):
    """Whose attribute a column of 0 and 1 is."""

    of: HolderName | None = None
    fixed: bool = False
    place: Literal[False] | None = None


@dataclass(frozen=True)
class Attribute:
    """Whose attribute a variable is; a fixed one keeps its value for all who stay when someone comes or goes."""

    of: Holder | None = None
    fixed: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether anything is known of it."""
        return self.of is not None or self.fixed


UNDECLARED = Attribute()


@dataclass(frozen=True)
class Attributes:
    """What a programme declares of its variables and of the columns that it counts."""

    variables: Mapping[str, Attribute] = field(default_factory=dict)
    flags: Mapping[str, Attribute] = field(default_factory=dict)  # 0/1 column -> whose it is
    fixed_families: bool = False  # who belongs to which family does not change for the others


def attribute(of: str | None, fixed: bool) -> Attribute:
    """An attribute as it is written in the programme."""
    return Attribute(None if of is None else Holder(of), fixed)
