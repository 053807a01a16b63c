"""The options by which commands are told what the noise is, and the laws that they mean; it owns no formula."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.maths.laws import AdditiveLaw, SquareSensitivity
from discreet.maths.row_laws import HellingerLaw, PTableLaw
from discreet.schema.noise import Negatives
from discreet.schema.ptable_files import read_ptable

AnyLaw = AdditiveLaw | HellingerLaw | PTableLaw

PTABLE = Annotated[Path | None, typer.Option("--ptable", help="A p-table file, in any of the known formats.")]
EPSILON = Annotated[
    str | None, typer.Option("--epsilon", help="laplace, normal, geometric, hellinger: epsilon, also as 1/3.")
]
BOUND = Annotated[int | None, typer.Option("--bound", help="laplace, normal, uniform: largest change.")]
RHO = Annotated[str | None, typer.Option("--rho", help="discrete-gaussian: rho of zCDP, also as 1/3.")]
SIGMA = Annotated[str | None, typer.Option("--sigma", help="discrete-gaussian: scale, instead of rho.")]
SENSITIVITY = Annotated[
    SquareSensitivity | None,
    typer.Option(
        "--sensitivity", help="normal: of v^2, exact (2m-1, the default) or as the paper has it (2m+1)."
    ),
]
D = Annotated[int | None, typer.Option("--D", help="cell-key: largest change.")]
V = Annotated[float | None, typer.Option("--V", help="cell-key: variance.")]
JS = Annotated[int | None, typer.Option("--js", help="cell-key: counts 1..js are never published.")]
NEGATIVES = Annotated[
    Negatives, typer.Option("--negatives", help="What is published for negative noisy counts.")
]
ROUNDING = Annotated[int, typer.Option("--rounding", help="Published counts are multiples of this.")]
THRESHOLD = Annotated[int, typer.Option("--threshold", help="Smaller counts are published as zero.")]


def ptable_law(path: Path) -> PTableLaw:
    """The law of a p-table file."""
    return PTableLaw(read_ptable(path).law())
