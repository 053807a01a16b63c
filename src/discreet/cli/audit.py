"""``discreet audit``: what a release discloses, measured with the confidential data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.audit import MEASURES
from discreet.audit.case import recognise
from discreet.audit.differencing_areas import Crossing, require_areas
from discreet.audit.evidence import published, refuse_adjusted
from discreet.cli.output import (
    ENGINE,
    FAILED,
    JSON,
    QUIET,
    THREADS,
    emit_json,
    say,
    say_finding,
    shown_progress,
)
from discreet.cli.release_options import EARLIER, GEOGRAPHIES, LOOKUP, WITHOUT, read_lookup
from discreet.engine.computing import computing
from discreet.errors import mistake
from discreet.io.atomic_folder import require_free
from discreet.io.secret import read_secret
from discreet.page.charts import require_room
from discreet.pipeline.audit import (
    REPORT,
    Before,
    audit_release,
    require_known,
    require_outside,
    write_audit,
)
from discreet.programme.programme import load_programme
from discreet.programme.sources import hadoop_scheme
from discreet.release.reader import Release, open_release
from discreet.report.confidential import AUDIT_PAGE, PUBLIC_PAGE
from discreet.report.findings import audit_lines


def audit(
    release: Annotated[
        str,
        typer.Argument(help="The release folder; with Spark also an address such as hdfs://host/release."),
    ],
    programme: Annotated[Path, typer.Option("--programme", help="The programme that made it.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the report, which is confidential.")
    ] = None,
    earlier: EARLIER = None,
    earlier_programme: Annotated[
        Path | None,
        typer.Option(
            "--earlier-programme",
            help="The programme that made the earlier release: differences are compared with the true counts of both.",
        ),
    ] = None,
    earlier_secret: Annotated[
        str | None,
        typer.Option(
            "--earlier-secret",
            help="The secret of the earlier release, if it is not the same as --secret.",
        ),
    ] = None,
    lookup: LOOKUP = None,
    geographies: GEOGRAPHIES = "",
    without: WITHOUT = None,
    engine: ENGINE = None,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Recount the confidential data, attack the release with full knowledge, and check its gates.

    Exit code 0: every declared gate is passed. 1: one is broken. 2: release, programme and secret do not match.
    """
    key = read_secret(secret, os.environ)
    require_known(without or ())
    if out is not None:
        require_free(out, "--out")
        require_room()
    crossing = read_lookup(lookup, geographies)
    if not hadoop_scheme(release):  # refused before Spark is started
        _opened(Path(release), crossing, out)
    _require_together(earlier, earlier_programme, earlier_secret)
    declared = load_programme(programme)
    before = None
    if earlier is not None:
        its_key = key if earlier_secret is None else read_secret(earlier_secret, os.environ)
        its_programme = None if earlier_programme is None else load_programme(earlier_programme)
        before = Before(earlier.resolve(), its_programme, its_key)
    work = programme.resolve().parent if out is None else out.resolve().parent
    with (
        computing(declared, engine) as where,
        where.published_release(release) as folder,
        shown_progress(quiet or json) as progress,
    ):
        opened = _opened(folder, crossing, out)
        run = recognise(where.programme, key, opened, threads, progress, where.engine)
        found = audit_release(run, opened, without or (), before, crossing, work)
        if out is not None:
            write_audit(found, out, folder, threads, progress)
    if json:
        emit_json(found)
    elif not quiet:
        for line in audit_lines(found):
            say_finding(line)
        if out is not None:
            say(f"Report: {out / AUDIT_PAGE}; public: {out / PUBLIC_PAGE}; JSON: {out / REPORT}")
    if not found.passed:
        raise typer.Exit(FAILED)


audit.__doc__ = f"{audit.__doc__}\n    Measures: {', '.join(MEASURES)}."


def _opened(folder: Path, crossing: Crossing | None, out: Path | None) -> Release:
    """The release, if it can be audited and the report is not written into it."""
    opened = open_release(folder)
    refuse_adjusted(opened, fitted=True)
    if out is not None:
        require_outside(out, folder)
    if crossing is not None:
        require_areas(published(opened), crossing)
    return opened


def _require_together(earlier: Path | None, programme: Path | None, secret: str | None) -> None:
    """Refuse options of an earlier release that are given without it."""
    if earlier is None and (programme is not None or secret is not None):
        name = "--earlier-secret" if programme is None else "--earlier-programme"
        raise mistake("", name, "without --earlier", "give the folder of the earlier release with --earlier")
    if programme is None and secret is not None:
        remedy = "give the programme of the earlier release with --earlier-programme"
        raise mistake("", "--earlier-secret", "without --earlier-programme", remedy)
