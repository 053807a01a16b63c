"""Intervals of true counts: what a bounded noise leaves possible, tightened by sums along the axes of a cube.

It owns the intervals and their propagation to a fixpoint; where tables come from and what is a disclosure is audit's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from math import prod
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths.pmf import Pmf

Bounds = NDArray[np.int32]

TILE = 512  # lines of a family that stay in the first-level cache
SERVED = 1000  # from here on a law treats all counts alike
MOST_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class Origins:
    """For each published count the smallest and the largest true count that can lead to it.

    Beyond the end of the arrays both grow with the published count; low > high where nothing leads to it.
    """

    first: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def of(self, published: NDArray[Any]) -> tuple[Bounds, Bounds]:
        """The intervals of some published counts."""
        wide = published.astype(np.int64)
        at = np.clip(wide - self.first, 0, len(self.low) - 1)
        beyond = wide - self.first - at
        return (self.low[at] + beyond).astype(np.int32), (self.high[at] + beyond).astype(np.int32)


def origins(row: Callable[[int], Pmf], bound: int, step: int = 1, threshold: int = 0) -> Origins:
    """Follow every true count forward through the law of what is published of it.

    No noise is larger than ``bound``; published counts are multiples of ``step``, so the last one listed is, too, and
    none lies below ``threshold`` but zero.
    """
    margin = bound + step
    counts = SERVED + threshold + 8 * margin
    first, last = -margin, (counts - 2 * margin) // step * step
    low = np.ones(last - first + 1, dtype=np.int64)
    high = np.zeros(last - first + 1, dtype=np.int64)
    for count in range(counts + 1):
        law = row(count)
        shown = law.values[law.p > 0]
        at = shown[(shown >= first) & (shown <= last)] - first
        low[at] = np.where(low[at] > high[at], count, low[at])
        high[at] = count
    return Origins(first, low, high)


@dataclass(frozen=True, eq=False)
class Families:
    """The parents of an axis, lowest in the tree first, each with its children: children[starts[f]:starts[f + 1]]."""

    parents: NDArray[np.int64]
    starts: NDArray[np.int64]
    children: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What kernels take."""
        return self.parents, self.starts, self.children


def families(parents: NDArray[np.int32]) -> Families:
    """Group the nodes of an axis by their parents, which stand before them; -1 marks a node without parent."""
    order = np.argsort(parents, kind="stable")
    order = order[parents[order] >= 0]
    above, sizes = np.unique(parents[order], return_counts=True)
    groups = np.split(order, np.cumsum(sizes)[:-1]) if len(above) else []
    children = np.concatenate(groups[::-1]) if groups else np.empty(0, dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes[::-1])])
    return Families(above[::-1].astype(np.int64), starts.astype(np.int64), children.astype(np.int64))


@dataclass(frozen=True)
class Tightening:
    """How a propagation ended: after so many sweeps, at a fixpoint or not, with so many cells left without a count."""

    sweeps: int
    is_fixpoint: bool
    contradictions: int


def tighten(
    low: Bounds, high: Bounds, shown: Bounds, axes: Sequence[Families], shape: Sequence[int], same_noise: bool
) -> Tightening:
    """Tighten intervals in place until no sum along an axis tightens them further: parent = sum of its children.

    A parent lies between the sums of its children's bounds, and a child between the parent's bounds less those of the
    other children. With the same noise for the same participants, a child that is published unlike its parent does not
    hold everybody: somebody is in the others. A contradiction ends it.
    """
    buffers = _buffers()
    for sweep in count_up(1):
        changes, broken = 0, 0
        for axis, members in enumerate(axes):
            view = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
            grids = low.reshape(view), high.reshape(view), shown.reshape(view)
            changed, empty = _sweep(*grids, *members.arrays, same_noise, *buffers)
            changes, broken = changes + changed, broken + empty
        if broken or not changes or sweep == MOST_SWEEPS:
            return Tightening(sweep, not changes, int(np.count_nonzero(low > high)))
    raise AssertionError  # count_up has no end


def _buffers() -> tuple[NDArray[np.int64], ...]:
    return tuple(np.empty(TILE, dtype=np.int64) for _ in range(5))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sweep(
    low: Any,
    high: Any,
    shown: Any,
    parents: Any,
    starts: Any,
    children: Any,
    same: Any,
    lows: Any,
    highs: Any,
    holders: Any,
    one: Any,
    other: Any,
) -> Any:
    """Tighten every family from the leaves up and from the root down; count changes and empty intervals."""
    changes, empty = 0, 0
    outer, _, inner = low.shape
    families_ = parents.size
    for o in range(outer):
        for step in range(2 * families_):
            f = step if step < families_ else 2 * families_ - 1 - step
            members = children[starts[f] : starts[f + 1]]
            for start in range(0, inner, TILE):
                size = min(TILE, inner - start)
                part = slice(start, start + size)
                grids = low[o, :, part], high[o, :, part], shown[o, :, part]
                _add_up(grids[0], grids[1], members, lows, highs, holders, one, other)
                changed, broken = _tighten_family(
                    *grids, parents[f], members, same, lows, highs, holders, one, other
                )
                changes += changed
                empty += broken
    return changes, empty


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_up(
    low: Any, high: Any, members: Any, lows: Any, highs: Any, holders: Any, one: Any, other: Any
) -> None:
    """Sum the children's bounds and note which of them, the first and the last, may hold anybody."""
    size = low.shape[1]
    lows[:size] = 0
    highs[:size] = 0
    holders[:size] = 0
    for child in members:
        for i in range(size):
            lows[i] += low[child, i]
            highs[i] += high[child, i]
            if high[child, i] > 0:
                if holders[i] == 0:
                    one[i] = child
                other[i] = child
                holders[i] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tighten_family(
    low: Any,
    high: Any,
    shown: Any,
    parent: Any,
    members: Any,
    same: Any,
    lows: Any,
    highs: Any,
    holders: Any,
    one: Any,
    other: Any,
) -> Any:
    changes, empty = 0, 0
    size = low.shape[1]
    for i in range(size):
        least, most = max(low[parent, i], lows[i]), min(high[parent, i], highs[i])
        changes += (least > low[parent, i]) + (most < high[parent, i])
        empty += least > most
        low[parent, i], high[parent, i] = least, most
    for child in members:
        for i in range(size):
            least, most = low[child, i], high[child, i]
            others_least, others_most = lows[i] - least, highs[i] - most
            if same and shown[child, i] != shown[parent, i]:
                others_least = max(others_least, 1)
                if least + others_least > low[parent, i]:
                    low[parent, i] = least + others_least
                    changes += 1
            new_least = max(least, low[parent, i] - others_most)
            new_most = min(most, high[parent, i] - others_least)
            if same and most > 0 and holders[i] == 2:
                partner = one[i] if other[i] == child else other[i]
                if shown[partner, i] != shown[parent, i]:
                    new_least = max(new_least, 1)
            changes += (new_least > least) + (new_most < most)
            empty += new_least > new_most
            low[child, i], high[child, i] = new_least, new_most
    return changes, empty
