from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.attacks.histogram_search import likeliest
from discreet.maths.attacks.reconstruction import (
    CellSums,
    LikeliestHistogram,
    Reading,
    Status,
    within,
)

Integers = NDArray[np.int64]


def sums_of(cells: int, members: list[list[int]]) -> CellSums:
    starts = np.cumsum([0, *(len(part) for part in members)])
    return CellSums(cells, starts, np.concatenate([np.array(part, dtype=np.int64) for part in members]))


# the total, rows and columns of a table of 2 x 3
CROSS = sums_of(6, [[0, 1, 2, 3, 4, 5], [0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]])


def solved(sums: CellSums, readings: list[Reading]) -> LikeliestHistogram:
    return likeliest(sums, readings, work=10, seed=1, most_terms=10_000)


# every histogram of at most 4 records in a cell: all that fit sums of at most 2 + 1 with noise of at most 1
EVERY = np.stack([part.ravel() for part in np.indices((5,) * 6)], axis=1)


def costs(readings: list[Reading]) -> NDArray[np.float64]:
    total = np.zeros(len(EVERY))
    for m, reading in enumerate(readings):
        of_count = np.full(100, np.inf)
        of_count[reading.first : reading.last + 1] = reading.costs
        total += of_count[EVERY[:, CROSS.of(m)].sum(axis=1)]
    return total


few = st.lists(st.integers(0, 1), min_size=6, max_size=6).map(lambda n: np.array(n, dtype=np.int64))


@settings(max_examples=25, deadline=None)
@given(few, st.lists(st.integers(-1, 1), min_size=6, max_size=6), st.sampled_from([0, 1]))
def test_the_likeliest_histogram_and_the_certain_records_are_those_of_brute_force(
    truth: Integers, noise: list[int], bound: int
) -> None:
    shown = [int(truth[CROSS.of(m)].sum()) + bound * noise[m] for m in range(6)]
    readings = [within((value, value), bound, 0) for value in shown]
    found, cost = solved(CROSS, readings), costs(readings)
    feasible = EVERY[np.isfinite(cost)]
    assert found.status is Status.OPTIMAL
    assert cost[(found.counts == EVERY).all(axis=1)] == pytest.approx(cost.min())
    assert found.certain == np.minimum(feasible, found.counts).sum(axis=1).min()
    assert found.unique == (len(feasible) == 1)
    assert np.minimum(truth, found.counts).sum() >= found.certain


def test_a_published_zero_empties_its_cells() -> None:
    readings = [within((v, v), 0, 0) for v in (3, 3, 0, 1, 2, 0)]
    found = solved(CROSS, readings)
    assert found.counts.tolist() == [1, 2, 0, 0, 0, 0]
    assert found.unique
    assert found.certain == 3


def test_margins_that_allow_two_tables_leave_less_certain() -> None:
    readings = [within((v, v), 0, 0) for v in (2, 1, 1, 1, 1, 0)]
    found = solved(CROSS, readings)
    assert found.counts.sum() == 2
    assert found.certain == 0
    assert not found.unique


def test_contradictions_are_infeasible() -> None:
    assert solved(CROSS, [within((v, v), 0, 0) for v in (3, 1, 1, 1, 1, 0)]).status is Status.INFEASIBLE
    assert solved(CROSS, [within((v, v), 0, 0) for v in (3, 3, 0, 0, 0, 0)]).status is Status.INFEASIBLE
    assert solved(CROSS, [within((v, v), 0, 0) for v in (-1, 0, 0, 0, 0, 0)]).status is Status.INFEASIBLE


def test_counts_that_the_law_leaves_out_are_not_taken() -> None:
    gap = Reading(0, np.array([0.5, np.inf, np.inf, 0.0]))  # 0 or 3
    found = solved(sums_of(2, [[0, 1], [0], [1]]), [within((2, 2), 5, 0), gap, gap])
    assert sorted(found.counts.tolist()) == [0, 3]


def test_a_problem_beyond_the_limit_is_not_tried() -> None:
    readings = [within((9, 9), 0, 0)] + [within((5, 5), 5, 0)] * 5
    found = likeliest(CROSS, readings, work=10, seed=1, most_terms=10)
    assert found.status is Status.TOO_LARGE
    assert not found.found


def test_the_same_seed_finds_the_same_records() -> None:
    readings = [within((v, v), 2, 0) for v in (9, 5, 6, 2, 4, 3)]
    first, second = solved(CROSS, readings), solved(CROSS, readings)
    assert first.counts.tolist() == second.counts.tolist()


def test_the_limit_is_of_work_not_of_time() -> None:
    """What is cut off is cut off at the same place each time, however long that takes."""
    chance = np.random.default_rng(5)
    truth = chance.poisson(0.4, size=(8, 9, 6))
    cells = np.arange(truth.size).reshape(truth.shape)
    lists = [[cells.ravel()]]
    lists += [list(np.moveaxis(cells, kept, 0).reshape(cells.shape[kept], -1)) for kept in range(3)]
    lists += [list(np.moveaxis(cells, summed, -1).reshape(-1, cells.shape[summed])) for summed in range(3)]
    members = [one.tolist() for several in lists for one in several]
    sums = sums_of(truth.size, members)
    shown = [int(truth.ravel()[one].sum() + chance.integers(-1, 2)) for one in members]
    readings = [within((max(value, 0), max(value, 0)), 2, 1) for value in shown]
    assert likeliest(sums, readings, work=0.001, seed=1, most_terms=10_000).status is Status.TIMEOUT
    one, other = (likeliest(sums, readings, work=0.9, seed=1, most_terms=10_000) for _ in range(2))
    assert one.found
    assert one.status is other.status
    assert (one.counts.tolist(), one.certain) == (other.counts.tolist(), other.certain)


def test_the_clock_can_end_a_run_nevertheless() -> None:
    readings = [within((3, 3), 1, 0)] * 6
    found = likeliest(CROSS, readings, work=10, seed=1, most_terms=10_000, seconds=0.0)
    assert found.certain == 0
