"""The true counts beside a release, for the office's own eyes: what attacks and measures are judged by.

It owns their shape; they are counted by the pipeline and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.audit.published import Cells, Integers
from discreet.errors import mistake


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The non-empty cells of every cube with their true counts; ``counted`` is what the noise was added to."""

    original: Mapping[str, Cells]  # cube -> cells before swapping
    counted: Mapping[str, Cells]  # cube -> cells after swapping; the same where nothing is swapped

    @property
    def sides(self) -> tuple[Mapping[str, Cells], ...]:
        """The counts before swapping, and after it where anything is swapped."""
        return (self.original, self.counted) if self.is_swapped else (self.original,)

    @property
    def is_swapped(self) -> bool:
        """Whether households were swapped before counting."""
        return self.original is not self.counted

    def __repr__(self) -> str:
        return f"Truth({len(self.counted)} cubes)"


def cells_of(tables: Mapping[str, Cells], cube: str) -> Cells:
    """The counts of a cube; an error where they are those of another programme."""
    if cube not in tables:
        remedy = "give the programme that the release was made from"
        raise mistake("", f"cube {cube}", "is published, but not counted", remedy)
    return tables[cube]


def values_at(table: Cells, cells: Integers) -> Integers:
    """The values of some cells of a table, zero where it lists none."""
    listed, values = table
    if not len(listed):
        return np.zeros(len(cells), dtype=np.int64)
    at = np.minimum(np.searchsorted(listed, cells), len(listed) - 1)
    return np.where(listed[at] == cells, values[at], 0)
