"""Noise on weighted sums under the cell key method: scaled by the weights in the cell, decided by its key.

A cell of n records has the weights w with sum W, mean m = W/n and largest s, and the published count c = n + v.
Published is

    W' = c m + u min(a s, c m),    u uniform on (-1, 1), independent of v,    a = sqrt(3 V).

W' is positive, has the expectation W wherever v has the expectation zero, and is not published where c is zero. Given
c, its law is the same for any number of equal weights: a known constant weight gives no second look at n. The variance
is

    Var W' = V m^2 + E min(a s, c m)^2 / 3 <= V (m^2 + s^2) <= 2 V s^2.

The scale by the largest contribution is that of Giessing & Tent (2019), Concepts for generalising tools implementing
the cell key method to the case of continuous variables (UNECE work session on statistical data confidentiality); the
decision record 024 has the risk. u is a keyed hash of the cell's sum of record keys and count: the same people have the
same u in every table; another column of weights has another u, because a column of known weights shows its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.counting import counts_of
from discreet.maths.cells.keys import derive, hash_key, hash_word
from discreet.population.encode import WEIGHT_UNIT
from discreet.tabulate.tables import ConfidentialTable

PURPOSE = "weighted-sums"
_DISCARDED = np.uint64(11)  # of the 64 bits of a hash; a double holds the other 53
_STEP = 2.0**-52


def reach_of(variance: float) -> float:
    """The reach a of the noise in largest weights: a uniform noise on (-a, a) has the variance a^2/3 = V."""
    return sqrt(3 * variance)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _uniform(cells: Any, places: Any, k0: Any, k1: Any, out: Any) -> None:
    for k in range(places.size):
        out[k] = (np.float64(hash_word(cells[places[k]], k0, k1) >> _DISCARDED) + 0.5) * _STEP - 1.0


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """The noise on weighted sums of one secret and p-table."""

    reach: float  # in largest weights of a cell
    key: bytes = field(repr=False)

    def uniform(
        self, cells: NDArray[np.uint64], places: NDArray[np.int64], column: str
    ) -> NDArray[np.float64]:
        """The uniform number on (-1, 1) of each place: decided by who is counted, and by the column of weights."""
        out = np.empty(len(places))
        _uniform(cells, places, *hash_key(self.key, column), out)
        return out

    def published(
        self, table: ConfidentialTable, places: NDArray[np.int64], values: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """The weighted sums to be published at some places, whose published counts are given."""
        if table.weights is None or table.largest is None or not table.cube.weight:
            return None
        mean = table.weights[places] / (counts_of(table.cells[places]) * float(WEIGHT_UNIT))
        core: NDArray[np.float64] = mean * values
        room = np.minimum(self.reach * (table.largest[places] / float(WEIGHT_UNIT)), core)
        drawn = self.uniform(table.cells, places, table.cube.weight)
        return np.asarray(core + drawn * room)


def weighted_sums(secret: bytes, variance: float) -> WeightedSums:
    """The noise on weighted sums beside counts whose noise has this variance."""
    return WeightedSums(reach_of(variance), derive(secret, PURPOSE))
