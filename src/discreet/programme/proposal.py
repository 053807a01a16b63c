"""Proposes variables with codelists, bands and levels, and the first cubes, from what the columns of tables are.

A pure function, as the inference that it rests on: ``discreet init`` writes the proposal as a programme, a notebook may
use its codelists directly.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise

from discreet.errors import mistake
from discreet.programme.codelist import Code
from discreet.programme.columns import is_year, no_values, plain_name, steps_of, unused_name, years_in
from discreet.programme.facts import ColumnFacts, Kind, TableFacts, number_of
from discreet.programme.inference import Decision, Inferred, Role
from discreet.programme.labels import Labels
from discreet.programme.nesting import nests
from discreet.programme.section import LONGEST_LABEL

GEOGRAPHY, PLACE = "GEO", "Place of residence"
MISSING, NOT_STATED = "unknown", "Not stated"
BROAD_AGES = (0, 15, 30, 50, 65, 85)
AGE_STEP = 5
AGE_LEVELS = {"L": (1, "broad groups"), "M": (2, "five-year groups"), "H": (3, "single years")}
MOST_BANDS = 9
MOST_CELLS = 20_000_000  # of a ready-made table: with a guarantee each of them gets noise
MOST_STACKED = 100  # tables one under another
MOST_FIRST = 60  # nodes of a variable in the first cubes, places aside


@dataclass(frozen=True, kw_only=True)
class DraftVariable:
    """A proposed variable: codes, or bands of numbers, or ages from dates of birth."""

    name: str
    column: str
    units: tuple[str, ...]
    label: str
    reason: str
    rows: tuple[Code, ...] = ()  # empty where bands make the codes
    breakdowns: Mapping[str, int] = field(default_factory=dict)  # empty: one breakdown, the leaves
    breakdown_labels: Mapping[str, str] = field(default_factory=dict)
    is_place: bool = False  # beside the geography
    bands: tuple[float, ...] = ()
    reference_day: date | None = None
    missing: str | None = None  # the code of records without a value
    missing_values: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()  # the columns of its levels, coarse to fine

    @property
    def file(self) -> str:
        """The name of its codelist file."""
        return f"codelists/{self.name.lower()}.csv"

    def size(self, level: int | None) -> int:
        """The number of nodes of the breakdown at a level, the total included; None means the leaves."""
        if self.bands:
            return 1 + len(self.bands) + (self.missing is not None)
        parents = {row.code: row.parent for row in self.rows}

        def depth(code: str) -> int:
            return 1 + depth(parents[code]) if parents[code] else 1

        return 1 + sum(1 for code in parents if level is None or depth(code) <= level)


@dataclass(frozen=True)
class DraftCube:
    """A proposed cube."""

    id: str
    title: str
    unit: str
    axes: tuple[str, ...]
    weight: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A proposed programme."""

    inferred: Inferred
    geography: tuple[str, ...]  # the columns of the geography that all tables with places have
    variables: tuple[DraftVariable, ...]
    cubes: tuple[DraftCube, ...]
    places: Mapping[str, str] = field(default_factory=dict)  # column -> how it depends on the geography

    @property
    def tables(self) -> tuple[TableFacts, ...]:
        """The tables that it is for."""
        return self.inferred.tables

    def left_out(self) -> list[Decision]:
        """What no variable, id or weight uses, and why; with the columns that only name codes or number members."""
        roles = (Role.LEFT_OUT, Role.LABELS, Role.MEMBER_NUMBER)
        used = set(self.inferred.numbered or ())
        return [one for one in self.inferred.decisions if one.role in roles and one.column not in used]


def propose(inferred: Inferred, places: Mapping[str, str] | None = None) -> Proposal:
    """Propose variables and cubes; ``places`` are columns that the data show to depend on the geography."""
    found = _with_followers(inferred, places or {})
    geography = _geography_variable(inferred)
    others = _variables(inferred, {geography.name} if geography else {GEOGRAPHY})
    others = [replace(one, is_place=one.column in found) for one in others]
    variables = _told_apart([geography, *others] if geography else others)
    cubes = tuple(_ready_made_cube(inferred, variables) if inferred.counts else _cubes(inferred, variables))
    if not cubes:
        table = inferred.tables[0]
        remedy = "give a table with codes in its columns"
        raise mistake(table.source, "", "no column looks like a variable", remedy)
    return Proposal(inferred, _common_geography(inferred), variables, cubes, found)


