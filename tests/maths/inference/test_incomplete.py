"""Empty rows and columns, and structural zeros: degrees of freedom and statistics as in textbooks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2, chi2_contingency

from discreet.errors import Mistakes
from discreet.maths.inference.independence import judged_part
from discreet.maths.inference.likelihood import filled
from discreet.maths.inference.loglinear import design, fit
from discreet.maths.inference.simulated import KnownMargins, simulated_tests
from discreet.maths.noise.additive import truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import NO_NOISE, Negatives, PublishedLaw, Publishing

LAPLACE = PublishedLaw(truncated_laplace("0.5", 7))
CELL_KEY = PublishedLaw(PTableLaw(solve(PTableParameters(5, 2.0, 0))))
LAWS = {
    "none": NO_NOISE,
    "Laplace": LAPLACE,
    "negatives zero": PublishedLaw(truncated_laplace("0.5", 7), Publishing(Negatives.ZERO)),
    "cell key": CELL_KEY,
}
FULL = np.array([[21, 9, 14, 30], [18, 25, 7, 12], [5, 16, 11, 19]])
DIAGONAL = np.eye(3, 4, dtype=np.bool_)


def spread(table: NDArray[np.int64], rows: list[int], columns: list[int]) -> NDArray[np.int64]:
    """The table with empty rows and columns between."""
    found = np.zeros((max(rows) + 2, max(columns) + 3), dtype=np.int64)
    found[np.ix_(rows, columns)] = table
    return found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=7, max_size=7), st.integers(0, 1000))
def test_without_noise_empty_rows_and_columns_change_nothing(gaps: list[int], seed: int) -> None:
    table = np.random.default_rng(seed).poisson(6, (3, 4)) + 1
    rows, columns = (np.cumsum(np.array(part) + 1).tolist() for part in (gaps[:3], gaps[3:]))
    found = simulated_tests(spread(table, rows, columns), NO_NOISE, None, 0, np.random.default_rng(0))
    ratio = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    square = chi2_contingency(table, correction=False)
    assert found.judged.df == ratio.dof == 6
    assert found.likelihood_ratio.p_value == pytest.approx(ratio.pvalue, rel=1e-6)
    assert found.chi_square.p_value == pytest.approx(square.pvalue, rel=1e-6)
    assert found.tests.naive_likelihood_ratio.p_value[0] == pytest.approx(ratio.pvalue, rel=1e-9)
    assert found.tests.naive_chi_square.p_value[0] == pytest.approx(square.pvalue, rel=1e-9)


def test_dependence_is_not_hidden_by_empty_categories() -> None:
    """With the empty rows and columns counted, p would be 0.97; it is 0.011."""
    table = np.array([[30, 12], [15, 19]])
    wide = spread(table, [0, 5], [1, 6])
    found = simulated_tests(wide, CELL_KEY, None, 199, np.random.default_rng(1)).likelihood_ratio
    assert found.p_value < 0.05
    assert found.asymptotic_p_value < 0.05
    assert chi2.sf(found.statistic, (wide.shape[0] - 1) * (wide.shape[1] - 1)) > 0.9


@pytest.mark.parametrize("law", LAWS)
def test_empty_rows_and_columns_change_nothing_with_noise(law: str) -> None:
    noise = LAWS[law]
    bare = simulated_tests(FULL, noise, None, 49, np.random.default_rng(2))
    wide = simulated_tests(spread(FULL, [1, 2, 4], [0, 2, 3, 7]), noise, None, 49, np.random.default_rng(2))
    assert wide.likelihood_ratio.p_value == bare.likelihood_ratio.p_value
    assert wide.likelihood_ratio.statistic == pytest.approx(bare.likelihood_ratio.statistic)
    assert wide.judged.df == bare.judged.df == 6
    total = simulated_tests(
        spread(FULL, [1, 2, 4], [0, 2, 3, 7]), noise, int(FULL.sum()), 49, np.random.default_rng(2)
    )
    assert total.judged.df == 6


def test_known_margins_of_zero_take_no_degrees_of_freedom() -> None:
    wide = spread(FULL, [1, 2, 4], [0, 2, 3, 7])
    known = KnownMargins(tuple(wide.sum(axis=1).tolist()), tuple(wide.sum(axis=0).tolist()))
    found = simulated_tests(wide, NO_NOISE, known, 0, np.random.default_rng(2))
    assert found.score is not None
    assert found.score.p_value == pytest.approx(chi2_contingency(FULL, correction=False).pvalue, rel=1e-4)


def test_a_cell_is_filled_where_its_most_likely_count_is_not_zero() -> None:
    assert filled(np.array([0, 1, 5]), NO_NOISE).tolist() == [False, True, True]
    assert filled(np.array([-3, 0, 4]), LAPLACE).tolist() == [False, False, True]
    assert filled(np.array([0, 1]), CELL_KEY).tolist() == [False, True]


def quasi(table: NDArray[np.int64], possible: NDArray[np.bool_]) -> tuple[float, float]:
    """G^2 and X^2 of quasi-independence, by maximising the likelihood directly."""
    rows, columns = table.shape

    def means(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(theta[:rows, None] + theta[None, rows:]))

    def loss(theta: NDArray[np.float64]) -> float:
        mu = means(theta)
        return float(np.where(possible, mu - table * np.log(mu), 0.0).sum())

    start = np.full(rows + columns, 0.5 * np.log(table.mean()))
    mu = means(minimize(loss, start, method="BFGS", options={"gtol": 1e-9}).x)
    x = np.where(possible & (table > 0), table, 1)
    ratio = 2 * np.where(possible & (table > 0), table * np.log(x / mu) - (table - mu), 0.0).sum()
    return float(ratio), float(np.where(possible, (table - mu) ** 2 / mu, 0.0).sum())


def test_structural_zeros_are_no_observations() -> None:
    table = np.where(DIAGONAL, 0, FULL)
    found = simulated_tests(table, NO_NOISE, None, 0, np.random.default_rng(0), DIAGONAL)
    ratio, square = quasi(table, ~DIAGONAL)
    assert found.judged.df == 6 - 3
    assert found.likelihood_ratio.statistic == pytest.approx(ratio, rel=1e-4)
    assert found.chi_square.statistic == pytest.approx(square, rel=1e-4)
    assert found.tests.naive_likelihood_ratio.statistic[0] == pytest.approx(ratio, rel=1e-4)
    assert found.tests.naive_chi_square.statistic[0] == pytest.approx(square, rel=1e-4)
    whole = simulated_tests(table, NO_NOISE, None, 0, np.random.default_rng(0))
    assert whole.likelihood_ratio.p_value < 1e-6 < found.likelihood_ratio.p_value


@pytest.mark.parametrize("law", LAWS)
def test_structural_zeros_with_noise_are_as_in_the_log_linear_model(law: str) -> None:
    table = np.where(DIAGONAL, 0, FULL)
    found = simulated_tests(table, LAWS[law], None, 19, np.random.default_rng(0), DIAGONAL)
    model = design((3, 4), [list("123"), list("1234")], ["A", "B"], ["A", "B"])
    other = fit(table.ravel(), model, LAWS[law], DIAGONAL.ravel())
    assert found.likelihood_ratio.statistic == pytest.approx(other.deviance, abs=1e-5)
    assert found.judged.df == other.df == 3
    with_total = simulated_tests(table, LAWS[law], int(table.sum()), 19, np.random.default_rng(0), DIAGONAL)
    assert 0 < with_total.likelihood_ratio.p_value <= 1


def test_a_table_that_falls_apart_has_the_degrees_of_its_parts() -> None:
    """Two blocks of 2 x 2 without a common row or column: one degree of freedom each."""
    block = np.kron(np.eye(2, dtype=np.int64), np.array([[10, 20], [30, 41]]))
    found = judged_part(block, NO_NOISE, np.kron(np.eye(2), np.ones((2, 2))) == 0)
    assert found.df == 2
    apart = simulated_tests(block, NO_NOISE, None, 0, np.random.default_rng(0), block == 0)
    each = chi2_contingency(block[:2, :2], correction=False, lambda_="log-likelihood")
    assert apart.likelihood_ratio.statistic == pytest.approx(2 * each.statistic, rel=1e-5)


@pytest.mark.parametrize("table", [[[5, 0], [7, 0]], [[0, 0], [0, 0]], [[0, 3], [4, 0]]])
def test_a_table_without_two_filled_rows_and_columns_is_refused(table: list[list[int]]) -> None:
    structural = np.array([[False, False], [False, True]]) if table[0][1] == 3 else None
    with pytest.raises(Mistakes, match="there is no dependence to test"):
        simulated_tests(np.array(table), NO_NOISE, None, 0, np.random.default_rng(0), structural)


def test_margins_beside_structural_zeros_are_refused() -> None:
    known = KnownMargins((10, 10, 10), (10, 10, 5, 5))
    with pytest.raises(Mistakes, match="leave the margins out"):
        simulated_tests(FULL, NO_NOISE, known, 0, np.random.default_rng(0), DIAGONAL)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_empty_margins_of_a_model_take_cells_and_parameters(seed: int) -> None:
    """A*B, C with (A=2, B=3) empty: the fit is that of the table without these cells."""
    shape = (2, 3, 3)
    table = np.random.default_rng(seed).poisson(9, shape) + 1
    table[1, 2] = 0
    labels = [list("12"), list("123"), list("123")]
    found = fit(table.ravel(), design(shape, labels, ["A", "B", "C"], ["A*B", "C"]), NO_NOISE)
    pairs = table.reshape(6, 3)[:5]
    known = chi2_contingency(pairs, correction=False, lambda_="log-likelihood")
    assert found.df == known.dof == 8
    assert found.deviance == pytest.approx(known.statistic, rel=1e-6)
    missing = found.names.index("A=2*B=3")
    assert np.isnan(found.estimates[missing])
    assert np.isinf(found.variances[missing])
    assert np.isfinite(np.delete(found.estimates, missing)).all()
