"""Facts of the columns of a table, as ``discreet init`` and notebooks find them: what a proposal may rest on.

Nothing here reads a file: ``population/look.py`` measures the facts, ``programme/inference.py`` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from functools import cached_property

MOST_PLACES = 300_000  # distinct values that are listed; a column with more has no codes
_NUMBER = re.compile(r"\s*([+-]?\d{1,18})(?:[.,](\d+))?\s*")
_YEAR_FIRST = re.compile(r"([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})([T ][0-9:.+\-Z ]*)?")
_DAY_FIRST = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./]\d{1,2}[./]\d{1,2}"
)
_MOST_OTHERS = 5  # texts among numbers, such as N or a full stop


class Kind(Enum):
    """What the values of a column are."""

    TEXT = "text"
    WHOLE = "whole numbers"
    DECIMAL = "decimals"
    DATE = "dates"
    OTHER = "other"


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column."""

    low: float
    high: float
    deciles: tuple[float, ...]  # the nine between low and high
    round: float  # share of the numbers from 100 that are multiples of 10, by records
    zeros: float  # share of zeros
    mean: float
    padded: bool = False  # written with leading zeros: codes, not numbers
    others: tuple[str, ...] = ()  # the few values that are no numbers, such as N

    @property
    def median(self) -> float:
        """The middle."""
        return self.deciles[4]


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """Facts of one column."""

    name: str
    kind: Kind
    values: tuple[str, ...] | None  # distinct; None when there are too many to list
    distinct: int
    missing: float = 0.0  # share of records without a value
    unique: bool = False  # every record has a value, all different
    largest: float = 0.0  # share of the commonest value among the records that have one
    repeated: float = 1.0  # share of the records whose value others have too
    runs: int = 0  # stretches of equal values in the order of the file
    numbers: Numbers | None = None  # of whole numbers and decimals
    days: tuple[date, date] | None = None  # first and last
    readable: bool = True  # dates are typed, or written as 1974-03-01 or 01.03.1974

    @property
    def is_constant(self) -> bool:
        """Whether all records have the same value."""
        return self.distinct <= 1

    @cached_property
    def is_code_like(self) -> bool:
        """Whether the values look like codes rather than names: short, without blanks."""
        values = self.values or ()
        return all(len(value) <= 24 and " " not in value.strip() for value in values)

    @cached_property
    def lengths(self) -> frozenset[int]:
        """The numbers of characters that its values have."""
        return frozenset(map(len, self.values or ()))


@dataclass(frozen=True)
class GroupFacts:
    """What the records with the same value of a column, such as a household's id, have in common."""

    mean: float  # records per value, without a value that stands for "none"
    usual: int  # 99 of 100 groups have at most so many records
    constant: frozenset[str]  # columns with one value in each group
    numbering: tuple[str, ...] = ()  # columns that number the records of each group


@dataclass(frozen=True)
class TableFacts:
    """Facts of one table."""

    unit: str
    source: str  # as the programme will name it
    records: int
    columns: tuple[ColumnFacts, ...]
    within: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    # (coarse, fine) -> value of the fine column -> value of the coarse one that always occurs with it
    predicts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # (x, y) -> how far x predicts y, where that is worth a mention and neither is a function of the other
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)  # column that may be a household's id
    counted: tuple[str, ...] = ()  # numbers without which every line has a different combination of values
    dialect: Mapping[str, str] = field(default_factory=dict)
    # how a CSV file is written where that is unusual: delimiter, encoding and decimal, as a source declares them

    def column(self, name: str) -> ColumnFacts | None:
        """The facts of a column, if the table has it."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, ColumnFacts]:
        return {column.name: column for column in self.columns}

    def follows(self, coarse: str, fine: str) -> bool:
        """Whether the coarse column is a function of the fine one."""
        return (coarse, fine) in self.within

    def same(self, one: str, other: str) -> bool:
        """Whether two columns are functions of each other."""
        return self.follows(one, other) and self.follows(other, one)


def number_of(text: str) -> float | None:
    """The number that a text is, with a decimal point or comma; None if it is none."""
    found = _NUMBER.fullmatch(text)
    return float(f"{found[1]}.{found[2] or 0}") if found else None


def kind_of_texts(values: Sequence[str]) -> Kind:
    """What texts are: dates, whole numbers (17, 17.0), decimals, or text; a few other values may be among numbers."""
    if not values:
        return Kind.TEXT
    if all(map(_DATE.fullmatch, values)):
        return Kind.DATE
    numbers = [found for value in values if (found := _NUMBER.fullmatch(value))]
    others = len(values) - len(numbers)
    if not numbers or others > _MOST_OTHERS or (others and len(numbers) < 30):
        return Kind.TEXT
    return Kind.WHOLE if all(not (one[2] or "").strip("0") for one in numbers) else Kind.DECIMAL


def day_of(text: str) -> date | None:
    """A day as 1974-03-01 (also 19740301, and with a time of day), 01.03.1974 or 01/03/1974: the day before the month.

    A population has birthdays after the 12th: dates with the month first are found out by these.
    """
    if found := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, _ = found.groups()
    elif found := _DAY_FIRST.fullmatch(text):
        day, _, month, year = found.groups()
    else:
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
