"""Differencing of two geographies that do not nest: the small areas that subtraction gives away.

It owns what the office may be shown of them and what noise leaves of them; the search is maths.differencing's, and the
attack on a release with a public map differencing_maps'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.crossing import Crossing
from discreet.audit.difference_noise import DifferenceNoise
from discreet.audit.differencing import THRESHOLD
from discreet.maths.differencing import REACH, STEPS, Difference, Geography, differences

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Afterwards:
    """What noise leaves of the differences: of exact counts, each gives itself away."""

    alpha: float
    expected: float  # differences of published counts that are the true ones
    above: int  # differences that are the true ones with a probability of at least alpha
    largest: float  # the largest of these probabilities


@dataclass(frozen=True)
class ListedDifference:
    """A difference by its areas; what it counts is below the threshold, and is not told."""

    plus_of: str  # the geography of the areas that are added up
    plus: tuple[str, ...]
    minus_of: str
    minus: tuple[str, ...]
    above: bool | None  # whether noise leaves it with a probability of at least alpha


@dataclass(frozen=True)
class AreaDifferences:
    """All differences below the threshold, without their sizes."""

    geographies: tuple[str, str]
    areas: tuple[int, int]
    pieces: int
    threshold: int
    reach: int
    found: int
    complete: bool
    exhaustive: bool
    components: int
    largest_component: int  # in blocks
    by_areas: dict[int, int]  # areas that are added and subtracted -> differences
    after: Afterwards | None
    listed: tuple[ListedDifference, ...]

    def summary(self) -> dict[str, Any]:
        """JSON-ready; no number of records."""
        return {**asdict(self), "by_areas": {str(areas): many for areas, many in self.by_areas.items()}}


def difference_areas(
    crossing: Crossing,
    threshold: int = THRESHOLD,
    reach: int = REACH,
    steps: int = STEPS,
    noise: DifferenceNoise | None = None,
    alpha: float = 0.5,
    most: int | None = None,
) -> AreaDifferences:
    """Find the small areas that two geographies give away, before and after noise; lists the most exposed ones.

    The noise is that of areas of the first geography minus areas of the second.
    """
    result = differences(crossing.a, crossing.b, crossing.counts, threshold, reach, steps)
    sizes = np.array([len(one.plus) + len(one.minus) for one in result.found], dtype=np.int64)
    rates = None if noise is None else _rates(crossing, result.found, noise)
    order = np.lexsort((sizes,) if rates is None else (sizes, -rates))[:most]
    above = None if rates is None else rates >= alpha
    return AreaDifferences(
        crossing.names,
        (len(np.unique(crossing.a)), len(np.unique(crossing.b))),
        len(crossing.a),
        threshold,
        reach,
        len(result.found),
        result.complete,
        result.exhaustive,
        result.components,
        result.largest,
        dict(sorted(Counter(sizes.tolist()).items())),
        None if rates is None else _afterwards(rates, alpha),
        tuple(
            _listed(crossing, result.found[at], None if above is None else bool(above[at])) for at in order
        ),
    )


def _rates(crossing: Crossing, found: Sequence[Difference], noise: DifferenceNoise) -> Floats:
    """The probability of each difference to be published as it is, by the true counts of its areas."""
    a, b = (
        np.bincount(places, weights=crossing.counts).astype(np.int64).tolist()
        for places in (crossing.a, crossing.b)
    )
    rates = np.empty(len(found))
    for at, one in enumerate(found):
        # a sum of noises is zero whichever way it is read, so that geography a always stands first
        of_a, of_b = (one.plus, one.minus) if one.plus_of is Geography.A else (one.minus, one.plus)
        rates[at] = noise.right([a[area] for area in of_a], [b[area] for area in of_b])
    return rates


def _afterwards(rates: Floats, alpha: float) -> Afterwards:
    above = int((rates >= alpha).sum())
    return Afterwards(alpha, float(rates.sum()), above, float(rates.max(initial=0.0)))


def _listed(crossing: Crossing, one: Difference, above: bool | None) -> ListedDifference:
    sides = ((one.plus_of, one.plus), (_other(one.plus_of), one.minus))
    told: list[tuple[str, tuple[str, ...]]] = []
    for geography, areas in sides:
        k = 0 if geography is Geography.A else 1
        told.append((crossing.names[k], tuple(sorted(crossing.codes[k][area] for area in areas))))
    return ListedDifference(*told[0], *told[1], above)


def _other(geography: Geography) -> Geography:
    return Geography.B if geography is Geography.A else Geography.A
