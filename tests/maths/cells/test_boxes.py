from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.cells.alignment import Box, covers, inside, left_over, meets

SHAPE = (3, 2, 4)
STRIDES = (8, 4, 1)
boxes = st.tuples(*(st.lists(st.booleans(), min_size=n, max_size=n).map(np.array) for n in SHAPE))


def cells(box: Box) -> set[int]:
    within = product(*(np.flatnonzero(one).tolist() for one in box))
    return {sum(n * s for n, s in zip(nodes, STRIDES, strict=True)) for nodes in within}


@given(boxes, st.lists(boxes, max_size=4))
def test_what_is_left_of_a_box_equals_counting_its_cells(box: Box, others: list[Box]) -> None:
    assert left_over(box, others) == len(cells(box).difference(*map(cells, others)))


@given(boxes, boxes)
def test_covering_meeting_and_lying_inside(box: Box, other: Box) -> None:
    every: NDArray[np.int64] = np.arange(24)
    assert set(every[inside(box, every, STRIDES, range(3))].tolist()) == cells(box)
    assert meets(box, other) == bool(cells(box) & cells(other))
    if cells(other):
        assert covers(box, other) == (cells(other) <= cells(box))


def test_a_box_without_axes_is_one_cell() -> None:
    assert left_over((), []) == 1
    assert left_over((), [()]) == 0
