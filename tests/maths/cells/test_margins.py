"""Margins of listed cells are those of brute force and of the dense grid, whichever way the cells are divided."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.cells import counting, margins
from discreet.maths.cells.margins import is_in_preorder, with_margins
from tests.cases import few

MODULUS = 2**64
WAYS = {
    "as large cubes are": (margins.SMALL, margins.LARGE, margins.AT_ONCE),
    "divided to the last axis": (0, 1 << 20, 1 << 23),
    "merged by sorting": (0, 1, 1 << 23),
    "small grids at the end": (8, 64, 1 << 23),
    "little memory at once": (64, 1 << 10, 50),
    "memory for one cell": (64, 1 << 10, 1),
}


@dataclass(frozen=True)
class Listed:
    """Some cells of a cube."""

    parents: list[NDArray[np.int32]]
    position: NDArray[np.uint64]
    added: NDArray[np.uint64]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(tree) for tree in self.parents)

    def with_margins(self, largest: bool) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        return with_margins(self.position.copy(), self.added.copy(), self.shape, self.parents, largest)


@pytest.fixture(params=few(WAYS, *list(WAYS)[:-1]))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in zip(("SMALL", "LARGE", "AT_ONCE"), WAYS[request.param], strict=True):
        monkeypatch.setattr(margins, name, value)
    return str(request.param)


def tree(rng: np.random.Generator, nodes: int, depth: int) -> NDArray[np.int32]:
    """A ragged tree in preorder."""
    parents, path = [-1], [0]
    for node in range(1, nodes):
        path = path[: int(rng.integers(0, min(len(path), depth))) + 1]
        parents.append(path[-1])
        path.append(node)
    return np.array(parents, dtype=np.int32)


def finest(parents: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.setdiff1d(np.arange(len(parents)), parents[1:])


def listed(
    rng: np.random.Generator,
    nodes: Sequence[int],
    cells: int,
    *,
    depth: int = 4,
    anywhere: bool = False,
    most: int = MODULUS,
) -> Listed:
    """Random cells at finest nodes, or at any."""
    parents = [tree(rng, size, depth) for size in nodes]
    shape = tuple(nodes)
    along = [rng.choice(np.arange(len(one)) if anywhere else finest(one), cells) for one in parents]
    position = np.unique(np.ravel_multi_index(along, shape)) if cells and shape else np.arange(min(cells, 1))
    added = rng.integers(0, most, len(position), dtype=np.uint64)
    return Listed(parents, position.astype(np.uint64), added)


def ancestors(parents: NDArray[np.int32], node: int) -> list[int]:
    found = []
    while node >= 0:
        found.append(node)
        node = int(parents[node])
    return found


def brute_force(of: Listed, largest: bool) -> dict[int, int]:
    strides = [prod(of.shape[k + 1 :]) for k in range(len(of.shape))]
    found: dict[int, int] = {}
    for position, value in zip(of.position.tolist(), of.added.tolist(), strict=True):
        nodes = [position // stride % size for stride, size in zip(strides, of.shape, strict=True)]
        for above in product(*(ancestors(one, node) for one, node in zip(of.parents, nodes, strict=True))):
            place = sum(node * stride for node, stride in zip(above, strides, strict=True))
            before = found.get(place, 0)
            found[place] = max(before, value) if largest else (before + value) % MODULUS
    return {place: value for place, value in found.items() if value}


def dense(of: Listed, largest: bool) -> NDArray[np.uint64]:
    cells = np.zeros(prod(of.shape), dtype=np.uint64)
    cells[of.position.astype(np.int64)] = of.added
    up: Any = counting.largest_up if largest else counting.roll_up
    for axis, parents in enumerate(of.parents):
        up(cells, of.shape, axis, parents)
    return cells


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 9), max_size=5),
    st.integers(0, 60),
    st.booleans(),
    st.sampled_from([2, 5, MODULUS]),
    st.sampled_from(sorted(WAYS)),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_all_cells_are_those_of_brute_force(
    seed: int, nodes: list[int], cells: int, anywhere: bool, most: int, way: str, largest: bool
) -> None:
    of = listed(np.random.default_rng(seed), nodes, cells, anywhere=anywhere, most=most)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("SMALL", "LARGE", "AT_ONCE"), WAYS[way], strict=True):
            patch.setattr(margins, name, value)
        position, sums = of.with_margins(largest)
    assert position.dtype == np.int64
    assert position.tolist() == sorted(set(position.tolist()))
    assert dict(zip(position.tolist(), sums.tolist(), strict=True)) == brute_force(of, largest)


SHAPES = {
    "a wide axis first": (5000, 3, 7, 4),
    "a wide axis last": (3, 7, 4, 5000),
    "a wide axis in the middle": (4, 3000, 9, 5),
    "two wide axes": (400, 1, 500),
    "totals only beside one axis": (1, 3000, 1, 1),
    "many narrow axes": (3, 2, 4, 3, 2, 3, 4, 2, 3, 3),
}


@pytest.mark.parametrize("largest", [False, True], ids=["sums", "largest"])
@pytest.mark.parametrize("nodes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("cells", [1, 40, 20_000])
def test_all_cells_are_those_of_a_dense_grid(
    way: str, nodes: tuple[int, ...], cells: int, largest: bool
) -> None:
    rng = np.random.default_rng(cells)
    for anywhere, depth in ((False, 1), (False, 4), (True, 30)):
        of = listed(rng, nodes, cells, depth=depth, anywhere=anywhere, most=2**40)
        wanted = dense(of, largest)
        position, sums = of.with_margins(largest)
        assert np.array_equal(position, np.flatnonzero(wanted)), way
        assert np.array_equal(sums, wanted[position]), way


@pytest.mark.parametrize(
    "nodes",
    [(50_000, 3, 5000, 70, 40_000, 900), (9, 60_000, 50_000, 60_000, 500)],
    ids=["a wide axis first", "more than 2^56 cells at a node of the first axis"],
)
def test_positions_of_a_cube_that_no_memory_holds(way: str, nodes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    of = listed(rng, nodes, 300, depth=3)
    assert 2**57 < prod(of.shape) < 2**62
    for largest in (False, True):
        position, sums = of.with_margins(largest)
        assert dict(zip(position.tolist(), sums.tolist(), strict=True)) == brute_force(of, largest), way
        assert (np.diff(position) > 0).all()


def test_given_cells_stay_as_they_are() -> None:
    of = listed(np.random.default_rng(3), (400, 30, 30), 5000)
    position, added = of.position.copy(), of.added.copy()
    with_margins(of.position, of.added, of.shape, of.parents)
    assert np.array_equal(of.position, position)
    assert np.array_equal(of.added, added)


def test_cells_whose_sum_is_zero_are_left_out() -> None:
    flat = np.array([-1, 0, 0, 0], dtype=np.int32)
    position = np.array([5, 6, 11], dtype=np.uint64)
    added = np.array([3, -3, 0], dtype=np.int64).view(np.uint64)
    found, sums = with_margins(position, added, (4, 4), [flat, flat])
    assert found.tolist() == [1, 2, 5, 6]
    assert sums.view(np.int64).tolist() == [3, -3, 3, -3]


@pytest.mark.parametrize(
    ("parents", "is_one"),
    [
        ([-1], True),
        ([-1, 0, 1, 1, 0, 4], True),
        ([-1, 0, 0, 1, 2], False),  # level by level
        ([-1, 2, 0], False),  # a child before its parent
        ([-1, 0, 2], False),  # a node below itself
        ([-1, 0, -1], False),  # two trees
    ],
)
def test_only_nodes_in_preorder_are_rolled_up(parents: list[int], is_one: bool) -> None:
    nodes = np.array(parents, dtype=np.int32)
    assert is_in_preorder(nodes) is is_one
    position, added = np.array([len(nodes) - 1], dtype=np.uint64), np.ones(1, dtype=np.uint64)
    if is_one:
        assert with_margins(position, added, (len(nodes),), [nodes])[0][0] == 0
    else:
        with pytest.raises(ValueError, match="preorder"):
            with_margins(position, added, (len(nodes),), [nodes])
