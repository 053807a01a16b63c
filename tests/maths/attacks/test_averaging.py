import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.averaging import (
    chebyshev,
    chebyshev_contour,
    contour,
    exact_success,
    geometric_epsilon,
    laplace_epsilon,
    least_variance,
    success,
)
from discreet.maths.attacks.bounds import maximum_entropy
from discreet.maths.noise.additive import discrete_laplace


def test_the_paper_s_example() -> None:
    """Footnote 35: V = 2, k = 1000, t = 100 succeeds in 73.6 %; samples gave 741 and 725 of 1000."""
    assert success(2, 1000 / 100**2) == pytest.approx(0.736, abs=5e-4)
    for bound in (5, 10):
        found = exact_success(maximum_entropy(2, bound), 1000, 100)
        assert found == pytest.approx(0.73165, abs=1e-5)


def test_the_contour_of_68_per_cent() -> None:
    assert contour(0.68) == pytest.approx(0.2528, abs=5e-5)
    assert least_variance(0.0867, 0.68) == pytest.approx(2.92, abs=5e-3)
    assert laplace_epsilon(least_variance(0.0118, 0.68)) == pytest.approx(0.306, abs=5e-4)
    assert success(1, contour(0.68)) == pytest.approx(0.68)
    assert chebyshev(1, chebyshev_contour(0.68)) == pytest.approx(0.68)


@given(st.floats(0.01, 5))
def test_the_epsilon_of_a_variance_gives_that_variance(epsilon: float) -> None:
    assert geometric_epsilon(discrete_laplace(epsilon).pmf.variance) == pytest.approx(epsilon, rel=1e-6)


@given(st.floats(0.01, 50), st.floats(1e-4, 10))
def test_chebyshev_is_a_lower_limit(variance: float, ratio: float) -> None:
    assert 0 <= chebyshev(variance, ratio) <= success(variance, ratio) + 1e-12 <= 1 + 2e-12


def test_the_exact_probability_is_that_of_sums() -> None:
    noise, law = maximum_entropy(2, 3), np.ones(1)
    for _ in range(6):
        law = np.convolve(law, noise.p)
    near = [p for v, p in zip(range(-18, 19), law, strict=True) if abs(v) < 2.5]
    assert exact_success(noise, 6, 5) == pytest.approx(sum(near), abs=1e-12)
    assert exact_success(noise, 10**9, 5) is None


@pytest.mark.parametrize("within", [0.5, 1.5, 3.0])
def test_chebyshev_divides_by_the_square_of_the_distance(within: float) -> None:
    assert chebyshev(1, 0.05, within) == pytest.approx(1 - 0.05 / within**2)
    assert chebyshev(1, chebyshev_contour(0.68, within), within) == pytest.approx(0.68)
