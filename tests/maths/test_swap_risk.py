"""Counts of persons alike, against counting them one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.swap import (
    NO_REGION,
    NOBODY,
    Numbering,
    add_members,
    combine,
    inverse,
    least_counts,
    nest,
    numbered,
    one_for_all,
    values_at,
)


@given(st.integers(0, 10**6), st.integers(1, 80))
def test_least_counts_are_those_of_a_plain_count(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    above = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3], [0, 1, 2, 3, 4, 5]], dtype=np.int32)
    finest = rng.integers(0, 6, rows).astype(np.int32)
    persons = rng.integers(0, 4, rows).astype(np.int32)
    alike = rng.integers(0, 5, persons.sum()).astype(np.int32)
    household = rng.integers(-1, 40, rows).astype(np.int32)
    least = least_counts(finest, above, persons, alike, household, 40)
    finest, household = np.repeat(finest, persons), np.repeat(household, persons)
    for level in range(3):
        cells = list(zip(above[level][finest].tolist(), alike.tolist(), strict=True))
        count = Counter(cells)
        for home in range(40):
            counts = [count[cells[r]] for r in range(len(alike)) if household[r] == home]
            assert least[level, home] == min(counts, default=int(NOBODY))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=100))
def test_equal_words_have_equal_numbers(words: list[int]) -> None:
    numbers, distinct = numbered(np.array(words, dtype=np.uint64))
    assert distinct == len(set(words))
    assert {(word, number) for word, number in zip(words, numbers.tolist(), strict=True)} == {
        (word, place) for place, word in enumerate(dict.fromkeys(words))
    }


def test_words_of_several_arrays_are_numbered_together() -> None:
    numbering = Numbering(2)  # it grows at once
    parts = [[7, 9, 7], [], [9, 1], [2**64 - 1, 0, 7, 5, 6]]
    found = [numbering.numbers(np.array(part, dtype=np.uint64)).tolist() for part in parts]
    assert found == [[0, 1, 0], [], [1, 2], [3, 4, 0, 5, 6]]
    assert len(numbering) == 7


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


def test_the_first_record_whose_region_is_in_two_is_found() -> None:
    parents = np.array([NO_REGION, 1, NO_REGION], dtype=np.int32)
    codes, above = np.array([0, 1, 0, 2], dtype=np.int32), np.array([2, 1, 2, 0], dtype=np.int32)
    assert nest(parents, codes, above) == -1
    assert parents.tolist() == [2, 1, 0]
    assert nest(parents, codes, np.array([2, 0, 2, 1], dtype=np.int32)) == 1


def test_rows_of_a_household_agree_or_do_not() -> None:
    household, out = np.array([1, -1, 0, 1], dtype=np.int32), np.zeros(2, dtype=np.int32)
    assert one_for_all(household, np.array([5, 9, 3, 5], dtype=np.int32), out)
    assert out.tolist() == [3, 5]
    assert not one_for_all(household, np.array([5, 9, 3, 4], dtype=np.int32), out)


def test_rows_are_found_by_their_numbers_and_the_reverse() -> None:
    rows = np.full(4, -1, dtype=np.int32)
    numbers = np.array([2, -1, 0, 3], dtype=np.int32)
    assert inverse(numbers, rows) == 3
    assert rows.tolist() == [2, -1, 0, 3]
    assert values_at(np.array([5.0, 6.0, 7.0]), np.array([2, 2, 0], dtype=np.int32)).tolist() == [7, 7, 5]
