"""``discreet check``: say everything that is wrong with a programme and its data; it writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, QUIET, THREADS, emit_json, shown_progress
from discreet.errors import Mistakes
from discreet.pipeline.check import check_data
from discreet.schema.programme import load_programme

WRONG_INPUT = 2


def check(
    programme: Annotated[Path, typer.Argument(help="The programme file.")],
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Say every mistake in the programme file and, once it is sound, in the data that it names. Exit code 2 if any."""
    try:
        loaded = load_programme(programme)
        with shown_progress(quiet or json) as progress:
            problems = tuple(check_data(loaded, threads, progress))
    except Mistakes as mistakes:
        problems = mistakes.problems
    if json:
        emit_json({"sound": not problems, "problems": [vars(problem) for problem in problems]})
    else:
        for problem in problems:
            typer.echo(str(problem), err=True)
        if not problems and not quiet:
            typer.echo(f"{programme}: sound. {len(loaded.cubes)} cubes.")
    if problems:
        raise typer.Exit(WRONG_INPUT)
