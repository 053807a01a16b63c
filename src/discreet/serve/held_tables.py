"""The cross-tabulations that a user has of one population, laid out to find those that add up to another quickly.

It owns the layout; where they are written down and what they give away are others' matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Levels = Sequence[tuple[str, int]]  # variable, depth
Integers = NDArray[np.int64]
_NONE: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Held:
    """Sizes of all cross-tabulations, and for each variable which of them have it, and how deep."""

    number: int = 0  # of the last answer among them
    cells: Integers = field(default_factory=lambda: _NONE)  # (cross-tabulation) -> cells
    depths: Mapping[str, tuple[Integers, Integers]] = field(default_factory=dict)  # where, how deep

    def __len__(self) -> int:
        return len(self.cells)

    def extended(self, levels: Sequence[Levels], cells: Sequence[int], number: int) -> Held:
        """With more cross-tabulations."""
        added: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place, one in enumerate(levels, start=len(self)):
            for variable, depth in one:
                added[variable][0].append(place)
                added[variable][1].append(depth)
        joined = {name: _joined(self.depths.get(name, (_NONE, _NONE)), more) for name, more in added.items()}
        every = np.concatenate([self.cells, np.array(cells, dtype=np.int64)])
        return Held(number, every, {**self.depths, **joined})

    def refining(self, wanted: Levels) -> Integers:
        """The sizes of the cross-tabulations whose cells add up to those of another, the smallest first."""
        order, ordered = self._sorted
        if not wanted:
            return ordered
        times = np.zeros(len(self), dtype=np.int64)
        for variable, depth in wanted:
            where, depths = self.depths.get(variable, (_NONE, _NONE))
            times[where[depths >= depth]] += 1
        found: Integers = ordered[times[order] == len(wanted)]
        return found

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.cells, kind="stable")
        return order, self.cells[order]


def _joined(
    held: tuple[Integers, Integers], more: tuple[Sequence[int], Sequence[int]]
) -> tuple[Integers, Integers]:
    where, depths = (np.concatenate([one, np.array(two)]) for one, two in zip(held, more, strict=True))
    return where, depths
