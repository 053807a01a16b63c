"""``discreet utility``: what releases are worth against the truth, alone or side by side; it owns the words alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.audit.utility import Utility, UtilityRule, side_by_side
from discreet.audit.utility import utility as measure
from discreet.cli.output import JSON, QUIET, THREADS, emit_json, shown_progress
from discreet.cli.utility_words import compared_lines, utility_lines
from discreet.engine.secret import read_secret
from discreet.errors import mistake
from discreet.pipeline.case import Case, open_case
from discreet.pipeline.progress import Progress
from discreet.release.read import open_release
from discreet.schema.programme import load_programme


def utility(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    programme: Annotated[Path, typer.Option("--programme", help="The programme that made it.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another release to compare; may be given several times."),
    ] = None,
    beside_programmes: Annotated[
        list[Path] | None,
        typer.Option("--with-programme", help="The programme of each of these, in their order."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="A variable whose categories are looked at in small areas, as SEX.")
    ] = "",
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Compare every published count with the truth: errors realised and expected, small areas, totals, associations.

    Releases that are compared are made with one secret. The result is confidential: publish no part of it unread.
    """
    key = read_secret(secret, os.environ)
    pairs = [(release, programme), *_paired(beside or [], beside_programmes or [])]
    found: dict[str, Utility] = {}
    with shown_progress(quiet or json) as progress:
        for folder, declared in pairs:
            case = open_case(load_programme(declared), key, open_release(folder), threads, progress)
            found[_name(folder, case, found)] = _measured(case, by, progress)
    if json:
        emit_json(_summary(found))
    elif not quiet:
        _show(found)


def _paired(releases: list[Path], programmes: list[Path]) -> list[tuple[Path, Path]]:
    if len(releases) != len(programmes):
        said = f"given {len(programmes)} times for {len(releases)} releases"
        raise mistake("", "--with-programme", said, "give one for each --with")
    return list(zip(releases, programmes, strict=True))


def _measured(case: Case, by: str, progress: Progress) -> Utility:
    seen = case.published
    if by and by not in seen.variables:
        raise mistake("", "--by", by, f"choose from {', '.join(seen.variables)}")
    return measure(seen, case.truth, UtilityRule(areas=seen.places, by=by), progress)


def _name(folder: Path, case: Case, taken: dict[str, Utility]) -> str:
    """What a release is called beside others: its folder's name, the path or a number where that is not enough."""
    name = folder.resolve().name or case.published.name
    return next(one for one in (name, str(folder), f"{folder} ({len(taken) + 1})") if one not in taken)


def _summary(found: dict[str, Utility]) -> dict[str, Any]:
    first = next(iter(found))
    told = {"release": first, **found[first].summary()}
    if len(found) == 1:
        return told
    others = {name: one.summary() for name, one in found.items() if name != first}
    return {**told, "with": others, "side_by_side": side_by_side(found)}


def _show(found: dict[str, Utility]) -> None:
    for name, one in found.items():
        typer.echo(f"{name}:")
        for line in utility_lines(one):
            typer.echo(line)
    if len(found) > 1:
        for line in compared_lines(side_by_side(found)):
            typer.echo(line)
