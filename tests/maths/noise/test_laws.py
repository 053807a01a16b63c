import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.noise.additive import (
    AdditiveLaw,
    Number,
    SquareSensitivity,
    discrete_gaussian,
    discrete_gaussian_of_sigma,
    discrete_laplace,
    exponential_mechanism,
    matched_truncation,
    transition_matrix,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.law import LARGEST_SUPPORT, Loss

PAPER = SquareSensitivity.PAPER
EPSILONS = st.floats(0.05, 6.0)
BOUNDS = st.integers(1, 40)

# Rinott et al. 2018, Table 2: Pr[published within +-r of the count], negatives to zero; rows 0..4 and >= 5, r = 0..4
TABLE_2 = [
    (
        truncated_laplace(1.5, 7),
        [
            (0.82, 0.96, 0.99, 1.00, 1.00),
            (0.64, 0.96, 0.99, 1.00, 1.00),
            (0.64, 0.92, 0.99, 1.00, 1.00),
            (0.64, 0.92, 0.98, 1.00, 1.00),
            (0.64, 0.92, 0.98, 1.00, 1.00),
            (0.64, 0.92, 0.98, 1.00, 1.00),
        ],
    ),
    (
        truncated_laplace(0.5, 7),
        [
            (0.63, 0.78, 0.87, 0.93, 0.96),
            (0.25, 0.78, 0.87, 0.93, 0.96),
            (0.25, 0.55, 0.87, 0.93, 0.96),
            (0.25, 0.55, 0.74, 0.93, 0.96),
            (0.25, 0.55, 0.74, 0.85, 0.96),
            (0.25, 0.55, 0.74, 0.85, 0.92),
        ],
    ),
    (
        truncated_normal(1.5, 12, PAPER),
        [
            (0.57, 0.70, 0.81, 0.89, 0.94),
            (0.14, 0.70, 0.81, 0.89, 0.94),
            (0.14, 0.40, 0.81, 0.89, 0.94),
            (0.14, 0.40, 0.62, 0.89, 0.94),
            (0.14, 0.40, 0.62, 0.78, 0.94),
            (0.14, 0.40, 0.62, 0.78, 0.88),
        ],
    ),
    (
        truncated_normal(0.5, 10, PAPER),
        [
            (0.54, 0.63, 0.71, 0.78, 0.84),
            (0.09, 0.63, 0.71, 0.78, 0.84),
            (0.09, 0.26, 0.71, 0.78, 0.84),
            (0.09, 0.26, 0.42, 0.78, 0.84),
            (0.09, 0.26, 0.42, 0.57, 0.84),
            (0.09, 0.26, 0.42, 0.57, 0.69),
        ],
    ),
]


@pytest.mark.parametrize(("law", "printed"), TABLE_2)
def test_table_2_of_rinott_reproduces(law: AdditiveLaw, printed: list[tuple[float, ...]]) -> None:
    for count, ranges in enumerate(printed):
        row = law.row(count).negatives_to_zero()
        for distance, value in enumerate(ranges):
            assert abs(row.within(count, distance) - value) <= 0.005 + 1e-9, (count, distance)


def test_quoted_deltas() -> None:
    assert truncated_laplace(1, 10).delta(1) == pytest.approx(2.1e-5, abs=5e-7)
    assert truncated_laplace(0.5, 10).delta(0.5) == pytest.approx(0.0016587, abs=5e-8)
    assert truncated_laplace(0.5, 5).delta(0.5) == pytest.approx(0.02, abs=2e-3)
    assert truncated_normal(1, 10, PAPER).delta(1) == pytest.approx(0.001, abs=5e-4)
    assert truncated_normal(0.5, 10, PAPER).delta(0.5) == pytest.approx(0.008, abs=5e-4)
    # Table 3's parameters
    for epsilon, m, delta in ((0.1, 10, 0.0283), (0.1, 7, 0.0470), (0.5, 10, 0.0017), (0.5, 7, 0.0076)):
        assert truncated_laplace(epsilon, m).delta(epsilon) == pytest.approx(delta, abs=1e-4)


def test_matched_truncations() -> None:
    epsilons = (0.1, 0.5, 1, 1.5, 2, 3)
    laplace = [truncated_laplace(epsilon, 7).delta(epsilon) for epsilon in epsilons]
    found = [matched_truncation(e, d, PAPER) for e, d in zip(epsilons, laplace, strict=True)]
    assert found == [8, 11, 12, 13, 13, 14]
    # the printed bounds 10 and 12 for epsilon .5 and 1.5 miss the delta that they are matched to
    assert truncated_normal(0.5, 10, PAPER).delta(0.5) > laplace[1]
    assert truncated_normal(1.5, 12, PAPER).delta(1.5) > laplace[3]


@given(EPSILONS, BOUNDS)
def test_loss_formulas_of_the_truncated_laplace(epsilon: float, m: int) -> None:
    law, a = truncated_laplace(epsilon, m), math.exp(-epsilon)
    c = 1 + 2 * (a - a ** (m + 1)) / (1 - a)
    expected = 2 * a * (m * a ** (m + 1) - (m + 1) * a**m + 1) / (c * (a - 1) ** 2)
    assert law.row(50).expected_loss(50, Loss.L1) == pytest.approx(expected, rel=1e-10)
    assert law.pmf.at(m) == pytest.approx(a**m / c, rel=1e-12)


@given(EPSILONS)
def test_moments_of_the_geometric_law(epsilon: float) -> None:
    law, a = discrete_laplace(epsilon), math.exp(-epsilon)
    assert law.pmf.at(0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    # twice what the paper prints for the untruncated law
    assert law.pmf.absolute_moment(1) == pytest.approx(1 / math.sinh(epsilon), rel=1e-11)
    assert law.pmf.variance == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-11)
    assert law.pmf.mean == pytest.approx(0, abs=1e-12)


def test_loss_of_the_truncated_normal() -> None:
    v = np.arange(-10, 11)
    weights = np.exp(-0.5 * v**2 / 21)
    law = truncated_normal(0.5, 10, PAPER)
    assert law.row(99).expected_loss(99, Loss.L2) == pytest.approx(float(v**2 @ weights / weights.sum()))


@given(EPSILONS, BOUNDS)
def test_a_truncated_law_has_delta_p_m_at_its_epsilon(epsilon: float, m: int) -> None:
    for law in (
        truncated_laplace(epsilon, m),
        truncated_normal(epsilon, m),
        truncated_normal(epsilon, m, PAPER),
    ):
        assert law.delta(epsilon) == pytest.approx(law.pmf.at(m), rel=1e-9)
        assert law.epsilon(law.pmf.at(m) * 0.999) == math.inf


@given(EPSILONS, st.integers(2, 40))
def test_the_exact_sensitivity_of_the_square_is_enough_and_no_less_is(epsilon: float, m: int) -> None:
    exact, paper = truncated_normal(epsilon, m), truncated_normal(epsilon, m, PAPER)
    delta = exact.pmf.at(m)
    assert exact.epsilon(delta * (1 + 1e-9)) == pytest.approx(epsilon, rel=1e-6)
    assert paper.epsilon(paper.pmf.at(m) * (1 + 1e-9)) == pytest.approx(
        epsilon * (2 * m - 1) / (2 * m + 1), rel=1e-6
    )
    assert exact.pmf.variance <= paper.pmf.variance * (1 + 1e-12)


@given(EPSILONS)
def test_the_geometric_law_is_pure(epsilon: float) -> None:
    law = discrete_laplace(epsilon)
    assert law.epsilon(0) == epsilon
    assert law.delta(epsilon) == 0
    assert law.delta(epsilon / 2) > 0
    assert law.rho == pytest.approx(epsilon**2 / 2)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.5, 4.0])
