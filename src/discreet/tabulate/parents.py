"""Cubes that are counted together: small ones share a parent, whose cells are counted once for all of them.

A parent crosses classes of leaves, at least as fine as those of every cube that is counted through it. A record is
added to one cell of the parent; its cells are then added to the cubes, which takes little time beside the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells import counting
from discreet.programme.cube import Cube

MOST_SHARED = 1 << 18  # cells of a parent of several cubes: 2 MiB, about a second-level cache
MOST_ALONE = 1 << 22  # cells of a cube that is its own parent; larger ones are counted by themselves
_TRIED = 128  # parents that a cube is compared with: planning stays linear in the cubes
_TOGETHER = 16  # parents that are counted in one walk over the records
_WALKS = 4  # walks, where there are fewer parents: for as many threads

Sums = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Classes:
    """The leaves of a variable in classes: those of one class are in the same node of every axis in question."""

    variable: str
    of_leaf: NDArray[np.uint32]

    @cached_property
    def number(self) -> int:
        """How many there are."""
        return int(self.of_leaf.max(initial=0)) + 1

    @cached_property
    def first_leaves(self) -> NDArray[np.int64]:
        """One leaf of each class."""
        return np.unique(self.of_leaf, return_index=True)[1]


Cross = Mapping[str, Classes]  # by variable


def cells_in(cross: Cross) -> int:
    """The number of cells of a cross of classes."""
    return prod(classes.number for classes in cross.values())


class Partitions:
    """The classes in use, each once, so that equal ones are the same object."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Classes] = {}
        self._finer: dict[tuple[Classes, Classes], Classes] = {}

    def of(self, cube: Cube) -> Cross:
        """The finest classes that a cube distinguishes."""
        found: dict[str, Classes] = {}
        for axis in cube.axes:
            if len(axis) > 1:
                nodes = self._classes(axis.variable, axis.node_of_leaf.astype(np.int64))
                found = dict(self.joint(found, {axis.variable: nodes}))
        return found

    def joint(self, one: Cross, other: Cross) -> Cross:
        """The classes that both distinguish."""
        shared = {name: self._both(one[name], other[name]) for name in one.keys() & other.keys()}
        return {name: shared.get(name, classes) for name, classes in {**one, **other}.items()}

    def cells_of_both(self, one: Cross, other: Cross, most: int) -> int:
        """The number of cells of the joint cross; more than ``most`` where it is clear that there are more."""
        cells = prod(classes.number for name, classes in other.items() if name not in one)
        for name, classes in one.items():
            cells *= self._both(classes, other[name]).number if name in other else classes.number
            if cells > most:
                break
        return cells

    def _both(self, one: Classes, other: Classes) -> Classes:
        if one is other:
            return one
        found = self._finer.get((one, other))
        if found is None:
            pairs = one.of_leaf.astype(np.int64) * other.number + other.of_leaf
            found = self._finer[one, other] = self._classes(one.variable, pairs)
        return found

    def _classes(self, variable: str, numbers: NDArray[np.int64]) -> Classes:
        of_leaf = np.unique(numbers, return_inverse=True)[1].astype(np.uint32)
        return self._known.setdefault((variable, of_leaf.tobytes()), Classes(variable, of_leaf))


@dataclass(eq=False)
class Parent:
    """A cross of classes and the cubes that are counted through it, by their numbers."""

    cross: Cross
    cubes: list[int]
    room: int  # cells that the cubes have, margins included

    @cached_property
    def cells(self) -> int:
        """The number of its cells; asked for when all cubes are in it."""
        return cells_in(self.cross)

    def shares(self, cells: Sums, cube: Cube) -> tuple[NDArray[np.uint32], Sums]:
        """What the cells add to a cube: positions of its finest cells, of which several may be the same, and sums."""
        crossed = {axis.variable for axis in cube.axes if len(axis) > 1}
        added_up = tuple(k for k, name in enumerate(self.cross) if name not in crossed)
        sums = cells.reshape([classes.number for classes in self.cross.values()]).sum(axis=added_up)
        position = np.zeros(1, dtype=np.uint32)
        for name, classes in self.cross.items():
            steps = np.zeros(classes.number, dtype=np.uint32)
            for axis, stride in zip(cube.axes, cube.strides, strict=True):
                if axis.variable == name and len(axis) > 1:
                    steps += (axis.node_of_leaf[classes.first_leaves] * stride).astype(np.uint32)
            if name in crossed:
                position = np.add.outer(position, steps).ravel()
        return position, sums.ravel()


