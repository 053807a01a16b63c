"""``discreet sign``: sign a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import FAILED, QUIET, say
from discreet.io.signing_key import read_private_key
from discreet.release.sign import sign_release


def sign(
    folder: Annotated[Path, typer.Argument(help="The release folder.")],
    key: Annotated[Path, typer.Option("--key", help="The private key (discreet key).")],
    quiet: QUIET = False,
) -> None:
    """Verify a release and sign its manifest, which has the checksum of every file; an earlier signature is replaced.

    Exit code 0: it is signed. 1: the release does not pass, and nothing was written.
    """
    outcome = sign_release(folder, read_private_key(key))
    if not outcome.passed:
        say("\n".join((f"{folder}: failed, not signed.", *outcome.problems)))
        raise typer.Exit(FAILED)
    if not quiet:
        say(f"{folder}: signed with key {outcome.signature.key}.")
