"""The best shares: a known optimum, a proven gap, and no better shares nearby."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.maths.tree.shares import (
    GAP,
    exact_shares,
    mean_variance,
    optimal_shares,
    weighted_variance,
)
from discreet.programme.strategy import Histogram
from tests.hierarchy.forests import HISTOGRAM

ONE = Histogram(())  # one cell: the total


def test_one_level_and_one_cell_takes_everything() -> None:
    target = mean_variance(ONE.basis, ONE.marginal("total"))
    found = optimal_shares(ONE.basis, [ONE.marginal("total")], [], [target], np.zeros((1, 1)))
    assert found.shares.tolist() == [[1.0]]
    assert found.value == pytest.approx(1.0)


def test_two_levels_of_one_count_have_the_optimum_of_calculus() -> None:
    """Root of b leaves, only leaves wanted: V = (1 - 1/b) / s + 1 / (b (s + b r)), r + s = 1, has a closed minimum."""
    b = 4.0
    marginal = ONE.marginal("total")
    targets = [np.zeros((1, 1, 1)), mean_variance(ONE.basis, marginal)]
    found = optimal_shares(ONE.basis, [marginal], [b], targets, np.zeros((2, 1)))
    s = np.linspace(1e-3, 1 - 1e-6, 200_001)
    values = (1 - 1 / b) / s + 1 / (b * (s + b * (1 - s)))
    assert found.value == pytest.approx(values.min(), rel=GAP)
    leaf = float(found.shares[1, 0])
    assert (1 - 1 / b) / leaf + 1 / (b * (leaf + b * (1 - leaf))) == pytest.approx(found.value, rel=1e-9)


def test_no_other_shares_are_better_than_the_proven_gap_allows() -> None:
    queries = [HISTOGRAM.marginal(query) for query in ("total", "g*e", "c", "detailed")]
    basis = HISTOGRAM.basis
    targets = [np.zeros((basis.subsets, basis.d, basis.d)) for _ in range(3)]
    targets[0] += mean_variance(basis, HISTOGRAM.marginal("c"))
    targets[2] += 0.3 * mean_variance(basis, HISTOGRAM.marginal("g*e"))
    least = np.zeros((3, 4))
    least[2, 3] = 1e-4
    found = optimal_shares(basis, queries, [3.0, 5.0], targets, least)
    assert 0 <= found.gap <= GAP
    assert found.shares.sum() == pytest.approx(1.0)
    again = weighted_variance(basis, queries, [3.0, 5.0], targets, found.shares)
    assert again == pytest.approx(found.value, rel=1e-9)
    rng = np.random.default_rng(2)
    for spread in (0.01, 0.1, 1.0):
        for _ in range(30):
            other = found.shares * np.exp(spread * rng.normal(size=found.shares.shape)) + 1e-9
            value = weighted_variance(basis, queries, [3.0, 5.0], targets, other / other.sum())
            assert value >= found.value / (1 + found.gap) * (1 - 1e-9)


def test_exact_shares_sum_to_one_and_leave_no_needed_query_out() -> None:
    needed = np.array([[False, False], [False, True]])
    shares = exact_shares(np.array([[0.5, 0.3], [0.2, 0.0]]), 64, needed)
    assert sum(one for row in shares for one in row) == Fraction(1)
    assert shares[1][1] >= Fraction(1, 64)
    assert shares[0][0] in (Fraction(31, 64), Fraction(32, 64))
