"""Flat codelists at the edges of the code types: every leaf must land in its own cell."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from discreet.maths.cells.counting import counts_of
from discreet.population.encode import EncodedRecords, code_type
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter


@pytest.mark.parametrize("leaves", [1, 2, 254, 255, 256, 257, 65535, 65536, 65537])
def test_each_leaf_is_counted_in_its_own_cell(leaves: int) -> None:
    tree = codelist("A", [Code(str(c), "", "") for c in range(leaves)])
    axis = breakdown("A", "A", tree, tree.leaves)
    assert axis.is_flat
    times = np.random.default_rng(leaves).integers(1, 4, leaves)
    codes = np.repeat(np.arange(leaves), times).astype(code_type(leaves))
    block = EncodedRecords({"A": codes}, np.zeros(len(codes), dtype=np.uint32), {}, {})
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter([Cube("a", "persons", (axis,))], pool)
        counter.add(block)
        table = counter.table(0)
    assert counts_of(table.cells).tolist() == [times.sum(), *times.tolist()]


def test_a_tree_is_not_flat() -> None:
    tree = codelist("A", [Code("1", "", ""), Code("1.1", "1", ""), Code("2", "", "")])
    assert not breakdown("A", "A", tree, tree.leaves).is_flat
    assert not breakdown("A", "N", tree, tree.level(0)).is_flat
