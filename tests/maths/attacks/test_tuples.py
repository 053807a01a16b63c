from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.attacks.bounds import maximum_entropy, pinned, revealed, reveals
from discreet.maths.attacks.intervals import families
from discreet.maths.attacks.tuples import (
    COUNTED,
    LISTED,
    TILE,
    Choice,
    count_pairs,
    expected,
    independent_gaps,
    occupied_tuples,
    pinned_pairs,
    small_pairs,
    survey,
    tuples_of_grid,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

KIN = families(np.array([-1, 0, 0], dtype=np.int32))
ALL = Choice(
    np.zeros(1, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.zeros(100, dtype=np.int64),
    np.ones((1, 1, 1), dtype=bool),
)


def grid(*tuples: tuple[int, int, int]) -> NDArray[np.int32]:
    """(before, node, after), each tuple as (total, first, second)."""
    return np.ascontiguousarray(np.array(tuples, dtype=np.int32).T[None, :, :])


def test_whole_tuples_are_as_the_closed_forms_say() -> None:
    noise = maximum_entropy(1.5, 2)
    found = expected(independent_gaps(noise), 2, {(2, 2): 50, (3, 3): 7}, same_noise=True)
    p2, p3 = reveals(noise, 2, 2), reveals(noise, 2, 3)
    assert found.revealing == pytest.approx(50 * p2 + 7 * p3)
    assert found.extreme == pytest.approx(50 * pinned(noise, 2) + 7 * pinned(noise, 3))
    assert 1 - found.probability == pytest.approx((1 - revealed(p2, 50)) * (1 - revealed(p3, 7)))


def test_parts_published_as_zero_let_a_negative_gap_show_less() -> None:
    noise = maximum_entropy(1.5, 2)
    half = expected(independent_gaps(noise), 2, {(9, 2): 1}, same_noise=True)
    assert half.revealing == pytest.approx(reveals(noise, 2, 2) / 2)
    assert half.extreme == pytest.approx(pinned(noise, 2) / 2)


def test_one_part_that_holds_everybody_has_no_gap() -> None:
    noise = maximum_entropy(1.5, 2)
    assert expected(independent_gaps(noise), 2, {(4, 1): 10}, same_noise=True).revealing == 0
    assert expected(independent_gaps(noise), 2, {(4, 1): 10}, same_noise=False).revealing > 0


def test_gaps_are_shared_by_the_cells_that_can_have_made_them() -> None:
    shown = grid((11, 3, 2), (10, 12, 0), (10, 4, 0), (7, 7, 0), (0, 0, 0), (2, 4, 5))
    by_positive, least, exact = (np.zeros(size, dtype=np.int64) for size in (3, 6, 6))
    survey(shown, *KIN.arrays, *ALL.arrays, by_positive, least, exact)
    assert by_positive.tolist() == [1, 3, 2]
    # -6 over three, +2 over two, -6 over three for the zero may hide some, no gap twice, +7 over three
    assert least.tolist() == [2, 1, 2, 1, 0, 0]
    assert exact.tolist() == [0, 1, 2, 0, 0, 0]


def test_needs_beyond_the_list_are_counted_at_its_end() -> None:
    by_positive, least, exact = (np.zeros(size, dtype=np.int64) for size in (3, 4, 4))
    survey(grid((1000, 3, 2)), *KIN.arrays, *ALL.arrays, by_positive, least, exact)
    assert least.tolist() == [0, 0, 0, 1]


def test_pairs_that_tell_their_counts_by_themselves() -> None:
    shown = grid((11, 3, 2), (10, 3, 2), (1, 0, 0))
    low, high = np.maximum(shown - 2, shown > 0).astype(np.int32), shown + np.int32(2)
    assert pinned_pairs(low, high, shown, *KIN.arrays, *ALL.arrays, False) == 1
    low, high = np.maximum(shown - 1, shown > 0).astype(np.int32), shown + np.int32(1)
    disclosed = pinned_pairs(low[:, :, 2:], high[:, :, 2:], shown[:, :, 2:], *KIN.arrays, *ALL.arrays, True)
    assert disclosed == 1  # neither part contains everyone, so that both contain one
    assert pinned_pairs(low[:, :, 2:], high[:, :, 2:], shown[:, :, 2:], *KIN.arrays, *ALL.arrays, False) == 0


def test_true_pairs_are_counted_with_large_ones_together() -> None:
    pairs = np.zeros((4, 4), dtype=np.int64)
    count_pairs(grid((3, 1, 2), (3, 1, 2), (90, 80, 10)), *KIN.arrays, *ALL.arrays, pairs)
    assert pairs[1, 2] == 2
    assert pairs[3, 3] == 1
    assert pairs.sum() == 3


def test_chances_of_small_pairs_end_in_those_of_large_ones() -> None:
    law = PTableLaw(solve(PTableParameters(2, 1.5)))
    chances = small_pairs(law, 2)
    assert chances is not None
    assert chances[-1, -1] == pytest.approx(pinned(law.row(1000).shifted(-1000)))
    assert (chances == chances.T).all()
    assert small_pairs(law, 9) is None


PARENTS = np.array(
    [-1, 0, 1, 1, 0, 4, 4, 4, 4], dtype=np.int32
)  # a total of A (two codes below it) and B (four)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 9 * 3 - 1)), st.sets(st.integers(0, 9 * 3 - 1)), st.booleans())
def test_occupied_tuples_are_those_of_an_enumeration(
    listed: set[int], left_out: set[int], first: bool
) -> None:
    """Along the first or the last of two axes; parts that are not counted here are no parts."""
    cells = np.array(sorted(listed), dtype=np.int64)
    counted = np.array([cell not in left_out for cell in sorted(listed)], dtype=bool)
    stride = 3 if first else 1
    wanted: Counter[tuple[int, int]] = Counter()
    for total in listed:
        node = total // stride % 9
        children = [child for child, parent in enumerate(PARENTS.tolist()) if parent == node]
        below = [total + (child - node) * stride for child in children]
        occupied = sum(part in listed and part not in left_out for part in below)
        if occupied > 1:
            wanted[len(below), occupied] += 1
    assert occupied_tuples(cells, stride, PARENTS, counted) == wanted
    whole = np.zeros(9 * 3, dtype=np.uint8)
    whole[cells] = np.where(counted, COUNTED, LISTED)
    assert tuples_of_grid(whole.reshape(-1, 9, stride), PARENTS) == wanted


def test_tuples_of_a_grid_are_counted_beyond_one_tile() -> None:
    """The last cells after an axis have one part less than the first."""
    after, few = 2 * TILE + 3, 5
    whole = np.full((2, len(PARENTS), after), COUNTED, dtype=np.uint8)
    whole[:, 2, -few:] = 0
    found = tuples_of_grid(whole, PARENTS)
    assert found == {(2, 2): 2 * (2 * after - few), (4, 4): 2 * after}
