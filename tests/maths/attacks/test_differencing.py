from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.attacks.differencing import CrossedGeography, Difference, Differences, differences

Piece = tuple[int, int]
Pieces = dict[Piece, int]


def run(pieces: Pieces, threshold: int, reach: int = 8) -> tuple[Difference, ...]:
    a, b = (np.array([piece[k] for piece in pieces], dtype=np.int64) for k in (0, 1))
    result = differences(a, b, np.array(list(pieces.values()), dtype=np.int64), threshold, reach)
    assert result.complete
    return result.found


def leftover(pieces: Pieces, found: Difference) -> frozenset[Piece]:
    """The pieces in the plus areas and outside the minus areas; fails if a minus area sticks out."""
    k = 0 if found.plus_of is CrossedGeography.A else 1
    plus, minus = set(found.plus), set(found.minus)
    assert all(p[k] in plus for p in pieces if p[1 - k] in minus)
    return frozenset(p for p in pieces if p[k] in plus and p[1 - k] not in minus)


def all_differences(pieces: Pieces, threshold: int) -> set[frozenset[Piece]]:
    """By brute force, without graphs: the leftovers of every union of either geography minus every union inside."""
    every: set[frozenset[Piece]] = set()
    for k in (0, 1):
        areas = sorted({p[k] for p in pieces})
        others = sorted({p[1 - k] for p in pieces})
        for mask in product((False, True), repeat=len(areas)):
            plus = {area for area, taken in zip(areas, mask, strict=True) if taken}
            inside = [o for o in others if all(p[k] in plus for p in pieces if p[1 - k] == o)]
            for kept in product((False, True), repeat=len(inside)):
                minus = {o for o, taken in zip(inside, kept, strict=True) if taken}
                left = frozenset(p for p in pieces if p[k] in plus and p[1 - k] not in minus)
                if 0 < sum(pieces[p] for p in left) < threshold:
                    every.add(left)
    return every


def primitive(pieces: Pieces, every: set[frozenset[Piece]]) -> set[frozenset[Piece]]:
    """Those that hold no other one, without the single areas, which are published anyway."""
    single = {frozenset(p for p in pieces if p[k] == area) for k in (0, 1) for area in {q[k] for q in pieces}}
    return {left for left in every if not any(other < left for other in every)} - single


maps = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(10, 14)),
    st.sampled_from([1, 1, 2, 3, 5, 9, 30]),
    min_size=1,
    max_size=13,
)


@settings(max_examples=300, deadline=None)
@given(maps, st.integers(2, 12))
def test_exactly_the_differences_that_hold_no_smaller_one_are_found(pieces: Pieces, threshold: int) -> None:
    found = run(pieces, threshold, reach=10)
    left = [leftover(pieces, one) for one in found]
    assert [one.records for one in found] == [sum(pieces[p] for p in one) for one in left]
    assert all(0 < one.records < threshold and one.plus and one.minus for one in found)
    assert len(set(left)) == len(left)
    every = all_differences(pieces, threshold)
    assert set(left) == primitive(pieces, every)


def sums_of(parts: list[frozenset[Piece]]) -> set[frozenset[Piece]]:
    reached: set[frozenset[Piece]] = {frozenset()}
    for part in parts:
        reached |= {one | part for one in reached if not one & part}
    return reached


@settings(max_examples=200, deadline=None)
@given(maps, st.integers(2, 12))
def test_every_difference_is_a_disjoint_sum_of_findings_and_single_areas(
    pieces: Pieces, threshold: int
) -> None:
    left = [leftover(pieces, one) for one in run(pieces, threshold, reach=10)]
    areas = [frozenset(p for p in pieces if p[k] == area) for k in (0, 1) for area in {q[k] for q in pieces}]
    small = [area for area in areas if sum(pieces[p] for p in area) < threshold]
    assert all_differences(pieces, threshold) <= sums_of(list({*left, *small}))


@settings(max_examples=100, deadline=None)
@given(maps, st.integers(2, 12))
def test_records_one_by_one_and_exchanged_geographies_give_the_same(pieces: Pieces, threshold: int) -> None:
    once = {leftover(pieces, one) for one in run(pieces, threshold, reach=10)}
    rows = [piece for piece, count in pieces.items() for _ in range(count)]
    a, b = np.array(rows, dtype=np.int64).T[:, ::-1]
    result = differences(a, b, np.ones(len(rows), dtype=np.int64), threshold, 10)
    assert {leftover(pieces, one) for one in result.found} == once
    turned = {(b, a): count for (a, b), count in pieces.items()}
    again = {leftover(turned, one) for one in run(turned, threshold, reach=10)}
    assert {frozenset((b, a) for a, b in one) for one in again} == once


