"""The kernels against a plain search over every group, category and level."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.attacks.disclosure import (
    CubeGrid,
    RowKind,
    TallyColumn,
    depths_of,
    histogram,
    rows,
    side,
    small_counts,
)

Nodes = tuple[int, ...]
Columns = list[dict[Nodes, int]]  # published, original, counted: cell -> value
SHARE = Fraction(9, 10)


@st.composite
def trees(draw: st.DrawFn) -> NDArray[np.int32]:
    nodes = draw(st.integers(2, 5))
    return np.array([-1, *(draw(st.integers(0, node - 1)) for node in range(1, nodes))], dtype=np.int32)


class Example:
    """A cube with up to three columns of values, as kernels and as plain dictionaries."""

    def __init__(self, parents: list[NDArray[np.int32]], columns: Columns, owned: list[bool]) -> None:
        self.parents, self.columns = parents, columns
        shape = [len(one) for one in parents]
        strides = tuple(int(np.prod(shape[k + 1 :], dtype=np.int64)) for k in range(len(shape)))
        cells = sorted({cell for column in columns for cell in column})
        flat = np.array([sum(n * s for n, s in zip(cell, strides, strict=True)) for cell in cells], np.int64)
        values = np.array([[column.get(cell, 0) for column in columns] for cell in cells], np.int64)
        self.grid = CubeGrid(strides, tuple(parents), np.array(owned))
        self.side = side(flat, values.reshape(len(cells), len(columns)), self.grid)
        self.depths = [depths_of(one) for one in parents]
        self.crosstabs = list(product(*(range(int(one.max()) + 1) for one in self.depths)))


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Persons are counted twice (before and after some move), with margins; the published values are near that."""
    parents = draw(st.lists(trees(), min_size=1, max_size=3))
    leaves = [[n for n in range(1, len(one)) if n not in one[1:]] for one in parents]
    person = st.tuples(*(st.sampled_from(some) for some in leaves))
    before = draw(st.lists(person, max_size=8))
    after = [draw(person) if draw(st.integers(0, 3)) == 0 else one for one in before]
    original, counted = (rolled_up(parents, some) for some in (before, after))
    noise = st.sampled_from([0, 0, 0, -1, 1, 2])
    grid = product(*(range(len(one)) for one in parents))
    published = {
        cell: counted[cell] + draw(noise) if cell in counted else draw(st.sampled_from([0] * 9 + [1]))
        for cell in grid
    }
    columns = [published, original, counted][: draw(st.integers(1, 3))]
    levels = [int(depths_of(one).max()) + 1 for one in parents]
    size = int(np.prod(levels))
    owned = draw(st.lists(st.sampled_from([True, True, False]), min_size=size, max_size=size))
    return Example(parents, [{c: x for c, x in column.items() if x} for column in columns], owned)


def rolled_up(parents: list[NDArray[np.int32]], persons: list[Nodes]) -> dict[Nodes, int]:
    counts: dict[Nodes, int] = {}
    for person in persons:
        for cell in product(*(above(one, node) for one, node in zip(parents, person, strict=True))):
            counts[cell] = counts.get(cell, 0) + 1
    return counts


def above(parents: NDArray[np.int32], node: int) -> list[int]:
    chain = [node]
    while chain[-1]:
        chain.append(int(parents[chain[-1]]))
    return chain


