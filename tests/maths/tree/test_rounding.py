"""Rounding meets every sum and reaches the optimum of HiGHS."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, milp

from discreet.maths.tree.bounds import box, divided, members, with_total
from discreet.maths.tree.rounding import meeting_sums, rounded_to_sums, whole_numbers

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]


def distance(found: NDArray[np.generic], x: Floats, group: Integers, groups: int) -> float:
    gap = np.asarray(found, dtype=np.float64) - x
    sums = np.stack([gap[:, group == g].sum(axis=1) for g in range(groups)], axis=1)
    return float(np.abs(gap).sum() + np.abs(sums).sum() + np.abs(gap.sum(axis=1)).sum())


def highs(x: Floats, parent: Integers, group: Integers, lower: Floats, upper: Floats) -> float:
    """The smallest distance over all whole numbers >= 0 within the bounds, by branch and bound."""
    n, k = x.shape
    groups = lower.shape[1]
    cells = n * k
    member = np.zeros((groups, k))
    member[group, np.arange(k)] = 1
    sums, totals = np.kron(np.eye(n), member), np.kron(np.eye(n), np.ones((1, k)))
    measured = np.vstack([np.eye(cells), sums, totals])
    size = len(measured)
    cost = np.concatenate([np.zeros(cells), np.ones(size)])
    target = measured @ x.reshape(-1)
    constraints = [
        LinearConstraint(np.hstack([measured, -np.eye(size)]), -np.inf, target),
        LinearConstraint(np.hstack([measured, np.eye(size)]), target, np.inf),
        LinearConstraint(np.hstack([np.tile(np.eye(k), n), np.zeros((k, size))]), parent, parent),
        LinearConstraint(
            np.hstack([sums, np.zeros((n * groups, size))]), lower.reshape(-1), upper.reshape(-1)
        ),
    ]
    whole = np.concatenate([np.ones(cells), np.zeros(size)])
    solved = milp(cost, constraints=constraints, integrality=whole)
    assert solved.x is not None
    return float(solved.fun)


def random_problem(seed: int) -> tuple[Floats, Integers, Integers, Floats, Floats]:
    rng = np.random.default_rng(seed)
    n, k, groups = int(rng.integers(2, 5)), int(rng.integers(2, 7)), int(rng.integers(1, 4))
    group = rng.integers(0, groups, k)
    true = rng.poisson(1.2, (n, k))
    sums = np.stack([true[:, group == g].sum(axis=1) for g in range(groups)], axis=1)
    lower = np.maximum(sums - rng.integers(0, 3, sums.shape), 0).astype(np.float64)
    upper = (sums + rng.integers(0, 3, sums.shape)).astype(np.float64)
    x = np.maximum(true + rng.normal(0, 0.8, true.shape), 0)
    return x, true.sum(axis=0), group, lower, upper


FRESH = [pytest.param(seed, marks=pytest.mark.long) for seed in range(70_000, 70_200)]


@pytest.mark.parametrize("seed", [*range(25), *FRESH])
def test_rounding_is_within_one_per_cent_of_highs(seed: int) -> None:
    x, parent, group, lower, upper = random_problem(seed)
    met = meeting_sums(x, parent, group, lower, upper)
    found = whole_numbers(met, parent, group, lower.shape[1])
    best = highs(met, parent, group, lower, upper)
    assert distance(found, met, group, lower.shape[1]) <= 1.01 * best + 1e-6


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_rounded_counts_meet_every_sum_and_bound(seed: int) -> None:
    x, parent, group, lower, upper = random_problem(seed)
    met = meeting_sums(x, parent, group, lower, upper)
    groups = lower.shape[1]
    np.testing.assert_allclose(met.sum(axis=0), parent, atol=1e-9)
    found = whole_numbers(met, parent, group, groups)
    assert (found >= 0).all()
    assert (found.sum(axis=0) == parent).all()
    assert (np.abs(found - met) < 1).all()
    sums = np.stack([found[:, group == g].sum(axis=1) for g in range(groups)], axis=1)
    assert (sums >= lower).all()
    assert (sums <= upper).all()


def test_counts_whose_sums_are_not_met_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="sums are not met"):
        whole_numbers(np.array([[0.5, 0.0]]), np.array([4, 0]), np.zeros(2, dtype=np.int64), 1)


def test_one_histogram_is_rounded_by_largest_remainders() -> None:
    group = np.array([0, 0, 0, 1, 1])
    found = rounded_to_sums(np.array([1.6, 0.7, 0.7, 0.0, 0.0]), group, np.array([3, 2]))
    assert found.tolist() == [1, 1, 1, 1, 1]
    assert rounded_to_sums(np.array([1.9, 0.1, 0.0, 5.0, 0.0]), group, np.array([4, 0])).tolist() == [
        4,
        0,
        0,
        0,
        0,
    ]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_limits_of_areas_are_the_sums_that_their_parts_can_have(seed: int) -> None:
    """All group sums of two children with known totals, by enumeration."""
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 2, (2, 3))
    upper = lower + rng.integers(0, 3, (2, 3))
    totals = np.array([rng.integers(lower[c].sum(), upper[c].sum() + 1) for c in range(2)])
    every = []
    for c in range(2):
        grid = np.stack(
            np.meshgrid(*(np.arange(low, high + 1) for low, high in zip(lower[c], upper[c], strict=True))),
            axis=-1,
        ).reshape(-1, 3)
        every.append(grid[grid.sum(axis=1) == totals[c]])
    possible = {tuple((a + b).tolist()) for a in every[0] for b in every[1]}
    p, b = with_total(*box(lower, upper), totals)
    p, b = p.sum(axis=0), b.sum(axis=0)
    sums = members(3)
    reach = [range(int(lower[:, g].sum()), int(upper[:, g].sum()) + 1) for g in range(3)]
    within = {
        (i, j, k)
        for i in reach[0]
        for j in reach[1]
        for k in reach[2]
        if ((sums @ np.array([i, j, k]) >= p) & (sums @ np.array([i, j, k]) <= b)).all()
    }
    assert within == possible
    parent = np.array(sorted(possible)[int(rng.integers(len(possible)))])
    near = rng.random((2, 3)) * 4
    found = divided(near, *with_total(*box(lower, upper), totals), parent)
    assert (found.sum(axis=0) == parent).all()
    assert (found.sum(axis=1) == totals).all()
    assert ((found >= lower) & (found <= upper)).all()
    options = [
        np.abs(np.stack([a, parent - a]) - near).sum()
        for a in every[0]
        if tuple((parent - a).tolist()) in set(map(tuple, every[1].tolist()))
    ]
    assert np.abs(found - near).sum() <= min(options) + 1e-6
