"""``discreet check``: report every mistake in a programme and its data; writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, QUIET, THREADS, emit_json, shown_progress
from discreet.errors import Mistakes
from discreet.pipeline.check import check_data, check_notes, reading_notes
from discreet.programme.programme import inspect_programme

WRONG_INPUT = 2


def check(
    programme: Annotated[Path, typer.Argument(help="The programme file.")],
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Report every mistake in the programme file and in the data that it names. Exit code 2 if there is any."""
    inspected = inspect_programme(programme)
    problems = inspected.problems
    if inspected.sound is not None:
        with shown_progress(quiet or json) as progress:
            found = check_data(inspected.sound, threads, progress)
        # a split that fits no cube is found in the file, and again by the mechanism
        reported = {(problem.value, problem.remedy) for problem in problems}
        fresh = (one for one in found if one.file or (one.value, one.remedy) not in reported)
        problems = (*problems, *fresh)
    notes = [] if inspected.sound is None else list(reading_notes(inspected.sound))
    if inspected.sound is not None and not problems:
        notes += check_notes(inspected.sound)
    if json:
        emit_json(
            {"sound": not problems, "problems": [vars(problem) for problem in problems], "notes": notes}
        )
        if problems:
            raise typer.Exit(WRONG_INPUT)
        return
    if inspected.sound is not None and not problems and not quiet:
        typer.echo(f"{programme}: no mistakes. {len(inspected.sound.cubes)} cubes.")
    for note in () if quiet else notes:
        typer.echo(note)
    if problems:
        raise Mistakes(problems)
