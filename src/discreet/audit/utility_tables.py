"""Two-way tables of a release as an analyst reads them, with the true counts and with the published ones.

It owns which tables are read; the statistics are maths.association's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.once import OwnedTable
from discreet.maths.aligned import nodes_along
from discreet.maths.association import Independence, independence, rank_correlation
from discreet.maths.disclosure import Side
from discreet.maths.disclosure_kernels import ORIGINAL, PUBLISHED
from discreet.schema.crosstab import crossed as in_words


@dataclass(frozen=True)
class TwoWay:
    """One two-way table, true and published."""

    counted: str
    levels: str
    cube: str
    true: Independence
    published: Independence
    rank: float | None  # Spearman's correlation of the cells with somebody in them on either side

    @property
    def shift(self) -> float | None:
        """By how much Cramer's V is off."""
        if self.true.cramers_v is None or self.published.cramers_v is None:
            return None
        return abs(self.published.cramers_v - self.true.cramers_v)

    def is_changed(self, level: float) -> bool:
        """Whether the test of independence is decided otherwise."""
        before, after = self.true.p_value, self.published.p_value
        return before is not None and after is not None and (before < level) != (after < level)

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON; statistics of whole tables, no count."""
        return {
            "counted": self.counted,
            "levels": self.levels,
            "cube": self.cube,
            "cramers_v": self.true.cramers_v,
            "published_cramers_v": self.published.cramers_v,
            "p_value": self.true.p_value,
            "published_p_value": self.published.p_value,
            "rank_correlation": self.rank,
        }


def two_way(owned: OwnedTable, found: Side) -> Iterator[TwoWay]:
    """Every two-way table that this one stands for."""
    for crosstab in np.flatnonzero(owned.owned).tolist():
        crossed = [k for k, depth in enumerate(owned.depths[crosstab]) if depth]
        if len(crossed) == 2:
            yield _read(owned, found, crosstab, *crossed)


def _read(owned: OwnedTable, found: Side, crosstab: int, down: int, across: int) -> TwoWay:
    here = np.flatnonzero(found.crosstab == crosstab)
    cells, values = found.cells[here], found.values[here]
    cube = owned.cube
    rows, columns = (
        nodes_along(cells, cube.strides[k], cube.shape[k]).astype(np.int64) for k in (down, across)
    )
    held = (values[:, PUBLISHED] > 0) | (values[:, ORIGINAL] > 0)
    return TwoWay(
        owned.universe.counted,
        in_words(owned.levels(crosstab)),
        owned.table.id,
        independence(rows, columns, values[:, ORIGINAL]),
        independence(rows, columns, values[:, PUBLISHED]),
        rank_correlation(values[held, ORIGINAL], values[held, PUBLISHED]),
    )
