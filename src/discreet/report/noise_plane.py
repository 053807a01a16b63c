"""The V x D plane of the cell key method as one picture, for the adviser before a release and the audit after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from discreet.maths.feasible import Constraint
from discreet.page.charts import Axis, Chart, HeatTile, Mark, tiled
from discreet.page.markup import share
from discreet.page.style import FEASIBLE, LILAC, LOSSY, PALE, RISKY, SPOILT, TINT

Holds = Mapping[Constraint, NDArray[np.bool_]]  # [D, V]

WITHIN = "within all limits"
BROKEN = {
    Constraint.PTABLE: "no such noise exists",
    Constraint.AVERAGING: "averaging succeeds",
    Constraint.UNIQUES: "ones are published as ones",
    Constraint.BOUND: "tuples reveal D",
    Constraint.LARGEST: "D too large",
    Constraint.DISTORTION: "small counts too distorted",
}  # the first limit that is broken gives a square its colour: existence, then risk, then accuracy
COLOURS = {
    WITHIN: FEASIBLE,
    BROKEN[Constraint.AVERAGING]: RISKY,
    BROKEN[Constraint.UNIQUES]: SPOILT,
    BROKEN[Constraint.BOUND]: LILAC,
    BROKEN[Constraint.DISTORTION]: LOSSY,
    BROKEN[Constraint.LARGEST]: TINT,
    BROKEN[Constraint.PTABLE]: PALE,
}


def plane_chart(
    V: Sequence[float],
    D: Sequence[int],
    holds: Holds,
    choices: Mapping[str, tuple[float, int]],
    *,
    title: str,
    lead: str = "",
    caption: str = "",
) -> Chart:
    """Each square is a choice of variance and largest change, in the middle of it; named choices are marked."""
    step = V[1] - V[0] if len(V) > 1 else 1.0
    kinds = kinds_of(holds)
    tiles = [tile for row, d in enumerate(D) for tile in _runs(kinds[row], V, d, step)]
    kept = {kind: float((kinds == kind).mean()) for kind in COLOURS}
    parts = ", ".join(f"{kind} in {share(part)}" for kind, part in kept.items() if part)
    text = f"Variance V across, largest change D upwards; each square by the first limit that it breaks: {parts}."
    used = {kind: colour for kind, colour in COLOURS.items() if kept[kind]}
    marks = list(_marks(choices))
    x = Axis("variance of the noise, V", top=V[-1] + step / 2)
    y = Axis("largest change of a count, D", top=D[-1] + 0.5, values=tuple(float(d) for d in D))
    description = " ".join(filter(None, (lead, text)))
    return Chart(
        "region",
        title,
        description,
        lambda width: tiled(tiles, marks, used, x, y, width),
        used,
        caption,
    )


def kinds_of(holds: Holds) -> NDArray[np.object_]:
    """[D, V] -> the first limit that a choice breaks, as text."""
    shape = next(iter(holds.values())).shape
    kinds = np.full(shape, WITHIN, dtype=object)
    for constraint, label in reversed(BROKEN.items()):
        if constraint in holds:
            kinds[~holds[constraint]] = label
    return kinds


def _runs(kinds: NDArray[np.object_], V: Sequence[float], d: int, step: float) -> Iterator[HeatTile]:
    """Adjacent squares of one kind as one rectangle."""
    at = 0
    for kind, run in groupby(kinds.tolist()):
        many = len(list(run))
        yield HeatTile(V[at] - step / 2, V[at + many - 1] + step / 2, d - 0.5, d + 0.5, kind)
        at += many


def _marks(choices: Mapping[str, tuple[float, int]]) -> Iterator[Mark]:
    """A mark at each choice, with all its names."""
    named: dict[tuple[float, int], list[str]] = {}
    for name, point in choices.items():
        named.setdefault(point, []).append(name)
    for (V, D), names in named.items():
        yield Mark(V, D, f"{' and '.join(names)}: V {V:g}, D {D}")
