"""Cubes counted through shared parents have the cells that counting each record into each cube gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.cells.counting import increments
from discreet.population.encode import EncodedRecords, code_type
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.tabulate import counter as counting_blocks
from discreet.tabulate import parents as planning
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.parents import cells_in, parents_of


def axis_of(variable: str, name: str, groups: list[int], detailed: bool) -> Breakdown:
    """Leaves in groups (their own numbers), as groups alone or with the leaves below them; a group may be empty."""
    above = [-1, *(0 for _ in range(max(groups) + 1))]
    node_of_leaf = np.array(groups) + 1
    if detailed:
        node_of_leaf = np.arange(len(above), len(above) + len(groups))
        above += [group + 1 for group in groups]
    codes = ("_T", *(f"{name}{node}" for node in range(1, len(above))))
    return Breakdown(
        variable, name, codes, codes, np.array(above, dtype=np.int32), node_of_leaf.astype(np.int32)
    )


@st.composite
def programmes(draw: st.DrawFn) -> tuple[list[Cube], dict[str, int]]:
    leaves = {name: draw(st.integers(1, 9)) for name in "ABCD"}
    axes = {
        name: [
            axis_of(
                name,
                f"{name}{k}",
                draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)),
                draw(st.booleans()),
            )
            for k in range(3)
        ]
        for name, n in leaves.items()
    }
    crosses = st.lists(st.sampled_from("ABCD"), max_size=4)
    picked = draw(st.lists(crosses, min_size=1, max_size=12))
    return [
        Cube(str(k), "persons", tuple(draw(st.sampled_from(axes[name])) for name in names))
        for k, names in enumerate(picked)
    ], leaves


def counted_one_by_one(
    cube: Cube, codes: dict[str, NDArray[np.int64]], keys: NDArray[np.uint32]
) -> list[int]:
    """The sum of keys and the number of the records at or below each cell."""
    cells = np.zeros(cube.shape, dtype=object)
    for record, key in enumerate(keys):
        above: list[list[int]] = []
        for axis in cube.axes:
            nodes = [int(axis.node_of_leaf[codes[axis.variable][record]])]
            while nodes[-1] != 0:
                nodes.append(int(axis.parents[nodes[-1]]))
            above.append(nodes)
        cells[np.ix_(*above)] += int(increments(np.array([key]))[0])
    return [int(cell) % 2**64 for cell in cells.ravel()]


@settings(max_examples=60, deadline=None)
@given(
    programmes(),
    st.integers(0, 2**32),
    st.sampled_from([1, 7, 40, 1 << 18]),
    st.sampled_from([0, 1 << 22]),
    st.sampled_from([1, 4, 1 << 10]),
    st.sampled_from([0, 20, 1 << 16]),
    st.sampled_from([1, 4]),
)
def test_all_ways_of_counting_agree(
    drawn: tuple[list[Cube], dict[str, int]],
    seed: int,
    shared: int,
    alone: int,
    run: int,
    short: int,
    walks: int,
) -> None:
    cubes, leaves = drawn
    random = np.random.default_rng(seed)
    records = int(random.integers(0, 60))
    codes = {name: random.integers(0, n, records) for name, n in leaves.items()}
    codes["A"].sort()
    keys = random.integers(0, 2**32, records, dtype=np.uint32)
    blocks = [
        EncodedRecords(
            {name: column[part].astype(code_type(leaves[name])) for name, column in codes.items()},
            keys[part],
            {},
            {},
        )
        for part in (slice(0, records // 3), slice(records // 3, records))
    ]
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "MOST_SHARED", shared)
        patch.setattr(planning, "MOST_ALONE", alone)
        patch.setattr(planning, "SHORT", short)
        patch.setattr(planning, "_WALKS", walks)
        patch.setattr(counting_blocks, "SHORT_RUN", run)
        counter = CubeCounter(cubes, pool)
        for block in blocks:
            counter.add(block)
        for k, cube in enumerate(cubes):
            finest = counter.finest(k)
            wanted = counted_one_by_one(cube, codes, keys)
            assert counter.table(k).cells.tolist() == wanted
            assert [wanted[int(at)] for at in finest.positions] == finest.cells.tolist()
            assert int((finest.cells & np.uint64(0xFFFFFFFF)).sum()) == records


@settings(max_examples=60, deadline=None)
@given(programmes())
def test_a_parent_never_has_more_cells_than_its_cubes(drawn: tuple[list[Cube], dict[str, int]]) -> None:
    cubes, _ = drawn
    parents = parents_of(dict(enumerate(cubes)))
    assert sorted(k for parent in parents for k in parent.cubes) == list(range(len(cubes)))
    for parent in parents:
        assert cells_in(parent.cross) <= sum(cubes[k].size for k in parent.cubes)


def test_cubes_of_like_axes_share_a_parent() -> None:
    fine, coarse = axis_of("A", "H", [0, 0, 1, 1, 2, 2], True), axis_of("A", "L", [0, 0, 1, 1, 2, 2], False)
    sex, age = axis_of("B", "B", [0, 1], False), axis_of("C", "C", [0, 1, 2], False)
    crosses = [(fine, sex), (coarse, sex), (coarse, sex, age), (fine, age)]
    cubes = {k: Cube(str(k), "persons", axes) for k, axes in enumerate(crosses)}
    assert [sorted(parent.cubes) for parent in parents_of(cubes)] == [[0, 1, 2, 3]]
