"""``discreet attack``: a release attacked from its public files only, or one's own table builder by its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.attack import ATTACKS, Outsider
from discreet.audit.attack import attack as run_attack
from discreet.audit.evidence import published, refuse_adjusted, same_ptable, same_secret, supposing
from discreet.audit.session import RATE, REQUESTS, SECONDS, Session, attack_server
from discreet.cli.noise_options import ptable_law
from discreet.cli.options import PTABLE
from discreet.cli.output import JSON, QUIET, THREADS, emit_json, say_finding, shown_progress
from discreet.cli.release_options import EARLIER, GEOGRAPHIES, LOOKUP, WITHOUT, read_lookup
from discreet.release.reader import open_release
from discreet.report.findings import attack_lines, session_lines


def attack(
    release: Annotated[
        str, typer.Argument(help="The release folder, or http://.. of a table builder that you run.")
    ],
    ptable: PTABLE = None,
    variance: Annotated[
        float | None, typer.Option("--variance", help="The variance of the noise, if known.")
    ] = None,
    bound: Annotated[
        int | None, typer.Option("--bound", help="The largest change, known or assumed.", min=0)
    ] = None,
    earlier: EARLIER = None,
    lookup: LOOKUP = None,
    geographies: GEOGRAPHIES = "",
    place: Annotated[str | None, typer.Option("--place", help="The variable of the areas.")] = None,
    areas: Annotated[int, typer.Option("--areas", help="Number of areas to reconstruct.", min=1)] = 10,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="Work to solve an area, in seconds of an idle machine.", min=0.1),
    ] = 5.0,
    without: WITHOUT = None,
    axes: Annotated[
        str, typer.Option("--axes", help="Table builder: the breakdowns of the table, by commas.")
    ] = "",
    filtered: Annotated[
        str, typer.Option("--filter", help="Table builder: the variable of the filters.")
    ] = "",
    requests: Annotated[
        int, typer.Option("--requests", help="Table builder: requests at most.", min=3, max=1_000_000)
    ] = REQUESTS,
    duration: Annotated[
        float, typer.Option("--duration", help="Table builder: seconds at most.", min=1)
    ] = SECONDS,
    rate: Annotated[
        float, typer.Option("--rate", help="Table builder: requests per second at most.", min=0.01, max=1000)
    ] = RATE,
    own_server: Annotated[
        bool,
        typer.Option("--own-server", help="Confirm that a table builder on another machine is your own."),
    ] = False,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Report what anyone with the public files can find out, and what else they would need to know for more."""
    if release.startswith(("http://", "https://")):
        session = Session(
            address=release.rstrip("/"),
            axes=tuple(name.strip() for name in axes.split(",") if name.strip()),
            filtered=filtered,
            requests=requests,
            seconds=duration,
            rate=rate,
            variance=variance,
            own_server=own_server,
        )
        _attack_server(session, json=json, quiet=quiet)
        return
    opened = open_release(Path(release))
    seen = supposing(published(opened), None if ptable is None else ptable_law(ptable), variance)
    before = None if earlier is None else open_release(earlier)
    refuse_adjusted(opened, fitted=True)
    if before is not None:
        refuse_adjusted(before)
    with shown_progress(quiet or json) as progress:
        outsider = Outsider(
            seen,
            None if before is None else published(before),
            before is not None and same_secret(before, opened),
            read_lookup(lookup, geographies),
            bound,
            place,
            areas,
            seconds,
            threads,
            progress,
            same_ptable=before is None or same_ptable(before, opened),
        )
        found = run_attack(outsider, without or ())
    if json:
        emit_json({"release": seen.name, **dict(found.items())})
    elif not quiet:
        for line in attack_lines(seen, found):
            say_finding(line)


def _attack_server(session: Session, *, json: bool, quiet: bool) -> None:
    found = attack_server(session)
    if json:
        emit_json({"address": session.address, **found.as_json()})
    elif not quiet:
        for line in session_lines(session.address, found):
            say_finding(line)


attack.__doc__ = f"{attack.__doc__}\n\n    Attacks: {', '.join(ATTACKS)}."
