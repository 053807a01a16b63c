import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.cells.alignment import NOWHERE, add_digits, aligned, nodes_along, wider_cells

Table = dict[int, int]
sparse = st.dictionaries(st.integers(0, 60), st.integers(-3, 9), max_size=30)


def arrays(table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    cells = np.array(sorted(table), dtype=np.int64)
    return cells, np.array([table[cell] for cell in sorted(table)], dtype=np.int64)


@given(st.lists(sparse, min_size=1, max_size=3))
def test_every_listed_cell_stands_once_with_the_values_of_all_tables(tables: list[Table]) -> None:
    cells, values = aligned([arrays(table) for table in tables])
    assert cells.tolist() == sorted({cell for table in tables for cell in table})
    for i, cell in enumerate(cells.tolist()):
        assert values[i].tolist() == [table.get(cell, 0) for table in tables]


@st.composite
def trees(draw: st.DrawFn) -> NDArray[np.int32]:
    nodes = draw(st.integers(1, 6))
    return np.array([-1, *(draw(st.integers(0, node - 1)) for node in range(1, nodes))], dtype=np.int32)


@given(trees(), st.integers(1, 7), st.integers(1, 4), st.data())
def test_the_wider_cell_has_the_parent_along_the_axis(
    parents: NDArray[np.int32], stride: int, outer: int, data: st.DataObject
) -> None:
    size = outer * len(parents) * stride
    cells = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1)))), dtype=np.int64)
    place = {cell: i for i, cell in enumerate(cells.tolist())}
    nodes = nodes_along(cells, stride, len(parents))
    for i, (cell, found) in enumerate(
        zip(cells.tolist(), wider_cells(cells, stride, parents).tolist(), strict=True)
    ):
        node = cell // stride % len(parents)
        assert nodes[i] == node
        parent = int(parents[node])
        wider = place.get(cell - (node - parent) * stride, NOWHERE) if parent >= 0 else NOWHERE
        assert found == wider


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_digits_of_all_axes_are_added_up(sizes: list[int], data: st.DataObject) -> None:
    shape = tuple(sizes)
    size = int(np.prod(shape))
    cells = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1)))), dtype=np.int64)
    tables = [np.array(data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n))) for n in shape]
    strides = np.array([int(np.prod(shape[k + 1 :])) for k in range(len(shape))])
    found = np.zeros(len(cells), dtype=np.int32)
    add_digits(cells, strides, np.array(shape), np.concatenate(tables).astype(np.int32), found)
    nodes = np.unravel_index(cells, shape)
    digits = [table[node] for table, node in zip(tables, nodes, strict=True)]
    assert found.tolist() == np.sum(digits, axis=0).tolist()


def test_no_table_lists_anything() -> None:
    cells, values = aligned([arrays({}), arrays({})])
    assert cells.shape == (0,)
    assert values.shape == (0, 2)
    assert wider_cells(cells, 3, np.array([-1, 0], dtype=np.int32)).shape == (0,)
