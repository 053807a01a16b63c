"""The cell key mechanism: each non-empty cell's permuted key picks its change from a p-table; zeros stay zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Problem
from discreet.lazy import njit
from discreet.maths.cells.lookup import Lookup, change_of
from discreet.maths.cells.permutation import KeyPermutation, permute
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable import ptable_of_rows
from discreet.perturb.noise import Noise, ScaledWeights, cell_key_noise
from discreet.perturb.weights import WeightedSums
from discreet.programme.cube import Cube
from discreet.programme.noise import KeyKind
from discreet.tabulate.tables import ConfidentialTable, NoisyTable, ProtectedTable

ANY_BIAS = 1.0  # a p-table file is used as it is, whatever the mean of its changes
AT_ONCE = 4096  # cells whose keys are permuted together
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _publish(
    cells: Any,
    at: Any,
    keys: Any,
    places: Any,
    values: Any,
    rounds: Any,
    half: Any,
    last: Any,
    upper: Any,
    change: Any,
    guide: Any,
    guide_shift: Any,
    last_row: Any,
    wrap_from: Any,
    wrap_length: Any,
) -> int:
    """Write the place and value of every cell whose published count is positive; return how many.

    Keys are permuted as many at a time as ``at`` and ``keys`` have room for. Indices are unsigned: Numba asks of every
    signed one whether it counts from the end.
    """
    number, first = np.uint64(0), np.uint64(0)
    size, most = np.uint64(cells.size), np.uint64(at.size)
    while first < size:
        end = first + most if most < size - first else size
        found = np.uint64(0)
        for c in range(first, end):
            at[found] = c
            found += np.uint64(cells[c] & _LOW != 0)
        for k in range(found):
            keys[k] = np.uint32(cells[at[k]] >> _32)
        permute(keys[:found], rounds, half, last)
        for k in range(found):
            c = at[k]
            count = np.int64(cells[c] & _LOW)
            value = count + change_of(
                count, keys[k], upper, change, guide, guide_shift, last_row, wrap_from, wrap_length
            )
            places[number] = c
            values[number] = value
            number += np.uint64(value > 0)
        first = end
    return int(number)


@dataclass(frozen=True, eq=False)
class CellKeyMechanism:
    """Maximum-entropy or given noise by cell keys: the same group of records always has the same noise."""

    lookup: Lookup
    permutation: KeyPermutation  # of the sums of record keys, before the lookup
    notes: tuple[str, ...] = ()  # constraints that the p-table's solver had to relax; always reported
    weights: WeightedSums | None = None  # of weighted cubes, where there are any

    @property
    def variance(self) -> float:
        """The largest variance of the noise of any count."""
        return max(
            sum(change**2 * keys for change, keys in law.items()) / self.lookup.modulus for law in self._laws
        )

    @property
    def bound(self) -> int:
        """The largest change that any count can get."""
        return max(abs(change) for law in self._laws for change in law)

    @property
    def smallest(self) -> int:
        """The smallest positive count that can be published."""
        published = {row + change for row, law in enumerate(self._laws) for change in law}
        return min(count for count in published if count > 0)

    @property
    def key_modulus(self) -> int:
        """Cell keys matter modulo this."""
        return self.lookup.modulus

    @property
    def identity(self) -> bytes:
        """The thresholds and changes of the lookup, and whether keys are permuted: the secret decides how."""
        arrays = (self.lookup.offsets, self.lookup.upper, self.lookup.change)
        return self.keys.value.encode() + b"".join(array.tobytes() for array in arrays)

    @property
    def large(self) -> tuple[tuple[int, int], ...]:
        """(change, number of keys) of large counts, in the order of the keys."""
        begin, end = int(self.lookup.offsets[-2]), int(self.lookup.offsets[-1])
        upper = [0, *(int(bound) for bound in self.lookup.upper[begin:end])]
        lengths = (high - low for low, high in pairwise(upper))
        return tuple(zip(self.lookup.change[begin:end].tolist(), lengths, strict=True))

    @property
    def keys(self) -> KeyKind:
        """Whether the sums of record keys are permuted."""
        return KeyKind.PLAIN if self.permutation.is_plain else KeyKind.PERMUTED

    def noise(self) -> Noise:
        """The p-table behind the lookup; the office chooses how much of it is disclosed."""
        rows = [([row + change for change in law], list(law.values())) for row, law in enumerate(self.law)]
        law = PTableLaw(ptable_of_rows(rows, tolerance=ANY_BIAS))
        scaled = None if self.weights is None else ScaledWeights(self.weights.reach)
        return cell_key_noise(law, variance=self.variance, bound=self.bound, weighted=scaled)

    def problems(self, records: int) -> Iterator[Problem]:
        """None: the method does not depend on the size of the population."""
        yield from ()

    @property
    def law(self) -> tuple[dict[int, float], ...]:
        """For each count the probability of each change; the last one serves all larger counts."""
        return tuple({v: keys / self.lookup.modulus for v, keys in law.items()} for law in self._laws)

    @property
    def _laws(self) -> list[dict[int, int]]:
        return [self.lookup.lengths(row) for row in range(self.lookup.last_row + 1)]

    def certified(self) -> None:
        """The method has no guarantee."""

    def cube_problems(self, cube: Cube) -> Iterator[Problem]:
        """None: cells with records only are perturbed."""
        yield from ()

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Perturb every non-empty cell; a cell published as zero is left out like an empty one."""
        occupied = np.count_nonzero(table.cells)
        at, keys = np.empty(AT_ONCE, dtype=np.uint64), np.empty(AT_ONCE, dtype=np.uint32)
        places = np.empty(occupied, dtype=np.int64)
        values = np.empty(occupied, dtype=np.int64)
        room = (at, keys, places, values)
        number: int = _publish(table.cells, *room, *self.permutation.arrays, *self.lookup.arrays)
        places.resize(
            number, refcheck=False
        )  # in place: a copy would be new memory, and nothing else uses them
        values.resize(number, refcheck=False)
        cells = places if table.positions is None else table.positions[places]
        return ProtectedTable(table.cube, cells, values, self._weighted(table, places, values))

    def _weighted(
        self, table: ConfidentialTable, places: NDArray[np.int64], values: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        if table.weights is None:
            return None
        if self.weights is None:
            raise ValueError(f"{table!r} has weights, and the mechanism no noise for them")
        return self.weights.published(table, places, values)

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        """What perturb publishes; every count is taken to have the largest variance of the p-table."""
        made = self.perturb(table)
        levels = [int(axis.depths.max()) + 1 for axis in table.cube.axes]
        return NoisyTable(table.cube, made.cells, made.values, np.full(levels, self.variance or 1.0))
