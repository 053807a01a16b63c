import numpy as np

from discreet.maths.cells.alignment import wider_cells
from discreet.maths.utility import CellNoise, Gaps, PartsAlong, gaps

PARENTS = np.array([-1, 0, 1, 1, 0], dtype=np.int32)  # a total of A (with A1 and A2) and B
CHILDREN = np.array([2, 2, 0, 0, 0])
CROSSTAB = np.array([0, 1, 2, 2, 1], dtype=np.int32)  # by depth


def found_of(
    published: list[int], true: list[int], owned: list[bool], same_noise: bool = False, listed: int = 5
) -> Gaps:
    cells = np.arange(listed)
    kinds = np.zeros(listed, dtype=np.int32)
    noise = CellNoise(np.array([[0.5, 2.0]]), kinds, np.tile([0.25, 1.0], (3, 1)), same_noise)
    along = PartsAlong(
        stride=1,
        children=CHILDREN,
        wider=wider_cells(cells, 1, PARENTS),
        deeper=1,
        totals=np.ones(3, dtype=bool),
        own=np.array(owned),
    )
    return gaps(cells, np.array(published), np.array(true), noise, CROSSTAB[cells], along)


def test_totals_are_compared_with_their_parts() -> None:
    found = found_of([10, 4, 3, 3, 5], [9, 5, 3, 2, 4], [False, True, True])
    # 10 against 4 + 5, and 4 against 3 + 3
    assert found.sums[1].tolist() == [1, 1, 1, 1, 2 + 4 + (0.5 - 1) ** 2]
    assert found.sums[2].tolist() == [1, 1, 2, 4, 2 + 4 + (0.5 - 1) ** 2]
    assert found.largest.tolist() == [0, 1, 2]


def test_a_part_that_is_not_listed_has_the_noise_of_an_empty_cell() -> None:
    found = found_of([10, 4, 3, 3], [9, 5, 3, 2], [True] * 3, listed=4)
    assert found.sums[1, Gaps.SIZE] == 6
    assert found.sums[1, Gaps.EXPECTED] == 2 + 2 + 1 + (0.5 - 0.5 - 0.25) ** 2


def test_what_another_table_stands_for_and_empty_totals_are_left_out() -> None:
    found = found_of([10, 4, 3, 3, 5], [9, 5, 3, 2, 4], [True, False, True])
    assert found.sums[1].tolist() == [0] * 5
    assert not found_of([1, 1, 0, 1, 0], [0] * 5, [True] * 3).sums.any()


def test_one_part_with_everybody_is_expected_to_have_the_noise_of_the_total() -> None:
    found = found_of([7, 7, 7, 0, 0], [6, 6, 6, 0, 0], [True] * 3, same_noise=True)
    assert found.sums[:, Gaps.TOTALS].tolist() == [0, 1, 1]
    assert found.sums[:, Gaps.EXPECTED].tolist() == [0, 0, 0]
    assert found.sums[:, Gaps.OPEN].tolist() == [0, 0, 0]
