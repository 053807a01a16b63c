"""Drafts a programme from the columns of some tables, and writes it as TOML with comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import tomlkit

from discreet.errors import mistake
from discreet.programme.attributes import HOLDERS
from discreet.programme.codelist import TOTAL, Code
from discreet.programme.labels import Labels
from discreet.programme.population import ID_KEYS
from discreet.programme.section import LONGEST_LABEL
from discreet.programme.sources import FileFormat, format_of

MOST_CODES = 5_000  # a column with more distinct values is no variable, unless it is a place
MOST_NUMBERS = 200  # the same for a column of whole numbers, which may be an amount
MOST_PLACES = 300_000
OLDEST = range(60, 131)  # the highest value of a column of ages in years
BROAD_AGES = (0, 15, 30, 50, 65, 85)
AGE_STEP = 5
AGE_LEVELS = {"L": (1, "broad groups"), "M": (2, "five-year groups"), "H": (3, "single years")}
GEOGRAPHY, PLACE = "GEO", "Place of residence"

_PLACES = re.compile(
    r"^(geo|nuts|lau|region|prov|state$|count(y|ies)|district|municip|commune|komm|gemeinde|canton|tract|bl(oc)?k|ward"
    r"|parish|lsoa|msoa|oa\d*(cd)?$|lad\d*(cd)?$|taz|zone$|area$|zip|postcode|plz|grid|town$|city$|settlement)"
)
_ELSEWHERE = {"birth", "born", "work", "citizenship", "origin", "previous", "prev", "type", "name", "size"}
_COUNTS = {"count", "counts", "n", "freq", "frequency", "obs_value", "population", "pop"}
_AGES = {"age", "alter", "edad", "leeftijd"}
_UNIT_WORDS = {
    "persons": ("person", "pers", "pid", "people", "indiv", "resident"),
    "households": ("household", "hh", "hid"),
    "families": ("famil", "fid"),
    "dwellings": ("dwelling", "housing", "did"),
}
_ID_WORDS = re.compile(r"(id|nr|no|num|number|serial\w*|record\w*|key)$")


class Kind(Enum):
    """What the values of a column are."""

    TEXT = "text"
    WHOLE = "whole numbers"
    OTHER = "other"


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about one column; ``values`` is None when there are too many."""

    name: str
    kind: Kind
    values: tuple[str, ...] | None
    missing: bool = False  # some records have no value
    unique: bool = False  # every record has a different value


@dataclass(frozen=True)
class TableFacts:
    """Facts about one unit's table."""

    unit: str
    source: str  # as the programme will name it
    columns: tuple[ColumnFacts, ...]
    within: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    # (coarse, fine) -> value of the fine column -> value of the coarse one that always occurs with it

    def column(self, name: str) -> ColumnFacts | None:
        """The facts of a column, if the table has it."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class DraftVariable:
    """A proposed variable."""

    name: str
    column: str
    units: tuple[str, ...]
    rows: tuple[Code, ...]
    breakdowns: Mapping[str, int]  # empty: one breakdown, the leaves
    label: str
    breakdown_labels: Mapping[str, str]
    is_place: bool = False  # beside the geography

    @property
    def file(self) -> str:
        """The name of its codelist file."""
        return f"codelists/{self.name.lower()}.csv"

    def size(self, level: int | None) -> int:
        """The number of nodes of the breakdown at a level, the total included; None means the leaves."""
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


@dataclass(frozen=True)
class Draft:
    """A proposed programme; ``ids`` names the id column of a unit, or None where the table has none."""

    tables: tuple[TableFacts, ...]
    ids: Mapping[str, str | None]
    geography: tuple[str, ...]
    variables: tuple[DraftVariable, ...]
    cubes: tuple[DraftCube, ...]
    notes: tuple[str, ...]


def is_place(name: str) -> bool:
    """Whether a column's name looks like a place of residence."""
    parts = re.split(r"[^a-z0-9]+", name.lower())
    return bool(_PLACES.match(parts[0]) or _PLACES.match(name.lower())) and not _ELSEWHERE & set(parts)


