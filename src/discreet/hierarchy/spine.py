"""The spine: areas that nest, without the areas that are their parent's equal.

An area that is the only child of its parent has the same counts. Measuring both would spend budget twice on one
number, so the parent is bypassed and its shares move down to the child, query by query (Abowd et al. 2022 bypass such
parents too). The counts are equal and rho adds up, so that the child's measurements are worth as much as both together,
and every path from the root to a leaf spends the same. What remains is a tree in which every area has no child or at
least two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake

Integers = NDArray[np.int64]
NAMED = 5  # areas that an error names


@dataclass(frozen=True, eq=False)
class Spine:
    """A tree of nodes, parents before children and siblings side by side; each is one or more equal areas."""

    levels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # level -> names of its areas; empty where they are only numbered
    parent: Integers  # node -> node, -1 for the root
    first: Integers  # node -> its first child; equal to ``last`` for leaves
    last: Integers  # node -> one beyond its last child
    top: Integers  # node -> the first level of the equal areas that it represents
    bottom: Integers  # node -> their last level, whose queries are asked
    node_of: tuple[Integers, ...]  # level -> area -> node

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def leaves(self) -> Integers:
        """The node of each area of the last level."""
        return self.node_of[-1]

    @property
    def inner(self) -> Integers:
        """The nodes with children, parents first."""
        return np.flatnonzero(self.last > self.first)

    def is_leaf(self, node: int) -> bool:
        """Whether a node has no children."""
        return bool(self.first[node] == self.last[node])

    def children(self, node: int) -> slice:
        """The nodes below a node; of -1 the root."""
        return slice(0, 1) if node < 0 else slice(int(self.first[node]), int(self.last[node]))

    def area(self, level: int, number: int) -> str:
        """How an error names an area."""
        names = self.names[level]
        return f"{self.levels[level]} {names[number] if names else number}"

    def node_name(self, node: int) -> str:
        """The name of a node: its last area's."""
        level = int(self.bottom[node])
        return self.area(level, int(np.flatnonzero(self.node_of[level] == node)[0]))


def spine_of(
    levels: Sequence[str],
    parents: Sequence[Integers],
    names: Sequence[Sequence[str]] | None = None,
    bypass: bool = True,
) -> Spine:
    """Make the spine of nested areas: ``parents[l]`` has the parent at level l of each area of level l + 1.

    Without ``bypass`` the only child of an area is measured beside it.
    """
    if len(parents) != len(levels) - 1:
        raise ValueError("one array of parents for each level but the first")
    sizes = [1, *(len(one) for one in parents)]
    named = tuple(tuple(one) for one in names) if names is not None else ((),) * len(levels)
    children = [np.bincount(one, minlength=sizes[level]) for level, one in enumerate(parents)]
    _checked(levels, parents, sizes, children, named)
    passed = [*((count == 1) & bypass for count in children), np.zeros(sizes[-1], dtype=bool)]
    start = np.cumsum([0, *sizes])
    total = int(start[-1])
    above = np.full(total, -1, dtype=np.int64)  # area -> the nearest area above that is not bypassed
    top = np.zeros(total, dtype=np.int64)
    depth = np.zeros(total, dtype=np.int64)
    for level in range(1, len(levels)):
        here, up = slice(start[level], start[level + 1]), start[level - 1] + parents[level - 1]
        equal = passed[level - 1][parents[level - 1]]
        above[here] = np.where(equal, above[up], up)
        top[here] = np.where(equal, top[up], level)
        depth[here] = np.where(equal, depth[up], depth[up] + 1)
    level_of = np.repeat(np.arange(len(levels)), sizes)
    retained = ~np.concatenate(passed)
    node = np.full(total, -1, dtype=np.int64)
    order: list[Integers] = []
    count = 0
    for at in range(int(depth.max()) + 1):
        found = np.flatnonzero(retained & (depth == at))
        found = found[np.argsort(node[above[found]], kind="stable")] if at else found
        node[found] = count + np.arange(len(found))
        count += len(found)
        order.append(found)
    areas = np.concatenate(order)
    parent = np.where(above[areas] >= 0, node[above[areas]], -1)
    below = np.bincount(parent[1:], minlength=count)
    last = 1 + np.cumsum(below)
    for level in range(len(levels) - 2, -1, -1):  # a bypassed area is its only child's node
        single = np.flatnonzero(passed[level][parents[level]])
        node[start[level] + parents[level][single]] = node[start[level + 1] + single]
    node_of = tuple(node[start[level] : start[level + 1]] for level in range(len(levels)))
    return Spine(tuple(levels), named, parent, last - below, last, top[areas], level_of[areas], node_of)


def _checked(
    levels: Sequence[str],
    parents: Sequence[Integers],
    sizes: Sequence[int],
    children: Sequence[Integers],
    names: Sequence[Sequence[str]],
) -> None:
    if len(set(levels)) != len(levels):
        raise mistake("", "levels", ", ".join(levels), "give each level one name")
    for level, one in enumerate(parents):
        if len(one) == 0 or one.min() < 0 or one.max() >= sizes[level]:
            value = f"an area of {levels[level + 1]} has no parent among {sizes[level]} of {levels[level]}"
            raise mistake(
                "", "levels", value, "give each area the number of its parent; one area is the root"
            )
    problems = []
    for level, count in enumerate(children):
        empty = np.flatnonzero(count == 0)
        if len(empty):
            shown = ", ".join(names[level][at] if names[level] else str(at) for at in empty[:NAMED])
            value = f"{len(empty)} areas have no {levels[level + 1]} below: {shown}"
            problems.append(Problem("", f"level {levels[level]}", value, "leave them out"))
    if problems:
        raise Mistakes(problems)
