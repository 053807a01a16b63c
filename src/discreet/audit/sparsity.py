"""How sparse each published cross-tabulation is: the shares of its cells that are empty, one, or one and two.

Sparse tables are those in which a margin equals an inner cell, so that one group is described in several ways (Rinott
et al. 2018, section 3: the number of zeros, and sometimes of ones and twos; "sparse tables according to given
thresholds are not published").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.audit.cells import Reader, located_crosstabs
from discreet.audit.evidence import Published, Truth

ONE, TWO = 1, 2


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """The shares of empty cells among the possible ones, and of small counts among those that are not empty."""

    counted: str
    crosstab: str
    zeros: float
    ones: float
    ones_and_twos: float


def sparsities(published: Published, truth: Truth) -> Iterator[Sparsity]:
    """Every cross-tabulation of a release once, by the counts that the noise was added to."""
    reader = Reader(truth.counted)
    for universe in published.universes:
        for located in located_crosstabs(universe).values():
            _, counts = reader.cells(located)
            possible = sum(part.owned.size(part.at) for part in located.parts)
            occupied = max(len(counts), 1)
            yield Sparsity(
                counted=universe.counted,
                crosstab=located.parts[0].owned.crosstab_name(located.parts[0].at),
                zeros=1 - len(counts) / possible,
                ones=np.count_nonzero(counts == ONE) / occupied,
                ones_and_twos=np.count_nonzero(counts <= TWO) / occupied,
            )