def is_id(name: str) -> bool:
    """Whether a column's name looks like an id."""
    return bool(_ID_WORDS.search(name.lower()))


def unit_of(file_name: str) -> str | None:
    """The unit that a file's name refers to."""
    name = file_name.lower()
    return next(
        (unit for unit, words in _UNIT_WORDS.items() if any(word in name for word in words[:2])), None
    )


def draft(tables: Sequence[TableFacts]) -> Draft:
    """Propose a programme for the tables of one or more units."""
    ids = _own_ids(tables)
    linked = _links(tables, ids)
    taken = {column for column in (*ids.values(), *linked.values()) if column}
    geography, place = _geography(tables, taken)
    others = list(_variables(tables, taken | set(geography)))
    variables = _told_apart(([place] if place else []) + others)
    cubes = tuple(_cubes(tables, variables))
    if not cubes:
        raise mistake(
            tables[0].source, "", "no column looks like a variable", "give a table with codes in its columns"
        )
    notes = tuple(_notes(tables, ids, taken | set(geography), variables))
    return Draft(tuple(tables), linked | ids, geography, variables, cubes, notes)


def with_places(proposed: Draft, found: Mapping[str, str]) -> Draft:
    """The draft with variables declared as places: column -> how it depends on the geography."""
    variables = tuple(
        replace(one, is_place=True) if one.name != GEOGRAPHY and one.column in found else one
        for one in proposed.variables
    )
    notes = [
        f"column {found[one.column]}: {one.name} is declared as a place, which a swap exchanges too"
        for one in variables
        if one.is_place
    ]
    return replace(proposed, variables=variables, notes=(*proposed.notes, *notes))


def _own_ids(tables: Sequence[TableFacts]) -> dict[str, str | None]:
    """The id column of each unit; no two units share one, because it must identify its unit in any table."""
    ids: dict[str, str | None] = {}
    for table in tables:
        ids[table.unit] = next((name for name in _id_columns(table) if name not in ids.values()), None)
    return ids


def _id_columns(table: TableFacts) -> list[str]:
    """The columns without gaps, unique, and named like an id; best those named after the unit."""
    found = [
        column.name for column in table.columns if column.unique and not column.missing and is_id(column.name)
    ]
    return sorted(found, key=lambda name: not any(word in name.lower() for word in _UNIT_WORDS[table.unit]))


def _links(tables: Sequence[TableFacts], ids: Mapping[str, str | None]) -> dict[str, str | None]:
    """Ids of other units that a table has: the household of a person."""
    links: dict[str, str | None] = {}
    names = [column.name for table in tables for column in table.columns if is_id(column.name)]
    for unit in (unit for unit in ID_KEYS if unit not in ids):
        for name in names:
            named = any(name.lower().startswith(word) for word in _UNIT_WORDS[unit])
            if named and name not in (*ids.values(), *links.values()):
                links.setdefault(unit, name)
    return links


def _geography(tables: Sequence[TableFacts], taken: set[str]) -> tuple[tuple[str, ...], DraftVariable | None]:
    """The longest chain of nested places in the first table that has one, as one variable."""
    for table in tables:
        chain = _chain(table, taken)
        if chain:
            units = tuple(other.unit for other in tables if _same_places(table, other, chain))
            levels: dict[str, str] = {}  # name of a breakdown -> column
            for column in chain:
                levels[_unused(_word(column), set(levels))] = column
            rows = tuple(_place_rows(table, chain))
            depths = {name: depth for depth, name in enumerate(levels, start=1)}
            labels = {name: label for name, column in levels.items() if (label := _readable(column))}
            return tuple(chain), DraftVariable(GEOGRAPHY, chain[-1], units, rows, depths, PLACE, labels)
    return (), None


def _chain(table: TableFacts, taken: set[str]) -> list[str]:
    usable = {
        column.name: len(column.values)
        for column in table.columns
        if column.values
        and not column.missing
        and column.name not in taken
        and not {"", TOTAL} & set(column.values)
    }
    best: dict[str, list[str]] = {}
    for fine in sorted(usable, key=lambda name: (usable[name], not is_place(name))):
        above = [
            best[coarse]
            for coarse in best
            if (coarse, fine) in table.within and is_place(coarse) and usable[coarse] < usable[fine]
        ]
        longest = max(above, key=len, default=[])
        # what only nests in a place is itself one when it is too fine to be a plain variable
        if is_place(fine) or (longest and usable[fine] > MOST_NUMBERS):
            best[fine] = [*longest, fine]
    return max(best.values(), key=len, default=[])


