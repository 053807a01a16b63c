"""Writes a drafted programme as TOML with remarks for the person who completes it; it makes no guesses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from discreet.schema.declared import ID_KEYS
from discreet.schema.draft import Draft, TableFacts
from discreet.schema.sources import FileFormat, format_of


def programme_text(draft: Draft) -> str:
    """The whole file."""
    return "\n".join([*_population(draft), *_variables(draft), *_cubes(draft), *_rest(draft)]) + "\n"


def _population(draft: Draft) -> Iterator[str]:
    yield "# A first draft: read it through, correct it, then run: discreet check programme.toml"
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


def _variables(draft: Draft) -> Iterator[str]:
    units = {table.unit for table in draft.tables}
    for variable in draft.variables:
        yield f"[variables.{variable.name}]"
        if variable.label:
            yield f"label = {quote(variable.label)}"
        yield f"column = {quote(variable.column)}"
        if set(variable.units) != units:
            yield f"units = [{', '.join(quote(unit) for unit in variable.units)}]"
        yield f"codelist = {quote(variable.file)}"
        if variable.breakdowns:
            levels = ", ".join(f"{name} = {level}" for name, level in variable.breakdowns.items())
            yield f"breakdowns = {{ {levels} }}"
        if variable.breakdown_labels:
            labels = ", ".join(
                f"{name} = {quote(label)}" for name, label in variable.breakdown_labels.items()
            )
            yield f"breakdown_labels = {{ {labels} }}"
        yield ""


def _cubes(draft: Draft) -> Iterator[str]:
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
    yield 'formats = ["parquet", "csv"]'
    if draft.notes:
        yield ""
        yield "# To look at:"
        yield from (f"# - {' '.join(note.split())}" for note in draft.notes)


def quote(text: str) -> str:
    """A TOML string: like JSON's, which leaves only the delete character bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
