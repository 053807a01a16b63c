"""Codes numbered by their first occurrence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.cells.first_seen import first_seen


@given(st.lists(st.integers(-1, 6), max_size=40))
def test_codes_are_numbered_in_the_order_in_which_they_occur(codes: list[int]) -> None:
    numbers, order = first_seen(np.array(codes, dtype=np.int64), 7)
    assert order.tolist() == list(dict.fromkeys(code for code in codes if code >= 0))
    assert [int(order[k]) if k >= 0 else -1 for k in numbers.tolist()] == codes
