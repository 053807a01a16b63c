"""Weighted estimates of a release: how far the noise may have moved a published sum of weights.

Only the error by the noise is known from a release. That of the sample is not: its variance comes from the design of
the survey (replicate weights, for instance) and adds to this one, since the noise is independent of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import ndtri

from discreet.errors import mistake
from discreet.inference.noise import SWAPPED, noise_of
from discreet.inference.released import Where, filter_text, released_cube
from discreet.inference.results import Inferred
from discreet.maths.inference.intervals import checked_level
from discreet.perturb.noise import Noise
from discreet.programme.codelist import TOTAL
from discreet.release.reader import AnyRelease, Release

SAMPLING = (
    "the error of the sample is not included: add its variance to the square of this standard error, as noise and "
    "sample are independent"
)
ASSUMPTION = "the noise is nearly normal, with this standard error"
AT_MOST = (
    "weights are at most the stated one, and the noise is nearly normal with at most this standard error"
)


@dataclass(frozen=True)
class WeightedResult(Inferred):
    """One cell: the published sum of weights, the standard error by the noise, and an interval for the true sum."""

    cube: str
    cell: str
    published: float
    standard_error: float
    low: float
    high: float
    level: float
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


def weighted(
    release: AnyRelease,
    cube: str | None = None,
    where: Where = "",
    largest: float | None = None,
    level: float = 0.95,
) -> WeightedResult:
    """The sum of weights of the cell of a weighted cube that a filter chooses, as it was before noise.

    With a guarantee the noise is a whole number of units, and its variance is known. Under the cell key method a sum
    has a variance of at most V s^2 + (a s)^2 / 3, where s is the largest weight of the cell, which only the survey's
    documentation can give (``largest``), and a the published reach of its own noise.

    >>> import discreet as ds
    >>> persons = {"pid": range(90), "sex": ["F", "M", "F"] * 30, "w": [2.0] * 90}
    >>> census = ds.Population(persons=persons, person_id="pid", weights=["w"])
    >>> cube = ds.Cube("sex", weight="w", id="weighted")
    >>> release = ds.protect(census, [cube], ds.CellKey(V=2, D=5), secret=ds.Secret.new(), disclose="law")
    >>> ds.inference.weighted(release, "weighted", largest=2.0).cube
    'weighted'
    """
    checked_level(level)
    found, where = released_cube(release, cube), filter_text(where)
    opened, cube = found.release, found.entry.id
    if not found.entry.weight:
        remedy = "use `discreet infer interval` (in Python: Table.interval or inference.interval)"
        raise mistake(opened.folder, f"cube {cube}", "has counts", remedy)
    value, name = found.sum_of_weights(where)
    noise = opened.noise
    if noise.weights is not None:
        error = float(noise.weights.unit) * sqrt(noise_of(opened, name).counts.change.variance)
        assumption, bounded = ASSUMPTION, ""
    else:
        error, assumption, bounded = _scaled(noise, opened, largest), AT_MOST, "at most "
    reach = float(ndtri((1 + level) / 2)) * error
    low, high = (float(np.round(max(value + side * reach, 0.0), 3)) for side in (-1, 1))
    chosen = found.codes(where)
    named = ", ".join(f"{one} = {code}" for one, code in chosen.items() if code != TOTAL) or "the total"
    sentence = (
        f"{named}: published {value:g}; before noise the sum of weights was between {low:g} and {high:g} with "
        f"about {level:.0%} confidence. The noise has a standard error of {bounded}{error:.4g}."
    )
    caveats = (SAMPLING, *((SWAPPED,) if opened.manifest.swapped else ()))
    return WeightedResult(
        cube,
        named,
        value,
        error,
        low,
        high,
        level,
        str(noise.method),
        assumption,
        sentence,
        caveats,
    )


def _scaled(noise: Noise, release: Release, largest: float | None) -> float:
    """The largest standard error under the cell key method."""
    if largest is None or not largest > 0:
        remedy = (
            "give that of the survey, from its documentation (--largest-weight): the noise is scaled by it"
        )
        raise mistake("", "largest weight", "missing" if largest is None else f"{largest:g}", remedy)
    own = 0.0 if noise.weighted is None else noise.weighted.reach
    if noise.variance is None or own is None:
        remedy = "ask the office for the variance; without it the noise is unknown"
        raise mistake(release.folder, "noise", "the release does not publish its variance", remedy)
    return largest * sqrt(noise.variance + own**2 / 3)
