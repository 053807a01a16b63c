"""``discreet risk dp``: the exact delta of a law of noise."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from discreet.cli.noise_options import NoiseOptions, Renamed, expanded
from discreet.cli.output import JSON, emit_json, say
from discreet.errors import mistake
from discreet.maths.noise.certificates import agreement, fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import PTableLaw


@expanded
def dp(
    noise: Annotated[NoiseOptions, Renamed("--epsilon", "--noise-epsilon")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Values at which to report delta, separated by commas: 0,0.5,1.")
    ],
    as_json: JSON = False,
) -> None:
    """Report the exact delta of a law at each epsilon, and that of fixed zeros and of the same noise at any epsilon."""
    places = _epsilons(epsilon)
    law = noise.law()
    last = law.ptable.last_row if isinstance(law, PTableLaw) else 1
    curve = [{"epsilon": place, "delta": law.delta(place)} for place in places]
    report: dict[str, Any] = {
        "law": "cell-key" if noise.ptable is not None else noise.parameters().kind.value,
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
        f"with {worst['count']} others)"
    )


def _epsilons(text: str) -> list[float]:
    try:
        places = [float(part) for part in text.split(",")]
    except ValueError:
        places = []
    if not places or not all(0 <= place < math.inf for place in places):
        raise mistake("", "--epsilon", text, "give numbers of at least 0, separated by commas, e.g. 0,0.5,1")
    return places