class Plain:
    """One attribute axis, judged row by row."""

    def __init__(self, example: Example, axis: int, same_noise: bool) -> None:
        self.example, self.axis, self.same_noise = example, axis, same_noise
        self.parents, self.depths = example.parents[axis], example.depths[axis]

    def categories(self, depth: int) -> list[int]:
        inner = set(self.parents[1:].tolist())
        return [
            n
            for n in range(1, len(self.parents))
            if self.depths[n] == depth or (self.depths[n] < depth and n not in inner)
        ]

    def at(self, group: Nodes, node: int) -> Nodes:
        return (*group[: self.axis], node, *group[self.axis + 1 :])

    def judged(self, group: Nodes, depth: int, v: int) -> tuple[str, int]:
        """full, near or nothing, and the category; nothing with the category -1 where none is nonempty."""
        column = self.example.columns[v]
        n = column.get(group, 0)
        nonempty = {c: x for c in self.categories(depth) if (x := column.get(self.at(group, c), 0)) > 0}
        if n <= 0 or not nonempty:
            return "", -1
        top = min(nonempty, key=lambda c: (-nonempty[c], c))
        siblings = np.count_nonzero(self.parents == self.parents[top])
        if self.depths[top] != depth or siblings < 2:
            return "", -1
        if len(nonempty) == 1 and (nonempty[top] == n or v or not self.same_noise):
            return "full", top
        return ("near" if nonempty[top] >= SHARE * n else ""), top

    def all_but_one(self, group: Nodes, depth: int, v: int) -> int:
        _, top = self.judged(group, depth, v)
        column = self.example.columns[v]
        n = column.get(group, 0)
        return top if top > 0 and n >= 2 and column.get(self.at(group, top), 0) == n - 1 else -1

    def follows(self, group: Nodes, depth: int, v: int) -> bool:
        kind, top = self.judged(group, depth, v)
        for a, node in enumerate(group):
            if a != self.axis and node:
                wider = (*group[:a], int(self.example.parents[a][node]), *group[a + 1 :])
                wider_kind, wider_top = self.judged(wider, depth, v)
                enough = ("full",) if kind == "full" else ("full", "near")
                if wider_kind in enough and wider_top == top:
                    return True
        return False

    def kind(self, group: Nodes, depth: int, v: int) -> RowKind | None:
        kind, _ = self.judged(group, depth, v)
        if not kind:
            return None
        if self.follows(group, depth, v):
            return RowKind.FOLLOWING if kind == "full" else None
        if kind == "near":
            return RowKind.NEAR
        return RowKind.INDIVIDUAL if self.example.columns[v][group] == 1 else RowKind.GROUP

    def so(self, group: Nodes, depth: int, v: int, kind: RowKind, category: int) -> bool:
        """Whether what a row of this kind says of a category holds in column v."""
        kind_found, top = self.judged(group, depth, v)
        return top == category and kind_found in (("full", "near") if kind is RowKind.NEAR else ("full",))

    def tallies(self) -> NDArray[np.int64]:
        example = self.example
        found = np.zeros((len(example.crosstabs), len(RowKind), len(TallyColumn)), dtype=np.int64)
        for number, depths in enumerate(example.crosstabs):
            depth = depths[self.axis]
            if depth and example.grid.owned[number]:
                others = [d if a != self.axis else 0 for a, d in enumerate(depths)]
                groups = product(
                    *(np.flatnonzero(at == d).tolist() for at, d in zip(example.depths, others, strict=True))
                )
                for group in groups:
                    self.add(found[number], group, depth)
        return found

    def add(self, tally: NDArray[np.int64], group: Nodes, depth: int) -> None:
        columns = range(len(self.example.columns))
        there = [v for v in columns if self.example.columns[v].get(group, 0) > 0]
        for v in there:
            tally[RowKind.GROUPS, v] += 1
            kind, abo = self.kind(group, depth, v), self.all_but_one(group, depth, v)
            category = self.judged(group, depth, v)[1]
            others = list(columns)[1:] if v == 0 else [0] if v == 1 else []
            if kind is not None:
                tally[kind, v] += 1
                for w in others:
                    tally[kind, 2 + w if w else 5] += self.so(group, depth, w, kind, category)
            if abo > 0:
                tally[RowKind.ALL_BUT_ONE, v] += 1
                for w in others:
                    tally[RowKind.ALL_BUT_ONE, 2 + w if w else 5] += self.all_but_one(group, depth, w) == abo
            for c in self.categories(depth):
                value = [column.get(self.at(group, c), 0) for column in self.example.columns]
                if value[v] <= 0:
                    tally[RowKind.EMPTY, v] += 1
                    for w in others:
                        tally[RowKind.EMPTY, 2 + w if w else 5] += value[w] <= 0
            for w in others:
                tally[RowKind.GROUPS, 2 + w if w else 5] += w in there


