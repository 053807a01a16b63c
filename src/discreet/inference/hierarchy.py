"""Estimates and intervals of the counts of a hierarchical release, as it publishes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.errors import mistake
from discreet.formats.dataset import VALUE
from discreet.inference.released import released_cube
from discreet.maths.inference.intervals import checked_level
from discreet.programme.codelist import TOTAL
from discreet.programme.hierarchical import Output
from discreet.release.hierarchy import ERROR, ESTIMATE, published_hierarchy
from discreet.release.reader import Release, open_release

ASSUMPTION = (
    "the estimate is a sum of many independent noises, nearly normal, with the published standard error"
)


@dataclass(frozen=True)
class EstimateResult:
    """One cell: the whole count, the unbiased estimate, its standard error and an interval for the true count."""

    cube: str
    cell: str
    published: int
    estimate: float
    standard_error: float
    low: float
    high: float
    level: float
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The whole result, ready for JSON."""
        return asdict(self)


def estimated(
    release: str | Path | Release, cube: str, where: str = "", level: float = 0.95
) -> EstimateResult:
    """The estimate of the cell of a cube that a filter chooses; variables that it does not name are at their total.

    The interval comes from the least squares estimate and never from the whole count, which is biased where counts are
    small. It ends at 0, below which no count is.
    """
    opened = release if isinstance(release, Release) else open_release(release)
    checked_level(level)
    found = published_hierarchy(opened)
    if found is None or Output.ESTIMATES not in found.rule.outputs:
        remedy = "use `discreet infer interval`" if found is None else "ask the office for its estimates"
        raise mistake(opened.folder, "release", "it publishes no estimates", remedy)
    chosen, place = released_cube(opened, cube).codes(where), 0
    for axis in opened.cube(cube).axes:
        codes = opened.read_codes(axis.breakdown).codes
        place = place * len(codes) + codes.index(chosen[axis.variable])
    row = found.estimates(cube).slice(place, 1).to_pylist()[0]
    reach = float(ndtri((1 + level) / 2)) * row[ERROR]
    low, high = (float(np.round(max(row[ESTIMATE] + side * reach, 0.0), 3)) for side in (-1, 1))
    named = ", ".join(f"{name} = {code}" for name, code in chosen.items() if code != TOTAL) or "the total"
    exact = row[ERROR] == 0
    sentence = (
        f"{named}: exactly {row[VALUE]}, which is published without noise."
        if exact
        else f"{named}: estimated {row[ESTIMATE]:g}, between {low:g} and {high:g} with confidence {level:g}; the "
        f"published whole count is {row[VALUE]}."
    )
    return EstimateResult(
        cube,
        named,
        int(row[VALUE]),
        float(row[ESTIMATE]),
        float(row[ERROR]),
        low,
        high,
        level,
        str(opened.noise.method),
        ASSUMPTION,
        sentence,
        ("households were swapped before counting: what is inferred are the counts after swapping",)
        if opened.manifest.swapped
        else (),
    )
