"""``discreet protect``: count, perturb and publish every cube of a programme."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import (
    ANOTHER_PTABLE,
    ENGINE,
    FAILED,
    JSON,
    QUIET,
    REGISTER,
    THREADS,
    emit_json,
    numbered,
    register_path,
    say,
    say_finding,
    say_note,
    shown_progress,
)
from discreet.engine.computing import computing
from discreet.errors import mistake
from discreet.io.register import Register
from discreet.io.secret import read_secret
from discreet.io.signing_key import read_private_key
from discreet.pipeline.earlier import EarlierReleases
from discreet.pipeline.protect import protect as run_protect
from discreet.pipeline.protect import rehearse
from discreet.pipeline.spending import Spending
from discreet.programme.engine_kind import EngineKind
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme, load_programme

PRIVATE = Annotated[
    Path | None,
    typer.Option(
        "--private-manifest", help="Path of the private manifest; default: next to the secret file."
    ),
]
LEDGER = Annotated[
    str, typer.Option("--ledger", help="A ledger to charge before noise is drawn; with --account.")
]
ACCOUNT = Annotated[str, typer.Option("--account", help="The account in the ledger.")]
EARLIER = Annotated[
    list[Path] | None,
    typer.Option(
        "--earlier",
        help="A release of the same population that is published already; may be repeated. The one that --out "
        "replaces is always compared.",
    ),
]
ACCEPT = Annotated[
    bool,
    typer.Option(
        "--accept-corrections",
        help="Publish even if the release exposes persons together with an earlier one.",
    ),
]


def protect(
    programme: Annotated[Path, typer.Argument(help="The programme file.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            help="The release folder to write or replace; with Spark also an address such as hdfs://host/release.",
        ),
    ],
    private: PRIVATE = None,
    ledger: LEDGER = "",
    account: ACCOUNT = "",
    register: REGISTER = None,
    another_ptable: ANOTHER_PTABLE = False,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only", help="Check the gates and publish nothing; exit code 1 if one is broken."
        ),
    ] = False,
    earlier: EARLIER = None,
    accept_corrections: ACCEPT = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the release with this private key (discreet key).")
    ] = None,
    engine: ENGINE = None,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Count, perturb and publish every cube of a programme. A killed run resumes when it is called again."""
    key = read_secret(secret, os.environ)
    signing = None if sign is None else read_private_key(sign)
    private_manifest = private or private_place(secret, out)
    loaded = load_programme(programme)
    beside = EarlierReleases(
        tuple(earlier or ()),
        accept_corrections,
        (lambda line: None) if json else (lambda line: say_note(f"Note: {line}")),
    )
    if report_only:
        _report(loaded, key, out, threads, quiet, json, beside, engine)
        return
    spending = spending_of(ledger, account, secret)
    with (
        computing(loaded, engine) as where,
        where.release_folder(out) as place,
        shown_progress(quiet or json) as progress,
    ):
        done = run_protect(
            where.programme,
            key,
            place,
            private_manifest,
            clock=lambda: datetime.now(UTC),
            threads=threads,
            progress=progress,
            spending=spending,
            register=register_of(loaded, register, secret, key),
            earlier=beside,
            another_ptable=another_ptable,
            signing=signing,
            engine=where.engine,
        )
    if json:
        emit_json({**vars(done), "release": out, "private_manifest": private_manifest})
        return
    for note in done.notes:
        say_note(f"Note: {note}")
    if not quiet:
        resumed = f" ({done.resumed} of them from an interrupted run)" if done.resumed else ""
        cells = numbered(done.cells, "published cell")
        say(f"{out}: {numbered(done.cubes, 'cube')}{resumed}, {cells}.")
        for verdict in done.verdicts:
            say_finding(f"Passed {verdict}")
        for sentence in done.paid.sentences() if done.paid else ():
            say(sentence)
        say(f"Private manifest: {private_manifest}")


def _report(
    programme: Programme,
    key: bytes,
    out: str,
    threads: int,
    quiet: bool,
    json: bool,
    earlier: EarlierReleases,
    engine: EngineKind | None,
) -> None:
    """Report whether the gates would pass; exit code 1 if one is broken."""
    if not programme.gates.declared:
        remedy = "declare [gates], or leave --report-only out"
        raise mistake(programme.path, "gates", "none declared", remedy)
    with (
        computing(programme, engine) as where,
        where.release_folder(out) as place,
        shown_progress(quiet or json) as progress,
    ):
        verdicts = rehearse(where.programme, key, place, threads, progress, earlier, where.engine)
    passed = all(verdict.passed for verdict in verdicts)
    if json:
        emit_json({"passed": passed, "verdicts": verdicts})
    else:
        for verdict in verdicts:
            if not (quiet and verdict.passed):
                say_finding(f"{'Passed' if verdict.passed else 'Broken'} {verdict}")
    if not passed:
        raise typer.Exit(FAILED)


def register_of(programme: Programme, register: Path | None, secret: str, key: bytes) -> Register | None:
    """The register of the secret, which cell keys need."""
    known = register_path(register, secret)
    if known is None and isinstance(programme.noise, CellKeyNoise):
        remedy = "give its path with --register: it records what is published under the secret"
        raise mistake(secret, "register", "no secret file next to which to store it", remedy)
    return None if known is None else Register.of(known, key)


def spending_of(ledger: str, account: str, secret: str) -> Spending | None:
    """The account that a release is charged to."""
    if bool(ledger) != bool(account):
        raise mistake("", "--ledger", "a ledger without an account, or the reverse", "give both or neither")
    if not ledger:
        return None
    from discreet.cli.ledger import ledger_at  # noqa: PLC0415 (its database is slow to import)

    return Spending(ledger_at(ledger, secret), account)


def private_place(secret: str, out: str | Path) -> Path:
    """Where the private manifest is stored if no path is given: next to the secret."""
    if secret.startswith(("env:", "fd:")):
        remedy = "give its path with --private-manifest"
        raise mistake(secret, "private manifest", "no secret file next to which to store it", remedy)
    path = Path(secret)
    return path.with_name(f"{path.name}.{Path(out).resolve().name}.json")