def doubled(found: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    if columns == 2:
        found[..., TallyColumn.COUNTED] = found[..., TallyColumn.ORIGINAL]
        found[..., TallyColumn.TRUE_COUNTED] = found[..., TallyColumn.TRUE]
    return found


@settings(max_examples=150, deadline=None)
@given(examples(), st.booleans())
def test_rows_are_those_of_a_plain_search(example: Example, same_noise: bool) -> None:
    for axis in range(len(example.parents)):
        plain = Plain(example, axis, same_noise)
        found = rows(example.side, example.grid, axis, SHARE, same_noise=same_noise, area=None, keep=2)
        assert np.array_equal(found.tallies, doubled(plain.tallies(), len(example.columns)))


@settings(max_examples=100, deadline=None)
@given(examples())
def test_small_counts_are_those_of_a_plain_search(example: Example) -> None:
    expected = np.zeros((len(example.crosstabs), 4, len(TallyColumn)), dtype=np.int64)
    seen = np.zeros((len(example.crosstabs), 5), dtype=np.int64)
    for cell in product(*(range(len(one)) for one in example.parents)):
        depths = tuple(int(at[node]) for at, node in zip(example.depths, cell, strict=True))
        number = example.crosstabs.index(depths)
        if not example.grid.owned[number]:
            continue
        value = [column.get(cell, 0) for column in example.columns]
        for v, x in enumerate(value):
            pairs = [(0, x > 0 and value[0] > 0), (x, x == value[0])] if v else []
            if x > 0:
                expected[number, 0, v] += 1
                if x < 4:
                    expected[number, x, v] += 1
                for kind, true in pairs:
                    if kind < 4:
                        expected[number, kind, 2 + v] += true
                        expected[number, kind, 5] += true and v == 1
        if 0 < value[0] < 5:
            seen[number, value[0]] += 1
    found = small_counts(example.side, example.grid, 4)
    assert np.array_equal(found, doubled(expected, len(example.columns)))
    assert np.array_equal(histogram(example.side, example.grid, 5)[:, 1:], seen[:, 1:])


@settings(max_examples=100, deadline=None)
@given(examples())
def test_areas_and_examples_hold_what_the_tallies_count(example: Example) -> None:
    if len(example.parents) < 2:
        return
    found = rows(example.side, example.grid, 1, SHARE, same_noise=True, area=0, keep=1000)
    telling = found.tallies[:, [RowKind.INDIVIDUAL, RowKind.GROUP]].sum(axis=1)
    judged = len(example.columns) > 1
    assert found.areas[:, 0].sum() == telling[:, TallyColumn.SEEN].sum()
    assert found.areas[:, 1].sum() == telling[:, TallyColumn.TRUE].sum()
    kept = (found.examples >= 0).sum(axis=1)
    assert np.array_equal(kept, telling[:, TallyColumn.TRUE if judged else TallyColumn.SEEN])
    for number, some in enumerate(found.examples):
        assert set(example.side.crosstab[some[some >= 0]].tolist()) <= {number}


def test_a_category_without_siblings_gives_nothing_away() -> None:
    parents = [np.array([-1, 0, 1], dtype=np.int32), np.array([-1, 0, 0], dtype=np.int32)]
    column = rolled_up(parents, [(2, 1), (2, 1)])
    example = Example(parents, [column], [True] * 6)
    only = rows(example.side, example.grid, 0, SHARE, same_noise=True, area=None, keep=1).tallies
    assert not only[:, [RowKind.INDIVIDUAL, RowKind.GROUP, RowKind.FOLLOWING]].any()
    other = rows(example.side, example.grid, 1, SHARE, same_noise=True, area=None, keep=1).tallies
    assert other[:, RowKind.GROUP, 0].sum() == 1  # everybody; the regions follow from it
    assert other[:, RowKind.FOLLOWING, 0].sum() == 2


def test_a_cube_without_axes_and_without_cells() -> None:
    example = Example([], [{(): 1}], [True])
    assert small_counts(example.side, example.grid, 4)[0, 1, TallyColumn.SEEN] == 1
    empty = Example([np.array([-1, 0, 0], dtype=np.int32)], [{}, {}, {}], [True, True])
    assert not rows(empty.side, empty.grid, 0, SHARE, same_noise=True, area=0, keep=1).tallies.any()


def test_what_is_counted_elsewhere_is_not_counted_here() -> None:
    """Two axes of two categories; of their crossing (3) another cube has the first category of the first axis."""
    flat = np.array([-1, 0, 0], dtype=np.int32)
    box = (np.array([True, True, False]), np.ones(3, dtype=np.bool_))
    grid = CubeGrid((3, 1), (flat, flat), np.array([True, True, False, True]), {3: (box,)})
    cells = np.array([4, 5, 7, 8, 1, 3])
    crosstab = np.array([3, 3, 3, 3, 1, 2])
    assert grid.own(cells, crosstab).tolist() == [False, False, True, True, True, False]
    groups = np.array(
        [3, 6, 3]
    )  # rows along the second axis: those of the box have all their categories there
    assert grid.own_rows(groups, np.array([3, 3, 1]), 1, 1).tolist() == [False, True, True]
    assert grid.own_rows(np.array([1]), np.array([3]), 0, 1).tolist() == [True]  # the box lacks a category
