"""``discreet init``: draft a programme from microdata files, or from a table of counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from discreet.cli.output import say
from discreet.errors import Mistakes, Problem, mistake
from discreet.io.databases import open_source
from discreet.io.ending import putting
from discreet.population.look import look
from discreet.population.place_columns import related_columns
from discreet.programme.codelist import codelist, write_codelist
from discreet.programme.columns import unit_of
from discreet.programme.draft import programme_text
from discreet.programme.inference import Inferred, Role, Stated, infer
from discreet.programme.population import UNITS
from discreet.programme.proposal import GEOGRAPHY, Proposal, propose
from discreet.programme.sources import DeclaredSource, FileSource, resolve_source

PROGRAMME = "programme.toml"


def init(
    data: Annotated[
        list[str], typer.Argument(help="Microdata files (Parquet or CSV), one per unit: FILE or UNIT=FILE.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write into.")] = Path(),
    geography: Annotated[
        str | None,
        typer.Option("--geography", help="The columns of the places, coarse to fine: state,county,tract."),
    ] = None,
    person_id: Annotated[
        str | None, typer.Option("--person-id", help="The column that identifies the persons.")
    ] = None,
    household_id: Annotated[
        str | None, typer.Option("--household-id", help="The column that identifies the households.")
    ] = None,
    age: Annotated[
        str | None, typer.Option("--age", help="The column of ages in years, or of dates of birth.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="The column of survey weights.")] = None,
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="The separator of CSV files; found in them by default.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The encoding of CSV files; found in them by default.")
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", help="The decimal mark of CSV files, . or , ; found in them by default."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Report as JSON, for machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Draft a programme from microdata or a table of counts: programme.toml and a folder of codelists.

    What each column is follows from its contents: ids, households, places that nest, ages, weights, codes. The options
    override that. Nothing that exists is overwritten. Exit code 2: a file cannot be read or would be overwritten.
    """
    _refuse_present(out, [PROGRAMME])
    form = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    sources = {unit: _source(file, unit, form) for unit, file in _units(data).items()}
    stated = Stated(
        None if geography is None else tuple(part.strip() for part in geography.split(",") if part.strip()),
        person_id,
        household_id,
        age,
        weight,
    )
    inferred = infer([look(source, unit, _named(source, out)) for unit, source in sources.items()], stated)
    proposal = propose(inferred, _places(inferred, sources))
    written = _write(proposal, out)
    if json_:
        typer.echo(json.dumps(_as_json(proposal, written), ensure_ascii=False))
    elif not quiet:
        say(_report(proposal, out))


def _units(data: Iterable[str]) -> dict[str, str]:
    """The file of each unit: as given, by its name, or persons."""
    units: dict[str, str] = {}
    problems = []
    for given in data:
        unit, equals, rest = given.partition("=")
        if equals and unit not in UNITS and not Path(given).exists() and Path(rest).exists():
            remedy = f"write UNIT=FILE with one of {', '.join(UNITS)}"
            problems.append(Problem(rest, "", f"unknown unit {unit!r}", remedy))
            continue
        named, file = (unit, rest) if equals and unit in UNITS else (unit_of(Path(given).name), given)
        unit = named or "persons"
        if unit in units:
            remedy = f"write UNIT=FILE with one of {', '.join(UNITS)}"
            problems.append(Problem(file, "", f"contains {unit}, like {units[unit]}", remedy))
        units.setdefault(unit, file)
    if problems:
        raise Mistakes(problems)
    return {unit: units[unit] for unit in UNITS if unit in units}


def _places(inferred: Inferred, sources: Mapping[str, FileSource]) -> dict[str, str]:
    """The columns of codes that the data show to be places beside the geography, and how."""
    if inferred.counts or not inferred.geography:
        return {}
    found: dict[str, str] = {}
    for unit, source in sources.items():
        columns = {one.column for one in inferred.decisions if one.unit == unit and one.role is Role.CODES}
        records = open_source(source, unit)
        geography = [column for column in inferred.geography if column in records.schema.names]
        if geography and columns:
            household = inferred.ids.get("households")
            found |= {one.column: str(one) for one in related_columns(records, geography, columns, household)}
    return found


