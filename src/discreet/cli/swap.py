"""``discreet swap``: exchange households and write the swapped microdata, log and report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import ENGINE, JSON, QUIET, THREADS, emit_json, say_note, say_wrapped, shown_progress
from discreet.engine.computing import computing
from discreet.errors import mistake
from discreet.io.secret import read_secret
from discreet.pipeline.swap import Swapped, write_swap
from discreet.programme.programme import load_programme
from discreet.swap.output import UNIT, PublicSummary


def swap(
    programme: Annotated[Path, typer.Argument(help="The programme file, with [swap].")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    out: Annotated[
        Path, typer.Option("--out", help="A new folder for the swapped microdata and the public summary.")
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="A new private folder for log and report; default: next to the secret file."
        ),
    ] = None,
    engine: ENGINE = None,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Exchange households at risk with similar ones elsewhere, and write microdata, log and report."""
    key = read_secret(secret, os.environ)
    private = report or _next_to(secret, out)
    loaded = load_programme(programme)
    with computing(loaded, engine) as where, shown_progress(quiet or json) as progress:
        done = write_swap(where.programme, key, out, private, threads, progress, where.engine)
    for conflict in () if json else done.figures.conflicts:
        say_note(f"Note: {conflict}")
    if json:
        emit_json(_for_machines(done))
    elif not quiet:
        say_wrapped(
            f"{done.microdata}: swapped microdata of {', '.join(done.records)}, and the public summary."
        )
        for line in _summary(done.summary):
            say_wrapped(line, 2)
        say_wrapped(f"Private log and report: {done.private}")


def _summary(stated: PublicSummary) -> Iterator[str]:
    """What the public summary states, in a line or two: nothing else may be shown, because output may be logged."""
    yield f"exchanged: {', '.join(stated.exchanged)} of {UNIT}"
    if stated.share is not None:
        at = ", ".join(f"{level} {share}" for level, share in stated.share_at.items())
        yield f"households swapped: {stated.share} (by level: {at})"


def _for_machines(done: Swapped) -> dict[str, object]:
    """Paths, and what could not be swapped; no counts, because output may be logged."""
    return {
        "microdata": str(done.microdata),
        "private": str(done.private),
        "units": list(done.records),
        "conflicts": list(done.figures.conflicts),
    }


def _next_to(secret: str, out: Path) -> Path:
    if secret.startswith(("env:", "fd:")):
        remedy = "give a folder for log and report with --report"
        raise mistake(secret, "private log", "no secret file next to which to store it", remedy)
    path = Path(secret)
    return path.with_name(f"{path.name}.{out.resolve().name}.swap")
