"""Writes a proposal as a programme: TOML with reasons beside it, and at the end what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import tomlkit

from discreet.programme.attributes import HOLDERS
from discreet.programme.facts import Kind, TableFacts
from discreet.programme.inference import AS_STATED, Role
from discreet.programme.population import ID_KEYS
from discreet.programme.proposal import GEOGRAPHY, DraftVariable, Proposal, dependent_pairs
from discreet.programme.sources import FileFormat, format_of

WIDTH = 110
SHORT = 60  # characters of a reason that fits beside what it explains
MOST_PAIRS = 12  # dependent variables that are listed


def programme_text(proposal: Proposal) -> str:
    """The whole file."""
    parts = [
        *_head(proposal),
        *([] if proposal.inferred.counts else _population(proposal)),
        *_variable_lines(proposal),
        *_cube_lines(proposal),
        *_noise(proposal),
        *_release(),
        *_left_out(proposal),
    ]
    return "\n".join(parts) + "\n"


def quote(text: str) -> str:
    """A TOML string."""
    return tomlkit.string(text).as_string()


def _comment(text: str) -> Iterator[str]:
    yield from (f"# {line}" for line in wrap(_printable(text), WIDTH - 2, break_long_words=False))


def _printable(text: str) -> str:
    """A text that a comment may have: names of columns may contain control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _head(proposal: Proposal) -> Iterator[str]:
    yield from _comment(
        "A first draft from the contents of the data. Each decision is explained beside it, and what is left out is "
        "at the end. Review it, then run: discreet check programme.toml"
    )
    if proposal.inferred.counts:
        yield from _comment(
            "The table has counts, not records: there are no ids, and no cell keys to draw the noise from, "
            "so the noise below has a privacy guarantee instead."
        )
    yield ""


def _population(proposal: Proposal) -> Iterator[str]:
    inferred = proposal.inferred
    yield "[population]"
    for table in proposal.tables:
        if inferred.ids[table.unit] is None:
            yield from _comment(_unidentified(proposal, table))
        yield f"{table.unit} = {_source(proposal, table)}"
    for unit, key in ID_KEYS.items():
        if unit in inferred.ids:
            column = inferred.ids[unit] or _numbered(next(t for t in proposal.tables if t.unit == unit))
            reason = _id_reason(proposal, unit, column)
            if len(reason) > SHORT:
                yield from _comment(f"{unit.capitalize()}: {reason}.")
            yield f"{key} = {quote(column)}" + (
                f"   # {_printable(reason)}" if 0 < len(reason) <= SHORT else ""
            )
    if proposal.geography:
        place = next(one for one in proposal.variables if one.name == GEOGRAPHY)
        yield from _comment(f"Places, coarse to fine: {place.reason}.")
        yield f"geography = [{', '.join(quote(column) for column in proposal.geography)}]"
    else:
        yield from _comment(
            "No column was taken for a place. If there is one, draft again with --geography COLUMN (several: coarse "
            "to fine, separated by commas): swapping, the audit of areas and the map of the table builder need it."
        )
    if inferred.weight:
        reason = next(one.reason for one in inferred.decisions if one.role is Role.WEIGHT)
        yield from _comment(f"Survey weights: {inferred.weight}, {reason}.")
        if reason == AS_STATED:
            yield f"weights = [{quote(inferred.weight)}]"
    yield ""


def _id_reason(proposal: Proposal, unit: str, column: str) -> str:
    found = [one for one in proposal.inferred.decisions if one.column == column and one.role is Role.ID]
    own = [one for one in found if one.unit == unit]
    return next((one.reason for one in own or found), "")


def _unidentified(proposal: Proposal, table: TableFacts) -> str:
    if table.unit == "persons" and proposal.inferred.numbered:
        household, number = proposal.inferred.numbered
        return f"No column identifies the records; {household} and {number} together do."
    return (
        f"No column identifies the {table.unit}, so they are numbered in the order of the file: name an id column, "
        "or the noise changes when the order does."
    )


def _source(proposal: Proposal, table: TableFacts) -> str:
    """The table itself, or a query that adds an id to its records."""
    if proposal.inferred.ids[table.unit] is not None:
        if not table.dialect:
            return quote(table.source)
        written = ", ".join(f"{key} = {quote(value)}" for key, value in table.dialect.items())
        return f"{{ file = {quote(table.source)}, {written} }}"
    name = table.source.replace("'", "''")
    match format_of(Path(table.source)):
        case FileFormat.CSV:
            options = "".join(f", {key} = '{value}'" for key, value in _read_csv(table))
            rows = f"read_csv('{name}', all_varchar = true{options})"
        case FileFormat.PARQUET:
            rows = f"'{name}'"
        case None:  # a folder
            rows = f"'{name}/**/*.parquet'"
    numbered = proposal.inferred.numbered if table.unit == "persons" else None
    value = f"concat_ws('-', {', '.join(map(_identifier, numbered))})" if numbered else "row_number() OVER ()"
    # text for the programme's author, not run here
    query = f"SELECT {value} AS {_numbered(table)}, *{_with_points(table)} FROM {rows}"  # noqa: S608
    return f"{{ query = {quote(query)} }}"


def _read_csv(table: TableFacts) -> Iterator[tuple[str, str]]:
    """The options of a query that reads a CSV file; its encodings are few."""
    if delimiter := table.dialect.get("delimiter"):
        yield "delim", delimiter
    if encoding := table.dialect.get("encoding"):
        yield "encoding", encoding if encoding.startswith("utf") else "latin-1"