def _with_followers(inferred: Inferred, places: Mapping[str, str]) -> dict[str, str]:
    """Columns that follow from a place are places too."""
    found = dict(places)
    for table in inferred.tables:
        codes = [c.name for c in table.columns if inferred.role(table.unit, c.name) is Role.CODES]
        for place in places:
            found |= {
                one: f"{one!r} follows from {place!r}"
                for one in codes
                if one not in found and table.follows(one, place)
            }
    return found


def _common_geography(inferred: Inferred) -> tuple[str, ...]:
    """The columns that every table with a place has: a table must have all of the declared ones or none."""
    holding = [t for t in inferred.tables if any(t.column(name) for name in inferred.geography)]
    return tuple(name for name in inferred.geography if all(table.column(name) for table in holding))


# ---- places and levels


def _geography_variable(inferred: Inferred) -> DraftVariable | None:
    chain = inferred.geography
    if not chain:
        return None
    finest = chain[-1]
    whole = [table for table in inferred.tables if _nest(table, chain)]
    rows = tuple(_tree(whole, chain, _label_columns(inferred, chain)))
    leaves = {row.code for row in rows}
    units = tuple(
        table.unit
        for table in inferred.tables
        if (column := table.column(finest)) and column.values and {_code(v) for v in column.values} <= leaves
    )
    depths, labels = _level_names(chain)
    first = inferred.decision(whole[0].unit, finest)
    return DraftVariable(
        name=GEOGRAPHY,
        column=finest,
        units=units,
        label=PLACE,
        reason=first.reason if first else "",
        rows=rows,
        breakdowns=depths,
        breakdown_labels=labels,
        levels=chain,
    )


def _nest(table: TableFacts, chain: Sequence[str]) -> bool:
    """Whether a table has all columns of a geography, and they nest there as in the table in which they were found."""
    return all(map(table.column, chain)) and all(nests(table, *pair) for pair in pairwise(chain))


