"""Taking some cells of a protected table as the cells of another: a part of its axes, codes and levels, in any order.

It looks at positions alone and computes no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
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
    kept = np.arange(len(cells))
    place = np.zeros(len(cells), dtype=np.int64)
    strides = {axis: prod(shape[new + 1 :]) for new, axis in enumerate(order)}
    for k in sorted(range(len(maps)), key=lambda k: float(np.mean(maps[k] != LEFT_OUT))):
        node = maps[k][cube.nodes(cells[kept], k)]
        inside = node != LEFT_OUT
        if not inside.all():
            kept, place, node = kept[inside], place[inside], node[inside]
        if k in strides:
            place += node * strides[k]
    return place, kept


def map_of(size: int, nodes: Integers) -> Integers:
    """Old node -> its place among ``nodes``, or LEFT_OUT."""
    found = np.full(size, LEFT_OUT, dtype=np.int64)
    found[nodes] = np.arange(len(nodes))
    return found
