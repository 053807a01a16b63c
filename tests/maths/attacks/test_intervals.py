from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.attacks.intervals import Bounds, Tightening, families, origins, tighten
from discreet.maths.cells.counting import roll_up
from discreet.maths.noise.additive import uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

FLAT = np.array([-1, 0, 0], dtype=np.int32)
THREE = np.array([-1, 0, 0, 0], dtype=np.int32)
TREE = np.array([-1, 0, 1, 1, 0, 4, 4], dtype=np.int32)  # _T, A (A1, A2), B (B1, B2)
LEAVES = {3: [1, 2], 4: [1, 2, 3], 7: [2, 3, 5, 6]}


def with_margins(leaves: Sequence[int], axes: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    shape = tuple(len(axis) for axis in axes)
    grid = np.zeros(shape, dtype=np.uint64)
    grid[np.ix_(*(LEAVES[len(axis)] for axis in axes))] = np.array(leaves, dtype=np.uint64).reshape(
        [len(LEAVES[len(axis)]) for axis in axes]
    )
    flat = grid.ravel()
    for k, axis in enumerate(axes):
        roll_up(flat, shape, k, axis)
    return flat.astype(np.int64)


def tightened(
    shown: NDArray[np.int64], axes: Sequence[NDArray[np.int32]], bound: int, same_noise: bool = False
) -> tuple[Bounds, Bounds, Tightening]:
    flat = shown.astype(np.int32)
    low, high = np.maximum(flat - bound, flat > 0).astype(np.int32), flat + np.int32(bound)
    shape = [len(axis) for axis in axes]
    return low, high, tighten(low, high, flat, [families(axis) for axis in axes], shape, same_noise)


def test_families_stand_from_the_leaves_up() -> None:
    found = families(TREE)
    assert found.parents.tolist() == [4, 1, 0]
    assert found.starts.tolist() == [0, 2, 4, 6]
    assert found.children.tolist() == [5, 6, 2, 3, 1, 4]
    assert len(families(np.array([-1], dtype=np.int32))) == 0


def test_origins_of_a_p_table_reach_as_far_as_its_changes() -> None:
    found = origins(PTableLaw(solve(PTableParameters(2, 1.0))).row, 2)
    low, high = found.of(np.array([0, 1, 2, 3, 500, 5000]))
    assert low.tolist() == [0, 1, 1, 1, 498, 4998]
    assert high.tolist() == [2, 3, 4, 5, 502, 5002]


def test_a_count_that_is_never_published_has_no_origin() -> None:
    low, high = origins(PTableLaw(solve(PTableParameters(3, 2.0, 1))).row, 3).of(np.array([1, 2]))
    assert low[0] > high[0]
    assert (low[1], high[1]) == (1, 5)


def test_origins_of_rounded_counts_hold_the_noise_and_the_rounding() -> None:
    law = uniform(2)

    def rounded_row(count: int) -> object:
        row = law.row(count)
        values = np.maximum(row.values, 0) // 5 * 5
        p = np.zeros(int(values[-1] - values[0]) + 1)
        np.add.at(p, values - values[0], row.p)
        return type(row)(int(values[0]), p)

    low, high = origins(rounded_row, 2, step=5).of(np.array([0, 5, 10_000]))  # type: ignore[arg-type]
    assert (low.tolist(), high.tolist()) == ([0, 3, 9998], [6, 11, 10_006])


def test_the_example_of_the_paper_is_disclosed() -> None:
    """Bach 2020: F = 3, M = 2 and T = 11 with E = 2 are 5, 4 and 9."""
    low, high, end = tightened(np.array([11, 3, 2]), [FLAT], 2)
    assert low.tolist() == high.tolist() == [9, 5, 4]
    assert end.is_fixpoint
    assert end.contradictions == 0


def test_too_small_a_bound_is_a_contradiction() -> None:
    assert tightened(np.array([11, 3, 2]), [FLAT], 1)[2].contradictions > 0


def test_a_part_unlike_its_total_shows_that_another_is_not_empty() -> None:
    low, _, _ = tightened(np.array([7, 6, 0]), [FLAT], 3, same_noise=True)
    assert low[2] == 1
    low, _, _ = tightened(np.array([7, 6, 0]), [FLAT], 1, same_noise=True)
    assert low[2] == 1  # though it can have one person only
    low, _, _ = tightened(np.array([7, 7, 0]), [FLAT], 3, same_noise=True)
    assert low[2] == 0
    low, _, _ = tightened(np.array([7, 6, 0, 0]), [THREE], 3, same_noise=True)
    assert low[2:].tolist() == [0, 0]  # either of the two


def test_an_only_part_unlike_its_total_is_a_contradiction() -> None:
    single = np.array([-1, 0], dtype=np.int32)
    assert tightened(np.array([7, 6]), [single], 3, same_noise=True)[2].contradictions > 0
    assert tightened(np.array([7, 6]), [single], 3, same_noise=False)[2].contradictions == 0


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(1, 4), st.sampled_from([(FLAT, TREE), (TREE,), (THREE, FLAT, FLAT)]))
def test_the_truth_is_never_excluded(
    data: st.DataObject, bound: int, axes: tuple[NDArray[np.int32], ...]
) -> None:
    size = int(np.prod([len(LEAVES[len(axis)]) for axis in axes]))
    truth = with_margins(data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)), axes)
    noise = data.draw(st.lists(st.integers(-bound, bound), min_size=len(truth), max_size=len(truth)))
    shown = np.where(truth > 0, np.maximum(truth + np.array(noise), 0), 0)
    low, high, end = tightened(shown, axes, bound)
    assert end.is_fixpoint
    assert (low <= truth).all()
    assert (truth <= high).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=6), st.integers(0, 2**32 - 1))