def _same_places(first: TableFacts, other: TableFacts, chain: Sequence[str]) -> bool:
    known, mine = first.column(chain[-1]), other.column(chain[-1])
    return known is not None and mine is not None and set(mine.values or ["?"]) <= set(known.values or ())


def _place_rows(table: TableFacts, chain: Sequence[str]) -> Iterator[Code]:
    values = [set(column.values or ()) for name in chain if (column := table.column(name))]
    for level, name in enumerate(chain):
        above = table.within.get((chain[level - 1], name), {}) if level else {}
        for value in sorted(values[level], key=_natural):
            parent = _place_code(chain, values, level - 1, above[value]) if level else ""
            yield Code(_place_code(chain, values, level, value), parent, value)


def _place_code(chain: Sequence[str], values: Sequence[set[str]], level: int, value: str) -> str:
    """The value itself, unless a lower level uses it too; the finest level must keep the values of the data."""
    return f"{chain[level]}:{value}" if any(value in below for below in values[level + 1 :]) else value


def _variables(tables: Sequence[TableFacts], taken: set[str]) -> Iterator[DraftVariable]:
    names: set[str] = {GEOGRAPHY}
    for name in dict.fromkeys(column.name for table in tables for column in table.columns):
        holding = [table for table in tables if (column := table.column(name)) and _is_variable(column)]
        if not holding or name in taken:
            continue
        values = {
            value for table in holding if (column := table.column(name)) for value in column.values or ()
        }
        kinds = {column.kind for table in holding if (column := table.column(name))}
        variable = _unused(_word(name), names)
        names.add(variable)
        years = _years(name, kinds, values)
        rows = tuple(
            _age_rows(years) if years else (Code(value, "", "") for value in sorted(values, key=_natural))
        )
        levels = AGE_LEVELS if years else {}
        yield DraftVariable(
            variable,
            name,
            tuple(table.unit for table in holding),
            rows,
            {axis: level for axis, (level, _) in levels.items()},
            _readable(name).capitalize(),
            {axis: label for axis, (_, label) in levels.items()},
        )


def _readable(column: str) -> str:
    """The name of a column as a label, marital_status as marital status; empty where it is too long."""
    label = " ".join(re.split(r"[\W_]+", column)).strip().lower()
    return label if len(label) <= LONGEST_LABEL else ""


def _told_apart(variables: Sequence[DraftVariable]) -> tuple[DraftVariable, ...]:
    """The variables, without labels that another one has or is named by."""
    shown = Counter(text for one in variables for text in {one.name, one.label})
    return tuple(one if shown[one.label] == 1 else replace(one, label="") for one in variables)


def _is_variable(column: ColumnFacts) -> bool:
    if column.values is None or column.missing or column.unique or column.kind is Kind.OTHER:
        return False
    most = MOST_NUMBERS if column.kind is Kind.WHOLE else MOST_CODES
    return 1 <= len(column.values) <= most and not {"", TOTAL} & set(column.values)


def _years(name: str, kinds: set[Kind], values: set[str]) -> int:
    """The highest age if the column contains ages in years, else 0."""
    if kinds != {Kind.WHOLE} or not _AGES & set(re.split(r"[^a-z]+", name.lower())):
        return 0
    ages = [int(value) for value in values]
    return max(ages) if min(ages) >= 0 and max(ages) in OLDEST else 0


def _age_rows(oldest: int) -> Iterator[Code]:
    for start, end in _bands(BROAD_AGES, oldest):
        broad = f"Y{start}-{end}" if end < oldest else f"Y_GE{start}"
        yield Code(broad, "", f"{start} to {end} years" if end < oldest else f"{start} years and over")
        for low, high in _bands(range(start, end + 1, AGE_STEP), end):
            band = f"A{low}-{high}"
            yield Code(band, broad, f"{low} to {high} years")
            yield from (Code(str(age), band, f"{age} years") for age in range(low, high + 1))


