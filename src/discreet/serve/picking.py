"""Taking some cells of a protected table as the cells of another: a part of its axes, codes and levels, in any order.

It looks at positions alone and computes no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.schema.cube import Cube

Integers = NDArray[np.int64]
LEFT_OUT = -1


def picked(
    cube: Cube, cells: Integers, maps: Sequence[Integers], order: Sequence[int], shape: Sequence[int]
) -> tuple[Integers, NDArray[np.intp]]:
    """The new positions of the cells that are wanted, and which of them these are.

    ``maps[k]`` gives for each node of the cube's axis k its new node, or LEFT_OUT. ``order`` lists the axes of the cube
    that stay, as they follow each other in the new grid of this shape; the other axes only pick.
    """
    strides = {axis: prod(shape[new + 1 :]) for new, axis in enumerate(order)}
    # the axis that leaves out most is looked at first
    axes = sorted(range(len(maps)), key=lambda k: np.count_nonzero(maps[k] != LEFT_OUT) / len(maps[k]))
    form = [(cube.strides[k], cube.shape[k], strides.get(k, 0), len(maps[k])) for k in axes]
    table = np.array(form, dtype=np.uint64).reshape(len(axes), 4)
    flat = np.concatenate([*(maps[k] for k in axes), np.zeros(0, dtype=np.int64)])
    place, kept = np.empty(len(cells), dtype=np.int64), np.empty(len(cells), dtype=np.intp)
    found = _pick(cells.view(np.uint64), table, flat, place, kept)
    return place[:found], kept[:found]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pick(cells: Any, axes: Any, maps: Any, place: Any, kept: Any) -> Any:
    """Fill in the new positions of wanted cells and which these are; return their number.

    Of each axis: its stride and size, its new stride, and the length of its map.
    """
    found = 0
    for c in range(cells.size):
        position, start, inside = np.int64(0), np.int64(0), True
        for k in range(axes.shape[0]):
            node = maps[start + np.int64((cells[c] // axes[k, 0]) % axes[k, 1])]
            if node == LEFT_OUT:
                inside = False
                break
            position += node * np.int64(axes[k, 2])
            start += np.int64(axes[k, 3])
        if inside:
            place[found], kept[found] = position, c
            found += 1
    return found


def map_of(size: int, nodes: Integers) -> Integers:
    """Old node -> its place among ``nodes``, or LEFT_OUT."""
    found = np.full(size, LEFT_OUT, dtype=np.int64)
    found[nodes] = np.arange(len(nodes))
    return found
