import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.cells.alignment import FEW, distinct_numbers


@given(st.lists(st.integers(0, 99), max_size=50), st.sampled_from([100, 10 * FEW]))
def test_counting_and_sorting_find_the_same(numbers: list[int], size: int) -> None:
    found, where, times = distinct_numbers(np.array(numbers, dtype=np.int64), size)
    assert found.tolist() == sorted(set(numbers))
    assert found[where].tolist() == numbers
    assert times.tolist() == [numbers.count(number) for number in found.tolist()]