def parents_of(cubes: Mapping[int, Cube], room: int = 0) -> list[Parent]:
    """Divide cubes among parents; large cubes first, each joins the parent that grows least by it.

    A parent may have ``room`` cells even where its cubes have fewer.
    """
    partitions = Partitions()
    crosses = {k: partitions.of(cube) for k, cube in cubes.items()}
    parents: list[Parent] = []
    for k in sorted(cubes, key=lambda k: -cells_in(crosses[k])):
        best: tuple[float, int, Parent] | None = None
        for parent in parents[-_TRIED:]:
            before = cells_in(parent.cross)
            most = max(before, min(MOST_SHARED, max(room, parent.room + cubes[k].size)))
            after = partitions.cells_of_both(parent.cross, crosses[k], most)
            if after <= most and (best is None or (after / before, after) < best[:2]):
                best = after / before, after, parent
        if best is None:
            parents.append(Parent(crosses[k], [k], cubes[k].size))
        else:
            parent = best[2]
            parent.cross = partitions.joint(parent.cross, crosses[k])
            parent.cubes.append(k)
            parent.room += cubes[k].size
    for parent in parents:
        parent.cross = _in_order(parent.cross)
    return parents


def _in_order(cross: Cross) -> Cross:
    """The order in which a parent's cells lie near each other for records that follow each other.

    What a cube crosses first, mostly the geography that records are ordered by, varies slowest. The next variables are
    in most cubes, so they vary fastest: the others are then added up in long rows. In a census these are sex and age,
    whose codes are all frequent, and a rare code of another variable is far from all frequent ones.
    """
    names = list(cross)
    return {name: cross[name] for name in (*names[:1], *reversed(names[1:]))}


def can_share(cube: Cube) -> bool:
    """Whether a cube is small enough to be counted through a parent."""
    finest = prod(len(np.unique(axis.node_of_leaf)) for axis in cube.axes if len(axis) > 1)
    return finest <= MOST_ALONE


def walks(parents: Sequence[Parent]) -> Iterator[Sequence[Parent]]:
    """Which parents are counted in one walk: neighbours with like axes, in walks of about equal length."""
    number = max(-(-len(parents) // _TOGETHER), min(len(parents), _WALKS))
    for at in range(number):
        yield parents[at::number]


class Walk:
    """The accumulators of some parents, filled in one walk over the records."""

    def __init__(
        self, parents: Sequence[Parent], narrow: Mapping[Classes, int], wide: Mapping[Classes, int]
    ) -> None:
        self.parents = parents
        self._begin = np.cumsum([0, *(parent.cells for parent in parents)])
        self._narrow, self._wide = _Steps(parents, narrow), _Steps(parents, wide)
        self._cells = np.zeros(int(self._begin[-1]), dtype=np.uint64)

    def add(self, narrow: NDArray[np.uint8], wide: NDArray[np.uint32], added: Sums) -> None:
        """Add each record's value to its cell of every parent."""
        counting.count_parents(self._cells, self._begin, added, narrow, *self._narrow, wide, *self._wide)

    def cells(self, at: int) -> Sums:
        """The accumulators of one of the parents."""
        return self._cells[self._begin[at] : self._begin[at + 1]]


class _Steps:
    """The rows that each parent uses, with their strides: those of parent p are from first[p] to first[p + 1]."""

    def __init__(self, parents: Sequence[Parent], rows: Mapping[Classes, int]) -> None:
        first, used, strides = [0], list[int](), list[int]()
        for parent in parents:
            stride = 1
            for classes in reversed(parent.cross.values()):  # type: ignore[call-overload]
                if classes in rows:
                    used.append(rows[classes])
                    strides.append(stride)
                stride *= classes.number
            first.append(len(used))
        self._arrays = np.array(first), np.array(used, dtype=np.int64), np.array(strides, dtype=np.uint32)

    def __iter__(self) -> Iterator[NDArray[np.int64] | NDArray[np.uint32]]:
        return iter(self._arrays)
