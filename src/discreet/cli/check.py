"""``discreet check``: report every mistake in a programme and its data; writes nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import (
    ANOTHER_PTABLE,
    ENGINE,
    JSON,
    QUIET,
    REGISTER,
    THREADS,
    emit_json,
    numbered,
    say,
    shown_progress,
)
from discreet.cli.protect import (
    ACCEPT,
    ACCOUNT,
    EARLIER,
    LEDGER,
    PRIVATE,
    private_place,
    register_of,
    spending_of,
)
from discreet.engine.computing import computing
from discreet.errors import DiscreetError, Mistakes, Problem, mistake
from discreet.io.secret import read_secret
from discreet.pipeline.check import Intention, judged
from discreet.pipeline.earlier import EarlierReleases
from discreet.pipeline.judgement import problems_of
from discreet.programme.programme import Programme, inspect_programme

WRONG_INPUT = 2
UNKNOWN = (
    "Not judged here: gates, and what the release reveals beside an earlier one; `discreet protect --report-only` "
    "judges both."
)


def check(
    programme: Annotated[Path, typer.Argument(help="The programme file.")],
    secret: Annotated[
        str,
        typer.Option(
            "--secret",
            help="The secret of the release: a file, env:NAME or fd:NUMBER. With it the register, the ledger and the "
            "places of files are judged too.",
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="The release folder that protect would write or replace.")
    ] = None,
    private: PRIVATE = None,
    ledger: LEDGER = "",
    account: ACCOUNT = "",
    register: REGISTER = None,
    another_ptable: ANOTHER_PTABLE = False,
    earlier: EARLIER = None,
    accept_corrections: ACCEPT = False,
    engine: ENGINE = None,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Report every mistake that protect would refuse, in the programme file, its data and what they need. Exit code 2
    if there is any. With the options of protect that a release would be made with, also in these.
    """
    _only_with_secret(secret, out, private, ledger, account, register, earlier)
    inspected = inspect_programme(programme)
    problems, intended = list(inspected.problems), None
    notes: list[str] = []
    if inspected.sound is not None:
        if secret:
            beside = EarlierReleases(tuple(earlier or ()), accept_corrections)
            intended = _intended(
                inspected.sound,
                secret,
                out,
                private,
                ledger,
                account,
                register,
                beside,
                another_ptable,
                problems,
            )
        with computing(inspected.sound, engine) as where, shown_progress(quiet or json) as progress:
            if intended is not None:
                intended = replace(intended, engine=where.engine)
            problems, notes = judged(problems, where.programme, threads, progress, intended, where.engine)
        if not problems and inspected.sound.gates.declared:
            notes.append(UNKNOWN)
    if json:
        emit_json(
            {"sound": not problems, "problems": [vars(problem) for problem in problems], "notes": notes}
        )
        if problems:
            raise typer.Exit(WRONG_INPUT)
        return
    if inspected.sound is not None and not problems and not quiet:
        say(f"{programme}: no mistakes. {numbered(len(inspected.sound.cubes), 'cube')}.")
    for note in () if quiet else notes:
        say(note)
    if problems:
        raise Mistakes(problems)


def _only_with_secret(secret: str, *others: object) -> None:
    if not secret and any(others):
        remedy = "add --secret: register, ledger and private manifest are judged with it"
        raise mistake("", "--secret", "is missing, and options of a release are given", remedy)


def _intended(
    programme: Programme,
    secret: str,
    out: Path | None,
    private: Path | None,
    ledger: str,
    account: str,
    register: Path | None,
    earlier: EarlierReleases,
    another_ptable: bool,
    problems: list[Problem],
) -> Intention | None:
    """The release as protect would make it; options that it would refuse are added to the problems."""
    try:
        key = read_secret(secret, os.environ)
        return Intention(
            secret=key,
            clock=lambda: datetime.now(UTC),
            out=out,
            private=private or (None if out is None else private_place(secret, out)),
            register=register_of(programme, register, secret, key),
            spending=spending_of(ledger, account, secret),
            earlier=earlier,
            another_ptable=another_ptable,
        )
    except DiscreetError as error:
        problems += problems_of(error)
        return None