def _bands(starts: Iterable[int], last: int) -> list[tuple[int, int]]:
    begins = [start for start in starts if start <= last]
    return list(zip(begins, [*(start - 1 for start in begins[1:]), last], strict=True))


def _cubes(tables: Sequence[TableFacts], variables: Sequence[DraftVariable]) -> Iterator[DraftCube]:
    """For each unit a table of few axes, and one that goes down to the finest place or to other variables."""
    labels = Labels(
        {one.name: one.label for one in variables if one.label},
        {f"{one.name}.{name}": text for one in variables for name, text in one.breakdown_labels.items()},
    )
    for number, table in enumerate(tables, start=1):
        usable = [variable for variable in variables if table.unit in variable.units]
        places = [variable for variable in usable if variable.name == GEOGRAPHY]
        plain = sorted((variable for variable in usable if variable.name != GEOGRAPHY), key=_interest)
        choices = [[_axis(variable, 1) for variable in (*places, *plain[:2])]]
        if plain and places and len(places[0].breakdowns) > 1:
            choices.append([_axis(places[0], len(places[0].breakdowns)), _axis(plain[0], 1)])
        elif len(plain) > 2:
            choices.append([_axis(variable, 1) for variable in (*places, *plain[2:4])])
        for place, axes in enumerate(filter(None, choices), start=1):
            title = labels.title(table.unit.capitalize(), axes)
            yield DraftCube(f"{number}.{place}", title, table.unit, tuple(axes))


def _interest(variable: DraftVariable) -> tuple[bool, bool, bool, int]:
    """Sex and age first, then what has few codes, last what has one."""
    size = variable.size(1)
    return variable.name != "SEX", not variable.name.startswith("AGE"), size <= 2, size


def _axis(variable: DraftVariable, level: int) -> str:
    name = next((name for name, depth in variable.breakdowns.items() if depth == level), None)
    return f"{variable.name}.{name}" if name else variable.name


def _notes(
    tables: Sequence[TableFacts],
    ids: Mapping[str, str | None],
    taken: set[str],
    variables: Sequence[DraftVariable],
) -> Iterator[str]:
    used = {(unit, variable.column) for variable in variables for unit in variable.units}
    for table in tables:
        if ids[table.unit] is None:
            yield (
                f"{table.unit}: no column identifies the records, so they are numbered in the order of the file; "
                "name an id column, or the noise changes when the order does"
            )
        for column in table.columns:
            if column.kind is Kind.WHOLE and column.name.lower() in _COUNTS and ids[table.unit] is None:
                yield (
                    f"{table.unit}: column {column.name!r} looks like a number of {table.unit} per line; each line is "
                    f"read as one record, so repeat the lines: SELECT unnest(range({column.name})), * .."
                )
            if column.name not in taken and (table.unit, column.name) not in used:
                yield f"{table.unit}: column {column.name!r} is left out: {_reason(column)}"


def _reason(column: ColumnFacts) -> str:
    if column.missing or (column.values and "" in column.values):
        return "some records have no value; give them a separate code to use it"
    if column.kind is Kind.OTHER:
        return "its values are neither text nor whole numbers"
    if column.values and TOTAL in column.values:
        return f"it uses the code {TOTAL}, which means the total"
    return "it has too many different values; group them to use it"


def _natural(value: str) -> tuple[int, int, str]:
    """Numbers by size, then texts by letter."""
    return (0, int(value), value) if re.fullmatch(r"-?\d{1,18}", value) else (1, 0, value)


def _word(name: str) -> str:
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return word.upper() if re.match(r"[A-Za-z]", word) else f"V_{word}".upper().rstrip("_")


def _unused(name: str, names: set[str]) -> str:
    number = 2
    found = name
    while found in names:
        found, number = f"{name}_{number}", number + 1
    return found


