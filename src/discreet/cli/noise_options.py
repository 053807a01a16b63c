"""Options that describe noise, shared by commands, and the laws that they mean."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.output import JSON, console, emit_json
from discreet.errors import mistake
from discreet.io.ptable_files import read_ptable
from discreet.maths.attacks.bounds import LEAST_VARIANCE
from discreet.maths.noise.additive import AdditiveLaw, LawKind, SquareSensitivity
from discreet.maths.noise.certificates import agreement, fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import HellingerLaw, PTableLaw
from discreet.maths.noise.named import NoiseParameters, named_law
from discreet.maths.noise.publishing import Negatives

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


LARGEST_VARIANCE = 1e12


def dp(
    epsilon: Annotated[str, typer.Option("--epsilon", help="Where to tell delta, with commas: 0,0.5,1.")],
    ptable: PTABLE = None,
    kind: Annotated[LawKind | None, typer.Option("--kind", help="A law, instead of a p-table.")] = None,
    noise_epsilon: Annotated[
        str | None,
        typer.Option("--noise-epsilon", help="laplace, normal, geometric, hellinger: its epsilon."),
    ] = None,
    bound: BOUND = None,
    rho: RHO = None,
    D: D = None,
    V: V = None,
    js: JS = None,
    as_json: JSON = False,
) -> None:
    """Tell the exact delta of a law at each epsilon, and what fixed zeros and the same noise give away at every one."""
    places = _epsilons(epsilon)
    law = _law(
        ptable, None if kind is None else NoiseParameters(kind, noise_epsilon, bound, rho, D=D, V=V, js=js)
    )
    last = law.ptable.last_row if isinstance(law, PTableLaw) else 1
    curve = [{"epsilon": place, "delta": law.delta(place)} for place in places]
    report: dict[str, Any] = {
        "law": "cell-key" if kind is None else kind.value,
        "delta": curve[0]["delta"],
        "curve": curve,
        "neighbours": "one record added or removed; every record in one cell; independent noise",
        "fixed_zeros_delta": fixed_zeros_delta(law),
        "same_participants": [
            {"count": i, "agreement": agreement(law, i), "delta": same_participants_delta(law, i)}
            for i in range(1, last + 1)
        ],
    }
    if as_json:
        emit_json(report)
        return
    for point in curve:
        say(f"epsilon {point['epsilon']:g}: delta {point['delta']:.6g}")
    say(f"zeros that stay zero: delta at least {report['fixed_zeros_delta']:.6g} at every epsilon")
    worst = max(report["same_participants"], key=lambda one: one["delta"])
    say(
        f"the same noise for the same participants: delta at least {worst['delta']:.6g} at every epsilon (a person "
        f"beside {worst['count']} others)"
    )


def variance(name: str, value: float) -> None:
    """Refuse a variance that no noise on counts has."""
    if not LEAST_VARIANCE <= value <= LARGEST_VARIANCE:
        raise mistake(
            "", name, f"{value:g}", f"give a number above 0, {LEAST_VARIANCE:g} to {LARGEST_VARIANCE:g}"
        )


def confidence(name: str, value: float) -> None:
    """Refuse a confidence that is not inside 0 and 1."""
    if not 0.001 <= value <= 1 - 1e-9:
        raise mistake("", name, f"{value:g}", "give a number between 0 and 1, as 0.68")


def say(text: str) -> None:
    """Print a line for people."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def _law(ptable: Path | None, wanted: NoiseParameters | None) -> AnyLaw:
    if wanted is not None and ptable is None:
        return named_law(wanted)
    if ptable is not None and wanted is None:
        return ptable_law(ptable)
    raise mistake("", "--ptable or --kind", "none" if ptable is None else "both", "give one of them")


def _epsilons(text: str) -> list[float]:
    try:
        places = [float(part) for part in text.split(",")]
    except ValueError:
        places = []
    if not places or not all(0 <= place < math.inf for place in places):
        raise mistake("", "--epsilon", text, "give numbers of at least 0 with commas, as 0,0.5,1")
    return places
