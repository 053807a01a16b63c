"""``discreet key``: make a pair of keys for signing releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import say
from discreet.io.signing_key import make_key


def key(
    out: Annotated[
        Path,
        typer.Option("--out", help="The file of the private key; the public one is beside it, with .pub."),
    ],
) -> None:
    """Make an Ed25519 key pair. Keep the private key secret; publish the public one where users trust it."""
    public = make_key(out)
    say(f"{out}: a new private key, without password: store it as safely as the secret.")
    say(f"{public}: its public key; publish it on the office's own pages, not only beside releases.")