def _with_points(table: TableFacts) -> str:
    """Replaces decimal commas, which a query does not know."""
    if table.dialect.get("decimal") != ",":
        return ""
    names = [_identifier(column.name) for column in table.columns if column.kind is Kind.DECIMAL]
    changed = ", ".join(f"replace({name}, ',', '.') AS {name}" for name in names)
    return f" REPLACE ({changed})" if changed else ""


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _numbered(table: TableFacts) -> str:
    """A name for the made id of a record that no column has."""
    name = ID_KEYS[table.unit].replace("_id", "_number")
    while table.column(name) is not None:
        name += "_"
    return name


def _variable_lines(proposal: Proposal) -> Iterator[str]:
    units = {table.unit for table in proposal.tables}
    if not proposal.inferred.counts and "persons" in units:
        yield from _comment(
            'Noise with a guarantee needs to know whose attribute a variable is: add of = "person", "family", '
            '"household" or "dwelling". A variable of persons may follow from their household: it is not decided here.'
        )
        yield ""
    for variable in proposal.variables:
        yield f"[variables.{variable.name}]"
        if variable.label:
            yield f"label = {quote(variable.label)}"
        yield f"column = {quote(variable.column)}   # {_printable(_why(variable))}"
        if set(variable.units) != units:
            yield f"units = [{', '.join(quote(unit) for unit in variable.units)}]"
        yield from _coding(variable)
        yield from _attribute(proposal, variable)
        if variable.is_place:
            how = _printable(proposal.places[variable.column])
            yield f"place = true   # column {how}: a swap exchanges it too"
        yield from _breakdowns(variable)
        yield ""


def _coding(variable: DraftVariable) -> Iterator[str]:
    """How values become codes."""
    if variable.reference_day is not None:
        yield "# dates of birth: put the reference day of the census here; the newest date of the data is the draft"
        yield f"reference_day = {quote(variable.reference_day.isoformat())}"
    if variable.bands:
        yield f"bands = [{', '.join(map(_number, variable.bands))}]   # lower limits; the last band is open"
    else:
        yield f"codelist = {quote(variable.file)}"
    if variable.missing is not None:
        yield f"missing = {quote(variable.missing)}   # the code of records without a value"
    if variable.missing_values:
        values = ", ".join(quote(value) for value in variable.missing_values)
        yield f"missing_values = [{values}]   # they look like codes for no value"


def _breakdowns(variable: DraftVariable) -> Iterator[str]:
    if variable.breakdowns:
        levels = ", ".join(f"{name} = {level}" for name, level in variable.breakdowns.items())
        yield f"breakdowns = {{ {levels} }}"
    if variable.breakdown_labels:
        labels = ", ".join(f"{name} = {quote(label)}" for name, label in variable.breakdown_labels.items())
        yield f"breakdown_labels = {{ {labels} }}"


def _why(variable: DraftVariable) -> str:
    if variable.name == GEOGRAPHY or len(variable.levels) > 1:
        above = ", ".join(reversed(variable.levels[:-1]))
        return f"the finest column; above it {above}" if above else "a place"
    return variable.reason


def _number(limit: float) -> str:
    if math.isinf(limit):
        return "-inf"
    return str(limit)


def _attribute(proposal: Proposal, variable: DraftVariable) -> Iterator[str]:
    """Whose attribute a variable is, as far as its table shows it: that of a person may depend on the household."""
    if proposal.inferred.counts:
        yield 'of = "person"   # correct it where it is an attribute of the household: the guarantee rests on it'
    elif len(variable.units) == 1 and variable.units[0] != "persons":
        yield f'of = "{HOLDERS[variable.units[0]]}"'


def _cube_lines(proposal: Proposal) -> Iterator[str]:
    pairs = list(dict.fromkeys(dependent_pairs(proposal)))
    if pairs:
        shown = "; ".join(f"{one} from {other}" for one, other in pairs[:MOST_PAIRS])
        more = f"; and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
        yield from _comment(f"Do not cross variables that follow from each other: {shown}{more}.")
    for cube in proposal.cubes:
        yield "[[cubes]]"
        yield f"id = {quote(cube.id)}"
        yield f"title = {quote(cube.title)}"
        yield f"unit = {quote(cube.unit)}"
        yield f"axes = [{', '.join(quote(axis) for axis in cube.axes)}]"
        if cube.weight:
            yield f"weight = {quote(cube.weight)}   # remove it to count the records themselves"
        if proposal.inferred.counts:
            (table,) = proposal.tables
            yield f"counts = {{ file = {quote(table.source)}, count = {quote(proposal.inferred.counts)} }}"
        yield ""


def _noise(proposal: Proposal) -> Iterator[str]:
    yield "[noise]"
    if proposal.inferred.counts:
        yield 'kind = "geometric"'
        yield "epsilon = 1   # the budget of the whole release: choose it, see discreet advise"
    else:
        yield 'kind = "cell-key"'
        yield "V = 2.0   # variance of the noise"
        yield "D = 5     # largest change of a count"
        yield "js = 0    # counts from 1 to js are never published"
    yield ""


def _release() -> Iterator[str]:
    yield "[release]"
    yield '# title = "Census of population"'
    yield '# agency = "NSI"   # the id of your office in SDMX files'
    yield 'formats = ["parquet", "csv"]'


def _left_out(proposal: Proposal) -> Iterator[str]:
    found = proposal.left_out()
    if found:
        yield ""
        yield "# Left out, and why:"
        for one in found:
            text = _printable(f"{one.unit}: {one.column}: {one.reason}")
            lines = wrap(text, WIDTH - 4, break_long_words=False)
            yield from (f"# {'- ' if k == 0 else '  '}{line}" for k, line in enumerate(lines))