def programme_text(draft: Draft) -> str:
    """The whole file."""
    return (
        "\n".join([*_population(draft), *_variable_lines(draft), *_cube_lines(draft), *_rest(draft)]) + "\n"
    )


def _population(draft: Draft) -> Iterator[str]:
    yield "# A first draft: review and correct it, then run: discreet check programme.toml"
    yield ""
    yield "[population]"
    for table in draft.tables:
        yield f"{table.unit} = {_source(table, draft.ids[table.unit])}"
    numbered = {table.unit: _numbered(table) for table in draft.tables}
    for unit, key in ID_KEYS.items():
        if unit in draft.ids:
            yield f"{key} = {quote(draft.ids[unit] or numbered[unit])}"
    if draft.geography:
        yield f"geography = [{', '.join(quote(column) for column in draft.geography)}]  # coarse to fine"
    yield ""


def _source(table: TableFacts, own_id: str | None) -> str:
    """The table itself, or a query that numbers its records."""
    if own_id is not None:
        return quote(table.source)
    name = table.source.replace("'", "''")
    match format_of(Path(table.source)):
        case FileFormat.CSV:
            rows = f"read_csv('{name}', all_varchar = true)"
        case FileFormat.PARQUET:
            rows = f"'{name}'"
        case None:  # a folder
            rows = f"'{name}/**/*.parquet'"
    # text for the programme's author, not run here
    query = f"SELECT row_number() OVER () AS {_numbered(table)}, * FROM {rows}"  # noqa: S608
    return f"{{ query = {quote(query)} }}"


def _numbered(table: TableFacts) -> str:
    """A name for the number of a record that no column has."""
    name = ID_KEYS[table.unit].replace("_id", "_number")
    while table.column(name) is not None:
        name += "_"
    return name


def _variable_lines(draft: Draft) -> Iterator[str]:
    units = {table.unit for table in draft.tables}
    for variable in draft.variables:
        yield f"[variables.{variable.name}]"
        if variable.label:
            yield f"label = {quote(variable.label)}"
        yield f"column = {quote(variable.column)}"
        if set(variable.units) != units:
            yield f"units = [{', '.join(quote(unit) for unit in variable.units)}]"
        yield f"codelist = {quote(variable.file)}"
        yield _attribute(variable)
        if variable.is_place:
            yield "place = true"
        if variable.breakdowns:
            levels = ", ".join(f"{name} = {level}" for name, level in variable.breakdowns.items())
            yield f"breakdowns = {{ {levels} }}"
        if variable.breakdown_labels:
            labels = ", ".join(
                f"{name} = {quote(label)}" for name, label in variable.breakdown_labels.items()
            )
            yield f"breakdown_labels = {{ {labels} }}"
        yield ""


def _attribute(variable: DraftVariable) -> str:
    """Whose attribute a variable is, as far as its table shows it: that of a person may depend on the household."""
    if len(variable.units) == 1 and variable.units[0] != "persons":
        return f'of = "{HOLDERS[variable.units[0]]}"'
    return '# of = "person"   # or "family", "household", "dwelling": noise with a guarantee needs it'


def _cube_lines(draft: Draft) -> Iterator[str]:
    for cube in draft.cubes:
        yield "[[cubes]]"
        yield f"id = {quote(cube.id)}"
        yield f"title = {quote(cube.title)}"
        yield f"unit = {quote(cube.unit)}"
        yield f"axes = [{', '.join(quote(axis) for axis in cube.axes)}]"
        yield ""


def _rest(draft: Draft) -> Iterator[str]:
    yield "[noise]"
    yield 'kind = "cell-key"'
    yield "V = 2.0   # variance of the noise"
    yield "D = 5     # largest change of a count"
    yield "js = 0    # counts from 1 to js are never published"
    yield ""
    yield "[release]"
    yield '# title = "Census of population"'
    yield '# agency = "NSI"   # the id of your office in SDMX files'
    yield 'formats = ["parquet", "csv"]'
    if draft.notes:
        yield ""
        yield "# Please review:"
        yield from (f"# - {' '.join(note.split())}" for note in draft.notes)


def quote(text: str) -> str:
    """A TOML string."""
    return tomlkit.string(text).as_string()