def test_a_cell_that_sticks_out_of_a_district_by_three_records_gives_them_away() -> None:
    pieces = {(1, 10): 500, (1, 11): 40, (2, 12): 300, (2, 11): 3}
    (found,) = run(pieces, 10)
    assert leftover(pieces, found) == {(2, 11)}
    assert found == Difference(CrossedGeography.A, (2,), (12,), 3)
    assert run(pieces, 3) == ()


def test_nested_geographies_and_cells_without_records_give_nothing() -> None:
    assert run({(1, 10): 500, (1, 11): 2, (2, 12): 3, (2, 13): 0, (1, 13): 0}, 10) == ()
    assert run({(1, 10): 0}, 10) == ()


def test_a_small_reach_is_not_called_exhaustive_and_a_search_cut_short_not_complete() -> None:
    n = 60
    chain = [(k, k, 100 if k % 2 else 1) for k in range(n)] + [(k, k + 1, 1) for k in range(n)]
    a, b, counts = np.array(chain, dtype=np.int64).T
    result = differences(a, b, counts, 5, reach=3)
    assert result.complete
    assert not result.exhaustive
    assert differences(a, b, counts, 5, reach=200).exhaustive
    assert not differences(a, b, counts, 5, steps=5).complete


@pytest.mark.parametrize("reach", [1, 2, 3, 5])
def test_a_reach_finds_exactly_the_sides_within_it(reach: int) -> None:
    # only light pieces: every area is a block, but one that crosses a single other area belongs to that one's
    random = np.random.default_rng(reach)
    missed = 0
    for _ in range(60):
        a, b = random.integers(0, 5, 12), random.integers(10, 15, 12)
        pieces = {(int(x), int(y)): 1 for x, y in zip(a, b, strict=True)}
        every = run(pieces, 100, 10)
        within = {leftover(pieces, one) for one in every if smaller_side(pieces, one) <= reach}
        assert {leftover(pieces, one) for one in run(pieces, 100, reach)} == within
        missed += len(every) - len(within)
    assert (missed > 0) == (reach < 5)


def smaller_side(pieces: Pieces, found: Difference) -> int:
    """The fewest areas, but those with one neighbour, on a side of a difference."""
    side = {*found.plus, *found.minus}
    seen = set(side)
    while grown := {x for p in pieces for x in p if set(p) & seen} - seen:
        seen |= grown
    rest = {x for x in seen - side if sum(x in p for p in pieces) > 1}
    return min(len(rest), sum(sum(x in p for p in pieces) > 1 for x in side))


def test_a_district_with_many_small_cells_inside_is_one_block() -> None:
    pieces = {(1, 10 + k): 2 for k in range(30)} | {(2, 50): 300, (2, 51): 40, (1, 51): 3}
    (found,) = run(pieces, 10, reach=1)
    assert found.records == 3
    assert found == Difference(CrossedGeography.B, (50, 51), (2,), 3)


def test_wrong_arrays_are_refused() -> None:
    one: NDArray[np.int64] = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="same length"):
        differences(one, np.ones(2, dtype=np.int64), one, 3)
    with pytest.raises(ValueError, match="negative"):
        differences(one, one, -one, 3)
    with pytest.raises(ValueError, match="at least 1"):
        differences(one, one, one, 3, reach=0)


def test_a_hundred_thousand_areas_are_searched_to_the_end() -> None:
    """How long that takes is for benchmarks/differencing.py to measure."""
    side, random = 310, np.random.default_rng(7)
    x, y = (v.ravel() for v in np.meshgrid(np.arange(3 * side), np.arange(3 * side)))
    cells = (x // 3) * side + y // 3
    districts = ((x + 1) // 20) * 1000 + (y + 1) // 20
    counts = random.poisson(0.7, x.size) * random.poisson(2.0, x.size)
    assert differences(cells, districts, counts, 10).complete


@pytest.mark.parametrize("reach", [1, 2, 3, 8])
def test_a_search_is_exhaustive_where_one_of_two_sides_is_always_within_reach(reach: int) -> None:
    """The blocks of a component are those of a side and of its rest: both exceed the reach from 2 reach + 2 on."""
    for largest, exhaustive in ((2 * reach, True), (2 * reach + 1, True), (2 * reach + 2, False)):
        assert Differences(10, reach, (), 1, largest, True).exhaustive == exhaustive
        assert not Differences(10, reach, (), 1, largest, False).exhaustive
