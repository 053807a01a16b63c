"""The expected error of a sum of noises: published values, closed forms, limits and exact sums of the law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nbinom

from discreet.maths.microaggregation import expected_absolute_sum, expected_relative_error


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "expected"),
    [(0.1, 1, 154.55), (1, 1, 14.83), (4.6, 1, 1.512), (0.1, 2, 309.19), (1, 2, 30.60), (4.6, 2, 5.426)],
)
def test_188_cells(epsilon: float, sensitivity: float, expected: float) -> None:
    digits = 3 if expected < 10 else 2
    assert round(expected_absolute_sum(188, epsilon, sensitivity), digits) == expected
    assert (
        expected_relative_error(188, epsilon, sensitivity, 50)
        == expected_absolute_sum(188, epsilon, sensitivity) / 50
    )


@given(st.floats(1e-12, 700))
def test_one_cell_has_a_closed_form(epsilon: float) -> None:
    # 2a / (1 - a^2) = 1 / sinh(epsilon)
    assert expected_absolute_sum(1, epsilon) == pytest.approx(1 / math.sinh(epsilon), rel=1e-12)


@pytest.mark.parametrize(("cells", "epsilon"), [(2, 1.0), (7, 0.5), (40, 2.0), (300, 4.0)])
def test_the_law_of_the_sum_gives_the_same(cells: int, epsilon: float) -> None:
    # the sum is the difference of two independent negative binomials
    law = nbinom.pmf(np.arange(4000), cells, 1 - math.exp(-epsilon))
    difference = np.convolve(law, law[::-1])
    assert expected_absolute_sum(cells, epsilon) == pytest.approx(
        float(difference @ np.abs(np.arange(-3999, 4000))), rel=1e-10
    )


@pytest.mark.parametrize(("cells", "epsilon"), [(188, 0.1), (5, 3.0), (1000, 1.0)])
def test_the_integral_over_t_gives_the_same(cells: int, epsilon: float) -> None:
    a = math.exp(-epsilon)

    def integrand(t: float) -> float:
        phi = (1 - a) ** 2 / (1 - 2 * a * math.cos(t) + a * a)
        return (1 - phi**cells) / (1 - math.cos(t))

    integral = quad(integrand, 1e-6, math.pi, limit=500, points=[1e-3, 1e-2, 0.1])[0]
    assert expected_absolute_sum(cells, epsilon) == pytest.approx(integral / math.pi, rel=1e-3)


@pytest.mark.parametrize("cells", [10**7, 10**12])
@pytest.mark.parametrize("epsilon", [1e-90, 1e-6, 0.01, 1.0])
def test_sums_of_millions_of_cells_are_nearly_normal(epsilon: float, cells: int) -> None:
    variance = cells / (2 * math.sinh(epsilon / 2) ** 2)
    # the excess kurtosis, at most 4 / m for these epsilons, changes E|S| by a 24th of itself
    assert expected_absolute_sum(cells, epsilon) == pytest.approx(math.sqrt(2 * variance / math.pi), rel=1e-6)


@pytest.mark.parametrize("epsilon", [40.0, 300.0, 700.0])
def test_a_huge_epsilon_leaves_single_steps(epsilon: float) -> None:
    assert expected_absolute_sum(10**7, epsilon) == pytest.approx(2e7 * math.exp(-epsilon), rel=1e-9)


def test_no_noise_at_all() -> None:
    assert expected_absolute_sum(0, 1.0) == 0
    assert expected_absolute_sum(10, 1e6) == 0


def test_draws_agree() -> None:
    rng = np.random.default_rng(5)
    p = 1 - math.exp(-0.5)
    sums = (rng.geometric(p, (40_000, 20)) - rng.geometric(p, (40_000, 20))).sum(axis=1)
    realised, error = np.abs(sums).mean(), np.abs(sums).std() / 200
    assert abs(realised - expected_absolute_sum(20, 1.0, 2.0)) < 4 * error
    assert abs(realised - expected_absolute_sum(20, 0.9, 2.0)) > 4 * error


@pytest.mark.parametrize(
    ("cells", "epsilon", "sensitivity"),
    [
        (-1, 1, 1),
        (10**12 + 1, 1, 1),
        (1, 0, 1),
        (1, -1, 1),
        (1, 1, 0),
        (1, math.nan, 1),
        (1, math.inf, 1),
        (1, 1e-200, 1),
    ],
)
def test_nonsense_is_refused(cells: int, epsilon: float, sensitivity: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon|cells"):
        expected_absolute_sum(cells, epsilon, sensitivity)


def test_no_records_have_no_relative_error() -> None:
    with pytest.raises(ValueError, match="record"):
        expected_relative_error(1, 1, 1, 0)
