"""The chance that a small published count is the true one, for an outsider who knows the noise law and no truth.

It owns which cells are pooled and what the law of a published value is; the estimate is maths.deconvolution's.
The chance is against what was counted: a swap before it lowers it further, and no public file tells by how much.
Where empty cells are perturbed there is none: geometric noise from 0 and from 1 looks the same above 1, and how many
empty cells could be perturbed is not public, since structural zeros are not told from others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit.once import OwnedTable
from discreet.audit.published import LARGE, KnownNoise
from discreet.audit.published_law import PublishedLaw
from discreet.maths.aligned import Integers
from discreet.maths.deconvolution import mixture
from discreet.maths.disclosure import Side, histogram
from discreet.maths.laws import Law
from discreet.maths.pmf import Pmf

LEAST_WINDOW, WIDEST_WINDOW = 64, 512
SPREADS = 6  # standard deviations that a true count may lie beyond the window


@dataclass(frozen=True)
class Chance:
    """The estimated share of the cells published as a value that truly have it."""

    value: int
    published: int  # cells
    chance: float

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return dict(vars(self))


@dataclass(eq=False)
class Chances:
    """Published values by universe and noise law, and what they say of small counts."""

    noise: KnownNoise
    below: int
    seen: dict[tuple[str, Law], Integers] = field(default_factory=dict)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the noise in large counts; 0 where it is not known."""
        return math.sqrt(self.noise.law.row(LARGE).variance) if self.noise.law else 0.0

    @property
    def window(self) -> int:
        """Published values below this are used."""
        return min(WIDEST_WINDOW, LEAST_WINDOW + math.ceil(SPREADS * self.spread))

    def add(self, owned: OwnedTable, table: Side) -> None:
        """Add a table's cells by cross-tabulation and published value."""
        if self.noise.law is None or not self.noise.keeps_zeros:
            return
        seen = histogram(table, owned.grid, self.window)
        for crosstab in np.flatnonzero(owned.owned).tolist():
            law = self.noise.law_of(owned.signature(crosstab))
            key = owned.universe.counted, law
            self.seen[key] = self.seen.get(key, 0) + seen[crosstab]

    def chances(self) -> tuple[Chance, ...]:
        """The chance for each small value, over all universes."""
        cells = np.zeros(self.below, dtype=np.int64)
        true = np.zeros(self.below)
        for (_, law), seen in self.seen.items():
            found = mixture(self._laws(law), 1, seen[1:].tolist())
            for value in range(1, self.below):
                cells[value] += seen[value]
                true[value] += seen[value] * (found.chance_true(value) or 0.0)
        return tuple(
            Chance(value, int(cells[value]), float(true[value] / cells[value]))
            for value in range(1, self.below)
            if cells[value]
        )

    def _laws(self, law: Law) -> Sequence[tuple[int, Pmf]]:
        """The true counts that can be published in the window, as zeros stay zeros."""
        most = self.window + math.ceil(SPREADS * self.spread)
        published = PublishedLaw(law, self.noise.published, self.noise.keeps_zeros)
        return [(count, published.row(count)) for count in range(1, most)]