def test_delta_agrees_with_dp_accounting(epsilon: float) -> None:
    laplace = privacy_loss_mechanism.DiscreteLaplacePrivacyLoss(1.3, sensitivity=1)
    assert discrete_laplace(1.3).delta(epsilon) == pytest.approx(
        laplace.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-15
    )
    gaussian = privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(2.0, sensitivity=1)
    assert discrete_gaussian_of_sigma(2).delta(epsilon) == pytest.approx(
        gaussian.get_delta_for_epsilon(epsilon), rel=1e-6, abs=1e-9
    )


@given(st.floats(0.001, 3.0), st.floats(1e-12, 0.1))
def test_epsilon_and_delta_of_the_gaussian_invert_each_other(rho: float, delta: float) -> None:
    law = discrete_gaussian(rho)
    epsilon = law.epsilon(delta)
    assert law.delta(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert law.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)
    # zCDP's conversion is an upper bound
    assert epsilon <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-12)
    assert law.epsilon(0) == math.inf


def test_the_variance_of_the_gaussian() -> None:
    assert discrete_gaussian(Fraction(1, 50)).pmf.variance == pytest.approx(25, rel=1e-12)
    assert discrete_gaussian_of_sigma(5).exponents == discrete_gaussian(Fraction(1, 50)).exponents


def test_tails_are_sums_of_positive_terms() -> None:
    pmf = discrete_laplace(1).pmf
    a = math.exp(-1)
    assert pmf.tail(200) == pytest.approx(a**200 / (1 + a), rel=1e-11)
    assert pmf.cdf(-200) == pytest.approx(a**200 / (1 + a), rel=1e-11)
    assert pmf.tail(-(10**6)) == pytest.approx(1)
    assert pmf.cdf(10**6) == pytest.approx(1)
    assert pmf.tail(10**6) == pmf.cdf(-(10**6)) == 0


