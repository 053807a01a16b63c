"""Counts of persons alike, against counting them one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.swap import NOBODY, add_members, combine, least_counts, numbered


@given(st.integers(0, 10**6), st.integers(1, 200))
def test_least_counts_are_those_of_a_plain_count(seed: int, persons: int) -> None:
    rng = np.random.default_rng(seed)
    above = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3], [0, 1, 2, 3, 4, 5]], dtype=np.int32)
    finest = rng.integers(0, 6, persons).astype(np.int32)
    alike = rng.integers(0, 5, persons).astype(np.int32)
    household = rng.integers(-1, 40, persons).astype(np.int32)
    least = least_counts(finest, above, alike, household, 40)
    for level in range(3):
        cells = list(zip(above[level][finest].tolist(), alike.tolist(), strict=True))
        count = Counter(cells)
        for home in range(40):
            counts = [count[cells[r]] for r in range(persons) if household[r] == home]
            assert least[level, home] == min(counts, default=int(NOBODY))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=100))
def test_equal_words_have_equal_numbers(words: list[int]) -> None:
    numbers, distinct = numbered(np.array(words, dtype=np.uint64))
    assert distinct == len(set(words))
    assert {(word, number) for word, number in zip(words, numbers.tolist(), strict=True)} == {
        (word, place) for place, word in enumerate(dict.fromkeys(words))
    }


def test_many_words_outgrow_the_first_table() -> None:
    words = np.random.default_rng(1).integers(0, 2**63, 50_000).astype(np.uint64)
    numbers, distinct = numbered(words)
    assert distinct == len(np.unique(words))
    assert numbers.max() == distinct - 1


@pytest.mark.parametrize(
    ("one", "two", "same"), [([1, 2, 2], [2, 1, 2], True), ([1, 2, 2], [1, 1, 2], False)]
)
def test_members_are_compared_in_whatever_order(one: list[int], two: list[int], same: bool) -> None:
    words = np.zeros(6, dtype=np.uint64)
    combine(words, np.array([*one, *two], dtype=np.uint8))
    sums = np.zeros(2, dtype=np.uint64)
    add_members(sums, np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), words)
    assert (sums[0] == sums[1]) == same
