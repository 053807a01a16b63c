"""``discreet secret``: create the office's secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import say
from discreet.io.secret import make_secret


def secret(
    out: Annotated[Path, typer.Option("--out", help="The file to write; it must not exist.")],
) -> None:
    """Write 32 random bytes to a file that only its owner can read. Keep the file: later releases need it."""
    make_secret(out)
    say(f"{out}: a new secret. Store it safely and permanently: later releases of this population need it.")
