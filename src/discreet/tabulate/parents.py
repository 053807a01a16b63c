"""Cubes that are counted together: small ones share a parent, whose cells are counted once for all of them.

A parent crosses classes of leaves, at least as fine as those of every cube that is counted through it. A record is
added to one cell of the parent; its cells are then added to the cubes, which takes little time beside the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells import counting
from discreet.programme.cube import Cube

MOST_SHARED = 1 << 18  # cells of a parent of several cubes: 2 MiB, about a second-level cache
MOST_ALONE = 1 << 22  # cells of a cube that is its own parent; larger ones are counted by themselves
_TRIED = 128  # parents that a cube is compared with: planning stays linear in the cubes
SHORT = 1 << 16  # positions below it take 16 bits
_ROW = 32  # cells of a parent that are added to a cube in one loop
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

    def places(self, cube: Cube) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Where its cells are among a cube's finest ones: the cell in row o and column i at outer[o] + inner[i]."""
        outer, inner = np.zeros(1, dtype=np.uint32), np.zeros(1, dtype=np.uint32)
        for name, classes in reversed(self.cross.items()):  # type: ignore[call-overload]
            steps = np.zeros(classes.number, dtype=np.uint32)
            for axis, stride in zip(cube.axes, cube.strides, strict=True):
                if axis.variable == name and len(axis) > 1:
                    steps += (axis.node_of_leaf[classes.first_leaves] * stride).astype(np.uint32)
            if len(inner) < _ROW:
                inner = np.add.outer(steps, inner).ravel()
            else:
                outer = np.add.outer(steps, outer).ravel()
        return outer, inner


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


@dataclass(frozen=True, eq=False)
class Runs:
    """Records that follow each other and have the same leaf of a variable, and the classes of each run of them."""

    bounds: NDArray[np.int64]  # run -> its first record, one more at the end
    classes: NDArray[np.uint32]  # [row of classes, run]


def outer_variable(parents: Iterable[Parent]) -> str | None:
    """The variable that varies slowest in most parents: the one that records are ordered by, if by any."""
    first = Counter(next(iter(parent.cross)) for parent in parents if parent.cross)
    return first.most_common(1)[0][0] if first else None


class Walk:
    """The accumulators of some parents, filled in one walk over the records."""

    def __init__(
        self,
        parents: Sequence[Parent],
        narrow: Mapping[Classes, int],
        wide: Mapping[Classes, int],
        outer: Mapping[Classes, int],
    ) -> None:
        self.parents = parents
        self._begin = np.cumsum([0, *(parent.cells for parent in parents)]).astype(np.uint64)
        self._by_record = _Axes(parents, narrow, wide, {})
        self._by_run = _Axes(parents, _without(outer, narrow), _without(outer, wide), outer)
        self._cells = np.zeros(int(self._begin[-1]), dtype=np.uint64)

    def add(
        self, narrow: NDArray[np.uint8], wide: NDArray[np.uint32], added: Sums, runs: Runs | None
    ) -> None:
        """Add each record's value to its cell of every parent; where records come in runs, their rows are not used."""
        axes = self._by_record if runs is None else self._by_run
        if runs is None:
            runs = Runs(np.array([0, len(added)]), np.zeros((1, 1), dtype=np.uint32))
        counting.count_parents(
            *axes.room,
            self._cells,
            self._begin,
            added,
            runs.bounds,
            runs.classes,
            *axes.outer,
            narrow,
            *axes.narrow,
            wide,
            *axes.wide,
        )

    def cells(self, at: int) -> Sums:
        """The accumulators of one of the parents."""
        return self._cells[int(self._begin[at]) : int(self._begin[at + 1])]


def _without(left_out: Mapping[Classes, int], rows: Mapping[Classes, int]) -> dict[Classes, int]:
    return {classes: row for classes, row in rows.items() if classes not in left_out}


class _Axes:
    """The rows that each parent uses, with their strides, and memory for positions.

    Those of parent p are from first[p] to first[p + 1]; of the outer variable it uses one, or the first with stride 0.
    """

    def __init__(
        self,
        parents: Sequence[Parent],
        narrow: Mapping[Classes, int],
        wide: Mapping[Classes, int],
        outer: Mapping[Classes, int],
    ) -> None:
        strides = [_strides(parent.cross) for parent in parents]
        self.narrow, self.wide = _steps(strides, narrow), _steps(strides, wide)
        used = [
            [(outer[classes], stride) for classes, stride in one.items() if classes in outer]
            for one in strides
        ]
        rows, steps = zip(*(one[0] if one else (0, 0) for one in used), strict=True)
        self.outer = np.array(rows, dtype=np.int64), np.array(steps, dtype=np.uint64)
        largest = (
            sum((classes.number - 1) * stride for classes, stride in one.items() if classes not in outer)
            for one in strides
        )
        self._short = max(largest) < SHORT

    @cached_property
    def room(self) -> tuple[NDArray[Any], ...]:
        """Memory for positions: one walk is one task."""
        return counting.room_for_grids(self._short)


def _strides(cross: Cross) -> dict[Classes, int]:
    """The stride of each variable's classes; the last ones are next to each other."""
    found, stride = {}, 1
    for classes in reversed(cross.values()):  # type: ignore[call-overload]
        found[classes] = stride
        stride *= classes.number
    return found


def _steps(
    strides: Sequence[Mapping[Classes, int]], rows: Mapping[Classes, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Where the rows of each parent begin, the rows, and their strides."""
    used = [
        [(rows[classes], stride) for classes, stride in one.items() if classes in rows] for one in strides
    ]
    first = np.cumsum([0, *map(len, used)])
    pairs = np.array([pair for one in used for pair in one], dtype=np.int64).reshape(-1, 2)
    return first, pairs[:, 0].copy(), pairs[:, 1].astype(np.uint32)