def _level_names(chain: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """The breakdowns of a hierarchy, named after its columns, and their labels."""
    levels: dict[str, str] = {}
    for column in _distinguishing(chain):
        levels[unused_name(plain_name(column).upper(), levels)] = column
    depths = {name: depth for depth, name in enumerate(levels, start=1)}
    return depths, {name: label for name, column in levels.items() if (label := _spaced(column))}


def _distinguishing(chain: Sequence[str]) -> list[str]:
    """The names of columns without the end that all of them share: SA2_CODE_2021 as SA2."""
    parts = [name.split("_") for name in chain]
    while len(parts) > 1 and all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    return ["_".join(part) for part in parts]


def _tree(tables: Sequence[TableFacts], chain: Sequence[str], labels: Mapping[str, str]) -> Iterator[Code]:
    """The codes of a hierarchy, coarse to fine; a code that a finer level uses too gets the name of its level."""
    names = list(_level_names(chain)[0])
    values = [
        {_code(value) for table in tables if (c := table.column(name)) for value in c.values or ()}
        for name in chain
    ]

    def shown(level: int, value: str) -> str:
        again = any(value in below for below in values[level + 1 :])
        return f"{names[level]} {value}" if again else value

    for level, name in enumerate(chain):
        above: dict[str, str] = {}
        for table in tables:
            above |= _above(table, chain[level - 1], name) if level else {}
        named = _names(tables, labels.get(name), name)
        for value in sorted(values[level], key=natural):
            parent = shown(level - 1, above[value]) if level else ""
            yield Code(
                shown(level, value), parent, named.get(value, value if shown(level, value) != value else "")
            )


def _above(table: TableFacts, coarse: str, fine: str) -> dict[str, str]:
    column, upper = table.column(fine), table.column(coarse)
    if upper is not None and upper.is_constant:
        (value, *_) = upper.values or ("",)
        return {_code(code): _code(value) for code in (column.values or ()) if column} if column else {}
    return {_code(code): _code(value) for code, value in table.within.get((coarse, fine), {}).items()}


def _names(tables: Sequence[TableFacts], labels: str | None, column: str) -> dict[str, str]:
    """Code -> label, from a column that names the codes; labels that cannot be used are left out."""
    if labels is None:
        return {}
    found: dict[str, str] = {}
    for table in tables:
        for code, label in table.within.get((labels, column), {}).items():
            if label.strip() and "\n" not in label and len(label) <= LONGEST_LABEL:
                found[_code(code)] = label.strip()
    return found


def _label_columns(inferred: Inferred, columns: Iterable[str]) -> dict[str, str]:
    """Column -> the column that names its codes."""
    wanted = set(columns)
    return {one.of: one.column for one in inferred.decisions if one.role is Role.LABELS and one.of in wanted}


# ---- other variables


def _variables(inferred: Inferred, taken: set[str]) -> list[DraftVariable]:
    names = set(taken)
    found: list[DraftVariable] = []
    columns = dict.fromkeys(column.name for table in inferred.tables for column in table.columns)
    for column in columns:
        for role in (Role.AGE, Role.BIRTH, Role.CODES, Role.BANDS):
            holding = [table for table in inferred.tables if inferred.role(table.unit, column) is role]
            if not holding:
                continue
            name = unused_name(plain_name(column).upper(), names)
            names.add(name)
            decision = inferred.decision(holding[0].unit, column)
            reason = decision.reason if decision else ""
            plain = DraftVariable(
                name=name,
                column=column,
                units=tuple(table.unit for table in holding),
                label=_readable(column).capitalize(),
                reason=reason,
            )
            facts = [c for table in holding if (c := table.column(column)) is not None]
            found.append(_filled(inferred, plain, role, holding, facts))
    return found


def _filled(
    inferred: Inferred,
    plain: DraftVariable,
    role: Role,
    tables: Sequence[TableFacts],
    facts: Sequence[ColumnFacts],
) -> DraftVariable:
    missing = any(column.missing for column in facts)
    match role:
        case Role.BANDS:
            left = tuple(dict.fromkeys(value for column in facts for value in no_values(column)))
            code = MISSING if missing or left else None
            return replace(plain, bands=bands_of(facts), missing=code, missing_values=left)
        case Role.BIRTH:
            days = [column.days for column in facts if column.days]
            first, last = min(day for day, _ in days), max(day for _, day in days)
            rows = _age_rows({str(age): age for age in range(last.year - first.year + 1)})
            return _with_missing(_aged(replace(plain, label="Age", reference_day=last), rows), missing)
        case Role.AGE:
            years = {_code(v): age for column in facts for v, age in years_in(column).items()}
            if all(number_of(code) is not None for code in years):
                years |= {str(age): age for age in range(max(years.values()) + 1)}
            other = dict.fromkeys(_code(v) for c in facts for v in c.values or () if _code(v) not in years)
            listed = [*_age_rows(years), *(Code(code, "", "") for code in other)]
            return _with_missing(_aged(plain, listed), missing)
    return _with_missing(_coded(inferred, plain, tables, facts), missing)


def _aged(plain: DraftVariable, rows: Iterable[Code]) -> DraftVariable:
    return replace(
        plain,
        rows=tuple(rows),
        breakdowns={name: level for name, (level, _) in AGE_LEVELS.items()},
        breakdown_labels={name: label for name, (_, label) in AGE_LEVELS.items()},
    )


def _coded(
    inferred: Inferred, plain: DraftVariable, tables: Sequence[TableFacts], facts: Sequence[ColumnFacts]
) -> DraftVariable:
    chain = [plain.column]
    while True:
        level = next(
            (
                d.column
                for d in inferred.decisions
                if d.role is Role.LEVEL and d.of == chain[0] and d.unit == tables[0].unit
            ),
            None,
        )
        if level is None or any(inferred.role(table.unit, level) is not Role.LEVEL for table in tables):
            break
        chain.insert(0, level)
    labels = _label_columns(inferred, chain)
    if len(chain) > 1:
        depths, named = _level_names(chain)
        rows = tuple(_tree(tables, chain, labels))
        return replace(plain, rows=rows, breakdowns=depths, breakdown_labels=named, levels=tuple(chain))
    values = {_code(value) for column in facts for value in column.values or ()}
    texts = _names(tables, labels.get(plain.column), plain.column)
    return replace(plain, rows=tuple(Code(v, "", texts.get(v, "")) for v in sorted(values, key=natural)))


def _with_missing(one: DraftVariable, missing: bool) -> DraftVariable:
    if not missing:
        return one
    known = {row.code for row in one.rows}
    code = unused_name(MISSING, known)
    return replace(one, missing=code, rows=(*one.rows, Code(code, "", NOT_STATED)))


def _code(value: str) -> str:
    """A value as a code: 17.0 as 17, blanks around it removed."""
    text = value.strip()
    whole = re.fullmatch(r"(-?\d+)[.,]0+", text)
    return whole[1] if whole else text


def natural(value: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts numbers by size, also within texts: 5-9 before 15-17 before 20 before 21-24, negative numbers first."""
    number = number_of(value)
    if number is not None:
        return (0, int(number * 1000), ""), (-1, 0, value)
    parts = re.findall(r"\d{1,18}|\D+|\d+", value)
    return tuple(
        (0, int(part) * 1000, "") if part.isdecimal() and len(part) <= 18 else (1, 0, part) for part in parts
    )


# ---- ages and bands


def _age_rows(years: Mapping[str, int]) -> Iterator[Code]:
    """Single years under five-year groups under broad groups."""
    oldest = max(years.values())
    of_age: dict[int, list[str]] = {}
    for code, age in sorted(years.items(), key=lambda one: (one[1], one[0])):
        of_age.setdefault(age, []).append(code)
    for start, end in _spans(BROAD_AGES, oldest):
        broad = f"{start} to {end}" if end < oldest else f"{start} and over"
        yield Code(
            f"Y{start}-{end}" if end < oldest else f"Y_GE{start}",
            "",
            f"{broad} years" if end < oldest else f"{start} years and over",
        )
        upper = f"Y{start}-{end}" if end < oldest else f"Y_GE{start}"
        for low, high in _spans(range(start, end + 1, AGE_STEP), end):
            if not any(age in of_age for age in range(low, high + 1)):
                continue
            band = f"A{low}-{high}"
            yield Code(band, upper, f"{low} to {high} years")
            for age in range(low, high + 1):
                yield from (
                    Code(code, band, f"{age} years" if number_of(code) is not None else "")
                    for code in of_age.get(age, ())
                )


def _spans(starts: Iterable[int], last: int) -> list[tuple[int, int]]:
    begins = [start for start in starts if start <= last]
    return list(zip(begins, [*(start - 1 for start in begins[1:]), last], strict=True))


def bands_of(facts: Sequence[ColumnFacts]) -> tuple[float, ...]:
    """Lower limits of bands of numbers: round ones near the deciles; calendar years by decades or more."""
    column = max(facts, key=lambda one: one.distinct)
    numbers = column.numbers
    steps = steps_of(column)
    if numbers is None:
        return ()
    low = min(min(steps_of(c), default=c.numbers.low) for c in facts if c.numbers)
    high = max(c.numbers.high for c in facts if c.numbers)
    whole = all(c.kind is Kind.WHOLE for c in facts)
    if is_year(column):
        step = next(
            step for step in (10, 20, 25, 50, 100) if (high - low) / step <= MOST_BANDS or step == 100
        )
        first = math.floor(low / step) * step
        return tuple(range(int(first), int(high) + 1, step))
    inner = [d for d in numbers.deciles[::2] if not steps or d >= steps[0]] or [numbers.median]
    unit = _unit((inner[-1] - inner[0]) or (high - low), whole)
    edges = sorted({_rounded(math.floor(d / unit + 0.5) * unit, whole) for d in inner})
    edges = [edge for edge in edges if edge > low]
    if whole and low == 0 and numbers.zeros > 0.05:
        edges = [1, *(edge for edge in edges if edge > 1)]
    start = 0 if 0 <= low < (edges[0] if edges else high) else _rounded(math.floor(low / unit) * unit, whole)
    if low < 0:
        start = -math.inf
    found = [start, *edges][: MOST_BANDS + 1]
    if len(found) < 2:
        found = [start, _rounded((low + high) / 2, whole)]
    return tuple(float(edge) if not whole else edge for edge in dict.fromkeys(found))


def _unit(spread: float, whole: bool) -> float:
    """A round step of which several fit into a spread: 1, 2, 5, 10, .."""
    power = 10 ** math.floor(math.log10(spread / 8)) if spread > 0 else 1
    unit = next(power * m for m in (1, 2, 5, 10) if power * m >= spread / 16)
    return max(1, round(unit)) if whole else unit


def _rounded(edge: float, whole: bool) -> float:
    return round(edge) if whole else float(f"{edge:.6g}")


# ---- cubes


def _cubes(inferred: Inferred, variables: Sequence[DraftVariable]) -> Iterator[DraftCube]:
    """For each unit a table of few axes, and one that goes down to the finest place or to other variables."""
    labels = _labels(variables)
    for number, table in enumerate(inferred.tables, start=1):
        usable = [variable for variable in variables if table.unit in variable.units]
        places = [variable for variable in usable if variable.name == GEOGRAPHY]
        plain = sorted(
            (
                one
                for one in usable
                if one.name != GEOGRAPHY and not one.is_place and not _follows_place(table, one, places)
            ),
            key=lambda one: _interest(inferred, table.unit, one),
        )
        plain = [one for one in plain if one.size(1) <= MOST_FIRST] or plain
        first = _crossable(table, plain, 2)
        choices = [[_axis(variable, _first_level(variable)) for variable in (*places, *first)]]
        if plain and places and _first_level(places[0]) < len(places[0].breakdowns):
            choices.append([_axis(places[0], len(places[0].breakdowns)), _axis(plain[0], 1)])
        elif len(plain) > 2:
            second = _crossable(table, [one for one in plain if one not in first], 2)
            choices.append([_axis(variable, _first_level(variable)) for variable in (*places, *second)])
        weight = inferred.weight if inferred.weight and table.column(inferred.weight) else None
        for place, axes in enumerate(filter(None, choices), start=1):
            title = labels.title(table.unit.capitalize(), axes)
            yield DraftCube(f"{number}.{place}", title, table.unit, tuple(axes), weight)


def _ready_made_cube(inferred: Inferred, variables: Sequence[DraftVariable]) -> Iterator[DraftCube]:
    """The table of counts as it is: all its columns at their finest level."""
    (table,) = inferred.tables
    axes = [_axis(one, len(one.breakdowns)) if one.breakdowns else one.name for one in variables]
    cells = math.prod(one.size(None) for one in variables)
    if cells > MOST_CELLS:
        few = [c.name for c in table.columns if c.distinct <= MOST_STACKED and c.name != inferred.counts]
        remedy = (
            f"it may have several tables one under another: give one of them, selected by {', '.join(few)}"
        )
        raise mistake(table.source, "", f"a cross of all its columns would have {cells:,} cells", remedy)
    if axes:
        title = _labels(variables).title(table.unit.capitalize(), axes)
        yield DraftCube("counts", title, table.unit, tuple(axes))


def _labels(variables: Sequence[DraftVariable]) -> Labels:
    return Labels(
        {one.name: one.label for one in variables if one.label},
        {f"{one.name}.{name}": text for one in variables for name, text in one.breakdown_labels.items()},
    )


def _follows_place(table: TableFacts, one: DraftVariable, places: Sequence[DraftVariable]) -> bool:
    return any(
        table.follows(one.column, place.column) or table.follows(place.column, one.column) for place in places
    )


def depend(table: TableFacts, one: DraftVariable, other: DraftVariable) -> bool:
    """Whether one of two variables is a function of the other."""
    return table.follows(one.column, other.column) or table.follows(other.column, one.column)


def _crossable(table: TableFacts, variables: Sequence[DraftVariable], most: int) -> list[DraftVariable]:
    """The first variables of which none is a function of another."""
    chosen: list[DraftVariable] = []
    for one in variables:
        if len(chosen) < most and not any(depend(table, one, other) for other in chosen):
            chosen.append(one)
    return chosen


def _interest(inferred: Inferred, unit: str, variable: DraftVariable) -> tuple[int, bool, bool, int]:
    """Ages and what has two codes in halves first, then what has few codes, last what has one."""
    size = variable.size(1)
    aged = inferred.role(unit, variable.column) in (Role.AGE, Role.BIRTH)
    rank = 0 if variable.name == "SEX" else 1 if aged else 2
    return rank, size <= 2, bool(variable.bands), size


def _first_level(variable: DraftVariable) -> int:
    """The coarsest level with more than one code."""
    levels = sorted(variable.breakdowns.values())
    return next((level for level in levels if variable.size(level) > 1 + level), levels[-1] if levels else 1)


def _axis(variable: DraftVariable, level: int) -> str:
    name = next((name for name, depth in variable.breakdowns.items() if depth == level), None)
    return f"{variable.name}.{name}" if name else variable.name


# ---- names


def _readable(column: str) -> str:
    """The name of a column as a label, marital_status as marital status; empty where it is too long."""
    return _spaced(column).lower()


def _spaced(column: str) -> str:
    """The name of a column in words, as it is written there (SA2, Kreis); empty where it is too long."""
    label = " ".join(re.split(r"[\W_]+", column)).strip()
    return label if len(label) <= LONGEST_LABEL else ""


def _told_apart(variables: Sequence[DraftVariable]) -> tuple[DraftVariable, ...]:
    """The variables, without labels that another one has or is named by."""
    shown = Counter(text for one in variables for text in {one.name, one.label})
    return tuple(one if shown[one.label] == 1 else replace(one, label="") for one in variables)


def dependent_pairs(proposal: Proposal) -> Iterator[tuple[str, str]]:
    """Variables of which the first follows from the second, places aside: they are never crossed here."""
    for table in proposal.tables:
        own = [one for one in proposal.variables if table.unit in one.units and one.name != GEOGRAPHY]
        for one in own:
            for other in own:
                if one is not other and table.follows(one.column, other.column):
                    yield one.name, other.name
