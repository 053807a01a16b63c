"""The parts of ``discreet risk`` that look at a law of noise: its exact privacy; it owns no formula."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.noise_options import BOUND, JS, PTABLE, RHO, AnyLaw, D, V, ptable_law
from discreet.cli.output import JSON, console, emit_json
from discreet.errors import mistake
from discreet.maths.bound_disclosure import LEAST_VARIANCE
from discreet.maths.laws import LawKind
from discreet.maths.named_laws import NoiseParameters, named_law
from discreet.maths.row_laws import PTableLaw
from discreet.maths.same_noise import agreement, fixed_zeros_delta, same_participants_delta

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
