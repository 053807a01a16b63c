"""``discreet init``: draft a programme from microdata files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.databases import open_source
from discreet.population.look import look
from discreet.population.place_columns import related_columns
from discreet.programme.codelist import codelist, write_codelist
from discreet.programme.draft import (
    GEOGRAPHY,
    Draft,
    TableFacts,
    draft,
    programme_text,
    unit_of,
    with_places,
)
from discreet.programme.population import UNITS
from discreet.programme.sources import FileSource, file_source

PROGRAMME = "programme.toml"


def init(
    data: Annotated[
        list[str], typer.Argument(help="Microdata files (Parquet or CSV), one per unit: FILE or UNIT=FILE.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write into.")] = Path(),
    json_: Annotated[bool, typer.Option("--json", help="Report as JSON, for machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Draft a programme from microdata: programme.toml and a folder of codelists.

    Nothing that exists is overwritten. Exit code 2: a file cannot be read or would be overwritten.
    """
    _refuse_present(out, [PROGRAMME])
    files = _units(data)
    proposed = _with_places(draft([_look(unit, file, out) for unit, file in files.items()]), files)
    written = _write(proposed, out)
    if json_:
        typer.echo(json.dumps({"files": written, "notes": proposed.notes}, ensure_ascii=False))
    elif not quiet:
        typer.echo(_report(proposed, out))


def _units(data: Iterable[str]) -> dict[str, str]:
    """The file of each unit: as given, by its name, or persons."""
    units: dict[str, str] = {}
    problems = []
    for given in data:
        unit, equals, rest = given.partition("=")
        named, file = (unit, rest) if equals and unit in UNITS else (unit_of(Path(given).name), given)
        unit = named or "persons"
        if unit in units:
            remedy = f"write UNIT=FILE with one of {', '.join(UNITS)}"
            problems.append(Problem(file, "", f"contains {unit}, like {units[unit]}", remedy))
        units.setdefault(unit, file)
    if problems:
        raise Mistakes(problems)
    return {unit: units[unit] for unit in UNITS if unit in units}


def _with_places(proposed: Draft, files: Mapping[str, str]) -> Draft:
    """Declare the variables that the data show to be places beside the geography."""
    columns = {one.column for one in proposed.variables if one.name != GEOGRAPHY} - set(proposed.geography)
    found: dict[str, str] = {}
    for unit, file in files.items():
        records = open_source(_source(file), unit)
        geography = [column for column in proposed.geography if column in records.schema.names]
        if geography:
            household = proposed.ids.get("households")
            found |= {one.column: str(one) for one in related_columns(records, geography, columns, household)}
    return with_places(proposed, found)


def _source(file: str) -> FileSource:
    return file_source(str(Path(file).absolute()), Path.cwd(), file, "")


def _look(unit: str, file: str, out: Path) -> TableFacts:
    return look(_source(file), unit, os.path.relpath(Path(file).absolute(), out.absolute()))


def _write(proposed: Draft, out: Path) -> list[str]:
    files = [PROGRAMME, *(variable.file for variable in proposed.variables)]
    _refuse_present(out, files)
    (out / "codelists").mkdir(parents=True, exist_ok=True)
    for variable in proposed.variables:
        write_codelist(out / variable.file, codelist(variable.name, variable.rows))
    (out / PROGRAMME).write_text(programme_text(proposed), encoding="utf-8")
    return files


def _refuse_present(out: Path, files: Iterable[str]) -> None:
    for name in files:
        if (out / name).exists():
            raise mistake(
                out / name, "", "exists already", "move it elsewhere or choose another --out folder"
            )


def _report(proposed: Draft, out: Path) -> str:
    cubes = [f"  {cube.id}: {' x '.join(cube.axes)}" for cube in proposed.cubes]
    notes = ["Please review:", *(f"  {note}" for note in proposed.notes)] if proposed.notes else []
    return "\n".join(
        [
            f"Wrote {out / PROGRAMME} and {len(proposed.variables)} codelists. Cubes to start from:",
            *cubes,
            *notes,
            f"Then run: discreet check {out / PROGRAMME}",
        ]
    )
