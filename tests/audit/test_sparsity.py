"""How sparse a release is: shares counted by hand, each cross-tabulation once."""

import numpy as np
import pytest

from discreet.audit.evidence import Truth
from discreet.audit.sparsity import Sparsity, sparsities
from discreet.programme.cube import Cube
from tests.audit.known import known
from tests.audit.made import axis, flat
from tests.audit.test_averaging import dense, release


def found(grid: list[list[int]]) -> dict[str, Sparsity]:
    """A table of two by three cells with its margins, shown twice."""
    trees = [flat("A", 2), flat("B", 3)]
    cube = Cube("1", "persons", tuple(map(axis, trees)))
    again = Cube("2", "persons", (axis(trees[1]),))
    inner = np.array(grid)
    whole = np.zeros((3, 4), dtype=np.int64)
    whole[1:, 1:] = inner
    whole[0], whole[:, 0] = whole.sum(axis=0), whole.sum(axis=1)
    whole[0, 0] = inner.sum()
    counts = {"1": dense(whole), "2": dense(whole[0])}
    shown = release([(cube, dense(whole)), (again, dense(whole[0]))], trees, known(True, True, 2.0))
    every = list(sparsities(shown, Truth(counts, counts)))
    assert len(every) == 4
    return {one.crosstab: one for one in every}


def test_shares_are_those_of_possible_and_of_occupied_cells() -> None:
    every = found([[1, 0, 2], [0, 0, 7]])
    inner = every["A x B"]
    assert inner.zeros == pytest.approx(3 / 6)
    assert inner.ones == pytest.approx(1 / 3)
    assert inner.ones_and_twos == pytest.approx(2 / 3)
    margin = every["B"]
    assert (margin.zeros, margin.ones, margin.ones_and_twos) == pytest.approx((1 / 3, 1 / 2, 1 / 2))
    assert (every["total"].zeros, every["total"].ones) == (0.0, 0.0)


def test_a_full_table_is_not_sparse_and_an_empty_one_is_all_zeros() -> None:
    assert all(one.zeros == one.ones_and_twos == 0 for one in found([[5, 6, 7], [8, 9, 3]]).values())
    empty = found([[0, 0, 0], [0, 0, 0]])["A x B"]
    assert (empty.zeros, empty.ones, empty.ones_and_twos) == (1.0, 0.0, 0.0)
