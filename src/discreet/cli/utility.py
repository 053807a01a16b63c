"""``discreet utility``: errors of published counts, for one release or several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.case import Case, open_counts
from discreet.audit.utility import Utility, side_by_side, utility_by
from discreet.cli.output import JSON, QUIET, THREADS, emit_json, say, shown_progress
from discreet.errors import mistake
from discreet.io.secret import read_secret
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.report.utility_lines import compared_lines, utility_lines


def utility(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    programme: Annotated[Path, typer.Option("--programme", help="The programme that made it.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another release to compare; repeatable."),
    ] = None,
    other_programmes: Annotated[
        list[Path] | None,
        typer.Option("--with-programme", help="The programme of each --with, in their order."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="A variable whose categories are compared in small areas, e.g. SEX.")
    ] = "",
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Compare every published count with the true one: errors realised and expected, small areas, totals, associations.

    All releases must have the same secret. The result is confidential: review it before publishing any part.
    """
    key = read_secret(secret, os.environ)
    pairs = [(release, programme), *_paired(others or [], other_programmes or [])]
    found: dict[str, Utility] = {}
    cases: list[Case] = []
    with shown_progress(quiet or json) as progress:
        for folder, declared in pairs:
            case = open_counts(load_programme(declared), key, open_release(folder), threads, progress, cases)
            cases.append(case)
            found[_name(folder, case, found)] = utility_by(case.published, case.truth, by, progress)
    if json:
        emit_json(_document(found))
    elif not quiet:
        _show(found)


def _paired(releases: list[Path], programmes: list[Path]) -> list[tuple[Path, Path]]:
    if len(releases) != len(programmes):
        value = f"given {len(programmes)} times for {len(releases)} releases"
        raise mistake("", "--with-programme", value, "give one for each --with")
    return list(zip(releases, programmes, strict=True))


def _name(folder: Path, case: Case, taken: dict[str, Utility]) -> str:
    """The name of a release among others: its folder's name, the path or a number where that is not enough."""
    name = folder.resolve().name or case.published.name
    return next(one for one in (name, str(folder), f"{folder} ({len(taken) + 1})") if one not in taken)


def _document(found: dict[str, Utility]) -> dict[str, object]:
    first = next(iter(found))
    first_release = {"release": first, **found[first].as_json()}
    if len(found) == 1:
        return first_release
    others = {name: one for name, one in found.items() if name != first}
    return {**first_release, "with": others, "side_by_side": side_by_side(found)}


def _show(found: dict[str, Utility]) -> None:
    for name, one in found.items():
        say(f"{name}:")
        for line in utility_lines(one):
            say(line)
    if len(found) > 1:
        for line in compared_lines(side_by_side(found)):
            say(line)
