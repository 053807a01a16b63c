"""What the columns of some tables are, judged by their facts: ids, households, places, ages, weights, counts, codes.

A pure function from facts to roles, shared by ``discreet init`` and notebooks. The content decides; names of columns
only settle what the content leaves open, and what the caller states overrides both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from discreet.errors import Mistakes, Problem, mistake
from discreet.programme.codelist import TOTAL
from discreet.programme.columns import (
    COUNTS,
    FEW_NUMBERS,
    OLDEST,
    UNITS,
    WEIGHTS,
    is_age_name,
    is_amount,
    is_birth,
    is_codes,
    is_place_name,
    is_plainly_age,
    is_year,
    may_be_age,
    may_be_weight,
    named,
    words_of,
    years_in,
)
from discreet.programme.facts import ColumnFacts, GroupFacts, Kind, TableFacts
from discreet.programme.nesting import CERTAIN, Chain, begins, best_chain, column_of, is_template, nests

MOST_SINGLE = 0.5  # distinct values per record above which a text identifies rather than classifies
FEWEST_LINES = 50  # of a table of counts whose column of counts is not named so
LARGE_IDS = 1e9  # numbers that are larger and not round are ids rather than amounts
AS_STATED = "as stated"
AMOUNT = (
    "an amount: sums and means of it are not protected by this programme, and exact amounts identify persons; "
    "declare bands to count records by its size"
)


class Role(StrEnum):
    """What a column is."""

    ID = "id"
    MEMBER_NUMBER = "member number"
    GEOGRAPHY = "geography"
    LABELS = "labels"
    AGE = "age"
    BIRTH = "date of birth"
    CODES = "codes"
    BANDS = "bands"
    LEVEL = "level"
    WEIGHT = "weight"
    COUNT = "count"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Decision:
    """What a column of a table was taken for, and why."""

    unit: str
    column: str
    role: Role
    reason: str
    of: str = ""  # the column that it labels or is a level of; the unit that it identifies


@dataclass(frozen=True)
class Stated:
    """What the caller states: it overrides what the facts suggest."""

    geography: tuple[str, ...] | None = None
    person_id: str | None = None
    household_id: str | None = None
    age: str | None = None
    weight: str | None = None


NOTHING = Stated()


@dataclass(frozen=True)
class Inferred:
    """What the columns of some tables are."""

    tables: tuple[TableFacts, ...]
    ids: Mapping[str, str | None]  # unit -> its id column; None where the table has none
    numbered: tuple[str, str] | None  # household and member number that together identify a person
    geography: tuple[str, ...]  # coarse to fine
    weight: str | None
    counts: str | None  # the number of each line, where the table is one of counts
    decisions: tuple[Decision, ...]

    def role(self, unit: str, column: str) -> Role | None:
        """What a column is."""
        found = self.decision(unit, column)
        return found.role if found else None

    def decision(self, unit: str, column: str) -> Decision | None:
        """What was decided about a column."""
        return next((one for one in self.decisions if (one.unit, one.column) == (unit, column)), None)


def infer(tables: Sequence[TableFacts], stated: Stated = NOTHING) -> Inferred:
    """Judge what the columns of the tables are."""
    _require_known(tables, stated)
    return _Judge(tables, stated).all()


def _require_known(tables: Sequence[TableFacts], stated: Stated) -> None:
    known = list(dict.fromkeys(column.name for table in tables for column in table.columns))
    options: dict[str, list[str | None]] = {
        "--person-id": [stated.person_id],
        "--household-id": [stated.household_id],
        "--age": [stated.age],
        "--weight": [stated.weight],
        "--geography": list(stated.geography or ()),
    }
    problems = [
        Problem(tables[0].source, option, f"unknown column {name!r}", f"the columns are {', '.join(known)}")
        for option, names in options.items()
        for name in names
        if name is not None and name not in known
    ]
    if problems:
        raise Mistakes(problems)


# ---- the tables


class _Judge:
    """Decides about one column after the other; what is decided stays so."""

    def __init__(self, tables: Sequence[TableFacts], stated: Stated) -> None:
        self.tables, self.stated = tuple(tables), stated
        self.decisions: dict[tuple[str, str], Decision] = {}
        self.ids: dict[str, str | None] = {}

    def all(self) -> Inferred:
        """Judge all columns of all tables."""
        counts = self._counts()
        weight = None
        numbered = None
        if counts is None:
            self._own_ids()
            self._households()
            numbered = self._numbering()
            weight = self._weight()
        geography = self._geography()
        for table in self.tables:
            self._templates(table)
            self._rest(table)
        order = {
            (table.unit, c.name): (k, j)
            for k, table in enumerate(self.tables)
            for j, c in enumerate(table.columns)
        }
        decisions = tuple(self.decisions[key] for key in sorted(self.decisions, key=order.__getitem__))
        return Inferred(self.tables, self.ids, numbered, geography, weight, counts, decisions)

    def _decide(self, table: TableFacts, column: str, role: Role, reason: str, of: str = "") -> None:
        if table.column(column) is not None:
            self.decisions.setdefault((table.unit, column), Decision(table.unit, column, role, reason, of))

    def _decide_all(self, column: str, role: Role, reason: str, of: str = "") -> None:
        for table in self.tables:
            self._decide(table, column, role, reason, of)

    def _open(self, table: TableFacts) -> list[ColumnFacts]:
        return [column for column in table.columns if (table.unit, column.name) not in self.decisions]

    # -- counts

    def _counts(self) -> str | None:
        """The column of numbers of a table of counts."""
        if len(self.tables) != 1:
            return None
        (table,) = self.tables
        single = any(column.unique and column.name not in table.counted for column in table.columns)
        called = [name for name in table.counted if named(name, COUNTS)]
        skewed = [name for name in table.counted if _is_skewed(table, name)]
        found = called or ([] if single or table.records < FEWEST_LINES else skewed)
        if not found or (single and len(table.columns) > 2):
            return None
        name = found[-1]
        self._decide(
            table,
            name,
            Role.COUNT,
            "each line has its own combination of the other columns, so it counts records",
        )
        return name

    # -- ids

    def _own_ids(self) -> None:
        """The id of each table; no two units share one, because it must identify its unit in any table."""
        candidates = {table.unit: self._id_columns(table) for table in self.tables}
        for table in sorted(self.tables, key=lambda one: len(candidates[one.unit])):
            taken = set(self.ids.values())
            found = next((name for name in candidates[table.unit] if name not in taken), None)
            self.ids[table.unit] = found
        self.ids = {table.unit: self.ids[table.unit] for table in self.tables}
        for unit, name in self.ids.items():
            if name is not None:
                for table in self.tables:
                    reason = (
                        "every record has its own value" if table.unit == unit else f"the id of its {unit}"
                    )
                    self._decide(table, name, Role.ID, reason, unit)

    def _id_columns(self, table: TableFacts) -> list[str]:
        stated = {"persons": self.stated.person_id, "households": self.stated.household_id}.get(table.unit)
        if stated is not None and table.column(stated) is not None:
            return [stated]
        found = [
            c
            for c in table.columns
            if c.unique and c.kind in (Kind.WHOLE, Kind.TEXT) and c.name != self.stated.household_id
        ]

        def rank(column: ColumnFacts) -> tuple[bool, bool, bool]:
            numbers = column.numbers
            running = numbers is not None and numbers.high - numbers.low + 1 == table.records
            others = " ".join(hints for unit, hints in UNITS.items() if unit != table.unit)
            return not named(column.name, UNITS[table.unit]), named(column.name, others), not running

        return [column.name for column in sorted(found, key=rank)]

    def _households(self) -> None:
        """The id of the household of a person, where it has no table: a column that groups records."""
        persons = next((table for table in self.tables if table.unit == "persons"), None)
        if persons is None:
            return
        stated = self.stated.household_id
        if "households" not in self.ids and stated is not None:
            self._link("households", stated, AS_STATED)
        scored = sorted(
            ((_household_evidence(persons, name, group), name) for name, group in persons.groups.items()),
            reverse=True,
        )
        for (evidence, reason), name in scored:
            if evidence < 2 or (persons.unit, name) in self.decisions:
                continue
            other = next((unit for unit in ("families", "dwellings") if named(name, UNITS[unit])), None)
            unit = other or ("households" if "households" not in self.ids else None)
            if unit is not None and unit not in self.ids:
                self._link(unit, name, reason)
            else:
                self._decide(persons, name, Role.LEFT_OUT, f"{reason}: it looks like an id of another unit")

    def _link(self, unit: str, name: str, reason: str) -> None:
        self.ids[unit] = name
        self._decide_all(name, Role.ID, reason, unit)

    def _numbering(self) -> tuple[str, str] | None:
        """Member numbers of a household; with the household they identify a person who has no id."""
        persons = next((table for table in self.tables if table.unit == "persons"), None)
        household = self.ids.get("households")
        if persons is None or household is None or household not in persons.groups:
            return None
        found = persons.groups[household].numbering
        for name in found:
            self._decide(persons, name, Role.MEMBER_NUMBER, f"it numbers the members of each {household}")
        if self.ids.get("persons") is None and found:
            return household, found[0]
        return None

    # -- weights

    def _weight(self) -> str | None:
        if self.stated.weight is not None:
            self._decide_all(self.stated.weight, Role.WEIGHT, AS_STATED)
            return self.stated.weight
        for table in self.tables:
            fitting = [c for c in self._open(table) if named(c.name, WEIGHTS) and may_be_weight(c)]
            if fitting:
                main = min(fitting, key=lambda c: (bool(re.search(r"\d$", c.name)), len(c.name)))
                reason = (
                    "numbers above zero without extremes, not rounded as amounts are, and named as a weight"
                )
                self._decide_all(main.name, Role.WEIGHT, reason)
                self._replicates(main.name)
                return main.name
        return None

    def _replicates(self, main: str) -> None:
        stem = re.sub(r"\d+$", "", main)
        for table in self.tables:
            for column in self._open(table):
                if column.name.startswith(stem) and column.name[len(stem) :].strip("_").isdecimal():
                    self._decide(table, column.name, Role.LEFT_OUT, f"a replicate of the weight {main}")

    # -- geography

    def _geography(self) -> tuple[str, ...]:
        if self.stated.geography is not None:
            best = self._stated_geography(self.stated.geography)
        else:
            household = self.ids.get("households")
            found = [chain for one in self.tables if (chain := best_chain(one, self._open(one), household))]
            if not found:
                return ()
            best = max(found, key=lambda one: one.evidence)
        for name in best.columns:
            self._decide_all(name, Role.GEOGRAPHY, "; ".join(best.reasons))
        for other in self.tables:
            self._namesakes(other, best.columns, "places")
        return best.columns

    def _stated_geography(self, stated: tuple[str, ...]) -> Chain:
        table = next((one for one in self.tables if all(one.column(name) for name in stated)), None)
        if table is None:
            where = self.tables[0].source
            raise mistake(
                where, "--geography", "no table has all of these columns", "name columns of one table"
            )
        problems = [
            Problem(table.source, "--geography", value, remedy)
            for value, remedy in _place_problems(table, stated)
        ]
        if problems:
            raise Mistakes(problems)
        return Chain(stated, CERTAIN, (AS_STATED,))

    def _namesakes(self, table: TableFacts, chain: Sequence[str], what: str) -> None:
        """Columns that are functions of a column and back: its labels, or the same under other codes."""
        for name in chain:
            for column in self._open(table):
                if table.same(column.name, name):
                    if column.is_code_like and column.kind is not Kind.TEXT:
                        reason = f"the same {what} as {name} under other codes"
                        self._decide(table, column.name, Role.LEFT_OUT, reason, name)
                    else:
                        self._decide(
                            table,
                            column.name,
                            Role.LABELS,
                            f"it names the codes of {name}, and labels them",
                            name,
                        )

    # -- the other columns

    def _templates(self, table: TableFacts) -> None:
        for column in self._open(table):
            if is_template(table, column):
                reason = "it decides many other columns, as the key of another table does"
                self._decide(table, column.name, Role.LEFT_OUT, reason)

    def _rest(self, table: TableFacts) -> None:
        self._ages(table)
        for column in self._open(table):
            if (table.unit, column.name) not in self.decisions:
                role, reason = self._single(table, column)
                self._decide(table, column.name, role, reason)
                if role is Role.CODES:
                    self._namesakes(table, [column.name], "categories")
        self._levels(table)
        if any(one.role is Role.COUNT for one in self.decisions.values()):
            self._redundant(table)

    def _redundant(self, table: TableFacts) -> None:
        """Columns of a table of counts that its cells do not need: constant ones, and those that follow from others."""
        codes = [c for c in table.columns if self._role(table, c.name) is Role.CODES]
        for column in codes:
            finer = [c.name for c in codes if c is not column and table.follows(column.name, c.name)]
            if column.is_constant or finer:
                reason = "one value" if column.is_constant else f"it follows from {finer[0]}"
                self.decisions[table.unit, column.name] = Decision(
                    table.unit, column.name, Role.LEFT_OUT, reason, finer[0] if finer else ""
                )

    def _ages(self, table: TableFacts) -> None:
        if self.stated.age is not None and (column := table.column(self.stated.age)) is not None:
            if column.kind is Kind.DATE and column.days and column.readable:
                self._decide(table, column.name, Role.BIRTH, AS_STATED)
            elif max(years_in(column).values(), default=OLDEST.stop) < OLDEST.stop:
                self._decide(table, column.name, Role.AGE, AS_STATED)
            else:
                remedy = "name a column of ages in years or of dates of birth"
                raise Mistakes([Problem(table.source, "--age", f"{column.name!r} has other values", remedy)])
            return
        for column in self._open(table):
            if is_age_name(column.name) and may_be_age(column):
                reason = "whole numbers up to a highest age, and named as an age"
                self._decide(table, column.name, Role.AGE, reason)
            elif is_birth(column) and column.readable:
                self._decide(table, column.name, Role.BIRTH, "dates that span the lives of a population")
        known = {one.role for one in self.decisions.values() if one.unit == table.unit}
        plain = [column for column in self._open(table) if is_plainly_age(column)]
        if plain and not known & {Role.AGE, Role.BIRTH}:
            best = max(plain, key=lambda column: column.distinct)
            reason = "nearly every whole number up to a highest age, none of them heaped"
            self._decide(table, best.name, Role.AGE, reason)

    def _single(self, table: TableFacts, column: ColumnFacts) -> tuple[Role, str]:
        """What a single column is: codes, bands of numbers, or nothing to count by."""
        present = table.records * (1 - column.missing)
        many = table.records >= FEWEST_LINES and column.distinct > MOST_SINGLE * present
        unusable = next(_unusable(table, column), None)
        if unusable is not None:
            return Role.LEFT_OUT, unusable
        if is_codes(column) and not many:
            return Role.CODES, f"{column.distinct} codes" if column.distinct > 1 else "one code"
        if column.kind is Kind.TEXT:
            return Role.LEFT_OUT, "it has too many different values; group them to use it"
        numbers = column.numbers
        if numbers is not None and numbers.high >= LARGE_IDS and numbers.round < 0.2:
            return Role.LEFT_OUT, "large whole numbers, as ids of other records are"
        if is_amount(column):
            return Role.LEFT_OUT, AMOUNT
        if numbers is None or numbers.high <= numbers.low:
            return Role.LEFT_OUT, "its numbers do not vary"
        if named(column.name, WEIGHTS) or (column.kind is Kind.DECIMAL and abs(numbers.mean - 1) < 0.02):
            return Role.LEFT_OUT, "it may be a survey weight; if so, state --weight"
        return Role.BANDS, "calendar years" if is_year(column) else "numbers with many values"

    def _levels(self, table: TableFacts) -> None:
        """Classifications that nest by their codes or names become levels of one variable."""
        codes = [c for c in table.columns if self._role(table, c.name) is Role.CODES and _may_nest(c)]
        tips: dict[str, str] = {}  # coarsest column so far -> finest one
        for coarse in sorted(codes, key=lambda c: -c.distinct):
            above = [
                tip
                for tip, finest in tips.items()
                if coarse.distinct < column_of(table, tip).distinct
                and table.follows(coarse.name, tip)
                and _one_classification(table, coarse, column_of(table, finest))
            ]
            tip = min(above, key=lambda name: column_of(table, name).distinct, default=None)
            if tip is None:
                tips[coarse.name] = coarse.name
                continue
            del self.decisions[table.unit, coarse.name]
            alike = (
                "its codes begin with these" if begins(table, coarse.name, tip) else "their names are alike"
            )
            reason = f"{tip} decides it, and {alike}"
            self._decide(table, coarse.name, Role.LEVEL, reason, tip)
            tips[coarse.name] = tips.pop(tip)

    def _role(self, table: TableFacts, name: str) -> Role | None:
        found = self.decisions.get((table.unit, name))
        return found.role if found else None


def _place_problems(table: TableFacts, chain: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in chain:
        column = column_of(table, name)
        if column.values is None or column.missing or {"", TOTAL} & set(column.values):
            yield (
                f"column {name!r} has gaps or too many values",
                "name columns of codes that every record has",
            )
    for coarse, fine in pairwise(chain):
        if not nests(table, coarse, fine):
            yield f"{fine!r} does not lie within {coarse!r}", "name columns that nest, coarse to fine"


def _unusable(table: TableFacts, column: ColumnFacts) -> Iterator[str]:
    """Why no variable can be made of a column, whatever its codes."""
    if column.kind is Kind.OTHER:
        yield "its values are neither text, numbers nor dates"
    if not column.distinct:
        yield "it has no values"
    if column.values and TOTAL in column.values:
        yield f"it uses the code {TOTAL}, which means the total"
    if column.kind is Kind.DATE:
        births = " (to use dates of birth as ages, write them as 1974-03-01 or 01.03.1974)"
        yield f"exact dates would identify persons{'' if column.readable else births}"
    if column.unique and table.records > FEW_NUMBERS:
        yield "every record has its own value"


def _may_nest(column: ColumnFacts) -> bool:
    return not column.is_constant and not column.missing and column.repeated >= 0.5


def _one_classification(table: TableFacts, coarse: ColumnFacts, fine: ColumnFacts) -> bool:
    if begins(table, coarse.name, fine.name):
        return True
    one, other = set(words_of(coarse.name)), set(words_of(fine.name))
    shared = {word for word in one & other if len(word) >= 3} - {"code", "group", "status", "type", "level"}
    return bool(shared) and fine.distinct >= 2 * coarse.distinct


def _is_skewed(table: TableFacts, name: str) -> bool:
    """Whether numbers are mostly small and sometimes large, as counts of cells are."""
    numbers = column_of(table, name).numbers
    return numbers is not None and numbers.mean > numbers.median and numbers.high > 4 * max(numbers.median, 1)


def _household_evidence(table: TableFacts, name: str, group: GroupFacts) -> tuple[float, str]:
    """How much suggests that a column is the id of a household, and what decides."""
    column = column_of(table, name)
    evidence, reasons = 0.0, []
    if group.numbering:
        evidence += 2
        reasons.append(f"{group.numbering[0]} numbers its records")
    if any(named(name, UNITS[unit]) for unit in ("households", "families", "dwellings")):
        evidence += 2
    elif is_place_name(name) or is_age_name(name):
        evidence -= 2
    if column.runs <= 1.1 * column.distinct:
        evidence += 1
        reasons.append("its records follow each other")
    others = [c for c in group.constant if not column_of(table, c).is_constant]
    prefixes = [c for c in others if begins(table, c, name)]
    if others:
        evidence += 1
        reasons.append("its records share " + ", ".join(sorted(others)[:3]))
    if prefixes and not group.numbering:
        evidence -= 2  # a finest place
    if group.usual > 20 or group.mean > 8:
        evidence -= 2
    about = f"about {group.mean:.1f} records have the same value"
    return evidence, "; ".join([about, *reasons])
