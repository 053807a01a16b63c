"""The Bayesian adversary who knows everybody but the target at several levels of a hierarchy, as town and region.

It owns the chains of nested cells and their posteriors together; one cell by itself is bayes'. The log odds of the
levels add up where their noise is independent. Where the same participants have the same noise, two levels that hold
the same records are one observation and count once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bayes import Belief, NamedCell
from discreet.audit.crosstab_cells import SplitTable
from discreet.audit.once import OwnedTable, once
from discreet.audit.published import Cells, Integers, Published
from discreet.audit.published_law import PublishedLaw, PublishedLaws
from discreet.audit.truth import Truth, values_at
from discreet.engine.progress import Progress, Quiet
from discreet.errors import mistake
from discreet.maths.pmf import Floats
from discreet.schema.crosstab import CrossTab, Levels, crossed

AT_ONCE = 2**19  # cells whose chains are held together
MOST_NAMED = 20  # cells of one cross-tabulation


@dataclass(frozen=True)
class ChainFinding:
    """What the chains that start in the small cells of one cross-tabulation give away."""

    counted: str
    levels: Levels
    observations: int  # levels of each chain
    cells: int
    above_alone: int  # by the smallest cell alone
    above: int  # by all levels together
    records_above: int
    highest: float

    def summary(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "counted": self.counted,
            "crosstab": crossed(self.levels),
            "observations": self.observations,
            "cells": self.cells,
            "above_alone": self.above_alone,
            "above": self.above,
            "records_above": self.records_above,
            "highest_posterior": self.highest,
        }


@dataclass(frozen=True)
class LevelsScan:
    """All chains of a release along one variable."""

    belief: Belief
    along: str
    chains: tuple[ChainFinding, ...]
    named: tuple[NamedCell, ...]

    @property
    def cells(self) -> int:
        """How many small cells start a chain."""
        return sum(chain.cells for chain in self.chains)

    @property
    def above(self) -> int:
        """In how many the posterior of all levels together is above the gate."""
        return sum(chain.above for chain in self.chains)

    @property
    def above_alone(self) -> int:
        """In how many the smallest cell alone is enough."""
        return sum(chain.above_alone for chain in self.chains)

    def summary(self) -> dict[str, Any]:
        """JSON-ready values; the ten cross-tabulations that give away most."""
        worst = sorted(self.chains, key=lambda chain: (-chain.records_above, -chain.highest))
        return {
            "prior": self.belief.prior,
            "gate": self.belief.gate,
            "along": self.along,
            "cells": self.cells,
            "above_alone": self.above_alone,
            "above": self.above,
            "highest_posterior": max((chain.highest for chain in self.chains), default=0.0),
            "worst": [chain.summary() for chain in worst[:10] if chain.above],
            "named": [one.summary() for one in self.named],
        }


def scan_levels(
    published: Published,
    truth: Truth,
    belief: Belief,
    along: str,
    coarsest: int = 1,
    most_named: int = 20,
    progress: Progress | None = None,
) -> LevelsScan:
    """Look at every small cell at the finest level of a variable, together with the cells above it up to ``coarsest``.

    Depth 1 is the level below the total. The adversary knows all others at every level that is used.
    """
    told, laws = progress or Quiet(), PublishedLaws(published.noise)
    told.stage(f"levels of {along}", sum(len(universe.tables) for universe in published.universes))
    chains: list[ChainFinding] = []
    named: list[NamedCell] = []
    found = False
    for universe in published.universes:
        for owned in once(universe):
            axis = next((k for k, axis in enumerate(owned.cube.axes) if axis.variable == along), None)
            found |= axis is not None
            if axis is not None and owned.new:
                scanner = _Scanner(owned, axis, coarsest, laws, published.noise.same_noise, belief)
                for chain, names in scanner.chains(owned.true(truth)):
                    chains.append(chain)
                    named += names[: most_named - len(named)]
            told.step()
    if not found:
        raise mistake("", "along", along, f"choose from {', '.join(published.variables)}")
    return LevelsScan(belief, along, tuple(chains), tuple(named))


@dataclass(frozen=True, eq=False)
class _Scanner:
    """The chains of one table along one axis."""

    owned: OwnedTable
    axis: int
    coarsest: int
    laws: PublishedLaws
    same_noise: bool
    belief: Belief

    def chains(self, true: Cells) -> Iterator[tuple[ChainFinding, list[NamedCell]]]:
        """The finding of each new cross-tabulation at the axis's finest level, and the cells above the gate."""
        shown = self.owned.table.load()
        cells = true[0][true[1] <= self.belief.largest]
        cells = cells[self.owned.cube.axes[self.axis].finest[self.owned.cube.nodes(cells, self.axis)]]
        split = SplitTable((cells, cells), self.owned.which(cells))
        for at in self.owned.new:
            crosstab, (start, _) = self.owned.crosstabs[at], split.positions(at)
            if crosstab.depths[self.axis] > self.coarsest and len(start):
                yield self._chain(crosstab, start, shown, true)

    def _chain(
        self, crosstab: CrossTab, start: Integers, shown: Cells, true: Cells
    ) -> tuple[ChainFinding, list[NamedCell]]:
        """The finding of one cross-tabulation, blocks of cells at a time."""
        alone = above = records = 0
        highest, named = 0.0, np.zeros(0, dtype=np.int64)
        for first in range(0, len(start), AT_ONCE):
            cells = start[first : first + AT_ONCE]
            steps = list(self._factors(crosstab, cells, shown, true))
            posterior = self.belief.posteriors(_sum(steps))
            over = cells[posterior > self.belief.gate]
            alone += int((self.belief.posteriors(steps[0]) > self.belief.gate).sum())
            above += len(over)
            records += int(values_at(true, over).sum())
            highest = max(highest, float(posterior.max()))
            named = np.concatenate([named, over[: MOST_NAMED - len(named)]])
        counted, depths = self.owned.universe.counted, crosstab.depths[self.axis] - self.coarsest + 1
        levels = crosstab.signature.levels
        finding = ChainFinding(counted, levels, depths, len(start), alone, above, records, highest)
        cube, values = self.owned.cube, values_at(shown, named).tolist()
        return finding, [
            NamedCell(counted, cube.codes_of(cell), value)
            for cell, value in zip(named.tolist(), values, strict=True)
        ]

    def _factors(self, crosstab: CrossTab, cells: Integers, shown: Cells, true: Cells) -> Iterator[Floats]:
        """The log Bayes factors of each level, from the smallest cell up; 0 where a level is seen already."""
        cube, stride = self.owned.cube, self.owned.cube.strides[self.axis]
        parents = cube.axes[self.axis].parents
        below: tuple[PublishedLaw, Integers] | None = None
        for depth in range(crosstab.depths[self.axis], self.coarsest - 1, -1):
            law, count = self._law(crosstab, depth), values_at(true, cells)
            factors = law.log_factors(count - 1, values_at(shown, cells))
            if below is not None and self.same_noise and law is below[0]:
                factors[count == below[1]] = 0.0  # nested cells of equal counts hold the same records
            yield factors
            below, node = (law, count), cube.nodes(cells, self.axis)
            cells = cells + (parents[node] - node) * stride

    def _law(self, crosstab: CrossTab, depth: int) -> PublishedLaw:
        variable = self.owned.cube.axes[self.axis].variable
        levels = tuple((name, depth if name == variable else at) for name, at in crosstab.signature.levels)
        return self.laws.of(self.owned.universe.signature(levels))


def _sum(steps: list[Floats]) -> Floats:
    """The sum of the log factors; a proof on one level is not weighed against the doubt of another."""
    proof: NDArray[np.bool_] = np.any([np.isposinf(factors) for factors in steps], axis=0)
    total: Floats = np.sum([np.where(proof, 0.0, factors) for factors in steps], axis=0)
    return np.where(proof, np.inf, total)