def test_the_truth_is_never_excluded_where_the_same_persons_have_the_same_noise(
    persons: list[tuple[int, int]], seed: int
) -> None:
    bound, axes = 2, (FLAT, TREE)
    cells = [(sex, area) for sex in range(3) for area in range(7)]
    groups = [_persons_in(persons, *cell) for cell in cells]
    generator = np.random.default_rng(seed)
    noise = {group: int(generator.integers(-bound, bound + 1)) for group in sorted(set(groups), key=sorted)}
    truth = np.array([len(group) for group in groups])
    shown = np.array([max(0, len(group) + noise[group]) if group else 0 for group in groups])
    low, high, _ = tightened(shown, axes, bound, same_noise=True)
    assert (low <= truth).all()
    assert (truth <= high).all()


def _naive(
    low: Bounds, high: Bounds, shown: Bounds, axes: Sequence[NDArray[np.int32]], same_noise: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The rules of one family after the other, each in its plainest form, on all lines in every sweep; the sweeps."""
    shape = tuple(len(axis) for axis in axes)
    lower, upper = low.astype(np.int64), high.astype(np.int64)
    lines = [
        (families(axis), line)
        for k, axis in enumerate(axes)
        for line in np.moveaxis(np.arange(len(low)).reshape(shape), k, -1).reshape(-1, len(axis))
    ]
    sweeps, settled = 0, False
    while not settled and sweeps < 100:
        before, sweeps = (lower.copy(), upper.copy()), sweeps + 1
        for found, line in lines:
            order = [*range(len(found)), *reversed(range(len(found)))]
            for f in order:
                members = found.children[found.starts[f] : found.starts[f + 1]]
                _tighten_by_hand(lower, upper, shown, line[found.parents[f]], line[members], same_noise)
        same = np.array_equal(before[0], lower) and np.array_equal(before[1], upper)
        settled = same or bool((lower > upper).any())
    return lower, upper, sweeps


def _tighten_by_hand(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    shown: Bounds,
    parent: int,
    members: NDArray[np.int64],
    same_noise: bool,
) -> None:
    lows, highs, holders = low[members].sum(), high[members].sum(), members[high[members] > 0]
    low[parent], high[parent] = max(low[parent], lows), min(high[parent], highs)
    for child in members.tolist():
        least, most = int(low[child]), int(high[child])
        others_least, others_most = lows - least, highs - most
        if same_noise and shown[child] != shown[parent]:
            others_least = max(others_least, 1)
            low[parent] = max(low[parent], least + others_least)
        low[child] = max(least, low[parent] - others_most)
        high[child] = min(most, high[parent] - others_least)
        if same_noise and most > 0 and len(holders) == 2:
            partner = holders[0] if holders[1] == child else holders[1]
            if shown[partner] != shown[parent]:
                low[child] = max(low[child], 1)


SOME_AXES = st.sampled_from([(TREE,), (FLAT, TREE), (TREE, FLAT), (THREE, FLAT, FLAT), (FLAT, TREE, THREE)])


def _noisy(axes: Sequence[NDArray[np.int32]], bound: int, seed: int) -> tuple[NDArray[np.int64], Bounds]:
    generator = np.random.default_rng(seed)
    size = int(np.prod([len(LEAVES[len(axis)]) for axis in axes]))
    truth = with_margins(generator.poisson(generator.choice([0.3, 1.0, 3.0]), size).tolist(), axes)
    noise = generator.integers(-bound, bound + 1, len(truth))
    return truth, np.where(truth > 0, np.maximum(truth + noise, 0), 0).astype(np.int32)


@settings(deadline=None, max_examples=150)
@given(SOME_AXES, st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_lines_that_are_passed_over_would_not_have_changed(
    axes: tuple[NDArray[np.int32], ...], bound: int, assumed: int, same_noise: bool, seed: int
) -> None:
    """Sweep by sweep as if all lines were tightened; with a bound that is too small, to the same contradictions."""
    _, shown = _noisy(axes, bound, seed)
    low, high = np.maximum(shown - assumed, shown > 0).astype(np.int32), shown + np.int32(assumed)
    low_by_hand, high_by_hand, sweeps = _naive(low, high, shown, axes, same_noise)
    end = tighten(low, high, shown, [families(a) for a in axes], [len(a) for a in axes], same_noise)
    assert low.tolist() == low_by_hand.tolist()
    assert high.tolist() == high_by_hand.tolist()
    assert end.sweeps == sweeps
    assert end.contradictions == int((low_by_hand > high_by_hand).sum())


@settings(deadline=None, max_examples=150)
@given(SOME_AXES, st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_fixpoint_is_the_same_from_any_start(
    axes: tuple[NDArray[np.int32], ...], bound: int, same_noise: bool, seed: int
) -> None:
    truth, shown = _noisy(axes, bound, seed)
    low, high = np.maximum(shown - bound, shown > 0).astype(np.int32), shown + np.int32(bound)
    grid = [families(axis) for axis in axes], [len(axis) for axis in axes], same_noise
    low_then, high_then = low.copy(), high.copy()
    if tighten(low_then, high_then, shown, *grid).contradictions:
        return  # noise of its own in every cell: the same participants do not have the same
    known = np.random.default_rng(seed + 1).random(len(truth)) < 0.2  # as another table shows them
    low[known] = high[known] = truth[known].astype(np.int32)
    changed = known & ((low_then < truth) | (truth < high_then))
    low_then, high_then = np.maximum(low_then, low), np.minimum(high_then, high)
    end = tighten(low, high, shown, *grid)
    then = tighten(low_then, high_then, shown, *grid, changed)
    assert bool(end.contradictions) == bool(then.contradictions)
    if not end.contradictions:
        assert low_then.tolist() == low.tolist()
        assert high_then.tolist() == high.tolist()


def test_bounds_that_are_not_known_do_not_overflow() -> None:
    largest = np.iinfo(np.int32).max
    low, high = np.array([9, 0, 4, 0], dtype=np.int32), np.array([12, largest, 5, largest], dtype=np.int32)
    end = tighten(
        low, high, np.array([10, 0, 5, 0], dtype=np.int32), [families(THREE)], [4], same_noise=False
    )
    assert end.is_fixpoint
    assert (low.tolist(), high.tolist()) == ([9, 0, 4, 0], [12, 8, 5, 8])


def _persons_in(persons: list[tuple[int, int]], sex: int, area: int) -> frozenset[int]:
    areas = {0: [2, 3, 5, 6], 1: [2, 3], 4: [5, 6]}.get(area, [area])
    return frozenset(
        at
        for at, (own_sex, own_area) in enumerate(persons)
        if sex in (0, own_sex + 1) and LEAVES[7][own_area] in areas
    )


def _brute_force(
    shown: NDArray[np.int64], axes: Sequence[NDArray[np.int32]], bound: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The smallest and largest count of each cell over all tables that fit."""
    size = int(np.prod([len(LEAVES[len(axis)]) for axis in axes]))
    fitting = []
    for leaves in product(range(most + 1), repeat=size):
        table = with_margins(leaves, axes)
        if (np.abs(table - shown) <= bound).all() and ((table > 0) | (shown == 0)).all():
            fitting.append(table)
    tables = np.array(fitting)
    return tables.min(axis=0), tables.max(axis=0)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("axes", [(FLAT, FLAT), (TREE,)], ids=["crossed", "tree"])
def test_intervals_hold_all_tables_that_fit_and_are_exact_in_a_tree(
    axes: tuple[NDArray[np.int32], ...], leaves: list[int], seed: int
) -> None:
    bound = 1
    truth = with_margins(leaves, axes)
    noise = np.random.default_rng(seed).integers(-bound, bound + 1, len(truth))
    shown = np.where(truth > 0, np.maximum(truth + noise, 0), 0)
    low, high, _ = tightened(shown, axes, bound)
    least, most = _brute_force(shown, axes, bound, 5)
    assert (low <= least).all()
    assert (most <= high).all()
    if len(axes) == 1:
        assert low.tolist() == least.tolist()
        assert high.tolist() == most.tolist()
