"""Replacing the places of some records of a table while it is read; who moves where is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.population.block import Codes


@dataclass(frozen=True, eq=False, repr=False)
class Relocation:
    """For the records of one table: which of them move, and what they hold where they go."""

    column: str  # the ids by which movers are found
    moves_of: Callable[[pa.RecordBatch], NDArray[np.int64]]  # -1 for a record that stays
    leaves: Mapping[str, Codes]  # variable -> move -> leaf

    def apply(self, batch: pa.RecordBatch, codes: Mapping[str, Codes]) -> None:
        """Put the new leaves into the codes of a batch, in place."""
        if not self.leaves.keys() & codes.keys():
            return
        moves = self.moves_of(batch)
        rows = np.flatnonzero(moves >= 0)
        for name in self.leaves.keys() & codes.keys():
            codes[name][rows] = self.leaves[name][moves[rows]]
