"""``discreet audit``: what a release gives away, measured with the confidential side; it owns the words alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.audit import MEASURES
from discreet.audit.case import open_case
from discreet.cli.findings import audit_lines
from discreet.cli.output import JSON, QUIET, THREADS, WANTING, emit_json, shown_progress
from discreet.io.atomic_folder import require_free
from discreet.io.secret import read_secret
from discreet.pipeline.audit import REPORT, require_known, require_outside, write_audit
from discreet.pipeline.audit import audit as run_audit
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.report.confidential import AUDIT_PAGE, PUBLIC_PAGE

WITHOUT = Annotated[
    list[str] | None,
    typer.Option("--without", help="Leave a measure out; may be given several times."),
]


def audit(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    programme: Annotated[Path, typer.Option("--programme", help="The programme that made it.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the report, which is confidential.")
    ] = None,
    without: WITHOUT = None,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Count the truth again, attack the release with all that is known, and judge its gates.

    Exit code 0: every declared gate holds. 1: one is broken. 2: something does not belong together.
    """
    key, opened = read_secret(secret, os.environ), open_release(release)
    require_known(without or ())
    if out is not None:
        require_outside(out, release)
        require_free(out, "--out")
    with shown_progress(quiet or json) as progress:
        case = open_case(load_programme(programme), key, opened, threads, progress)
        found = run_audit(case, without or (), progress)
        if out is not None:
            write_audit(found, out, release, threads, progress)
    if json:
        emit_json(found)
    elif not quiet:
        for line in audit_lines(found):
            typer.echo(line)
        if out is not None:
            typer.echo(
                f"Report: {out / AUDIT_PAGE}; for everybody: {out / PUBLIC_PAGE}; for machines: {out / REPORT}"
            )
    if not found.passed:
        raise typer.Exit(WANTING)


audit.__doc__ = f"{audit.__doc__}\n    Measures: {', '.join(MEASURES)}."