def _source(file: str, unit: str, form: Mapping[str, str | None]) -> FileSource:
    """The files, with the form of their text where it is stated."""
    place = str(Path(file).absolute())
    try:
        stated = {key: value for key, value in form.items() if value is not None}
        declared = DeclaredSource(file=place, **stated) if stated else place  # type: ignore[arg-type]
    except ValidationError:
        raise mistake(file, "--decimal", f"{form['decimal']!r}", "give . or ,") from None
    source = resolve_source(declared, Path.cwd(), file, unit if stated else "")
    if not isinstance(source, FileSource):
        raise TypeError(f"{file} is no file")
    return source


def _named(source: FileSource, out: Path) -> str:
    """How the programme names the files: relative to its folder."""
    return os.path.relpath(Path(source.given).absolute(), out.absolute())


def _write(proposal: Proposal, out: Path) -> list[str]:
    listed = [variable for variable in proposal.variables if variable.rows]
    files = [PROGRAMME, *(variable.file for variable in listed)]
    _refuse_present(out, files)
    trees = {variable.file: codelist(variable.name, variable.rows) for variable in listed}
    text = programme_text(proposal)
    folder = out / "codelists"
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, tree in trees.items():
            write_codelist(out / file, tree)
        with putting(str(out / PROGRAMME)):
            (out / PROGRAMME).write_text(text, encoding="utf-8")
    except BaseException:  # a part would only be refused as present by the next run
        for file in files:
            with suppress(OSError):  # what was wrong first is reported
                (out / file).unlink()
        for one in new:
            with suppress(OSError):
                one.rmdir()
        raise
    return files


def _refuse_present(out: Path, files: Iterable[str]) -> None:
    for name in files:
        if (out / name).exists():
            raise mistake(
                out / name, "", "exists already", "move it elsewhere or choose another --out folder"
            )


def _as_json(proposal: Proposal, written: list[str]) -> dict[str, object]:
    """What was decided, for machines."""
    inferred = proposal.inferred
    variables = [
        {
            "name": one.name,
            "column": one.column,
            "units": one.units,
            "levels": one.levels,
            "place": one.is_place or one.name == GEOGRAPHY,
            "bands": [str(limit) for limit in one.bands],
            "missing": one.missing,
        }
        for one in proposal.variables
    ]
    return {
        "files": written,
        "ids": dict(inferred.ids),
        "member_number": None if inferred.numbered is None else inferred.numbered[1],
        "geography": inferred.geography,
        "weight": inferred.weight,
        "count": inferred.counts,
        "variables": variables,
        "decisions": [
            {"unit": one.unit, "column": one.column, "role": one.role, "reason": one.reason, "of": one.of}
            for one in inferred.decisions
        ],
        "places": dict(proposal.places),
        "dialects": {table.unit: dict(table.dialect) for table in proposal.tables if table.dialect},
    }


def _report(proposal: Proposal, out: Path) -> str:
    inferred = proposal.inferred
    cubes = [f"  {cube.id}: {' x '.join(cube.axes)}" for cube in proposal.cubes]
    known = [f"{unit}: {column}" for unit, column in inferred.ids.items() if column]
    lines = [
        ("Ids", ", ".join(known)),
        ("Places", " > ".join(inferred.geography) or "none found; name their columns with --geography"),
        ("Weight", inferred.weight or ""),
        ("Counts", inferred.counts or ""),
        *(
            (
                f"Read {table.source} with",
                ", ".join(f"{key} {value!r}" for key, value in table.dialect.items()),
            )
            for table in proposal.tables
            if table.dialect
        ),
    ]
    left = [f"  {one.unit}: {one.column}: {one.reason}" for one in proposal.left_out()]
    return "\n".join(
        [
            f"Wrote {out / PROGRAMME} with {len(proposal.variables)} variables.",
            *(f"{name}: {text}" for name, text in lines if text),
            "Cubes to start from:",
            *cubes,
            *(["Left out:", *left] if left else []),
            f"Then run: discreet check {out / PROGRAMME}",
        ]
    )
