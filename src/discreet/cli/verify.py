"""``discreet verify``: check a release folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import FAILED, JSON, QUIET, emit_json, numbered, say
from discreet.engine.verifying import verified
from discreet.errors import mistake
from discreet.io.signing_key import read_public_key
from discreet.programme.engine_kind import EngineKind
from discreet.release.certify import Certified, verify_certificate
from discreet.release.verify import Verification


def verify(
    folder: Annotated[
        str,
        typer.Argument(
            help="The release folder, or with --certificate also the certificate's file; with Spark also an address "
            "such as hdfs://host/release."
        ),
    ],
    certificate: Annotated[
        bool,
        typer.Option("--certificate", help="Recompute the guarantee from the certificate."),
    ] = False,
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="The office's public key: the release must be signed with it."),
    ] = None,
    engine: Annotated[
        EngineKind | None,
        typer.Option("--engine", help="Where the release is read; default: on this machine."),
    ] = None,
    json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Recompute every checksum and check that all values are possible and the same cell has one value in every cube.

    With --public-key the release must also be signed with that key: only then is it shown who published it.

    With --certificate the guarantee is recomputed instead: the thresholds of every law, what neighbours change, and all
    sums; beside a release it must also be what the manifest states.

    Exit code 0: the release passes. 1: it does not, and the report shows why. 2: the folder is not a release.
    """
    if certificate:
        if public_key is not None:
            raise mistake(
                "", "--public-key", "with --certificate", "verify the signature in a run of its own"
            )
        if engine is EngineKind.SPARK:
            raise mistake("", "--engine", "with --certificate", "copy the certificate to this machine")
        _certified(Path(folder), json, quiet)
        return
    outcome = verified(folder, None if public_key is None else read_public_key(public_key), engine)
    if json:
        emit_json({"passed": outcome.passed, **asdict(outcome)})
    elif not (quiet and outcome.passed):
        say(_report(folder, outcome))
    if not outcome.passed:
        raise typer.Exit(FAILED)


def _certified(place: Path, json: bool, quiet: bool) -> None:
    found = verify_certificate(place)
    if json:
        emit_json({"passed": found.passed, **asdict(found)})
    elif not (quiet and found.passed):
        say(_certificate_report(found))
    if not found.passed:
        raise typer.Exit(FAILED)


def _certificate_report(found: Certified) -> str:
    if not found.passed:
        return "\n".join((f"{found.name}: the certificate does not prove its claim.", *found.problems))
    return (
        f"{found.name}: certified, {found.claim}. Recomputed: {numbered(found.tables, 'law')}, "
        f"{numbered(found.statistics, 'cross-tabulation')}, {numbered(found.cells, 'cell')}."
    )


def _report(folder: str, outcome: Verification) -> str:
    if outcome.passed:
        partial = (
            f" Of {outcome.partial} cubes only the cross-tabulations that the manifest names are published."
        )
        return (
            f"{folder}: passed. {numbered(outcome.files, 'file')}, {numbered(outcome.cubes, 'cube')}, "
            f"{numbered(outcome.cells, 'cell')}; "
            f"{outcome.compared:,} of them occur in several cubes and agree."
            + (partial if outcome.partial else "")
            + (f"\n{outcome.recomputed}" if outcome.recomputed else "")
            + f"\n{outcome.signature.sentence()}"
        )
    return "\n".join((f"{folder}: failed.", *outcome.problems))
