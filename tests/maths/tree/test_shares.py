"""The best shares: a known optimum, a proven gap, and no better shares nearby."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from discreet.advise.strategy import forms_of
from discreet.hierarchy.estimate import known_totals
from discreet.hierarchy.measure import ancestors
from discreet.hierarchy.spine import Spine
from discreet.maths.tree.marginals import matrix
from discreet.maths.tree.shares import (
    EXACT,
    Forms,
    _Problem,
    exact_shares,
    mean_variance,
    optimal_shares,
    weighted_variance,
)
from discreet.programme.strategy import Histogram
from tests.cases import few
from tests.hierarchy.forests import HISTOGRAM, PLAIN, grown

GAP = 2e-4  # of what a needed query takes from others
ONE = Histogram(())  # one cell: the total


def regular(branching: list[float]) -> Forms:
    """A tree in which all areas of a level have as many children; the number need not be whole."""
    size = len(branching) + 1
    below = np.zeros((size, size))
    for at, number in enumerate(reversed(branching)):
        below[at + 1, at] = number
    levels = np.eye(size, dtype=bool)[::-1]
    return Forms(csr_array(below), levels, np.zeros(size, dtype=bool), np.cumprod([1.0, *branching]))


def dense_value(
    spine: Spine,
    histogram: Histogram,
    queries: list[str],
    wanted: dict[tuple[int, str], float],
    known: np.ndarray,
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """F and its derivatives by the information matrix of all leaf cells, node by node and query by query."""
    below, basis = ancestors(spine).toarray(), histogram.basis
    parts = [(matrix(basis, histogram.marginal(query))) for query in queries]
    square = {}
    for level in range(len(spine.levels)):
        nodes = np.flatnonzero((spine.top <= level) & (spine.bottom >= level))
        for at, part in enumerate(parts):
            rows = np.vstack([np.kron(below[node], part) for node in nodes])
            square[level, at] = rows.T @ rows
    target = np.zeros_like(square[0, 0])
    for (level, query), weight in wanted.items():
        rows = np.vstack(
            [np.kron(below[node], matrix(basis, histogram.marginal(query))) for node in spine.node_of[level]]
        )
        target += weight * rows.T @ rows / len(rows)
    fixed = sum(
        (
            EXACT * np.outer(row, row)
            for row in (np.kron(below[n], np.ones(basis.cells)) for n in np.flatnonzero(known))
        ),
        np.zeros_like(target),
    )

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        shares = flat.reshape(len(spine.levels), len(queries))
        whole = sum((shares[key] * one for key, one in square.items()), fixed)
        covariance = np.linalg.inv(whole)
        moved = covariance @ target @ covariance
        slope = np.array(
            [[(moved * square[at, q]).sum() for q in range(len(queries))] for at in range(len(shares))]
        )
        return float((covariance * target).sum()), -slope.reshape(-1)

    return value


@pytest.mark.parametrize("histogram", few([HISTOGRAM, PLAIN], 1), ids=["unequal groups and zeros", "regular"])
@pytest.mark.parametrize("levels", [pytest.param((), marks=pytest.mark.long), ("country",)], ids=str)
def test_shares_of_irregular_trees_are_the_optimum_of_dense_least_squares(
    histogram: Histogram, levels: tuple[str, ...]
) -> None:
    """Trees with areas of different numbers of children and bypassed ones, against a general optimiser."""
    rng = np.random.default_rng(41)
    queries = ["total", "c", "detailed"]
    for _ in range(2):
        spine = grown(rng, depth=4, most=3)
        known = known_totals(spine, levels)
        wanted = {(1, "c"): 1.0, (2, "total"): 0.7, (3, "detailed"): 0.2}
        basis = histogram.basis
        targets = [np.zeros((basis.subsets, basis.d, basis.d)) for _ in spine.levels]
        for (level, query), weight in wanted.items():
            targets[level] += weight * mean_variance(basis, histogram.marginal(query))
        marginals, forms = [histogram.marginal(query) for query in queries], forms_of(spine, known)
        least = np.zeros((4, 3))
        least[3, 2] = 1e-4
        found = optimal_shares(basis, marginals, forms, targets, least)
        dense = dense_value(spine, histogram, queries, wanted, known)
        value, slope = dense(found.shares.reshape(-1))
        assert found.value == pytest.approx(value, rel=1e-6)
        assert found.gap < 1e-4
        whole = {"type": "eq", "fun": lambda flat: flat.sum() - 1, "jac": np.ones_like}
        best = minimize(
            dense, np.full(12, 1 / 12), jac=True, method="SLSQP", bounds=[(low, 1) for low in least.reshape(-1)],
            constraints=[whole], options={"ftol": 1e-13, "maxiter": 1000},
        )  # fmt: skip
        assert value == pytest.approx(best.fun, rel=1e-6)
        # and by the derivatives, whatever found it: f - min f <= max g - f
        assert -slope.min() / value - 1 < 1e-4
        shares = rng.dirichlet(np.ones(12)).reshape(4, 3)
        assert weighted_variance(basis, marginals, forms, targets, shares) == pytest.approx(
            dense(shares.reshape(-1))[0], rel=1e-6
        )


def test_derivatives_are_those_of_small_steps() -> None:
    rng = np.random.default_rng(43)
    spine = grown(rng, depth=4, most=4)
    forms = forms_of(spine, known_totals(spine, ()))
    queries = [HISTOGRAM.marginal(query) for query in ("total", "g*e", "detailed")]
    basis = HISTOGRAM.basis
    targets = [mean_variance(basis, HISTOGRAM.marginal("c"))] * 4
    shares = rng.dirichlet(np.ones(12)).reshape(4, 3)
    problem = _Problem(basis, queries, forms, targets)
    _, slope = problem.value_and_slope(shares)
    for level in range(4):
        for query in range(3):
            step = np.zeros((4, 3))
            step[level, query] = 1e-6 * shares[level, query]
            ends = [problem.value_and_slope(shares + side * step)[0] for side in (-1, 1)]
            assert slope[level, query] == pytest.approx(
                (ends[0] - ends[1]) / (2 * step[level, query]), rel=1e-4
            )


def test_one_level_and_one_cell_takes_everything() -> None:
    target = mean_variance(ONE.basis, ONE.marginal("total"))
    found = optimal_shares(ONE.basis, [ONE.marginal("total")], regular([]), [target], np.zeros((1, 1)))
    assert found.shares.tolist() == [[1.0]]
    assert found.value == pytest.approx(1.0)


def test_two_levels_of_one_count_have_the_optimum_of_calculus() -> None:
    """Root of b leaves, only leaves wanted: V = (1 - 1/b) / s + 1 / (b (s + b r)), r + s = 1, has a closed minimum."""
    b = 4.0
    marginal = ONE.marginal("total")
    targets = [np.zeros((1, 1, 1)), mean_variance(ONE.basis, marginal)]
    found = optimal_shares(ONE.basis, [marginal], regular([b]), targets, np.zeros((2, 1)))
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
    found = optimal_shares(basis, queries, regular([3.0, 5.0]), targets, least)
    assert 0 <= found.gap <= GAP
    assert found.shares.sum() == pytest.approx(1.0)
    again = weighted_variance(basis, queries, regular([3.0, 5.0]), targets, found.shares)
    assert again == pytest.approx(found.value, rel=1e-9)
    rng = np.random.default_rng(2)
    for spread in (0.01, 0.1, 1.0):
        for _ in range(30):
            other = found.shares * np.exp(spread * rng.normal(size=found.shares.shape)) + 1e-9
            value = weighted_variance(basis, queries, regular([3.0, 5.0]), targets, other / other.sum())
            assert value >= found.value / (1 + found.gap) * (1 - 1e-9)


def test_exact_shares_sum_to_one_and_leave_no_needed_query_out() -> None:
    needed = np.array([[False, False], [False, True]])
    shares = exact_shares(np.array([[0.5, 0.3], [0.2, 0.0]]), 64, needed)
    assert sum(one for row in shares for one in row) == Fraction(1)
    assert shares[1][1] >= Fraction(1, 64)
    assert shares[0][0] in (Fraction(31, 64), Fraction(32, 64))
