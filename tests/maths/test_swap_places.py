"""The numbers of households found by the hashes of their ids, and the order of hashes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.cells.keys import hash_order
from discreet.maths.swap import Places


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 60), st.integers(0, 2**32), st.integers(0, 63), st.booleans())
def test_numbers_of_hashes_are_those_of_a_search(
    ids: int, asked: int, seed: int, shift: int, in_order: bool
) -> None:
    """Also where hashes are not spread at all: their first bits are zero for a large shift."""
    random = np.random.default_rng(seed)
    known = np.unique(random.integers(0, 2**64 - 1, ids, dtype=np.uint64) >> np.uint64(shift))
    number = random.permutation(len(known)).astype(np.int32)
    others = random.integers(0, 2**64 - 1, asked, dtype=np.uint64) >> np.uint64(shift)
    hashes = random.permutation(np.concatenate([np.repeat(known, 2), others, [np.uint64(2**64 - 1)]]))
    if in_order:  # as most tables are, with strangers among them
        hashes = np.insert(np.repeat(known[np.argsort(number)], 2), random.integers(0, 2 * len(known) + 1), 1)
    where = {int(one): int(found) for one, found in zip(known, number, strict=True)}
    assert Places(known, number).numbers(hashes).tolist() == [where.get(int(one), -1) for one in hashes]


@given(st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_a_table_is_searched_in_parts_and_another_one_after_it(ids: int, seed: int, in_order: bool) -> None:
    """Without numbers an id's number is its place; the end of one table is no hint for the beginning of the next."""
    random = np.random.default_rng(seed)
    known = np.unique(random.integers(0, 2**64 - 1, ids, dtype=np.uint64))
    places = Places(known)
    for _ in range(2):
        number = np.repeat(np.arange(len(known)) if in_order else random.permutation(len(known)), 2)
        for part in np.array_split(number, 3):
            assert places.numbers(known[part]).tolist() == part.tolist()


@pytest.mark.parametrize("number", [0, 3, 100_000])
def test_many_hashes_are_ordered_in_several_parts(number: int) -> None:
    """Among them equal ones, and some that agree in more bits than are counted."""
    random = np.random.default_rng(number)
    hashes = random.integers(0, 2**64 - 1, number, dtype=np.uint64)
    hashes[::3] = hashes[1::3][: len(hashes[::3])] + np.uint64(1) if number % 3 == 0 else hashes[::3][::-1]
    order, ascending = hash_order(hashes)
    assert (order == np.argsort(hashes, kind="stable")).all()
    assert (ascending == np.sort(hashes)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.integers(0, 2**32), st.integers(0, 63))
def test_hashes_are_ordered_as_by_a_stable_sort(number: int, seed: int, shift: int) -> None:
    hashes = np.random.default_rng(seed).integers(0, 2**64 - 1, number, dtype=np.uint64) >> np.uint64(shift)
    order, ascending = hash_order(hashes)
    assert order.tolist() == np.argsort(hashes, kind="stable").tolist()
    assert ascending.tolist() == np.sort(hashes).tolist()
