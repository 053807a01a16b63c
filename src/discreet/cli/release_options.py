"""Options that ``audit`` and ``attack`` share: measures left out, an earlier release, a map of two geographies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.differencing_areas import Crossing, read_crossing
from discreet.errors import mistake
from discreet.io.files import open_files
from discreet.programme.sources import file_source

WITHOUT = Annotated[
    list[str] | None,
    typer.Option("--without", help="Leave a measure out. Repeatable."),
]
EARLIER = Annotated[
    Path | None,
    typer.Option("--earlier", help="An earlier release of the same population, which is subtracted."),
]
LOOKUP = Annotated[
    str | None,
    typer.Option(
        "--lookup",
        help="A file of the overlapping areas of two variables; columns named as in --geographies.",
    ),
]
GEOGRAPHIES = Annotated[
    str, typer.Option("--geographies", help="The two variables of --lookup, e.g. GRID,LAU.")
]


def read_lookup(lookup: str | None, geographies: str) -> Crossing | None:
    """The map of two geographies; None where none is given."""
    if lookup is None and not geographies:
        return None
    names = [name.strip() for name in geographies.split(",")]
    if lookup is None or len(names) != 2 or not all(names):
        raise mistake("", "--lookup, --geographies", geographies or "missing", "give both, e.g. GRID,LAU")
    records = open_files(file_source(lookup, Path.cwd(), "", "--lookup"), "--lookup")
    return read_crossing(records, names[0], names[1])