@given(EPSILONS, st.floats(0.0001, 0.9999))
def test_quantiles(epsilon: float, share: float) -> None:
    pmf = discrete_laplace(epsilon).pmf
    x = pmf.quantile(share)
    assert pmf.cdf(x) >= share - 1e-12
    assert pmf.cdf(x - 1) <= share + 1e-12
    # the tail beyond x is a^(x+1) / (1+a) with a = exp(-epsilon)
    far = -math.log(1e-12 * (1 + math.exp(-epsilon))) / epsilon - 1
    assert pmf.quantile(1 - 1e-12) == pytest.approx(far, abs=1.001)


def test_entropy_and_uniform() -> None:
    law = uniform(5)
    assert law.pmf.entropy == pytest.approx(math.log(11))
    assert law.delta(3.0) == pytest.approx(1 / 11)
    assert law.pmf.variance == pytest.approx(10)
    assert law.rho is None


@given(EPSILONS, BOUNDS)
def test_the_general_mechanism_contains_the_named_ones(epsilon: float, m: int) -> None:
    v = range(-m, m + 1)
    laplace = exponential_mechanism(epsilon, [-abs(x) for x in v], -m)
    assert np.allclose(laplace.pmf.p, truncated_laplace(epsilon, m).pmf.p, rtol=1e-12)
    normal = exponential_mechanism(epsilon, [-x * x for x in v], -m)
    assert np.allclose(normal.pmf.p, truncated_normal(epsilon, m).pmf.p, rtol=1e-12)
    assert laplace.delta(epsilon) == pytest.approx(laplace.pmf.at(m), rel=1e-9)


@given(st.floats(0.2, 4.0), st.integers(0, 12))
def test_negatives_to_zero(epsilon: float, count: int) -> None:
    row = truncated_laplace(epsilon, 7).row(count)
    clipped = row.negatives_to_zero()
    assert clipped.p.sum() == pytest.approx(1)
    assert clipped.first >= 0
    assert clipped.at(0) == pytest.approx(row.cdf(0))
    for loss in Loss:
        assert clipped.expected_loss(count, loss) <= row.expected_loss(count, loss) + 1e-12
    assert clipped.mean >= count - 1e-9


def test_losses_by_hand() -> None:
    row = uniform(1).row(1)  # 0, 1, 2 with a third each
    assert row.expected_loss(1, Loss.L1) == pytest.approx(2 / 3)
    assert row.expected_loss(1, Loss.L2) == pytest.approx(2 / 3)
    assert row.expected_loss(1, Loss.L3) == pytest.approx((1 + math.sqrt(2) - 1) / 3)
    zero = uniform(1).row(0)  # -1 has the root -1
    assert zero.expected_loss(0, Loss.L3) == pytest.approx(2 / 3)
    assert zero.negatives_to_zero().expected_loss(0, Loss.L3) == pytest.approx(1 / 3)


def test_transition_matrix() -> None:
    matrix = transition_matrix(truncated_laplace(1, 2), range(4))
    assert matrix.first == -2
    assert matrix.p.shape == (4, 8)
    assert np.allclose(matrix.p.sum(axis=1), 1)
    assert matrix.p[3, 5] == truncated_laplace(1, 2).pmf.at(0)


@pytest.mark.parametrize("epsilon", [0, -1, "0", float("nan"), float("inf"), "x"])
def test_parameters_that_make_no_law_are_refused(epsilon: Number) -> None:
    with pytest.raises(Mistakes, match="epsilon"):
        discrete_laplace(epsilon)


def test_bounds_and_widths_that_make_no_law_are_refused() -> None:
    with pytest.raises(Mistakes, match="bound"):
        truncated_laplace(1, 0)
    with pytest.raises(Mistakes, match="less noise"):
        _ = discrete_laplace(Fraction(1, 10**9)).pmf
    with pytest.raises(Mistakes, match="delta"):
        matched_truncation(1, 0)
    with pytest.raises(Mistakes, match="utilities"):
        exponential_mechanism(1, [0], 0)


def test_a_float_means_the_decimal_that_it_is_written_as() -> None:
    assert discrete_laplace(0.1).epsilon_parameter == Fraction(1, 10)
    assert discrete_laplace(0.1) == discrete_laplace("0.1") == discrete_laplace(Fraction(1, 10))


def test_numbers_of_numpy_are_read_like_others() -> None:
    assert discrete_laplace(np.float64(0.1)) == discrete_laplace(0.1)
    assert float(discrete_laplace(np.float64(0.1)).pmf.variance) > 0


def test_a_bound_whose_values_are_one_too_many_is_refused() -> None:
    with pytest.raises(Mistakes, match=f"{LARGEST_SUPPORT + 1} possible values"):
        uniform(LARGEST_SUPPORT // 2)
