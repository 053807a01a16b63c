"""Options of several commands on noise and risk that need only their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import mistake
from discreet.maths.attacks.bounds import LARGEST_VARIANCE, LEAST_VARIANCE

PTABLE = Annotated[Path | None, typer.Option("--ptable", help="A p-table file, in any of the known formats.")]

ALPHA = Annotated[float, typer.Option("--alpha", help="The required confidence.")]


def variance(name: str, value: float) -> None:
    """Refuse a variance that no noise on counts has."""
    if not LEAST_VARIANCE <= value <= LARGEST_VARIANCE:
        raise mistake(
            "", name, f"{value:g}", f"give a number above 0, {LEAST_VARIANCE:g} to {LARGEST_VARIANCE:g}"
        )


def confidence(name: str, value: float) -> None:
    """Refuse a confidence that is not inside 0 and 1."""
    if not 0.001 <= value <= 1 - 1e-9:
        raise mistake("", name, f"{value:g}", "give a number between 0 and 1, e.g. 0.68")
